"""Rounds of a measure: how many there are, and what they say together, which is a median with its quartiles.

A round has a run of each contender. What else the machine does hits all runs of a round alike, so a ratio is the median of the
ratios of the rounds, not the ratio of two medians.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

from scripts.bench.table import Row

T = TypeVar("T")
C = TypeVar("C")

OURS = "Turnstile"
FULL, MOST = 5, 15
"""Rounds of a measure, and of one that scatters. One that is to have fewer than FULL has no quartiles to judge by, and ends with
them."""
SCATTER = 0.2
"""How far apart quartiles are, as a part of their median, where a figure scatters."""


class Quartiles(NamedTuple):
    """The median of what the rounds found, and its quartiles; of three rounds and fewer these are the extremes."""

    median: float
    low: float
    high: float

    @property
    def scatters(self) -> bool:
        return self.high - self.low > SCATTER * self.median

    def text(self, digits: str, unit: str) -> str:
        """A cell of the table: "0.98 x (0.95 .. 1.02)", the median alone of one round. `digits`: how a number is formatted."""
        median = f"{self.median:{digits}}{unit}"
        return median if self.low == self.high else f"{median} ({self.low:{digits}} .. {self.high:{digits}})"


class Quantity(NamedTuple):
    """A figure of a run (`of`), and the digits and the unit that a cell of the table has of it."""

    of: Callable[[Any], float]
    digits: str
    unit: str


RATE = Quantity(attrgetter("per_s"), ",.0f", "/s")
CPU = Quantity(attrgetter("cpu_us"), ".0f", " us")
"""The server's CPU time for one connection, request or record."""


class Rounds(Generic[T]):
    """The runs of OURS and of its peers by name, round by round."""

    def __init__(self, rounds: Sequence[Mapping[str, T]]) -> None:
        self._rounds = rounds
        self.peers = [name for name in rounds[0] if name != OURS]

    def of(self, quantity: Quantity, name: str = OURS) -> Quartiles:
        return quartiles(quantity.of(each[name]) for each in self._rounds)

    def ratio(self, quantity: Quantity, peer: str) -> Quartiles:
        """Ours over the peer's."""
        return quartiles(_ratio(quantity, peer, each) for each in self._rounds)

    def leads_all_by(self, goal: float) -> bool:
        """True if our rate is `goal` times that of each peer, at least."""
        return all(self.ratio(RATE, peer).median >= goal for peer in self.peers)

    def median_text(self, quantity: Quantity, name: str = OURS) -> str:
        """The median of a contender, without quartiles."""
        return f"{self.of(quantity, name).median:{quantity.digits}}{quantity.unit}"

    def text(self, quantity: Quantity) -> str:
        """Our median with its quartiles."""
        return self.of(quantity).text(quantity.digits, quantity.unit)

    def beside(self, quantity: Quantity, *more: Quantity) -> str:
        """Each peer's median and the ratio to it; the medians of `more` without a ratio."""
        return "; ".join(
            ", ".join(
                (
                    f"{name} {self.median_text(quantity, name)}: {self.ratio(quantity, name).text('.2f', ' x')}",
                    *(self.median_text(each, name) for each in more),
                )
            )
            for name in self.peers
        )

    def scores(self, what: str) -> dict[str, float]:
        """The scores (see table.Row) of rate and CPU time beside each peer."""
        found = {}
        for name in self.peers:
            found[f"{what}: rate, {name}"] = self.ratio(RATE, name).median
            found[f"{what}: CPU, {name}"] = 1 / self.ratio(CPU, name).median
        return found


def rate_row(what: str, found: Rounds[Any], goal: str, met: bool | None, scored: str = "") -> Row:
    """Our rate beside each peer's. `scored`: what the scores are called, if not `what`."""
    return Row(what, found.median_text(RATE), found.beside(RATE), goal, met, found.scores(scored or what))


def quartiles(values: Iterable[float]) -> Quartiles:
    """Of one value at least."""
    ordered = sorted(values)
    quarter = len(ordered) // 4
    return Quartiles(statistics.median(ordered), ordered[quarter], ordered[-1 - quarter])


def take_rounds(rounds: int, one: Callable[[int], T], figures: Sequence[Callable[[T], float]]) -> list[T]:
    """The results of `one`, which is called with the number of each round. There are `rounds` of them; FULL and more go on, up to
    MOST, until none of `figures` scatters."""
    most = MOST if rounds >= FULL else rounds
    found: list[T] = []
    while len(found) < rounds or (len(found) < most and any(quartiles(map(each, found)).scatters for each in figures)):
        found.append(one(len(found)))
    return found


def measured(rounds: int, one: Callable[[], float]) -> Quartiles:
    """Of a single figure, without peers; see take_rounds."""
    return quartiles(take_rounds(rounds, lambda _: one(), [float]))


def take_turns(
    rounds: int, contenders: Mapping[str, C], run: Callable[[C, int], T], quantities: Sequence[Quantity]
) -> Rounds[T]:
    """A run of each contender in each round, in the other order every second time; the ratios of `quantities` are those that
    are not to scatter, see take_rounds."""

    def one(number: int) -> dict[str, T]:
        names = list(contenders)
        return {name: run(contenders[name], number) for name in (reversed(names) if number % 2 else names)}

    peers = [name for name in contenders if name != OURS]
    ratios = [partial(_ratio, quantity, peer) for quantity in quantities for peer in peers]
    return Rounds(take_rounds(rounds, one, ratios))


def _ratio(quantity: Quantity, peer: str, runs: Mapping[str, Any]) -> float:
    return quantity.of(runs[OURS]) / quantity.of(runs[peer])
