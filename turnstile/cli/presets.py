"""`turnstile presets`: what managed clusters publish of their limits, and which of them `up --like` emulates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from turnstile.cli import completion
from turnstile.cli.cluster_command import json_option
from turnstile.cli.param_type import ParamType

if TYPE_CHECKING:
    from rich.table import Table

    from turnstile.presets import PresetLimit


class Preset(ParamType[str]):
    """The name of a preset."""

    name = "name"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from shards.settings.near_misses import near_misses
        from turnstile.presets import presets

        if value not in presets():
            near = near_misses(str(value), presets(), most=3)
            rather = f"did you mean {' or '.join(near)}?" if near else "`turnstile presets` lists them"
            self.fail(f"there is no preset {value!r}: {rather}", param, ctx)
        return str(value)


@click.command()
@click.argument("name", type=Preset(), required=False, shell_complete=completion.presets)
@click.option(
    "--brokers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="The number of brokers that the limits are for.",
)
@json_option
def presets(name: str | None, brokers: int, as_json: bool) -> None:
    """List the managed clusters that `turnstile up --like NAME` emulates, or the published limits of one.

    \b
    turnstile presets
    turnstile presets msk-serverless
    """
    from rich.console import Console

    from turnstile import presets as table

    found = table.presets()
    if name is None:
        if as_json:
            click.echo(json.dumps({"presets": list(found)}))
            return
        width = max(map(len, found))
        for each, rows in found.items():
            emulated = [row.setting for row in rows if row.is_emulated]
            click.echo(
                f"{each:<{width}}  {len(emulated)} of {len(rows)} limits: {', '.join(emulated) or 'none emulated'}"
            )
        return
    rows = found[name]
    if as_json:
        click.echo(json.dumps({"preset": name, "limits": [_told(row, brokers) for row in rows]}))
        return
    console = Console()
    if not console.is_terminal:
        console.width = 200  # a setting and its value are one word
    console.print(_table(rows, brokers))
    for source in dict.fromkeys(f"{row.source}, read {row.read}" for row in rows):
        console.print(source, highlight=False, markup=False, soft_wrap=True)


def _told(row: PresetLimit, brokers: int) -> dict[str, object]:
    here = row.value_of_broker(brokers) if row.is_emulated else None
    return {**row._asdict(), "setting": row.setting or None, "value_of_broker": here, "divided": row.is_divided}


def _table(rows: Sequence[PresetLimit], brokers: int) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("limit", "value", "of", "beyond it", "here", "note"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        here = f"{row.setting}={row.value_of_broker(brokers)}" if row.is_emulated else "not emulated"
        value = f"{float(row.value):,.10g} {row.unit}" if row.value != "unknown" else f"unknown {row.unit}"
        table.add_row(row.limit, value, row.scope, row.on_exceed, here, row.sentence(brokers))
    return table
