"""`turnstile status`: the processes of a running cluster, as its admin API tells them."""

from __future__ import annotations

import click

from turnstile.admin_client import AdminClient
from turnstile.cli.cluster_command import with_cluster
from turnstile.cli.output import show_json


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
