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
    floors: dict[int, list[Load]] = {shards: [] for shards in SHARDS}
    with ExitStack() as stack:
        servers = {shards: stack.enter_context(machine.turnstile(*CAPS, shards=shards)) for shards in SHARDS}
        size = machine.answer_bytes(servers[SHARDS[0]].port)
        loops = {shards: stack.enter_context(machine.accept_loop(size, shards)) for shards in SHARDS}
        for server in servers.values():
            machine.drive(server, "connect", seconds=WARM_UP_S)
        time.sleep(WARM_UP_S)  # the first events of a journal make its converter import pyarrow
        for _ in range(effort.rounds):
            for shards in SHARDS:
                loads[shards].append(machine.drive(servers[shards], "connect", seconds=effort.seconds))
                floors[shards].append(machine.drive(loops[shards], "connect", seconds=effort.seconds))
    (ours, growth), (floor, least) = _growth(loads), _growth(floors)
    yield Row(
        f"server CPU per connection, {', '.join(map(str, SHARDS))} shards",
        f"{ours}: {growth:.2f} x",
        f"C loop, same system calls, as many processes {floor}: {least:.2f} x",
        "1.15 x",
        growth <= 1.15,
        {"shards: CPU": 1 / growth},
    )


def _growth(loads: dict[int, list[Load]]) -> tuple[str, float]:
    """The CPU time of a connection, by number of processes, and that with most of them beside that with one."""
    cpu_us = [machine.median(runs).cpu_us for runs in loads.values()]
    return ", ".join(f"{each:.0f} us" for each in cpu_us), cpu_us[-1] / cpu_us[0]
