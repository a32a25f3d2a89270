"""Benchmark of consume: Kafka's own `kafka-consumer-perf-test` against Turnstile, a real Kafka and kfake.

Rates are of the time in which it fetches, without the time in which its group rebalances.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import NamedTuple

from scripts.bench.machine import CannotMeasure
from scripts.bench.producing import CPU_OF_RECORDS, Peer, brokers, perf_test, produce
from scripts.bench.rounds import CPU, RATE, Rounds, rate_row, take_turns
from scripts.bench.table import Row
from scripts.peers.fetching import Missing

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
            yield from _rows(size, _runs_of(peers, rounds, size, int(most * share)))


def _runs_of(peers: Mapping[str, Peer], rounds: int, size: int, records: int) -> Rounds[Consumed]:
    topic = f"consumed-{size}"
    for peer in peers.values():
        produce(peer, topic, size, records)
    return take_turns(
        rounds, peers, lambda peer, number: consume(peer, topic, f"g-{size}-{number}", records), (RATE, CPU)
    )


def consume(peer: Peer, topic: str, group: str, records: int) -> Consumed:
    """One run, from the beginning of the topic."""
    options = ["--topic", topic, "--bootstrap-server", peer.bootstrap, "--messages", str(records), "--group", group]
    options += ["--timeout", "60000", "--hide-header"]

    def read(said: str) -> list[list[str]]:
        lines = [line.split(", ") for line in said.splitlines() if line.count(", ") == _COLUMNS - 1]
        return lines if lines and int(lines[-1][4]) >= records else []

    said, cpu_s = perf_test("kafka-consumer-perf-test", peer, options, read)
    return Consumed(float(said[-1][9]), cpu_s / records * 1e6)


def _rows(size: int, found: Rounds[Consumed]) -> Iterator[Row]:
    what = f"kafka-consumer-perf-test, {size:,}-byte records"
    yield rate_row(what, found, "1.1 x both", found.leads_all_by(1.1), f"consume {size}")
    yield Row("- server CPU per record", found.median_text(CPU_OF_RECORDS), found.beside(CPU_OF_RECORDS))
