"""`turnstile telemetry`: the clients that push metrics of their own (KIP-714), and what one of them pushed last."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from turnstile.admin_client import AdminClient
from turnstile.cli.cluster_command import with_cluster
from turnstile.cli.output import show_json, show_table

if TYPE_CHECKING:
    from broker.admin.answers import ClientInstance, TelemetryPush


@click.command()
@click.argument("client_instance_id", required=False)
@with_cluster
def telemetry(cluster: AdminClient, client_instance_id: str | None, as_json: bool) -> None:
    """Show the clients that push metrics (KIP-714), or the last metrics that CLIENT_INSTANCE_ID pushed.

    \b
    kafka-client-metrics.sh --bootstrap-server localhost:9092 --alter --name all --metrics '*' --interval 10000
    turnstile telemetry
    turnstile telemetry lnVgLzdWSG2EvT4DSKFyPw

    A client pushes the metrics that a client metrics resource subscribes to, as the first command sets one up.
    """
    path = "/v1/telemetry" if client_instance_id is None else f"/v1/telemetry/{client_instance_id}"
    found = cluster.get(path)
    if as_json:
        show_json(found)
    elif client_instance_id is not None:
        _show_metrics(found)
    elif not found["client_instances"]:
        click.echo("no client has asked for a subscription")
    else:
        header = ("CLIENT INSTANCE", "CLIENT ID", "SOFTWARE", "INTERVAL", "PUSHES", "BYTES", "REFUSED")
        show_table([header, *map(_row, found["client_instances"])])


def _row(each: ClientInstance) -> tuple[str, ...]:
    software = f"{each['client_software_name']} {each['client_software_version']}"
    interval = (
        "gone" if not each["connected"] else f"{each['push_interval_ms']} ms" if each["metrics"] else "nothing asked"
    )
    refused = ", ".join(f"{times} {name}" for name, times in each["refused"].items()) or "-"
    return (
        each["client_instance_id"], each.get("client_id", ""), software, interval, str(each["pushes"]), str(each["bytes"]),
        refused,
    )  # fmt: skip


def _show_metrics(push: TelemetryPush) -> None:
    at = datetime.fromtimestamp(push["pushed_at_ms"] / 1000)
    click.echo(f"pushed at {at:%Y-%m-%d %H:%M:%S}" + (f"; {push['error']}" if push["error"] else ""))
    rows = [("METRIC", "VALUE", "OF")]
    for each in push["metrics"]:
        value = each["value"] if "value" in each else f"{each.get('count', 0)} of sum {each.get('sum', 0)}"
        labels = {**each.get("resource", {}), **each.get("attributes", {})}
        rows.append((each["name"], f"{value}", " ".join(f"{name}={text}" for name, text in labels.items())))
    show_table(rows)
