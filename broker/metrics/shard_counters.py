"""The counters of each shard, in a file that outlives it.

A shard's counters are 64-bit slots in a mapped file that the supervisor made: killing the shard loses no count but those
of the requests of one pass, and the coordinator reads them all without asking. Only the shard writes; a slot is 8
aligned bytes: no reader sees half of one.

counters_only_rise  Slots only rise, except GAUGES and `open`, which the next incarnation sets back (`take_over`).
admitted_is_closed_lost_or_open  For each listener, admitted == closed + lost + open.
layout_follows_from_names  The layout follows from the listeners' names alone, so every process of a cluster computes the
    same.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from pathlib import Path

from broker.journal.schema import BY_CAPS, OBSERVED_REASONS, REASONS
from shards.limits.node_throughput import NODE_LIMITS
from shards.quotas.meters import KINDS

RECORDED = ("admitted", *(f"refused_{cap}" for cap in BY_CAPS))
"""Counted for connections that are recorded in KIP-612's rates and not taken back."""
PATHS = ("home", "cached", "rpc")
FAULTS = ("error", "disconnect", "delay", "blackhole", "throttle")
PROXY_HEADERS = (
    "v1", "v2", "none", "PRX_EMPTY", "PRX_ABORT", "PRX_TIMEOUT", "PRX_TRUNCATED", "PRX_NOT_HDR", "PRX_BAD_HDR", "PRX_BAD_PROTO",
)  # fmt: skip
"""Counts of the connections that had to announce their client, or could (`none`: it did not): HAProxy's names."""
GAUGES = (
    "tokens_in_use",
    "tokens_cached",
    "pools",
    "waiting",
    "held",
    "proxy_waiting",
    "muted",
    "longest_callback_us",
    "losing_events",  # 1 while journal events are dropped
    "quota_sensors",
    "quotas_shared",  # kinds of client quota of which clients share sensors now
    "request_queue",
    "request_handlers",
)
_PROCESS = ("pid", "epoch", "version")
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
    "reauthentications",
    "sessions_expired",
    *(f"throttled_{limit}" for limit in (*KINDS, *NODE_LIMITS)),
    *(f"throttle_ms_{limit}" for limit in (*KINDS, *NODE_LIMITS)),
    *(f"observed_throttled_{kind}" for kind in KINDS),  # answered without that throttle: no part of any other counter
    *(f"observed_throttle_ms_{kind}" for kind in KINDS),
    "observed_mutations_refused",
    *(f"faults_{kind}" for kind in FAULTS),
    *(f"proxy_{header}" for header in PROXY_HEADERS),
    "events",
    "events_dropped",
    "quota_sensors_evicted",
    "stalls",
    "requests_handled",
    "request_queue_ns",
    "request_handlers_busy_ns",
    "network_thread_blocked_ns",
)
_PER_LISTENER = (
    "admitted",
    "closed",
    "lost",
    "open",
    *(f"refused_{reason}" for reason in REASONS),
    *(f"observed_{reason}" for reason in OBSERVED_REASONS),  # admitted all the same: no part of any other counter
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
    """The places of slots: `at[name]`, `at[name, listener]`, and the first bucket of a histogram (`at[name]`), whose
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
            os.posix_fallocate(file.fileno(), 0, layout.size * 8)  # a hole would be SIGBUS on a full disk

    @staticmethod
    def path(run_dir: Path, broker: int, shard: int) -> Path:
        return run_dir / f"counters-b{broker}s{shard}"

    def take_over(self, epoch: int) -> None:
        """Begin a new incarnation: connections that its predecessor had open are lost, and its gauges start at 0."""
        at, slots = self.layout.at, self.slots
        for listener in self.layout.listeners:
            slots[at["lost", listener]] += slots[at["open", listener]]
            slots[at["open", listener]] = 0
        for name in GAUGES:
            slots[at[name]] = 0
        slots[at["pid"]] = os.getpid()
        slots[at["epoch"]] = epoch

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
        """Ends a pass: adds the requests counted during it to their slots."""
        if self._requests:
            slots = self.slots
            requests, bytes_in, bytes_out = self._traffic
            slots[requests] += self._requests
            slots[bytes_in] += self._bytes_in
            slots[bytes_out] += self._bytes_out
            self._requests = self._bytes_in = self._bytes_out = 0

    def malformed(self) -> None:
        """A frame that was no request."""
        self.slots[self._malformed] += 1

    def throttled(self, kind: str, throttle_ms: int) -> None:
        """A request was throttled by a client quota, or by a throughput limit of the broker."""
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
