"""Benchmark of the number of shards: what a connection costs with 1, 2, 4 and 8 of them, on however many cores there are."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import NamedTuple

from scripts.bench import machine
from scripts.bench.machine import Server
from scripts.bench.rounds import quartiles, take_rounds
from scripts.bench.table import Row
from scripts.bench.wire import CAPS, WARM_UP_S, Effort

SHARDS = (1, 2, 4, 8)
Costs = list[float]
"""Server CPU per connection (us), in the order of SHARDS."""


class Round(NamedTuple):
    """The costs of one round: ours for each number of shards, and those of the C loop with as many processes."""

    ours: Costs
    floor: Costs


def rows(effort: Effort) -> Iterator[Row]:
    """Connect, ApiVersions, close, as wire.connections does."""
    with ExitStack() as stack:
        servers = {shards: stack.enter_context(machine.turnstile(*CAPS, shards=shards)) for shards in SHARDS}
        size = machine.answer_bytes(servers[SHARDS[0]].port)
        loops = {shards: stack.enter_context(machine.accept_loop(size, shards)) for shards in SHARDS}
        for server in servers.values():
            machine.drive(server, "connect", seconds=WARM_UP_S)
        time.sleep(WARM_UP_S)  # the first events of a journal make its converter import pyarrow

        def cpu_us(server: Server) -> float:
            return machine.drive(server, "connect", seconds=effort.seconds).cpu_us

        def one(_: int) -> Round:
            pairs = [(cpu_us(servers[shards]), cpu_us(loops[shards])) for shards in SHARDS]
            return Round(*map(list, zip(*pairs, strict=True)))

        found = take_rounds(effort.rounds, one, (lambda each: _growth(each.ours), lambda each: _growth(each.floor)))
    ours, floor = [each.ours for each in found], [each.floor for each in found]
    growth, least = (quartiles(map(_growth, side)) for side in (ours, floor))
    yield Row(
        f"server CPU per connection, {', '.join(map(str, SHARDS))} shards",
        f"{_medians(ours)}: {growth.text('.2f', ' x')}",
        f"C loop, same system calls, as many processes {_medians(floor)}: {least.text('.2f', ' x')}",
        "1.15 x",
        growth.median <= 1.15,
        {"shards: CPU": 1 / growth.median},
    )


def _growth(costs: Costs) -> float:
    """The cost with most processes beside that with one."""
    return costs[-1] / costs[0]


def _medians(rounds: Iterable[Costs]) -> str:
    return ", ".join(f"{statistics.median(each):.0f} us" for each in zip(*rounds, strict=True))
