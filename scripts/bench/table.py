"""The rows of a benchmark run, on the terminal and as Markdown."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table


class Row(NamedTuple):
    """One figure. `peers`: what the others did in the same run, and the ratio to them. `met`: None where no budget is."""

    what: str
    value: str
    peers: str = ""
    budget: str = ""
    met: bool | None = None


def show(rows: Iterable[Row]) -> None:
    """The table on the terminal."""
    table = Table(title="Turnstile benchmarks", title_justify="left")
    for heading in ("what", "measured", "peers in the same run", "budget", ""):
        table.add_column(heading, overflow="fold")
    for row in rows:
        verdict = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}[row.met]
        table.add_row(row.what, row.value, row.peers, row.budget, verdict)
    console = Console()
    if not console.is_terminal:
        console.width = 150
    console.print(table)


def write(rows: Iterable[Row], path: Path) -> None:
    """Replace the table in `path`, between its two marks; everything around it is written by hand and stays."""
    begin, end = "<!-- table: make bench -->", "<!-- end of table -->"
    lines = [
        begin,
        f"Measured {datetime.now(UTC):%Y-%m-%d} on {os.cpu_count()} cores, Linux {platform.release().split('-')[0]}, "
        f"Python {platform.python_version()}; server and client share the machine.",
        "",
        "| what | measured | peers in the same run | budget | |",
        "|---|---|---|---|---|",
    ]
    verdicts = {True: "met", False: "**missed**", None: ""}
    lines += [f"| {row.what} | {row.value} | {row.peers} | {row.budget} | {verdicts[row.met]} |" for row in rows]
    table = "\n".join([*lines, end])
    text = path.read_text() if path.exists() else f"# Benchmarks\n\n{begin}\n{end}\n"
    before, _, rest = text.partition(begin)
    path.write_text(before + table + rest.partition(end)[2])
