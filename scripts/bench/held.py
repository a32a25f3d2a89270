"""The cost of connections held for the rate of their address: memory, threads, and the admission of other connections."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from scripts.bench import machine
from scripts.bench.machine import CannotMeasure, Server
from scripts.bench.rounds import quartiles, take_rounds
from scripts.bench.table import Row
from turnstile.load.driver import run
from turnstile.load.latencies import Latencies
from turnstile.load.sources import Sources
from turnstile.load.spec import ClientGroup, LoadScenario
from turnstile.load.tally import Tally
from turnstile.load.watch import Watch

WINDOW_S = 30
"""quota.window.size.seconds, the longest that a connection is held: long enough to gather them all."""
GATHER_PER_S = 2500
SETTLE_S = 2.0
OFFENDER = "127.9.0.1"
HISTORY = 2000
"""Connections of the offender while it still has a high quota. Cut to 1/s after them, it is over it by so much that each
connect is held for a whole window; held for one connect too many, it would be a second."""


class Held(NamedTuple):
    """One round: the p99 of others' admissions (ms), without and beside held connections; bytes for each, threads for all."""

    alone_ms: float
    beside_ms: float
    bytes_each: float
    threads: int

    @property
    def ratio(self) -> float:
        return self.beside_ms / self.alone_ms


def rows(count: int, seconds: float, rounds: int, checkout: Path | None = None) -> Iterator[Row]:
    """Each round is on a cluster of its own, of `checkout` (see machine.turnstile)."""
    found = take_rounds(rounds, partial(_round, count, seconds, checkout), (attrgetter("ratio"),))
    alone, beside, ratio = (quartiles(map(attrgetter(name), found)) for name in ("alone_ms", "beside_ms", "ratio"))
    kilobytes = quartiles(each.bytes_each / 1024 for each in found)
    threads = max(0, *(each.threads for each in found))  # fewer: one of the start's has ended meanwhile
    yield Row(f"admission of others beside {count:,} held connections", f"p99 {beside.median:.2f} ms",
              f"without them {alone.median:.2f} ms: {ratio.text('.2f', ' x')}", "1.5 x", ratio.median <= 1.5)  # fmt: skip
    yield Row("- memory per held connection, threads for all of them", f"{kilobytes.text('.1f', ' KB')}, {threads} threads",
              "", "no thread", threads == 0)  # fmt: skip


def _round(count: int, seconds: float, checkout: Path | None, number: int) -> Held:
    """Hold `count` connections of one address, and admit others meanwhile, for `seconds`."""
    with machine.turnstile("--set", f"quota.window.size.seconds={WINDOW_S}", checkout=checkout) as server:
        machine.put_quota(server, {"ip": OFFENDER}, {"connection_creation_rate": HISTORY})
        _run(server, [ClientGroup(name="offender", sources=Sources(OFFENDER), clients=HISTORY)])
        machine.put_quota(server, {"ip": OFFENDER}, {"connection_creation_rate": 1})
        gather_s = count / GATHER_PER_S + SETTLE_S
        offender = ClientGroup(name="offender", sources=Sources(OFFENDER), clients=count, rate=GATHER_PER_S)
        at_most = [0, 0, 0]  # connections, bytes, threads

        def watch(now: Watch) -> None:
            at_most[:] = max(at_most, [now.open_now, machine.memory_bytes(server.pid), _threads(server.pid)])

        # Looked at in the same way in both: reading what a process has in memory keeps it from working.
        alone = _run(server, [_others(SETTLE_S, seconds)], watch=watch)[0]
        machine.settle(server)
        before, threads_before = machine.memory_bytes(server.pid), _threads(server.pid)
        beside, _ = _run(server, [_others(gather_s, seconds), offender], gather_s + seconds, watch)
    if at_most[0] < 0.9 * count:
        raise CannotMeasure(f"only {at_most[0]:,} of {count:,} connections were held at once")
    alone_ms, beside_ms = (_p99_ms(tally.admitted_us) for tally in (alone, beside))
    return Held(alone_ms, beside_ms, (at_most[1] - before) / at_most[0], at_most[2] - threads_before)


def _p99_ms(latencies_us: Latencies) -> float:
    return latencies_us.percentiles_ms()["p99"] or 0.0


def _others(start_s: float, seconds: float) -> ClientGroup:
    return ClientGroup(
        name="others", sources=Sources("127.1.0.0/22"), rate=300, start_s=start_s, duration_s=seconds,
        clients=int(300 * seconds), hold_s=0.05,
    )  # fmt: skip


def _run(server: Server, groups: list[ClientGroup], timeout_s: float = 10.0, watch: object = None) -> list[Tally]:
    scenario = LoadScenario(name="held", groups=tuple(groups), timeout_s=timeout_s)
    watching = {"watch": watch} if watch is not None else {}
    return run(scenario, f"127.0.0.1:{server.port}", machine.admin_of(server), processes=1, **watching).groups  # type: ignore[arg-type]


def _threads(pid: int) -> int:
    return sum(len(list(Path(f"/proc/{each}/task").iterdir())) for each in machine.tree(pid))
