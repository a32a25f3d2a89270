"""The default of --bootstrap for a run: the brokers of the cluster behind the admin API."""

from __future__ import annotations

from turnstile.admin_client import AdminClient, AdminError

DEFAULT = "127.0.0.1:9092"
_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}


def bootstrap_of(admin: AdminClient) -> str:
    """ "host:port,..." of each broker's first listener; DEFAULT if the admin API does not answer or names no listener."""
    try:
        listeners = admin.get("/v1/cluster")["listeners"]
        first = [row["address"] for row in listeners if row["name"] == listeners[0]["name"]]
    except (AdminError, IndexError, KeyError, TypeError):
        return DEFAULT
    return ",".join(_reachable(address) for address in first)


def _reachable(address: str) -> str:
    """The address to connect to for a listener's address: the loopback address if the listener is bound to all addresses."""
    host, _, port = address.rpartition(":")
    return f"{_EVERY_ADDRESS.get(host, host)}:{port}"
