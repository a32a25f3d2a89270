"""Tables of `turnstile top`: their style, and how they stand beside each other."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

_GAP = 3


def table(title: str, *columns: tuple[str, str]) -> Table:
    """`columns`: (heading, "r" to align its cells to the right)."""
    made = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False
    )
    made.show_header = any(name for name, _ in columns)
    for name, side in columns:
        made.add_column(name, justify="right" if side else "left", header_style="dim", no_wrap=True)
    return made


def packed(tables: list[Table], console: Console) -> list[Table]:
    """Tables beside each other, as many in a row as fit."""
    rows: list[list[Table]] = []
    left = 0
    for each in tables:
        needs = console.measure(each).maximum + _GAP
        if needs > left or not rows:
            rows.append([])
            left = console.width
        rows[-1].append(each)
        left -= needs
    grids = []
    for row in rows:
        grid = Table.grid(padding=(0, _GAP))
        grid.add_row(*row)
        grids.append(grid)
    return grids
