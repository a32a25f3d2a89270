"""`turnstile health`: whether a cluster answers. Without options, turnstile/entry.py takes the shorter way."""

from __future__ import annotations

import click

from turnstile.cli.cluster_command import admin_option
from turnstile.cli.output import CommandFailed, show_json
from turnstile.cli.waiting import until
from turnstile.health import address, unhealthy


@click.command()
@admin_option
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(0),
    default=0.0,
    metavar="SECONDS",
    help="Wait so long until it is healthy.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def health(admin: str, wait_s: float, as_json: bool) -> None:
    """Check whether a cluster and all its processes answer. Exit code 0 if they do, else 1. It needs no token.

    \b
    turnstile health
    turnstile health --wait 10 --admin http://localhost:9644
    """
    try:
        host, port = address(admin)
    except ValueError as fault:
        raise click.UsageError(str(fault)) from None
    if not until(lambda: unhealthy(host, port) is None, within_s=wait_s, what="the cluster is not healthy yet"):
        raise CommandFailed(unhealthy(host, port) or "the cluster became healthy too late")
    if as_json:
        show_json({"status": "ok"})
    else:
        click.echo("healthy")
