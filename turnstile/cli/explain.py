"""`turnstile explain`: which cap, override, rate and quota hold for an address or a client, how much is used, and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from turnstile.admin_client import AdminClient
from turnstile.cli.cluster_command import with_cluster
from turnstile.cli.output import ENTITY_TYPES, show_json, show_table


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="ip=ADDRESS | user=NAME client-id=NAME")
@with_cluster
def explain(cluster: AdminClient, words: tuple[str, ...], as_json: bool) -> None:
    """Show which limits hold for an address or a client, where each comes from, how much is used and which shard has it.

    \b
    turnstile explain ip=127.1.0.1
    turnstile explain user=alice client-id=app
    """
    asked: dict[str, str] = {}
    for word in words:
        kind, equals, name = word.partition("=")
        if not equals or kind not in ENTITY_TYPES:
            raise click.UsageError(f"{word!r} is not {', '.join(f'{each}=...' for each in ENTITY_TYPES)}")
        asked[kind] = name
    found = cluster.get("/v1/explain", **asked)
    if as_json:
        show_json(found)
        return
    several = len(found.get("brokers", ())) > 1
    for broker in found.get("brokers", ()):
        if several:
            click.echo(f"broker {broker['broker']}")
        show_table([*map(_pool, broker["connections"]), *map(_rate, broker["rates"])])
    if "client" in found:
        show_table(list(_quotas(found["client"])) or [("client", "no quota holds for it")])


def _pool(pool: Mapping[str, Any]) -> tuple[str, ...]:
    if pool["value"] is None:
        limit = "no cap"
    else:
        limit = f"{pool['value']} by {pool['limit']}" + (", over it a connection waits" if pool["waits"] else "")
    holders = ", ".join(f"shard {each['shard']}: {each['in_use']}+{each['cached']}" for each in pool["holders"])
    home = "" if pool["home"] is None else f"home: shard {pool['home']}"
    used = "; ".join(part for part in (f"{pool['in_use']} open, {pool['cached']} cached", home, holders) if part)
    return "connections", pool["pool"], limit, used


def _rate(rate: Mapping[str, Any]) -> tuple[str, ...]:
    return "rate", rate["of"], f"{rate['value']:g} a second by {rate['limit']}", ""


def _quotas(client: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, value in client["quotas"].items():
        level = " ".join(f"{kind}={each}" for kind, each in client["levels"][name].items() if each is not None)
        rate = client["rates"].get(name)
        yield "quota", name, f"{value:g} of {level}", "" if rate is None else f"{rate:.4g} used now"
