"""Addresses, or users, that have far more open at once than most, what they look like, and the evidence of the log for that.

A log of connections has no names of clients. So an address is said to look like many clients (NAT, a proxy) only where all
three signs of it are there, which one client that opens much does not show:

    as_many   at least STANDS_OUT times as many connections in all as the mean address, not only at one moment
    as_long   its connections last as long as others' do, within a factor of LIKE
    all_day   they come at all hours: no hour has more than half of them, in a log of at least LEAST_HOURS hours

Where a sign is missing, the address is said to have many open, and the log not to say why.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turnstile.pipeline.plan.task_sums import middle
from turnstile.quantities import count, duration

LEAST_PEAK = 10
STANDS_OUT = 8
"""An entity stands out when it has this many times as many connections open at most as the median entity does."""
LIKE = 4
LEAST_HOURS = 3
NAT, LEAK, BURST, UNKNOWN = "nat", "leak", "burst", "unknown"


class Greedy(NamedTuple):
    """One of the entities with the highest peaks: how long its connections last in the middle (None: none closed), how many
    never closed, how many came in its fullest hour."""

    name: str
    peak: int
    connections: int
    typical_us: int | None
    never: int
    fullest_hour: int


class Usual(NamedTuple):
    """The usual figures of a log: the most that the median entity has open at once, connections of the mean entity, how long a
    connection lasts in the middle (None: none closed), whether most close, and over how many hours the log goes."""

    peak: float
    connections: float
    typical_us: float | None
    closes: bool
    hours: float


class Talker(NamedTuple):
    """An entity that stands out. `share`: of all connections. `evidence`: what the log shows of it, in words."""

    name: str
    peak: int
    connections: int
    share: float
    kind: str
    typical_open_s: float | None
    evidence: list[str]


def talkers(
    greedy: Sequence[Greedy],
    peaks: Mapping[int, int],
    lasted_us: Mapping[int, int],
    total: int,
    *,
    hours: float,
    noun: str,
) -> list[Talker]:
    """The entities whose peak stands out. `peaks`, `lasted_us` (of connections that closed): how many have each, over all.

    `noun`: of an entity. `nat`: all three signs of many clients. `leak`: its connections stay open far longer than others',
    and pile up. `burst`: most of its connections come in one hour. `unknown`: none of these.
    """
    closes = 2 * sum(lasted_us.values()) >= total  # else open connections do not stand out
    mean = total / max(1, sum(peaks.values()))
    usual = Usual(middle(peaks.items()) or 0, mean, middle(lasted_us.items()), closes, hours)
    threshold = max(LEAST_PEAK, STANDS_OUT * usual.peak)
    return [
        Talker(
            each.name, each.peak, each.connections, each.connections / total, _kind(each, usual),
            None if each.typical_us is None else each.typical_us / 1e6, _evidence(each, usual, noun),
        )
        for each in greedy
        if each.peak >= threshold
    ]  # fmt: skip


def _kind(entity: Greedy, usual: Usual) -> str:
    if usual.closes and 2 * entity.never > entity.connections:
        return LEAK
    if usual.typical_us and entity.typical_us is not None and entity.typical_us > 10 * usual.typical_us:
        return LEAK
    if usual.hours < LEAST_HOURS:
        return UNKNOWN
    if 10 * entity.fullest_hour > 8 * entity.connections:
        return BURST
    as_many = entity.connections >= STANDS_OUT * usual.connections
    as_long = (
        usual.typical_us is not None
        and entity.typical_us is not None
        and usual.typical_us <= LIKE * entity.typical_us <= LIKE**2 * usual.typical_us
    )
    all_day = 2 * entity.fullest_hour <= entity.connections
    return NAT if as_many and as_long and all_day else UNKNOWN


def _evidence(entity: Greedy, usual: Usual, noun: str) -> list[str]:
    """The figures that the signs are judged by, whatever they come to."""
    times = count(entity.connections / usual.connections) if usual.connections else "0"
    signs = [f"{count(entity.connections)} connections, {times} times the mean {noun}'s"]
    if entity.never:
        signs.append(f"{count(entity.never)} of them never closed")
    if entity.typical_us is not None and usual.typical_us is not None:
        lasted, of_all = (duration(each / 1000) for each in (entity.typical_us, usual.typical_us))
        signs.append(f"they last {lasted} in the middle, all together {of_all}")
    signs.append(f"{entity.fullest_hour / entity.connections:.0%} in its fullest hour of {count(max(1, usual.hours))}")
    return signs
