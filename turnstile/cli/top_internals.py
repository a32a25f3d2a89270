"""The second screen of `turnstile top`: how the shards share each limit, in the words of docs/internals/tokens.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from turnstile.cli.top_table import table
from turnstile.quantities import count, percent

if TYPE_CHECKING:
    from broker.admin.live_answers import LiveAnswer


def decisions(live: LiveAnswer) -> Table:
    """Tokens of all pools, and where connections were decided."""
    totals = live["totals"]
    tokens, decided = totals["tokens"], totals["decisions"]
    shown = table("tokens and decisions", ("", ""), ("", "r"), ("", "r"))
    for what, number in (
        ("tokens in use", tokens["in_use"]),
        ("tokens cached", tokens["cached"]),
        ("pools", tokens["pools"]),
        ("reclaims", totals["reclaims"]),
    ):
        shown.add_row(what, count(number), "")
    every = sum(decided.values()) or 1
    for path in ("home", "cached", "rpc"):
        shown.add_row(f"decided {path}", count(decided[path]), percent(round(100 * decided[path] / every)))
    return shown


def shard_tokens(live: LiveAnswer) -> Table:
    """The tokens of each shard."""
    shown = table("tokens by shard", ("broker/shard", ""), ("in use", "r"), ("cached", "r"))
    for row in live["shards"]:
        tokens = row["tokens"]
        shown.add_row(f"{row['broker']}/{row['shard']}", count(tokens["in_use"]), count(tokens["cached"]))
    return shown
