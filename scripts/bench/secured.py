"""Benchmarks with TLS and with SASL, each beside a real Kafka and kfake with the same certificate, cipher and user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress

from scripts.bench import machine, producing, security
from scripts.bench.machine import CannotMeasure, Load, Server
from scripts.bench.producing import PARTITIONS, Peer, Produced
from scripts.bench.security import Security
from scripts.bench.table import Row
from scripts.bench.wire import CAPS, Effort, in_turns, rated
from scripts.peers import servers
from scripts.peers.jars import VERSION, Missing, Tools

KAFKA = f"Kafka {VERSION.rpartition('.')[0]}"
KAFKA_CAPS = {"max.connections": "100000", "max.connections.per.ip": "1000"}
RECORDS, SIZE = 600_000, 1000
"""Records of one run, and bytes of each."""
_WARM_UP_S = 6.0  # a JVM compiles what makes handshakes only after thousands of them
FLOORS = {"TLS": "C loop, OpenSSL", "SASL PLAIN": "C loop, same system calls"}
_STEPS = {"TLS": "TLS handshake", "SASL PLAIN": "SASL PLAIN"}


def connections(protocol: str, effort: Effort) -> Iterator[Row]:
    """Connect, handshake or login, ApiVersions, close: a thousand addresses, all below their caps."""
    with ExitStack() as stack:
        secured = stack.enter_context(security.PROTOCOLS[protocol]())
        ours = stack.enter_context(security.turnstile(secured, *CAPS))
        size = machine.answer_bytes(ours.ports[security.PLAIN_LISTENER])
        floor = stack.enter_context(machine.accept_loop(size, certificate=secured.floor))
        contenders: dict[str, Server | None] = {"Turnstile": ours}
        for name, peer in _peers(stack, secured, KAFKA_CAPS).items():
            contenders[name] = Server(int(peer.bootstrap.rpartition(":")[2]), peer.pid)
        contenders[FLOORS[protocol]] = floor
        seen = in_turns(effort, "connect", list(contenders.values()), _WARM_UP_S, **secured.client)
    loads = dict(zip(contenders, seen, strict=True))
    for name, load in loads.items():
        if load is not None and load.refused + load.failed > 0:
            raise CannotMeasure(f"{name} refused {load.refused} connections below the caps, and ended {load.failed}")
    mine = _measured(loads.pop("Turnstile"))
    what = f"connect + {_STEPS[protocol]} + ApiVersions + close, 1,000 IPs"
    yield from rated(what, "connection", mine, loads, KAFKA, 1.0, 1.0)


def produce(protocol: str, rounds: int, share: float) -> Iterator[Row]:
    """kafka-producer-perf-test; `share` of RECORDS in each run."""
    records = int(RECORDS * share)
    with ExitStack() as stack:
        secured = stack.enter_context(security.PROTOCOLS[protocol]())
        turnstile = stack.enter_context(security.turnstile(secured, "--set", f"num.partitions={PARTITIONS}"))
        ours = Peer("Turnstile", f"127.0.0.1:{turnstile.port}", turnstile.pid, secured.properties)
        others = _peers(stack, secured, {"num.partitions": str(PARTITIONS)})
        peers = [ours, *(Peer(name, peer.bootstrap, peer.pid, secured.properties) for name, peer in others.items())]
        tools = stack.enter_context(Tools())
        runs: dict[str, list[Produced]] = {peer.name: [] for peer in peers}
        for turn in range(rounds):
            for peer in peers:
                runs[peer.name].append(producing.run(tools, peer, f"secured-{turn}", SIZE, records))
    found = {name: producing.median(seen) for name, seen in runs.items()}
    yield from _produced(protocol, found.pop("Turnstile"), found)


def _produced(protocol: str, ours: Produced, found: dict[str, Produced]) -> Iterator[Row]:
    what = f"kafka-producer-perf-test by {protocol}, {SIZE:,}-byte records"
    beside_them = {name: (run.per_s, run.cpu_us) for name, run in found.items()}
    scores = producing.scores_beside(f"produce {SIZE} by {protocol}", ours.per_s, ours.cpu_us, beside_them)
    beside = "; ".join(f"{name} {run.per_s:,.0f}/s: {ours.per_s / run.per_s:.2f} x" for name, run in found.items())
    yield Row(what, f"{ours.per_s:,.0f}/s", beside, f"1.0 x {KAFKA}", ours.per_s >= found[KAFKA].per_s, scores)
    beside = "; ".join(f"{name} {run.cpu_us:.2f} us, {run.latency_ms:.0f} ms" for name, run in found.items())
    yield Row("- server CPU per record; the client's mean latency", f"{ours.cpu_us:.2f} us; {ours.latency_ms:.0f} ms",
              beside, f"1.0 x {KAFKA}", ours.cpu_us <= found[KAFKA].cpu_us)  # fmt: skip


def _peers(stack: ExitStack, secured: Security, settings: dict[str, str]) -> dict[str, servers.Server]:
    """Kafka with these settings besides, and kfake where it can be built. Raises CannotMeasure without Kafka."""
    try:
        peers = {KAFKA: stack.enter_context(servers.kafka({**secured.kafka, **settings}))}
    except Missing as missing:
        raise CannotMeasure(str(missing)) from missing
    with suppress(Missing):
        peers["kfake"] = stack.enter_context(servers.kfake(partitions=PARTITIONS, options=secured.kfake))
    return peers


def _measured(load: Load | None) -> Load:
    assert load is not None
    return load
