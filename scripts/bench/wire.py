"""Benchmarks over the wire: connections, refusals, idle connections, configuration, start-up.

Turnstile and its peers take turns, round by round (rounds.py).
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from scripts.bench import machine
from scripts.bench.machine import CannotMeasure, Load, Server
from scripts.bench.rounds import (
    CPU,
    OURS,
    RATE,
    Quantity,
    Rounds,
    measured,
    quartiles,
    rate_row,
    take_rounds,
    take_turns,
)
from scripts.bench.table import Row
from scripts.peers import servers
from scripts.peers.fetching import Missing
from turnstile.admin_client import AdminClient

CAPS = ("--set", "kafka_connections_max=100000", "--set", "kafka_connections_max_per_ip=1000")
WARM_UP_S = 2.0
AT_ITS_CAP, CAP = "127.8.0.1", 5
ANSWERED, REFUSED = (Quantity(attrgetter(name), ".0f", "") for name in ("answered", "refused"))
MEMORY = Quantity(lambda size: size / 1024, ".1f", " KB")


class Effort(NamedTuple):
    """How long to measure: rounds of so many seconds each."""

    rounds: int
    seconds: float


class Field:
    """Turnstile and its peers, all running; the peers that are not here are None, with the reason in `missing`.

    `loop` closes what it accepts; `floor` makes the system calls of an answer of the size of Turnstile's to ApiVersions.
    """

    def __init__(self, stack: ExitStack, effort: Effort) -> None:
        self.effort = effort
        self.missing = ""
        self.turnstile = stack.enter_context(machine.turnstile(*CAPS))
        self.loop = stack.enter_context(machine.accept_loop())
        self.floor = stack.enter_context(machine.accept_loop(machine.answer_bytes(self.turnstile.port)))
        self.kfake: Server | None = None
        try:
            self.kfake = stack.enter_context(kfake())
        except Missing as missing:
            self.missing = str(missing)

    def turns(self, mode: str, contenders: Mapping[str, Server | None], **values: object) -> Rounds[Load]:
        """See in_turns."""
        return in_turns(self.effort, mode, contenders, **values)


@contextmanager
def kfake() -> Iterator[Server]:
    """As a server under test. Raises Missing."""
    with servers.kfake() as peer:
        yield of_peer(peer)


def of_peer(peer: servers.Server) -> Server:
    """A peer of one broker as a server under test."""
    return Server(int(peer.bootstrap.rpartition(":")[2]), peer.pid)


def in_turns(
    effort: Effort,
    mode: str,
    contenders: Mapping[str, Server | None],
    warm_up_s: float = WARM_UP_S,
    **values: object,
) -> Rounds[Load]:
    """The rounds of the contenders that are here, after a run of each that does not count: it compiles what comes first."""
    here = {name: server for name, server in contenders.items() if server is not None}
    for server in here.values():
        machine.drive(server, mode, seconds=warm_up_s, **values)

    def run(server: Server, number: int) -> Load:
        return machine.drive(server, mode, seconds=effort.seconds, **values)

    return take_turns(effort.rounds, here, run, (RATE, CPU))


def connections(field: Field) -> Iterator[Row]:
    """Connect, ApiVersions, close: a thousand addresses, all below their caps."""
    contenders = {
        OURS: field.turnstile,
        "kfake": field.kfake,
        "C loop, same system calls": field.floor,
        "C loop, closes only": field.loop,
    }
    found = field.turns("connect", contenders)
    if refused := found.of(REFUSED).median:
        raise CannotMeasure(f"{refused:.0f} connections were refused below the caps")
    yield from rated("connect + ApiVersions + close, 1,000 IPs", "connection", found, "kfake", 1.5, 0.65)


def refusals(field: Field) -> Iterator[Row]:
    """One address at its cap that goes on connecting; also where one shard decides alone, and where there are more than cores."""
    found = _refused(field, field.turnstile, {"C loop": field.loop})
    yield from rated("refusals of an IP at its cap", "refusal", found, "C loop", 1.3, 1.3)
    for shards, where, beside in ((1, "one shard", "one process"), (4, "four shards", "four processes")):
        with machine.turnstile(*CAPS, shards=shards) as turnstile, machine.accept_loop(processes=shards) as bare:
            found = _refused(field, turnstile, {f"C loop, {beside}": bare})
        yield from rated(f"refusals of an IP at its cap, {where}", "refusal", found)


@contextmanager
def at_its_cap(server: Server) -> Iterator[None]:
    """AT_ITS_CAP has as many connections open as it may."""
    machine.put(server, {"kafka_connections_max_overrides": [f"{AT_ITS_CAP}:{CAP}"]})
    with ExitStack() as stack:
        for sock in machine.held(server.port, AT_ITS_CAP, CAP):
            stack.enter_context(sock)
        yield


def _refused(field: Field, turnstile: Server, loop: Mapping[str, Server]) -> Rounds[Load]:
    with at_its_cap(turnstile):
        found = field.turns("connect", {OURS: turnstile, **loop}, sources=1, base=AT_ITS_CAP)
    if answered := found.of(ANSWERED).median:
        raise CannotMeasure(f"{answered:.0f} connections were admitted at the cap")
    return found


def rated(
    what: str,
    each: str,
    found: Rounds[Load],
    rival: str = "",
    rate: float | None = None,
    cpu: float | None = None,
) -> Iterator[Row]:
    """Two rows, of rates and of CPU time, beside each peer; the goal is `rate` times, and at most `cpu` times, that of `rival`."""
    is_here = rival in found.peers
    met = found.ratio(RATE, rival).median >= rate if is_here and rate else None
    goal = f"{rate} x {rival}" if rate else ""
    yield rate_row(what, found, goal, met)
    met = found.ratio(CPU, rival).median <= cpu if is_here and cpu else None
    goal = f"{cpu} x {rival}" if cpu else ""
    yield Row(f"- server CPU per {each}", found.median_text(CPU), found.beside(CPU), goal, met)


@contextmanager
def _idle(server: Server, count: int) -> Iterator[None]:
    """Keeps `count` connections open."""
    command = [machine.binary("client"), "idle", str(server.port), f"count={count}"]
    client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert client.stdin is not None and client.stdout is not None
    try:
        said = json.loads(client.stdout.readline())
        if said["answered"] != count:
            raise CannotMeasure(f"only {said['answered']} of {count} idle connections were admitted")
        yield
    finally:
        client.stdin.close()
        client.wait(timeout=20)
        client.stdout.close()


def idle(rounds: int, checkout: Path | None = None, count: int = 5000) -> Iterator[Row]:
    """Memory of admitted connections that do nothing, beside as many that are open already: what the first ones take once
    for all is not in it, nor are the kernel's socket buffers. Servers are new in each round, as connections take first what
    closed ones have left; kfake is measured where Turnstile is of this checkout (see machine.turnstile)."""
    contenders: dict[str, Callable[[], AbstractContextManager[Server]]] = {
        OURS: partial(machine.turnstile, *CAPS, checkout=checkout)
    }
    missing = ""
    if checkout is None:
        try:
            servers.kfake_binary()
            contenders["kfake"] = kfake
        except Missing as reason:
            missing = str(reason)

    def per_connection(start: Callable[[], AbstractContextManager[Server]], number: int) -> float:
        with start() as server, _idle(server, count):
            machine.settle(server)
            before = machine.memory_bytes(server.pid)
            with _idle(server, count):
                return (machine.memory_bytes(server.pid) - before) / count

    found = take_turns(rounds, contenders, per_connection, (MEMORY,))
    yield Row(f"memory per idle connection, {count:,} open", found.text(MEMORY), found.beside(MEMORY) or missing,
              "20 KB", found.of(MEMORY).median <= 20)  # fmt: skip


def config_change(rounds: int, checkout: Path | None = None, changes: int = 300) -> Iterator[Row]:
    """PUT of a cap until it is answered, which is when every shard has applied and acknowledged it; on one cluster, of
    `checkout` (see machine.turnstile)."""

    def change(admin: AdminClient) -> Iterator[float]:
        for number in range(changes):
            body = {"upsert": {"kafka_connections_max_per_ip": 900 + number}, "remove": []}
            began = time.perf_counter()
            admin.put("/v1/cluster_config", body)
            yield machine.since(began) * 1000

    with machine.turnstile(*CAPS, checkout=checkout) as server, machine.admin_of(server) as admin:
        machine.settle(server)
        found = take_rounds(rounds, lambda _: sorted(change(admin)), (_p50, _p99))
    p50, p99 = (quartiles(map(each, found)) for each in (_p50, _p99))
    yield Row("configuration change, asked to enforced on all shards",
              f"p50 {p50.text('.1f', ' ms')}, p99 {p99.text('.1f', ' ms')}", "", "p99 10 ms", p99.median <= 10)  # fmt: skip


def _p50(ordered: Sequence[float]) -> float:
    return ordered[len(ordered) // 2]


def _p99(ordered: Sequence[float]) -> float:
    return ordered[int(len(ordered) * 0.99)]


def start_up(rounds: int, checkout: Path | None = None) -> Iterator[Row]:
    """The time from exec of `turnstile up` (of `checkout`, see machine.turnstile) until a client has an answer."""

    def took_s() -> float:
        port, began = servers.free_port(), time.perf_counter()
        # The context's own wait for the line it prints would hide an earlier answer, but never by much: it is printed
        # once the shards listen.
        with machine.turnstile(port=port, checkout=checkout):
            while not machine.answers(port):
                time.sleep(0.001)
            return machine.since(began)

    took = measured(rounds, took_s)
    yield Row("`turnstile up`, until it answers", took.text(".2f", " s"), "", "1 s", took.median <= 1)
