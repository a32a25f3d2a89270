"""Benchmark of consume: Kafka's own `kafka-consumer-perf-test` against Turnstile, a real Kafka and kfake.

Rates are of the time in which it fetches, without the time in which its group rebalances.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

from scripts.bench.machine import CannotMeasure
from scripts.bench.producing import Peer, brokers, perf_test, produce, scores_beside
from scripts.bench.table import Row
from scripts.peers.jars import Missing

RECORDS = {100: 4_000_000, 1000: 1_000_000}
"""Record size in bytes -> how many of them one run reads."""
_COLUMNS = 10  # of what the tool prints; the last is records a second of fetching


class Consumed(NamedTuple):
    """The measurements of one run: records a second, and the server's CPU time per record."""

    per_s: float
    cpu_us: float


def rows(rounds: int, share: float) -> Iterator[Row]:
    """Turnstile's figures beside those of its peers, taken in turns; `share` of RECORDS in each run."""
    with ExitStack() as stack:
        try:
            peers = brokers(stack)
        except Missing as missing:
            raise CannotMeasure(str(missing)) from missing
        for size, most in RECORDS.items():
            records, topic = int(most * share), f"consumed-{size}"
            for peer in peers:
                produce(peer, topic, size, records)
            runs: dict[str, list[Consumed]] = {peer.name: [] for peer in peers}
            for turn in range(rounds):
                for peer in peers:
                    runs[peer.name].append(consume(peer, topic, f"g-{size}-{turn}", records))
            yield from _rows(size, {name: _median(seen) for name, seen in runs.items()})


def consume(peer: Peer, topic: str, group: str, records: int) -> Consumed:
    """One run, from the beginning of the topic."""
    options = ["--topic", topic, "--bootstrap-server", peer.bootstrap, "--messages", str(records), "--group", group]
    options += ["--timeout", "60000", "--hide-header"]

    def read(said: str) -> list[list[str]]:
        lines = [line.split(", ") for line in said.splitlines() if line.count(", ") == _COLUMNS - 1]
        return lines if lines and int(lines[-1][4]) >= records else []

    said, cpu_s = perf_test("kafka-consumer-perf-test", peer, options, read)
    return Consumed(float(said[-1][9]), cpu_s / records * 1e6)


def _median(runs: list[Consumed]) -> Consumed:
    return Consumed(*(statistics.median(run[i] for run in runs) for i in range(2)))


def _rows(size: int, found: dict[str, Consumed]) -> Iterator[Row]:
    ours = found.pop("Turnstile")
    yield Row(
        f"kafka-consumer-perf-test, {size:,}-byte records",
        f"{ours.per_s:,.0f}/s",
        "; ".join(f"{name} {run.per_s:,.0f}/s: {ours.per_s / run.per_s:.2f} x" for name, run in found.items()),
        "1.1 x both",
        all(ours.per_s >= 1.1 * run.per_s for run in found.values()),
        scores_beside(f"consume {size}", ours.per_s, ours.cpu_us, {n: (r.per_s, r.cpu_us) for n, r in found.items()}),
    )
    yield Row(
        "- server CPU per record",
        f"{ours.cpu_us:.2f} us",
        "; ".join(f"{name} {run.cpu_us:.2f} us: {ours.cpu_us / run.cpu_us:.2f} x" for name, run in found.items()),
    )
