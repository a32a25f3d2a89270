"""Benchmark of rehearsal: what a connection costs while one limit is observed, beside the same cluster without."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

from scripts.bench import machine
from scripts.bench.machine import Load
from scripts.bench.table import Row
from scripts.bench.wire import CAPS, WARM_UP_S, Effort

OBSERVED = {
    "a cap of each address": ("--observe", "kafka_connections_max_per_ip=90"),
    "a creation rate": ("--observe", "max.connection.creation.rate=1000000"),
}
"""None of them would refuse a connection: what is measured is the question."""
GOAL = 1.05


def rows(effort: Effort) -> Iterator[Row]:
    """Connect, ApiVersions, close, as wire.connections does: pairs of runs, one after the other."""
    options: dict[str, tuple[str, ...]] = {"": (), **OBSERVED}
    loads: dict[str, list[Load]] = {what: [] for what in options}
    with ExitStack() as stack:
        servers = {what: stack.enter_context(machine.turnstile(*CAPS, *each)) for what, each in options.items()}
        for server in servers.values():
            machine.drive(server, "connect", seconds=WARM_UP_S)
        time.sleep(WARM_UP_S)  # the first events of a journal make its converter import pyarrow
        for _ in range(effort.rounds):
            for what, server in servers.items():
                loads[what].append(machine.drive(server, "connect", seconds=effort.seconds))
    without = machine.median(loads[""])
    for what in OBSERVED:
        with_it = machine.median(loads[what])
        dearer = with_it.cpu_us / without.cpu_us
        yield Row(
            f"server CPU per connection, {what} observed",
            f"{with_it.cpu_us:.0f} us",
            f"nothing observed {without.cpu_us:.0f} us: {dearer:.2f} x",
            f"{GOAL} x",
            dearer <= GOAL,
            {f"observed, {what}: CPU": 1 / dearer},
        )
