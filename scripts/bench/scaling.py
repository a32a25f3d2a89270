"""Benchmark of the number of shards: what a connection costs with 1, 2, 4 and 8 of them, on however many cores there are."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

from scripts.bench import machine
from scripts.bench.machine import Load
from scripts.bench.table import Row
from scripts.bench.wire import CAPS, WARM_UP_S, Effort

SHARDS = (1, 2, 4, 8)


def rows(effort: Effort) -> Iterator[Row]:
    """Connect, ApiVersions, close, as wire.connections does."""
    loads: dict[int, list[Load]] = {shards: [] for shards in SHARDS}
    with ExitStack() as stack:
        servers = {shards: stack.enter_context(machine.turnstile(*CAPS, shards=shards)) for shards in SHARDS}
        for server in servers.values():
            machine.drive(server, "connect", seconds=WARM_UP_S)
        time.sleep(WARM_UP_S)  # the first events of a journal make its converter import pyarrow
        for _ in range(effort.rounds):
            for shards, server in servers.items():
                loads[shards].append(machine.drive(server, "connect", seconds=effort.seconds))
    cpu_us = {shards: machine.median(runs).cpu_us for shards, runs in loads.items()}
    growth = cpu_us[SHARDS[-1]] / cpu_us[SHARDS[0]]
    yield Row(
        f"server CPU per connection, {', '.join(map(str, SHARDS))} shards",
        ", ".join(f"{cpu_us[shards]:.0f} us" for shards in SHARDS),
        f"{SHARDS[-1]} shards beside 1: {growth:.2f} x",
        "1.15 x",
        growth <= 1.15,
        {"shards: CPU": 1 / growth},
    )
