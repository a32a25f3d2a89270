"""Words that were mistyped, and the name that was probably meant: for commands, and for names in arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click import Command, Context


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """`; did you mean NAME?`, or nothing where no name is close."""
    from shards.settings.near_misses import near_misses

    near = near_misses(word, list(names))
    return f"; did you mean {near[0]}?" if near else ""


class Commands(click.Group):
    """A group that names the command which was probably meant. click does so by itself from 8.4 on, for some groups."""

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        word = args[0]
        if not ctx.resilient_parsing and not word.startswith("-") and self.get_command(ctx, word) is None:
            names = self.list_commands(ctx)
            ctx.fail(f"No such command {word!r}{did_you_mean(word, names) or ': it is one of ' + ', '.join(names)}")
        return super().resolve_command(ctx, args)
