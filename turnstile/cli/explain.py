"""`turnstile explain`: which cap, override, rate and quota hold for an address or a client, and how much is used."""

from __future__ import annotations

from ipaddress import ip_address

import click

from turnstile.admin_client import AdminClient
from turnstile.cli import completion
from turnstile.cli.cluster_command import with_cluster
from turnstile.cli.output import show_json, show_table
from turnstile.cli.suggest import did_you_mean
from turnstile.cli.use_rows import address_rows, client_rows, cluster_rows, user_rows

_KINDS = ("ip", "user", "client-id")


@click.command()
@click.argument(
    "words",
    nargs=-1,
    required=True,
    metavar="ip=ADDRESS | user=NAME client-id=NAME",
    shell_complete=completion.entity_words(),
)
@click.option(
    "--internals", is_flag=True, help="Also show the shards: the home of each pool, and the tokens that each shard has."
)
@with_cluster
def explain(cluster: AdminClient, words: tuple[str, ...], internals: bool, as_json: bool) -> None:
    """Show the limits that hold for an address or a client: the setting that each comes from, and its use.

    A limit or quota holds on each broker by itself, so it has a row for each broker; a limit of the whole cluster has one row.

    \b
    turnstile explain ip=127.1.0.1     (or 127.1.0.1 alone)
    turnstile explain user=alice client-id=app
    """
    asked: dict[str, str] = {}
    for word in words:
        kind, equals, name = (f"ip={word}" if _is_address(word) else word).partition("=")
        if not equals or kind not in _KINDS:
            rather = did_you_mean(kind, _KINDS) if equals else ""
            raise click.UsageError(f"{word!r} is not {', '.join(f'{each}=...' for each in _KINDS)}{rather}")
        asked[kind] = name
    found = cluster.get("/v1/explain", **asked)
    if as_json:
        show_json(found)
        return
    of_cluster = cluster_rows(found, internals=internals)
    if "brokers" in found:
        show_table(address_rows(found["brokers"], of_cluster, internals=internals))
        of_cluster = []  # once
    of_user = user_rows(found.get("user_connections", ()), of_cluster, internals=internals)
    if of_user:
        show_table(of_user)
    if "client" in found:
        show_table(client_rows(found["client"]) or [("client", "no quota holds for this client")])


def _is_address(word: str) -> bool:
    try:
        return bool(ip_address(word))
    except ValueError:
        return False
