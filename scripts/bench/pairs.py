"""Two sides of one thing, measured in interleaved pairs of runs: before, after, after, before, and so on.

A machine that becomes slower or faster hits both sides alike, so the ratio of a pair says more than either figure.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple

from scripts.bench.rounds import Quartiles, quartiles

Measure = Callable[[], dict[str, float]]
"""One run against one checkout: figures by name, with the unit in the name."""


class Pair(NamedTuple):
    """One thing in both checkouts."""

    before: Measure
    after: Measure
    settle: Callable[[], None] = lambda: None  # waits until what the first runs have set going is over


Row = Callable[[], AbstractContextManager[Pair]]
"""Makes a Pair, for as long as it is measured."""


class Figure(NamedTuple):
    """A line of the table: medians of both sides, and the pairs' ratios."""

    name: str
    before: float
    after: float
    ratio: Quartiles


def figures(pair: Pair, rounds: int) -> Iterator[Figure]:
    """Runs both sides `rounds` times, the one that is first taking turns, after a run of each that does not count."""
    pair.before(), pair.after()
    pair.settle()
    runs: list[tuple[dict[str, float], dict[str, float]]] = []
    for number in range(rounds):
        if number % 2:
            after, before = pair.after(), pair.before()
        else:
            before, after = pair.before(), pair.after()
        runs.append((before, after))
    for name in runs[0][0]:
        if any(name not in side for pair_of_runs in runs for side in pair_of_runs):
            continue  # a figure that one side does not have, or does not always have
        yield Figure(
            name,
            statistics.median(before[name] for before, _ in runs),
            statistics.median(after[name] for _, after in runs),
            quartiles(after[name] / before[name] for before, after in runs if before[name]),
        )
