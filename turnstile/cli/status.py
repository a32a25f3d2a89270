"""`turnstile status`: the processes of a running cluster, as its admin API tells them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from broker.process.cluster_names import NamedCluster, running
from broker.runtime.printable import printable
from turnstile.admin_client import AdminClient, AdminUnreachable
from turnstile.cli.advertise import told_address
from turnstile.cli.cluster_command import is_chosen, with_cluster
from turnstile.cli.output import show_json, show_table
from turnstile.journal_text import journal_lines
from turnstile.observed_text import observed_line
from turnstile.quantities import use
from turnstile.use_text import close_text, use_text

if TYPE_CHECKING:
    from broker.admin.cluster_answers import ShardRow, VolumeAnswer
    from broker.admin.live_answers import LimitUse


@click.command()
@with_cluster
def status(cluster: AdminClient, as_json: bool) -> None:
    """Show the processes of a running cluster, their open connections, and the cap of each broker.

    It also lists the other named clusters of this user. If no cluster is chosen and none answers at the default port, it lists
    all of them.
    """
    named = running()
    try:
        about = cluster.get("/v1/cluster")
    except AdminUnreachable:
        if is_chosen() or not named:
            raise
        show_json({"named": [each._asdict() for each in named]}) if as_json else _show_named(named)
        return
    shards = cluster.get("/v1/shards")["shards"]
    damaged = cluster.get("/v1/damaged")["damaged"]
    advertised = cluster.get("/v1/advertise")["advertised"]
    others = [each for each in named if each.pid != about["pid"]]
    if as_json:
        listed = [each._asdict() for each in others]
        show_json({**about, "members": shards, "damaged": damaged, "advertised": advertised, "named": listed})
        return
    click.echo(f"Turnstile at {cluster.url} (pid {about['pid']}, coordinator {about['coordinator_pid']})")
    addresses = {(row["listener"], row["broker"]): row for row in advertised}
    for listener in about["listeners"]:
        row = addresses.get((listener["name"], listener["broker"]))
        where = (
            "" if row is None or row["address"] == listener["address"] else f"   clients are told {told_address(row)}"
        )
        click.echo(f"  {listener['name']:<12} {listener['address']}   broker {listener['broker']}{where}")
    click.echo(f"  {'data':<12} {about['data_dir']}")
    live = cluster.get("/v1/live", since=time.time())
    for line in _connections(shards, live["uses"]):
        click.echo(f"  {'connections':<12} {line}")
    if close := close_text(live["close"]):
        click.echo(f"  {'limits':<12} {close}")
    if live["observed"] is not None:
        click.echo(f"  {'observed':<12} {observed_line(live['observed'])}")
    _show_disk(about["disk"])
    for line in journal_lines(about["journal"]):
        click.echo(f"  {'journal':<12} {line}")
    for sentence in about["lost"]:
        click.echo(f"  {'lost':<12} {sentence}")
    for file in damaged[:_SHOWN]:
        click.echo(printable(f"  {'damaged':<12} {file['path']}   {file['size_bytes']} bytes, set aside"))
    if len(damaged) > _SHOWN:
        click.echo(f"  {'':<12} and {len(damaged) - _SHOWN} more: `turnstile status --json` lists all")
    show_table([_HEADINGS, *(_row(shard) for shard in shards)], indent="  ")
    if others:
        click.echo()
        _show_named(others)


def _show_named(named: Sequence[NamedCluster]) -> None:
    rows = [(each.name, " ".join(each.listeners), each.admin, str(each.pid)) for each in named]
    show_table([("name", "listeners", "admin", "pid"), *rows])
    click.echo(f"`turnstile status --name {named[0].name}` shows one of them")


def _connections(shards: Sequence[ShardRow], uses: Sequence[LimitUse]) -> Iterator[str]:
    """A line for each broker: what it has open, beside its cap; and one for each limit that all of them have together."""
    opened: Counter[int] = Counter()
    for shard in shards:
        opened[shard["broker"]] += shard["connections"]
    caps = {row["broker"]: row for row in uses if (row["what"], row["of"]) == ("connections", "broker")}
    for broker, number in sorted(opened.items()):
        cap = caps.get(broker)
        text = f"{use(number, None)} for all together" if cap is None else f"{use(number, cap['limit'])} by {cap['by']}"
        yield f"broker {broker}: {text}" if len(opened) > 1 else text
    for of_all in [row for row in uses if row["of"] == "cluster"]:
        what = "" if of_all["what"] == "connections" else "new connections, "
        yield f"the cluster: {what}{use_text(of_all)} by {of_all['by']}"


def _show_disk(disk: VolumeAnswer) -> None:
    """The free space of the disk, and the brokers that refuse Produce because it is too little."""
    if disk["free_bytes"] >= 0:
        click.echo(f"  {'disk':<12} {_gib(disk['free_bytes'])} of {_gib(disk['total_bytes'])} free")
    for broker in disk["brokers"]:
        if broker["full"]:
            least = f"less than the {_gib(broker['least_free_bytes'])} of storage_min_free_bytes"
            click.echo(f"  {'':<12} broker {broker['broker']} refuses Produce: {least}")


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 30):.1f} GiB"


_SHOWN = 20
"""Damaged files that people are shown."""
_HEADINGS = ("broker", "shard", "pid", "epoch", "state", "connections", "version", "started again")


def _row(shard: ShardRow) -> tuple[str, ...]:
    """One shard. A process that keeps ending is started again later and later, which its last column says."""
    again = str(shard["restarts"] or "-")
    if shard["memory_kills"]:
        again += f", {shard['memory_kills']} killed for want of memory"
    if shard["restart_in_s"] is not None:
        again += f", next in {shard['restart_in_s']:.1f} s"
    process = (shard["pid"], shard["epoch"], shard["state"], shard["connections"], shard["config_version"])
    return (*map(str, (shard["broker"], shard["shard"], *process)), again)
