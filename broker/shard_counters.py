"""What each shard counts, in a file that outlives it, and who is refused most.

A shard's counters are 64-bit slots in a mapped file that the supervisor made: killing the shard loses no count but those
of the requests of one pass, and the coordinator reads them all without asking. Only the shard writes; a slot is 8
aligned bytes: no reader sees half of one.

C1  Slots only rise, except GAUGES and `open`, which the next incarnation sets back (`take_over`).
C2  For each listener, admitted == closed + lost + open.
C3  The layout follows from the listeners' names alone, so every process of a cluster computes the same.
"""

from __future__ import annotations

import heapq
import mmap
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from broker.journal.schema import REASONS
from shards.quotas.sharded_quotas import KINDS

RECORDED = ("admitted", "refused_broker_cap", "refused_listener_cap", "refused_ip_cap")
"""Counted for connections that are recorded in KIP-612's rates and not taken back."""
PATHS = ("home", "cached", "rpc")
GAUGES = ("tokens_in_use", "tokens_cached", "pools", "waiting", "held", "muted")
_PROCESS = ("pid", "epoch", "started_ms", "version")
_COUNTERS = (
    *(f"decisions_{path}" for path in PATHS),
    "borrows",
    "grants",
    "reclaims",
    "malformed",
    "requests",
    "bytes_in",
    "bytes_out",
    "auth_failures",
    *(f"throttled_{kind}" for kind in KINDS),
    *(f"throttle_ms_{kind}" for kind in KINDS),
    "events",
)
_PER_LISTENER = (
    "admitted",
    "closed",
    "lost",
    "open",
    *(f"refused_{reason}" for reason in REASONS),
    "rate_waits",  # connections that waited for a rate: Redpanda's core rate, KIP-612's broker and listener rates
    "accept_throttle_ms",
    "accept_throttles",
    "ip_throttle_ms",
    "ip_throttles",
    "blocked_ns",
)
HISTOGRAMS = ("rpc",)
BUCKETS = 25  # bucket n holds what took less than 2**n microseconds, the last one the rest
BUCKET_BOUNDS_S = tuple(2**n / 1e6 for n in range(BUCKETS - 1))


class Layout:
    """Which slot is which: `at[name]`, `at[name, listener]`, and the first bucket of a histogram (`at[name]`), whose
    sum in nanoseconds follows the last bucket."""

    def __init__(self, listeners: Iterable[str]) -> None:
        self.listeners = tuple(dict.fromkeys(listeners))
        self.at: dict[str | tuple[str, str], int] = {}
        self.size = 0
        for name in (*_PROCESS, *GAUGES, *_COUNTERS):
            self._next(name, 1)
        for name in HISTOGRAMS:
            self._next(name, BUCKETS + 1)
        for listener in self.listeners:
            for name in _PER_LISTENER:
                self._next((name, listener), 1)

    def _next(self, name: str | tuple[str, str], slots: int) -> None:
        self.at[name] = self.size
        self.size += slots


class ShardCounters:
    """The counters of one shard: written by the shard, read by the coordinator. `slots` is a memoryview of u64."""

    def __init__(self, path: Path, layout: Layout) -> None:
        """Attach to a file that `create` made. Raises OSError when it isn't there."""
        self.layout = layout
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._mapped = mmap.mmap(fd, layout.size * 8)
        finally:
            os.close(fd)
        self.slots = memoryview(self._mapped).cast("Q")
        at = layout.at
        self._admitted = {name: (at["admitted", name], at["open", name]) for name in layout.listeners}
        self._closed = {name: (at["closed", name], at["open", name]) for name in layout.listeners}
        self._refused = {
            (name, reason): at[f"refused_{reason}", name] for name in layout.listeners for reason in REASONS
        }
        self._malformed = at["malformed"]
        self._traffic = at["requests"], at["bytes_in"], at["bytes_out"]
        self._requests = self._bytes_in = self._bytes_out = 0  # since the last flush
        self._rpc = at["rpc"]

    @staticmethod
    def create(path: Path, layout: Layout) -> None:
        """Make the file, all zero: once per start of the cluster, before its shards are forked."""
        with path.open("wb") as file:
            file.truncate(layout.size * 8)

    @staticmethod
    def path(run_dir: Path, broker: int, shard: int) -> Path:
        return run_dir / f"counters-b{broker}s{shard}"

    def take_over(self, epoch: int) -> None:
        """A new incarnation begins: what its predecessor had open is lost, and its gauges are nobody's."""
        at, slots = self.layout.at, self.slots
        for listener in self.layout.listeners:
            slots[at["lost", listener]] += slots[at["open", listener]]
            slots[at["open", listener]] = 0
        for name in GAUGES:
            slots[at[name]] = 0
        slots[at["pid"]] = os.getpid()
        slots[at["epoch"]] = epoch
        slots[at["started_ms"]] = int(time.time() * 1000)

    # ---- the shard's side; the first few are on the path of every connection

    def admitted(self, listener: str) -> None:
        total, now_open = self._admitted[listener]
        self.slots[total] += 1
        self.slots[now_open] += 1

    def closed(self, listener: str) -> None:
        total, now_open = self._closed[listener]
        self.slots[total] += 1
        self.slots[now_open] -= 1

    def refused(self, listener: str, reason: str) -> None:
        self.slots[self._refused[listener, reason]] += 1

    def request(self, bytes_in: int, bytes_out: int) -> None:
        """A request was answered. Readers see it after `flush`: plain numbers take less than half the time of slots."""
        self._requests += 1
        self._bytes_in += bytes_in
        self._bytes_out += bytes_out

    def flush(self) -> None:
        """Ends a pass."""
        if self._requests:
            slots = self.slots
            requests, bytes_in, bytes_out = self._traffic
            slots[requests] += self._requests
            slots[bytes_in] += self._bytes_in
            slots[bytes_out] += self._bytes_out
            self._requests = self._bytes_in = self._bytes_out = 0

    def malformed(self) -> None:
        """A frame that was no request of ours."""
        self.slots[self._malformed] += 1

    def throttled(self, kind: str, throttle_ms: int) -> None:
        """A request was throttled by a client quota."""
        self.add(f"throttled_{kind}", 1)
        self.add(f"throttle_ms_{kind}", throttle_ms)

    def borrowed(self, took_ns: int) -> None:
        """A borrow was answered by its home."""
        self._observe(self._rpc, took_ns)

    def _observe(self, first: int, took_ns: int) -> None:
        slots = self.slots
        slots[first + min((took_ns // 1000).bit_length(), BUCKETS - 1)] += 1
        slots[first + BUCKETS] += took_ns

    def accept_delayed(self, listener: str, delay_ms: int) -> None:
        """Accepting was delayed by a broker or listener rate."""
        self._delayed("accept_throttle", listener, delay_ms)
        self.add("rate_waits", 1, listener)

    def ip_delayed(self, listener: str, delay_ms: int) -> None:
        """A connection is held for the rate of its IP."""
        self._delayed("ip_throttle", listener, delay_ms)

    def _delayed(self, which: str, listener: str, delay_ms: int) -> None:
        self.slots[self.layout.at[f"{which}_ms", listener]] += delay_ms
        self.slots[self.layout.at[f"{which}s", listener]] += 1

    def add(self, name: str, amount: int, listener: str | None = None) -> None:
        """Raise any counter by its name."""
        self.slots[self.layout.at[name if listener is None else (name, listener)]] += amount

    def set(self, name: str, value: int) -> None:
        """Set a gauge, or `version`: the configuration version in force here."""
        self.slots[self.layout.at[name]] = value

    # ---- the reader's side

    def value(self, name: str, listener: str | None = None) -> int:
        return int(self.slots[self.layout.at[name if listener is None else (name, listener)]])

    def snapshot(self) -> list[int]:
        """Every slot, by the layout's index."""
        return self.slots.tolist()

    def close(self) -> None:
        self.slots.release()
        self._mapped.close()


class TopTalkers:
    """The keys counted most among any number of them, in bounded memory: the Space-Saving sketch.

    T1  At most `capacity` keys are kept. T2  A key's true count lies in [count - error, count]. T3  Every key whose
    true count exceeds total / capacity is kept. Source: Metwally, Agrawal, El Abbadi, ICDT 2005.
    """

    def __init__(self, capacity: int = 256) -> None:
        self.capacity = capacity
        self.total = 0
        self._entries: dict[str, _Talker] = {}
        # One (count when pushed, key) for each entry; a count may have risen since, never fallen.
        self._least: list[tuple[int, str]] = []

    def add(self, key: str, what: str = "", amount: int = 1) -> None:
        """Count `key`; `what` (a reason) is counted apart inside it. Pass words of a bounded set only."""
        self.total += amount
        entry = self._entries.get(key)
        if entry is None:
            error = self._evict() if len(self._entries) >= self.capacity else 0
            entry = self._entries[key] = _Talker(error)
            heapq.heappush(self._least, (error + amount, key))
        entry.count += amount
        entry.by[what] = entry.by.get(what, 0) + amount

    def clear(self) -> None:
        """Starts counting anew."""
        self.total = 0
        self._entries.clear()
        self._least.clear()

    def _evict(self) -> int:
        """Forget the key counted least; its count becomes the newcomer's possible error."""
        while True:
            count, key = self._least[0]
            now = self._entries[key].count
            if now == count:
                heapq.heappop(self._least)
                del self._entries[key]
                return count
            heapq.heapreplace(self._least, (now, key))

    def top(self, most: int = 50) -> list[tuple[str, int, int, dict[str, int]]]:
        """(key, count, possible error, {what: count}) of the keys counted most, the most counted first."""
        leading = heapq.nlargest(most, self._entries.items(), key=lambda item: item[1].count)
        return [(key, entry.count, entry.error, dict(entry.by)) for key, entry in leading]

    def __len__(self) -> int:
        return len(self._entries)


class _Talker:
    __slots__ = ("by", "count", "error")

    def __init__(self, error: int) -> None:
        self.count = error
        self.error = error
        self.by: dict[str, int] = {}


def merge_top(tops: Iterable[Sequence[Sequence[Any]]], most: int = 50) -> list[tuple[str, int, int, dict[str, int]]]:
    """The top of several `Talkers.top()` answers together, counts added key by key."""
    merged: dict[str, list[Any]] = {}
    for top in tops:
        for key, count, error, by in top:
            into = merged.setdefault(key, [0, 0, {}])
            into[0] += count
            into[1] += error
            for what, times in by.items():
                into[2][what] = into[2].get(what, 0) + times
    ranked = sorted(merged.items(), key=lambda item: (-item[1][0], item[0]))
    return [(key, count, error, by) for key, (count, error, by) in ranked[:most]]
