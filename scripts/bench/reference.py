"""The checkout whose speed the guard's bounds hold. What has fallen below a bound is measured beside it, in pairs of runs.

A bound is a ratio to a peer, and processors differ in what they cost an interpreter and a compiled peer: on another kind of machine
all ratios of a row may lie below their bounds. There, only what is slower than the reference is slower.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from scripts.bench import compare
from scripts.bench.machine import CannotMeasure
from scripts.bench.pairs import Figure, Row, figures

COMMIT = "d232bb2c3de52cc0284b79746d762bad35d97a21"
"""A commit of the day of the bounds, with an admin API that the benchmarks can still drive."""
ROWS = {
    "connections": ("connections",),
    "refusals": ("refusals", "refusals-1", "refusals-4"),
    "tls": ("tls",),
    "sasl": ("sasl",),
    "requests": ("api-versions", "metadata"),
    "metered": ("metered",),
    "shards": ("connections", "connections-8"),
    "produce": ("produce-100", "produce-1000"),
    "produce-tls": ("produce-tls",),
    "produce-sasl": ("produce-sasl",),
    "consume": ("consume-100", "consume-1000"),
}
"""Measure of run.py -> rows of compare.py."""
LEAST = 0.1
"""The part by which a figure may be worse than the reference's: two processes of the same code differ by up to 20 %, and their
median of ROUNDS by half of that."""
ROUNDS = 9


def checkout(root: Path) -> Path:
    """The reference with an environment of its own, in build/bench/reference of `root`; made at the first call, for minutes. Raises
    CannotMeasure."""
    folder = root / "build" / "bench" / "reference"
    if not (folder / ".git").exists():
        _run("git", "clone", "--quiet", "--shared", "--no-checkout", str(root), str(folder))
    _run("git", "-C", str(folder), "checkout", "--quiet", "--detach", COMMIT)
    _run("make", "-C", str(folder), "setup")
    return folder


def slower(names: Iterable[str], root: Path) -> Iterator[str]:
    """A sentence for each figure of these measures, which are in ROWS, that is worse than the reference's. A row of which a run
    fails is measured a second time. Raises CannotMeasure."""
    wanted = dict.fromkeys(row for name in names for row in ROWS[name])
    rows: Mapping[str, Row] = compare.rows((checkout(root), root), seconds=1.0)
    for row in wanted:
        try:
            measured = _measured(rows[row])
        except CannotMeasure as reason:
            print(f"{row}, once more: {reason}", file=sys.stderr)
            measured = _measured(rows[row])
        yield from worse(row, measured)


def _measured(row: Row) -> list[Figure]:
    with row() as pair:
        return list(figures(pair, ROUNDS))


def worse(row: str, measured: Iterable[Figure]) -> Iterator[str]:
    """A sentence for each figure whose ratio, and three quarters of the pairs, are on the wrong side of 1 by LEAST."""
    for figure in measured:
        is_rate = figure.name.endswith("/s")
        median, low, high = figure.ratio
        ratio, best = (median, high) if is_rate else (1 / median, 1 / low)
        if ratio < 1 - LEAST and best < 1:
            yield f"{row}: {figure.name}: {median:.3f} of the reference's ({low:.3f} .. {high:.3f})"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise CannotMeasure(f"{' '.join(command[:3])} ...: {(done.stderr or done.stdout).strip()[-300:]}")
