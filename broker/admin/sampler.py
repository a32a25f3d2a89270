"""Counters over time: one sample a second of every shard's file, kept for five minutes, one in six for half an hour; and the
differences between two samples.

The coordinator process runs this; it only reads mapped memory, so shards do not notice.
"""

from __future__ import annotations

import itertools
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import trio

from broker.admin.live_answers import LiveTotals, SeriesPoint
from broker.journal.schema import REASONS
from broker.metrics.shard_counters import PATHS, Layout, ShardCounters
from shards.limits.node_throughput import NODE_LIMITS
from shards.ownership import BrokerShard
from shards.quotas.meters import KINDS

KEPT = 300
EVERY_S = 1.0
COARSE = 6
"""One of so many samples is kept for longer."""
SET_S = 0.5
"""The wall clock was set if it moved by so much more or less than time passed."""


class Sample(NamedTuple):
    """Every slot of every shard at `at` (Unix seconds, for people) and `mono_s` (for differences)."""

    at: float
    mono_s: float
    slots: dict[BrokerShard, array[int]]


class SampleWindow(NamedTuple):
    """Two samples between which something is counted; the same twice where there is but one."""

    first: Sample
    last: Sample


class Sampler:
    """Keeps the last KEPT samples, and as many `coarse` ones. Sums are over the shards that `of` selects: all, or one broker's."""

    def __init__(
        self,
        counters: Mapping[BrokerShard, ShardCounters],
        layout: Layout,
        *,
        wall_clock: Callable[[], float] = time.time,
        mono_clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._counters = counters
        self._wall_clock = wall_clock
        self._mono_clock = mono_clock
        self.layout = layout
        self.samples: deque[Sample] = deque(maxlen=KEPT)
        self.coarse: deque[Sample] = deque(maxlen=KEPT)
        self._taken = 0
        self.sample()

    async def run(self) -> None:
        """Take a sample every second, until cancelled."""
        while True:
            await trio.sleep(EVERY_S)
            self.sample()

    def sample(self) -> Sample:
        """Read everything now, and keep it. If the wall clock was set, the samples get times by the new one, so that the seconds
        of a series follow each other."""
        taken = self.now()
        if self.samples:
            last = self.samples[-1]
            set_s = taken.at - last.at - (taken.mono_s - last.mono_s)
            if abs(set_s) > SET_S:
                for kept in (self.samples, self.coarse):
                    for n, each in enumerate(kept):
                        kept[n] = each._replace(at=round(each.at + set_s, 3))
        self.samples.append(taken)
        if self._taken % COARSE == 0:
            self.coarse.append(taken)
        self._taken += 1
        return taken

    def now(self) -> Sample:
        """Read everything now."""
        slots = {member: array("Q", counters.slots) for member, counters in self._counters.items()}
        return Sample(round(self._wall_clock(), 3), self._mono_clock(), slots)

    # ---- sums at one instant

    def total(
        self, sample: Sample, name: str, listener: str | None = None, of: Iterable[BrokerShard] | None = None
    ) -> int:
        """A counter summed over shards, and over listeners unless one is named."""
        at = self.layout.at
        if name in at:
            places = [at[name]]
        else:
            places = [at[name, one] for one in ([listener] if listener is not None else self.layout.listeners)]
        return sum(sample.slots[member][place] for member in (of or sample.slots) for place in places)

    def refused(
        self, sample: Sample, listener: str | None = None, of: Iterable[BrokerShard] | None = None
    ) -> dict[str, int]:
        """Refusals by reason."""
        members = list(of or sample.slots)
        return {reason: self.total(sample, f"refused_{reason}", listener, members) for reason in REASONS}

    def totals(self, sample: Sample, of: Iterable[BrokerShard] | None = None) -> LiveTotals:
        """The figures of one instant that displays show: gauges, and counts since the cluster started."""
        members = list(of or sample.slots)

        def total(name: str) -> int:
            return self.total(sample, name, None, members)

        return {
            "connections": total("open"),
            "admitted": total("admitted"),
            "closed": total("closed"),
            "lost": total("lost"),
            "refused": self.refused(sample, None, members),
            "decisions": {path: total(f"decisions_{path}") for path in PATHS},
            "tokens": {"in_use": total("tokens_in_use"), "cached": total("tokens_cached"), "pools": total("pools")},
            "waiting": total("waiting"),
            "held": total("held"),
            "muted": total("muted"),
            "borrows": total("borrows"),
            "reclaims": total("reclaims"),
            "malformed": total("malformed"),
            "requests": total("requests"),
            "bytes_in": total("bytes_in"),
            "bytes_out": total("bytes_out"),
            "throttled": {
                limit: {"requests": total(f"throttled_{limit}"), "throttle_ms": total(f"throttle_ms_{limit}")}
                for limit in (*KINDS, *NODE_LIMITS)
            },
        }

    # ---- differences between two

    def window(self, seconds: float) -> SampleWindow:
        """The latest state, and the sample closest to `seconds` before it; the same twice when there is but one."""
        latest = self.now()
        wanted = latest.mono_s - seconds
        return SampleWindow(min(self.samples, key=lambda sample: abs(sample.mono_s - wanted)), latest)

    def latest(self) -> SampleWindow:
        """The last second that was sampled, the one that ends `series`; the same twice when there is but one sample."""
        return SampleWindow(self.samples[max(len(self.samples) - 2, 0)], self.samples[-1])

    def rise(
        self,
        window: tuple[Sample, Sample],
        name: str,
        listener: str | None = None,
        of: Iterable[BrokerShard] | None = None,
    ) -> int:
        """The rise of a counter within a window."""
        before, after = window
        members = list(of or after.slots)
        return self.total(after, name, listener, members) - self.total(before, name, listener, members)

    def series(self, since: float = 0.0, *, coarse: bool = False) -> list[SeriesPoint]:
        """One entry a second, or of `coarse` samples, after `since` (Unix seconds): connections, and admissions and refusals per
        second. All, if `since` is yet to come: the wall clock was set back after the caller read it."""
        if since > self.samples[-1].at + SET_S:
            since = 0.0
        points: list[SeriesPoint] = []
        for before, after in itertools.pairwise(self.coarse if coarse else self.samples):
            if after.at > since:
                points.append(self._point(before, after))
        return points

    def _point(self, before: Sample, after: Sample) -> SeriesPoint:
        seconds = max(after.mono_s - before.mono_s, 1e-3)
        earlier, later = self.refused(before), self.refused(after)

        def per_s(name: str) -> float:
            return round((self.total(after, name) - self.total(before, name)) / seconds, 1)

        return {
            "at": after.at,
            "connections": self.total(after, "open"),
            "admitted": per_s("admitted"),
            "closed": per_s("closed"),
            "refused": {
                reason: round((later[reason] - earlier[reason]) / seconds, 1)
                for reason in REASONS
                if later[reason] != earlier[reason]
            },
            "in_use": self.total(after, "tokens_in_use"),
            "cached": self.total(after, "tokens_cached"),
            "decisions": {path: per_s(f"decisions_{path}") for path in PATHS},
            "requests": per_s("requests"),
            "throttled": {limit: rate for limit in (*KINDS, *NODE_LIMITS) if (rate := per_s(f"throttled_{limit}"))},
        }
