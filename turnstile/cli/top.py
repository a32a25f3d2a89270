"""`turnstile top`: a live view of a running cluster in the terminal."""

from __future__ import annotations

import json
import sys
import time

import click

from turnstile.admin_client import AdminClient
from turnstile.cli.cluster_command import with_cluster


@click.command()
@click.option(
    "--interval", type=click.FloatRange(0.2, 60), default=1.0, show_default=True, help="Seconds between views."
)
@click.option("--once", is_flag=True, help="Show one view and end; what happens anyway when the output is no terminal.")
@with_cluster
def top(cluster: AdminClient, interval: float, once: bool, as_json: bool) -> None:
    """Watch rates, refusals and tokens as they happen; Ctrl-C ends it.

    \b
    turnstile top
    turnstile top --once
    turnstile top --json            one JSON line every interval, for programs
    """
    if as_json:
        while True:
            click.echo(json.dumps(cluster.get("/v1/live", since=time.time() - interval - 1)))
            if once:
                return
            time.sleep(interval)
    from turnstile.cli import top_screen as display

    if once or not sys.stdout.isatty():
        display.show_once(cluster.get("/v1/live"))
    else:
        display.watch(lambda: cluster.get("/v1/live"), interval)
