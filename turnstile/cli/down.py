"""`turnstile down`: ends a running cluster."""

from __future__ import annotations

import click

from shards.supervisor.progress import is_alive
from turnstile.admin_client import AdminClient
from turnstile.cli.cluster_command import with_cluster
from turnstile.cli.output import CommandFailed, show_json
from turnstile.cli.waiting import until

_END_WITHIN_S = 30.0


@click.command()
@with_cluster
def down(cluster: AdminClient, as_json: bool) -> None:
    """End a running cluster, and wait until it has ended."""
    pid = cluster.get("/v1/cluster")["pid"]
    cluster.post("/v1/shutdown")
    if not until(lambda: not is_alive(pid), within_s=_END_WITHIN_S, what="the cluster is ending"):
        raise CommandFailed(f"the cluster (pid {pid}) did not end within {_END_WITHIN_S:.0f} s")
    if as_json:
        show_json({"ended": True, "pid": pid})
    else:
        click.echo(f"Stopped the cluster at {cluster.url}.")
