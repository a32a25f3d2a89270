"""`turnstile status` and `turnstile down`: a running cluster, found by its admin API."""

from __future__ import annotations

import time

import click

from turnstile.cli.admin_client import AdminClient, CommandFailed, show_json, with_cluster

_END_WITHIN_S = 30.0


@click.command()
@with_cluster
def status(cluster: AdminClient, as_json: bool) -> None:
    """Show the processes of a running cluster, and how many connections each has open."""
    about = cluster.get("/v1/cluster")
    shards = cluster.get("/v1/shards")["shards"]
    if as_json:
        show_json({**about, "members": shards})
        return
    click.echo(f"Turnstile at {cluster.url} (pid {about['pid']}, coordinator {about['coordinator_pid']})")
    for listener in about["listeners"]:
        click.echo(f"  {listener['name']:<12} {listener['address']}   broker {listener['broker']}")
    click.echo(f"  {'data':<12} {about['data_dir']}")
    click.echo(f"  {'broker':>6} {'shard':>6} {'pid':>8} {'epoch':>6} {'state':<9} {'connections':>11} {'version':>8}")
    for each in shards:
        click.echo(
            f"  {each['broker']:>6} {each['shard']:>6} {each['pid']:>8} {each['epoch']:>6} {each['state']:<9} "
            f"{each['connections']:>11} {each['config_version']:>8}"
        )


@click.command()
@with_cluster
def down(cluster: AdminClient, as_json: bool) -> None:
    """End a running cluster, and wait until it has ended."""
    pid = cluster.get("/v1/cluster")["pid"]
    cluster.post("/v1/shutdown")
    deadline = time.monotonic() + _END_WITHIN_S
    while _alive(pid):
        if time.monotonic() > deadline:
            raise CommandFailed(f"the cluster (pid {pid}) did not end within {_END_WITHIN_S:.0f} s")
        time.sleep(0.02)  # not our child: nothing tells when it ends
    if as_json:
        show_json({"ended": True, "pid": pid})
    else:
        click.echo(f"The cluster at {cluster.url} has ended.")


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
