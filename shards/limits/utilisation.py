"""The used share of a limit, and the share from which on it is close: the words of displays, the admin API and the metrics.
Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import Enum
from heapq import heappush, heapreplace
from typing import Final, Generic, NamedTuple, TypeVar

HIGH_FROM: Final = 0.8
NEAR_FROM: Final = 0.9
FULL_FROM: Final = 1.0


class Level(Enum):
    """Levels of how close a use is to its limit; displays colour by it."""

    ROOMY = "roomy"
    HIGH = "high"
    NEAR = "near"
    FULL = "full"


def utilisation(used: float, limit: float) -> float:
    """1.0: as much is used as may be. A limit of 0 is always reached."""
    return used / limit if limit > 0 else 1.0 if used <= 0 else math.inf


def level(used: float, limit: float) -> Level:
    """HIGH, NEAR or FULL from 80 %, 90 % or 100 % of the limit on, else ROOMY."""
    return level_of(utilisation(used, limit))


def level_of(share: float) -> Level:
    """As `level`, by the used share of a limit."""
    if share >= FULL_FROM:
        return Level.FULL
    return Level.NEAR if share >= NEAR_FROM else Level.HIGH if share >= HIGH_FROM else Level.ROOMY


class CloseLimits(NamedTuple):
    """The number of `limits` limits that are used from 80 % (`high`), 90 % (`near`) and 100 % (`full`) on. One that is full is
    near and high, too."""

    high: int
    near: int
    full: int
    limits: int

    def plus(self, other: CloseLimits) -> CloseLimits:
        """The sums of both."""
        return CloseLimits(*(one + another for one, another in zip(self, other, strict=True)))


NO_LIMITS: Final = CloseLimits(0, 0, 0, 0)
Limit = TypeVar("Limit")


class Fullest(Generic[Limit]):
    """The limits closest to being reached, of any number that are looked at one after another in turns.

    bounded          At most `most` limits of the turn under way, and as many of the last whole one, are kept.
    one_turn_counts  `close` counts the limits of the last whole turn, each once, as it was when it was looked at.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._heap: list[tuple[float, int, Limit]] = []
        self._before: list[tuple[float, int, Limit]] = []
        self.floor = -1.0
        """A share up to it needs no look, unless it is HIGH_FROM or more: pass_over() counts such a limit."""
        self._high = self._near = self._full = self._looked = 0
        self.close = NO_LIMITS

    def look(self, limit: Limit, share: float) -> None:
        """Counts a limit of this turn, whose utilisation is `share`."""
        self._looked += 1
        if share >= HIGH_FROM:
            self._high += 1
            self._near += share >= NEAR_FROM
            self._full += share >= FULL_FROM
        elif share <= self.floor:
            return
        if len(self._heap) < self._most:
            heappush(self._heap, (share, self._looked, limit))
        elif share > self.floor:
            heapreplace(self._heap, (share, self._looked, limit))
        if len(self._heap) == self._most:
            self.floor = self._heap[0][0]

    def pass_over(self, limits: int) -> None:
        """Counts limits of this turn that need no look."""
        self._looked += limits

    def end_turn(self) -> None:
        """Every limit was looked at; what follows is the next turn."""
        self.close = CloseLimits(self._high, self._near, self._full, self._looked)
        self._before, self._heap, self.floor = self._heap, [], -1.0
        self._high = self._near = self._full = self._looked = 0

    def limits(self) -> list[Limit]:
        """The closest ones, by what was seen last: the fullest first."""
        return list(dict.fromkeys(self._ordered()))[: self._most]

    def _ordered(self) -> Iterator[Limit]:
        for _, _, limit in sorted([*self._before, *self._heap], key=lambda kept: -kept[0]):
            yield limit
