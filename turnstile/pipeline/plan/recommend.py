"""The smallest cap of each entity (address or user) that refuses at most a share of connections, with and without overrides for
the few that need more.

Pure: histograms of levels in, caps and overrides out. Under a cap of C the connections of levels above C are refused
(what_if.py); those of one entity are its excess (excess.py). With k overrides:

greatest_excess_gets_an_override  under a cap they go to the k entities of greatest excess: it adds up over entities, so no
    other k leave fewer refused
cap_is_the_smallest  the cap is the smallest under which at most `allowed` are refused with them. Fewer are refused under a
    greater cap, so it is found by bisection; it is a level, or 1, as nothing changes between levels
overrides_are_worth_it  the fewest are taken that are worth it: they at least halve the cap without any, and each lot more
    lowers it by a tenth

So nothing is better than what is recommended, for that many overrides: test_recommend.py compares with every set of
entities and every cap. Entities that are left out count neither as connections nor as refused, and get no override.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from types import MappingProxyType
from typing import NamedTuple

from turnstile.pipeline.inputs.entities import IP, EntityType
from turnstile.pipeline.plan.excess import MOST

Histogram = Mapping[int, int]
"""Level -> how many connections."""


class Recommendation(NamedTuple):
    """A cap for every entity, other ones for some (entity -> cap), and how many connections both refuse, and which share."""

    cap: int
    overrides: dict[str, int]
    refused: int
    refused_share: float


class LogLevels(NamedTuple):
    """The levels of a log: levels of all its connections, and levels and the peak of each entity that may need an override.

    `all_peaks`: the most that an entity had open at once -> how many entities.
    """

    levels: Histogram
    of_entity: Mapping[str, Histogram]
    peaks: Mapping[str, int]
    all_peaks: Mapping[int, int] = MappingProxyType({})
    by: EntityType = IP

    @property
    def connections(self) -> int:
        """All of them."""
        return sum(self.levels.values())

    def without(self, left_out: Collection[str]) -> "LogLevels":
        """The levels of all other entities."""
        rest = dict(self.levels)
        for ip in left_out:
            for level, count in self.of_entity[ip].items():
                rest[level] -= count
        of_entity = {ip: each for ip, each in self.of_entity.items() if ip not in left_out}
        return self._replace(levels=rest, of_entity=of_entity)

    def refused(self, cap: int, overrides: Mapping[str, int]) -> int:
        """The number of connections that a cap refuses beside overrides, each of an entity in `of_entity`."""
        spared = sum(
            _above(self.of_entity[ip], cap) - _above(self.of_entity[ip], most) for ip, most in overrides.items()
        )
        return _above(self.levels, cap) - spared


def _above(levels: Histogram, cap: int) -> int:
    return sum(count for level, count in levels.items() if level > cap)


class Recommendations(NamedTuple):
    """The recommendation without overrides, and with them where they are worth it."""

    simple: Recommendation
    tight: Recommendation


def recommend(log: LogLevels, *, at_most: float) -> Recommendations:
    """The smallest caps, where at most a share of the connections is refused, in [0, 1]."""
    total = log.connections
    # As it is written: 0.29 of 100 connections is 29 of them, and 28.999... of them as binary fractions multiply.
    allowed = int(Fraction(repr(at_most)) * total)
    refused = _Refused(log)
    caps = [refused.smallest_cap(count, allowed) for count in range(MOST + 1)]
    return Recommendations(_with(0, caps, refused, total), _with(_worth(caps), caps, refused, total))


def _worth(caps: Sequence[int]) -> int:
    """The number of overrides that are worth it (overrides_are_worth_it). `caps`: the smallest cap with each number of them."""
    best = 0
    for count, cap in enumerate(caps):
        if 2 * cap <= caps[0] and 10 * cap <= 9 * caps[best]:
            best = count
    return best


def _with(count: int, caps: Sequence[int], refused: "_Refused", total: int) -> Recommendation:
    cap = caps[count]
    left = refused.under(cap)[count]
    return Recommendation(cap, refused.overrides(cap, count), left, left / total if total else 0.0)


class _Above:
    """The number of connections of a histogram above a cap."""

    def __init__(self, levels: Histogram) -> None:
        self.levels = sorted(level for level, count in levels.items() if count)
        until = [0, *accumulate(levels[level] for level in self.levels)]
        self._above = [until[-1] - each for each in until]

    def __call__(self, cap: int) -> int:
        return self._above[bisect_right(self.levels, cap)]


class _Refused:
    """The refusals of every cap, with up to MOST overrides."""

    def __init__(self, log: LogLevels) -> None:
        self._all = _Above(log.levels)
        self._of = {
            ip: _Above(each) for ip, each in sorted(log.of_entity.items(), key=lambda item: log.by.rank(item[0]))
        }
        self._peaks = log.peaks
        self._caps = sorted({1, *self._all.levels})
        self.under = lru_cache(maxsize=None)(self._under)

    def _under(self, cap: int) -> list[int]:
        """The number of refusals of a cap with no override, with one, and so on."""
        spared = (excess for excess, _ in self._greatest(cap))
        left = list(accumulate(spared, lambda rest, excess: rest - excess, initial=self._all(cap)))
        return left + left[-1:] * (MOST + 1 - len(left))

    def smallest_cap(self, overrides: int, allowed: int) -> int:
        """The smallest cap under which at most `allowed` are refused with so many overrides."""
        return self._caps[bisect_left(self._caps, True, key=lambda cap: self.under(cap)[overrides] <= allowed)]

    def overrides(self, cap: int, count: int) -> dict[str, int]:
        """The entities that get one, the most refused first, each with the most it had open at once."""
        return {ip: self._peaks[ip] for _, ip in self._greatest(cap)[:count]}

    def _greatest(self, cap: int) -> list[tuple[int, str]]:
        """(excess, entity), the MOST with the greatest, of equals in order of `rank`."""
        over = [(above(cap), ip) for ip, above in self._of.items()]
        return sorted((each for each in over if each[0]), key=lambda each: -each[0])[:MOST]
