"""The smallest per-IP cap that refuses at most a share of connections, with and without overrides for the few that need
more. Exact, from every address's histogram of levels: under a cap of C those of a level above C are refused.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from turnstile.pipeline.plan.task_sums import MOST, middle

MAX_OVERRIDES = MOST
LEAST_PEAK = 10
STANDS_OUT = 8
"""An address stands out when it has this many times as many connections open at most as the median address does."""


class Recommendation(NamedTuple):
    """A cap for every address, other ones for some (ip -> cap), and the share of connections refused by both."""

    per_ip_cap: int
    overrides: dict[str, int]
    refused_share: float


class Talker(NamedTuple):
    """An address that has far more open at once than most."""

    ip: str
    peak: int
    connections: int
    share: float
    kind: str
    typical_open_s: float | None


class Greedy(NamedTuple):
    """One of the addresses with the highest peaks: level -> connections, how long they last in the middle (None: none
    closed), how many never closed, how many came in its fullest hour."""

    ip: str
    levels: dict[int, int]
    typical_us: int | None
    never: int
    fullest_hour: int

    @property
    def peak(self) -> int:
        """The most it had open at once."""
        return max(self.levels)

    @property
    def connections(self) -> int:
        """All of them."""
        return sum(self.levels.values())


def recommend(
    counts: Mapping[int, int], greedy: Sequence[Greedy], total: int, *, at_most: float
) -> tuple[Recommendation, Recommendation]:
    """(Without overrides, with them) from level -> connections of all `total`, and the greediest addresses in order.

    `at_most` is a share, in [0, 1].
    """
    # As it is written: 0.29 of 100 connections is 29 of them, and 28.999... of them as binary fractions multiply.
    allowed = int(Fraction(repr(at_most)) * total)
    alone = _smallest(counts, allowed)
    plain = Recommendation(alone, {}, _above(counts, alone) / total if total else 0.0)
    return plain, _with_overrides(counts, greedy[:MAX_OVERRIDES], allowed, total, plain)


def _with_overrides(
    counts: Mapping[int, int], greedy: Sequence[Greedy], allowed: int, total: int, plain: Recommendation
) -> Recommendation:
    """Overrides for the greediest addresses, as long as they pay: the cap for all others at least halves in the end, and
    each further lot of overrides lowers it by a tenth."""
    best = plain
    rest = dict(counts)
    for used, address in enumerate(greedy, 1):
        for level, count in address.levels.items():
            rest[level] -= count
        cap = _smallest(rest, allowed)
        excepted = {each.ip: each.peak for each in greedy[:used] if each.peak > cap}
        if 2 * cap <= plain.per_ip_cap and cap <= 0.9 * best.per_ip_cap:
            best = Recommendation(cap, excepted, _above(rest, cap) / total)
    return best


def _smallest(counts: Mapping[int, int], allowed: int) -> int:
    """The smallest cap, at least 1, above which there are at most `allowed` connections."""
    above = 0
    for level in sorted(counts, reverse=True):
        above += counts[level]
        if above > allowed:
            return max(1, level)
    return 1


def _above(counts: Mapping[int, int], cap: int) -> int:
    return sum(count for level, count in counts.items() if level > cap)


def talkers(
    greedy: Sequence[Greedy], peaks: Mapping[int, int], lasted_us: Mapping[int, int], total: int
) -> list[Talker]:
    """Addresses whose peak stands out, and what they look like. `peaks`, `lasted_us`: how many have each, over all.

    `nat`: many connections that last as long as others', so many clients behind one address. `leak`: its connections
    stay open far longer than others', and pile up. `burst`: most of its connections come in one hour.
    """
    threshold = max(LEAST_PEAK, STANDS_OUT * (middle(peaks.items()) or 0))
    typical_us = middle(lasted_us.items())
    return [
        Talker(
            each.ip, each.peak, each.connections, each.connections / total, _kind(each, typical_us),
            None if each.typical_us is None else each.typical_us / 1e6,
        )
        for each in greedy
        if each.peak >= threshold
    ]  # fmt: skip


def _kind(address: Greedy, typical_us: int | None) -> str:
    if address.never > address.connections / 2:
        return "leak"
    if typical_us and address.typical_us is not None and address.typical_us > 10 * typical_us:
        return "leak"
    return "burst" if address.fullest_hour > 0.8 * address.connections else "nat"
