"""Addresses that have far more open at once than most, and what they look like."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turnstile.pipeline.plan.task_sums import middle

LEAST_PEAK = 10
STANDS_OUT = 8
"""An address stands out when it has this many times as many connections open at most as the median address does."""
LEAK = "leak"


class Greedy(NamedTuple):
    """One of the addresses with the highest peaks: how long its connections last in the middle (None: none closed), how many
    never closed, how many came in its fullest hour."""

    ip: str
    peak: int
    connections: int
    typical_us: int | None
    never: int
    fullest_hour: int


class Talker(NamedTuple):
    """An address that stands out. `share`: of all connections."""

    ip: str
    peak: int
    connections: int
    share: float
    kind: str
    typical_open_s: float | None


def talkers(
    greedy: Sequence[Greedy], peaks: Mapping[int, int], lasted_us: Mapping[int, int], total: int
) -> list[Talker]:
    """Those whose peak stands out. `peaks`, `lasted_us` (of connections that closed): how many have each, over all.

    `nat`: many connections that last as long as others', so many clients behind one address. `leak`: its connections
    stay open far longer than others', and pile up. `burst`: most of its connections come in one hour.
    """
    threshold = max(LEAST_PEAK, STANDS_OUT * (middle(peaks.items()) or 0))
    typical_us = middle(lasted_us.items())
    closes = 2 * sum(lasted_us.values()) >= total  # else what stays open is nothing that stands out
    return [
        Talker(
            each.ip, each.peak, each.connections, each.connections / total, _kind(each, typical_us, closes=closes),
            None if each.typical_us is None else each.typical_us / 1e6,
        )
        for each in greedy
        if each.peak >= threshold
    ]  # fmt: skip


def _kind(address: Greedy, typical_us: int | None, *, closes: bool) -> str:
    if closes and 2 * address.never > address.connections:
        return LEAK
    if typical_us and address.typical_us is not None and address.typical_us > 10 * typical_us:
        return LEAK
    return "burst" if 10 * address.fullest_hour > 8 * address.connections else "nat"
