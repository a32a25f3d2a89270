"""Benchmarks with TLS and with SASL, each beside a real Kafka and kfake with the same certificate, cipher and user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress

from scripts.bench import machine, producing, security
from scripts.bench.machine import CannotMeasure, Server
from scripts.bench.producing import CPU_OF_RECORDS, LATENCY, PARTITIONS, Peer, Produced
from scripts.bench.rounds import CPU, OURS, RATE, Quantity, Rounds, rate_row
from scripts.bench.security import Security
from scripts.bench.table import Row
from scripts.bench.wire import CAPS, Effort, in_turns, of_peer, rated
from scripts.peers import servers
from scripts.peers.fetching import Missing
from scripts.peers.jars import VERSION, Tools

KAFKA = f"Kafka {VERSION.rpartition('.')[0]}"
KAFKA_CAPS = {"max.connections": "100000", "max.connections.per.ip": "1000"}
RECORDS, SIZE = 600_000, 1000
"""Records of one run, and bytes of each."""
_UNANSWERED = Quantity(lambda load: load.refused + load.failed, ".0f", "")
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
        peers = {name: of_peer(peer) for name, peer in _peers(stack, secured, KAFKA_CAPS).items()}
        contenders: dict[str, Server | None] = {OURS: ours, **peers, FLOORS[protocol]: floor}
        found = in_turns(effort, "connect", contenders, _WARM_UP_S, **secured.client)
    for name in contenders:
        if unanswered := found.of(_UNANSWERED, name).median:
            raise CannotMeasure(f"{name} refused or ended {unanswered:.0f} connections below the caps")
    what = f"connect + {_STEPS[protocol]} + ApiVersions + close, 1,000 IPs"
    yield from rated(what, "connection", found, KAFKA, 1.0, 1.0)


def produce(protocol: str, rounds: int, share: float) -> Iterator[Row]:
    """kafka-producer-perf-test; `share` of RECORDS in each run."""
    records = int(RECORDS * share)
    with ExitStack() as stack:
        secured = stack.enter_context(security.PROTOCOLS[protocol]())
        turnstile = stack.enter_context(security.turnstile(secured, "--set", f"num.partitions={PARTITIONS}"))
        running = {OURS: servers.Server(f"127.0.0.1:{turnstile.port}", turnstile.pid)}
        running |= _peers(stack, secured, {"num.partitions": str(PARTITIONS)})
        peers = {name: Peer(name, each.bootstrap, each.pid, secured.properties) for name, each in running.items()}
        tools = stack.enter_context(Tools())
        found = producing.runs_of(tools, peers, rounds, "secured", SIZE, records)
    yield from _produced(protocol, found)


def _produced(protocol: str, found: Rounds[Produced]) -> Iterator[Row]:
    what, met = f"kafka-producer-perf-test by {protocol}, {SIZE:,}-byte records", found.ratio(RATE, KAFKA).median >= 1.0
    yield rate_row(what, found, f"1.0 x {KAFKA}", met, f"produce {SIZE} by {protocol}")
    yield Row(
        "- server CPU per record; the client's mean latency",
        f"{found.median_text(CPU_OF_RECORDS)}; {found.median_text(LATENCY)}",
        found.beside(CPU_OF_RECORDS, LATENCY),
        f"1.0 x {KAFKA}",
        found.ratio(CPU, KAFKA).median <= 1.0,
    )


def _peers(stack: ExitStack, secured: Security, settings: dict[str, str]) -> dict[str, servers.Server]:
    """Kafka with these settings besides, and kfake where it can be built. Raises CannotMeasure without Kafka."""
    try:
        peers = {KAFKA: stack.enter_context(servers.kafka({**secured.kafka, **settings}))}
    except Missing as missing:
        raise CannotMeasure(str(missing)) from missing
    with suppress(Missing):
        peers["kfake"] = stack.enter_context(servers.kfake(partitions=PARTITIONS, options=secured.kfake))
    return peers
