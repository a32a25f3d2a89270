"""`turnstile connections`: the open connections of all brokers, by the filter and the order of Redpanda's ListKafkaConnections."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from turnstile.admin_client import AdminClient
from turnstile.cli.cluster_command import with_cluster
from turnstile.cli.output import show_json, show_table
from turnstile.quantities import count, duration

if TYPE_CHECKING:
    from broker.admin.listed_answers import ListedConnection

_CALL = "/redpanda.core.admin.v2.ClusterService/ListKafkaConnections"
_HEADINGS = ("client id", "user", "address", "listener", "software", "broker/shard", "open for", "idle", "requests")


@click.command()
@click.option("--client-id", help="Only connections with this client id.")
@click.option("--user", help="Only connections that have logged in as this user.")
@click.option("--ip", help="Only connections from this address.")
@click.option("--filter", "filter_", metavar="TEXT", help="Only connections that match, such as 'idle_duration > 30s'.")
@click.option("--order-by", metavar="TEXT", default="", help="The order, such as 'idle_duration desc, source.port'.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="The most connections to list."
)
@with_cluster
def connections(
    cluster: AdminClient,
    client_id: str | None,
    user: str | None,
    ip: str | None,
    filter_: str | None,
    order_by: str,
    limit: int,
    as_json: bool,
) -> None:
    """List open connections: client, user and address, how long they are open and idle, and their number of requests.

    Filter and order are those of `rpk cluster connections list`. A filter has conditions joined by AND, on the fields node_id,
    shard_id, uid, open_time, authentication_info.state, authentication_info.user_principal, listener_name, tls_info.enabled,
    source.ip_address, source.port, client_id, client_software_name, client_software_version, idle_duration,
    in_flight_requests.has_more_requests and total_request_statistics.request_count. Refused connections are in `turnstile top`
    and `turnstile report`.

    \b
    turnstile connections
    turnstile connections --ip 10.0.0.1 --order-by 'idle_duration desc'
    turnstile connections --filter 'client_id = "app" AND total_request_statistics.request_count > 100'
    """
    named = {"client_id": client_id, "authentication_info.user_principal": user, "source.ip_address": ip}
    tests = [f"{field} = {json.dumps(value)}" for field, value in named.items() if value is not None]
    tests += [filter_] if filter_ else []
    found = cluster.post(_CALL, {"filter": " AND ".join(tests), "orderBy": order_by, "pageSize": limit})
    if as_json:
        show_json(found)
        return
    shown, total = found["connections"], int(found["totalSize"])
    if not shown:
        click.echo("No open connection matches." if tests else "No connection is open.", err=True)
        return
    show_table([_HEADINGS, *map(_row, shown)])
    if total > len(shown):
        click.echo(f"{count(len(shown))} of {count(total)} are listed", err=True)


def _row(each: ListedConnection) -> tuple[str, ...]:
    proven, source = each["authenticationInfo"], each["source"]
    host = f"[{source['ipAddress']}]" if ":" in source["ipAddress"] else source["ipAddress"]
    opened = datetime.fromisoformat(f"{each['openTime'][:26]}+00:00")
    return (
        each["clientId"] or "-",
        proven["userPrincipal"] or "-",
        f"{host}:{source['port']}",
        each["listenerName"] + (" (TLS)" if each["tlsInfo"]["enabled"] else ""),
        " ".join(filter(None, (each["clientSoftwareName"], each["clientSoftwareVersion"]))) or "-",
        f"{each['nodeId']}/{each['shardId']}",
        duration(max(0.0, (datetime.now(UTC) - opened).total_seconds() * 1000)),
        "busy" if each["inFlightRequests"]["hasMoreRequests"] else duration(float(each["idleDuration"][:-1]) * 1000),
        count(int(each["totalRequestStatistics"]["requestCount"])),
    )
