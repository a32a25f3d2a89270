"""`turnstile top`: a live view of a running cluster in the terminal."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

import click

from turnstile.admin_client import AdminClient
from turnstile.cli.cluster_command import with_cluster

if TYPE_CHECKING:
    from broker.admin.live_answers import LiveAnswer

_ANSWER_WITHIN_S = 2.0


@click.command()
@click.option(
    "--interval", type=click.FloatRange(0.2, 60), default=1.0, show_default=True, help="Seconds between views."
)
@click.option("--once", is_flag=True, help="Show one view and end. The default if the output is not a terminal.")
@click.option("--internals", is_flag=True, help="Begin with the view of tokens: how the shards share the limits.")
@with_cluster
def top(cluster: AdminClient, interval: float, once: bool, internals: bool, as_json: bool) -> None:
    """Watch connections, the use of limits, refusals and throttles, live.

    q or Ctrl-C ends the view. i switches to the view of tokens, which shows how the shards share the limits, and back. All rates
    are over the last second. While the cluster restarts, the view waits for it.

    \b
    turnstile top
    turnstile top --once
    turnstile top --json            one JSON line every interval, for programs
    """

    def ask(**query: float) -> LiveAnswer:
        live: LiveAnswer = cluster.get("/v1/live", **query)
        return live

    if as_json:
        while True:
            click.echo(json.dumps(ask(since=time.time() - interval - 1)))
            if once:
                return
            time.sleep(interval)
    if once or not sys.stdout.isatty():
        from turnstile.cli.top_screen import show_once

        show_once(ask(), internals=internals)
    else:
        from turnstile.cli.top_loop import watch

        cluster.timeout_s = _ANSWER_WITHIN_S  # while it waits, no key is read
        watch(ask, interval, internals=internals)
