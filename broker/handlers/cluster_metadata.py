"""The cluster as clients see it: its brokers, the endpoint of each, and the broker that coordinates a group."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from shards.config.image import ClusterImage
from shards.config.internal_topics import leader_of, partition_of

WILDCARDS = ("", "0.0.0.0", "::")


class BrokerEndpoint(NamedTuple):
    host: str
    port: int


class ClusterMetadata:
    """Broker `me` of `brokers`, numbered from 0. Addresses come from the image: advertised.listeners of each broker.

    Given once for all brokers (`--set advertised.listeners=...`), broker b has the port plus b, as with `--listener`.
    A listener bound to every address is advertised as localhost, unless advertised.listeners says otherwise.
    """

    controller = 0  # the coordinator takes changes from any broker; clients need one name

    def __init__(self, image: ClusterImage, me: int, brokers: int, cluster_id: str) -> None:
        self._image = image
        self.me = me
        self.brokers = brokers
        self.cluster_id = cluster_id

    def endpoint(self, broker: int, listener: str) -> BrokerEndpoint:
        """Where clients of `listener` reach `broker`."""
        static = self._image.static
        shared = _parse(static.get("/advertised.listeners", "")).get(listener)
        if shared is not None:
            return BrokerEndpoint(shared.host, shared.port + broker)
        host, port = _parse(static.get(f"{broker}/advertised.listeners", "")).get(
            listener, BrokerEndpoint("localhost", 0)
        )
        return BrokerEndpoint("localhost" if host in WILDCARDS else host, port)

    def rack(self, broker: int) -> str | None:
        static = self._image.static
        return static.get(f"{broker}/broker.rack", static.get("/broker.rack"))

    def coordinator(self, key: str) -> int:
        """The broker that coordinates a group, or a transactional id."""
        return leader_of(partition_of(key), self.brokers)

    def coordinates(self, key: str) -> bool:
        """Whether that is this broker."""
        return self.coordinator(key) == self.me


@lru_cache(maxsize=256)
def _parse(text: str) -> dict[str, BrokerEndpoint]:
    """`NAME://host:port,...` by name; an entry that can't be read is left out (the settings were validated before)."""
    found = {}
    for entry in text.split(","):
        name, separator, address = entry.strip().partition("://")
        host, _, port = address.rpartition(":")
        if separator and port.isdigit():
            found[name] = BrokerEndpoint(host.strip("[]"), int(port))
    return found
