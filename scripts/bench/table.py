"""The rows of a benchmark run, on the terminal and as Markdown."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table


class Row(NamedTuple):
    """One figure. `peers`: what the others did in the same run, and the ratio to them. `met`: None where no budget is.

    `scores`: ratios to the others by name, the larger the better: our rate over theirs, their CPU time over ours (guard.py).
    """

    what: str
    value: str
    peers: str = ""
    budget: str = ""
    met: bool | None = None
    scores: Mapping[str, float] = {}


COLUMNS = ("what", "measured", "peers in the same run", "budget", "")


def show(rows: Iterable[Row]) -> None:
    """The budget's table on the terminal."""
    verdicts = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}
    show_plain("Turnstile benchmarks", COLUMNS, [(*row[:4], verdicts[row.met]) for row in rows])


def show_plain(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Any table on the terminal."""
    table = Table(title=title, title_justify="left")
    for heading in columns:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = Console()
    if not console.is_terminal:
        console.width = 150
    console.print(table)


def write(rows: Iterable[Row], path: Path) -> None:
    """The budget's table in `path`; see write_plain."""
    verdicts = {True: "met", False: "**missed**", None: ""}
    write_plain(COLUMNS, [(*row[:4], verdicts[row.met]) for row in rows], path)


def write_plain(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    path: Path,
    *,
    mark: str = "table",
    where: str = "server and client share the machine",
) -> None:
    """Replace a table in `path`, between its two marks; everything around it is written by hand and stays."""
    begin, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    lines = [
        begin,
        f"Measured {datetime.now(UTC):%Y-%m-%d} on {os.cpu_count()} cores, Linux {platform.release().split('-')[0]}, "
        f"Python {platform.python_version()}; {where}.",
        "",
        *(f"| {' | '.join(cells)} |" for cells in (columns, ["---"] * len(columns), *rows)),
    ]
    text = path.read_text() if path.exists() else f"{begin}\n{end}\n"
    before, _, rest = text.partition(begin)
    path.write_text(before + "\n".join([*lines, end]) + rest.partition(end)[2])


def read_plain(columns: Sequence[str], path: Path, *, mark: str) -> list[tuple[str, ...]]:
    """The rows that write_plain has put there; none where the table has other columns."""
    text = path.read_text().partition(f"<!-- {mark} -->")[2].partition(f"<!-- end of {mark} -->")[0]
    lines = [tuple(map(str.strip, line[1:-1].split("|"))) for line in text.splitlines() if line.startswith("|")]
    return lines[2:] if lines and lines[0] == tuple(columns) else []
