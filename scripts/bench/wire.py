"""Benchmarks over the wire: connections, refusals, idle connections, configuration, start-up.

Turnstile and its peers take turns, round by round, and every figure is the median of the rounds, so that other load of
the machine hits all of them alike.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from scripts.bench import machine, producing
from scripts.bench.machine import CannotMeasure, Load, Server
from scripts.bench.table import Row
from scripts.peers import servers
from scripts.peers.jars import Missing

CAPS = ("--set", "kafka_connections_max=100000", "--set", "kafka_connections_max_per_ip=1000")
WARM_UP_S = 2.0
AT_ITS_CAP, CAP = "127.8.0.1", 5


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
            peer = stack.enter_context(servers.kfake())
            self.kfake = Server(int(peer.bootstrap.rpartition(":")[2]), peer.pid)
        except Missing as missing:
            self.missing = str(missing)

    def turns(self, mode: str, contenders: list[Server | None], **values: object) -> list[Load | None]:
        """See in_turns."""
        return in_turns(self.effort, mode, contenders, **values)


def in_turns(
    effort: Effort, mode: str, contenders: Sequence[Server | None], warm_up_s: float = WARM_UP_S, **values: object
) -> list[Load | None]:
    """Each contender's median, measured in turns, after a run of each that does not count: it compiles what comes first."""
    loads: list[list[Load]] = [[] for _ in contenders]
    for server in filter(None, contenders):
        machine.drive(server, mode, seconds=warm_up_s, **values)
    for _ in range(effort.rounds):
        for server, seen in zip(contenders, loads, strict=True):
            if server is not None:
                seen.append(machine.drive(server, mode, seconds=effort.seconds, **values))
    return [machine.median(seen) if seen else None for seen in loads]


def connections(field: Field) -> Iterator[Row]:
    """Connect, ApiVersions, close: a thousand addresses, all below their caps."""
    ours, fake, loop, floor = field.turns("connect", [field.turnstile, field.kfake, field.loop, field.floor])
    assert ours is not None
    if ours.refused:
        raise CannotMeasure(f"{ours.refused} connections were refused below the caps")
    peers = {"kfake": fake, "C loop, same system calls": floor, "C loop, closes only": loop}
    yield from rated("connect + ApiVersions + close, 1,000 IPs", "connection", ours, peers, "kfake", 1.5, 0.65)


def refusals(field: Field) -> Iterator[Row]:
    """One address at its cap that goes on connecting; also where one shard decides alone, and where there are more than cores."""
    ours, loop = _refused(field, field.turnstile, field.loop)
    yield from rated("refusals of an IP at its cap", "refusal", ours, {"C loop": loop}, "C loop", 1.3, 1.3)
    for shards, where, beside in ((1, "one shard", "one process"), (4, "four shards", "four processes")):
        with machine.turnstile(*CAPS, shards=shards) as turnstile, machine.accept_loop(processes=shards) as bare:
            ours, loop = _refused(field, turnstile, bare)
        yield from rated(f"refusals of an IP at its cap, {where}", "refusal", ours, {f"C loop, {beside}": loop})


@contextmanager
def at_its_cap(server: Server) -> Iterator[None]:
    """AT_ITS_CAP has as many connections open as it may."""
    machine.put(server, {"kafka_connections_max_overrides": [f"{AT_ITS_CAP}:{CAP}"]})
    with ExitStack() as stack:
        for sock in machine.held(server.port, AT_ITS_CAP, CAP):
            stack.enter_context(sock)
        yield


def _refused(field: Field, turnstile: Server, loop: Server) -> tuple[Load, Load]:
    with at_its_cap(turnstile):
        ours, bare = field.turns("connect", [turnstile, loop], sources=1, base=AT_ITS_CAP)
    assert ours is not None and bare is not None
    if ours.answered:
        raise CannotMeasure(f"{ours.answered} connections were admitted at the cap")
    return ours, bare


def rated(
    what: str,
    each: str,
    ours: Load,
    peers: Mapping[str, Load | None],
    rival: str = "",
    rate: float | None = None,
    cpu: float | None = None,
) -> Iterator[Row]:
    """Two rows, of rates and of CPU time, beside each peer that is here; the goal is `rate` times, and at most `cpu` times,
    that of `rival`."""
    here = {name: load for name, load in peers.items() if load is not None}
    scores = producing.scores_beside(what, ours.per_s, ours.cpu_us, {n: (x.per_s, x.cpu_us) for n, x in here.items()})
    best = here.get(rival)
    met = None if best is None or rate is None else ours.per_s >= rate * best.per_s
    beside = "; ".join(f"{name} {_rate(load)}: {ours.per_s / load.per_s:.2f} x" for name, load in here.items())
    yield Row(what, _rate(ours), beside, f"{rate} x {rival}" if rate else "", met, scores)
    met = None if best is None or cpu is None else ours.cpu_us <= cpu * best.cpu_us
    beside = "; ".join(f"{name} {load.cpu_us:.0f} us: {ours.cpu_us / load.cpu_us:.2f} x" for name, load in here.items())
    yield Row(f"- server CPU per {each}", f"{ours.cpu_us:.0f} us", beside, f"{cpu} x {rival}" if cpu else "", met)


@contextmanager
def _idle(server: Server, count: int) -> Iterator[None]:
    """So many connections, open."""
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


def idle(turnstile: Server, kfake: Server | None = None, missing: str = "", count: int = 5000) -> Iterator[Row]:
    """Memory of admitted connections that do nothing, beside as many that are open already: what the first ones take once
    for all is not in it, nor are the kernel's socket buffers."""

    def per_connection(server: Server) -> float:
        with _idle(server, count):
            machine.settle(server)
            before = machine.memory_bytes(server.pid)
            with _idle(server, count):
                return (machine.memory_bytes(server.pid) - before) / count

    ours = per_connection(turnstile)
    peers = missing
    if kfake is not None:
        fake = per_connection(kfake)
        peers = f"kfake {fake / 1024:.1f} KB: {ours / fake:.2f} x"
    yield Row(f"memory per idle connection, {count:,} open", f"{ours / 1024:.1f} KB", peers, "20 KB", ours <= 20 * 1024)


def config_change(turnstile: Server, changes: int = 300) -> Iterator[Row]:
    """PUT of a cap until it is answered, which is when every shard has applied and acknowledged it."""
    took_ms = []
    with machine.admin_of(turnstile) as admin:
        for number in range(changes):
            body = {"upsert": {"kafka_connections_max_per_ip": 900 + number}, "remove": []}
            began = time.perf_counter()
            admin.put("/v1/cluster_config", body)
            took_ms.append(machine.since(began) * 1000)
    took_ms.sort()
    p50, p99 = took_ms[changes // 2], took_ms[int(changes * 0.99)]
    yield Row("configuration change, asked to enforced on all shards", f"p50 {p50:.1f} ms, p99 {p99:.1f} ms", "",
              "p99 10 ms", p99 <= 10)  # fmt: skip


def start_up(rounds: int, checkout: Path | None = None) -> Iterator[Row]:
    """From exec of `turnstile up` (of `checkout`, see machine.turnstile) until a client has an answer."""
    took = []
    for _ in range(rounds):
        port, began = servers.free_port(), time.perf_counter()
        # The context's own wait for the line it prints would hide an earlier answer, but never by much: it is printed
        # once the shards listen.
        with machine.turnstile(port=port, checkout=checkout):
            while not machine.answers(port):
                time.sleep(0.001)
            took.append(machine.since(began))
    middle = sorted(took)[len(took) // 2]
    yield Row("`turnstile up`, until it answers", f"{middle:.2f} s", "", "1 s", middle <= 1)


def _rate(load: Load) -> str:
    return f"{load.per_s:,.0f}/s"
