"""Benchmarks of small requests on connections that stay open: ApiVersions, Metadata, and what byte quotas cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from scripts.bench import frames, machine
from scripts.bench.machine import CannotMeasure, Load, Server
from scripts.bench.table import Row
from scripts.bench.wire import WARM_UP_S, Effort, Field, rated
from scripts.peers import servers
from scripts.peers.jars import Missing

CONNECTIONS = 64
TOPIC, PARTITIONS = "metered", 4
ENOUGH = 1e12
"""Bytes a second that no client reaches, so that every request is charged and none throttled."""


def small(field: Field) -> Iterator[Row]:
    """One request in flight on each of 64 connections."""
    with ExitStack() as stack:
        try:
            peer = stack.enter_context(servers.kafka())
            kafka: Server | None = Server(int(peer.bootstrap.rpartition(":")[2]), peer.pid)
        except Missing:
            kafka = None
        for api, frame, goal in (("ApiVersions", frames.API_VERSIONS, 1.6), ("Metadata", frames.METADATA, 1.2)):
            path = stack.enter_context(frames.file_of(frame))
            contenders = [field.turnstile, field.kfake, kafka, field.floor]
            ours, fake, theirs, floor = field.turns("requests", contenders, frames=path, concurrency=CONNECTIONS)
            assert ours is not None
            peers = {"kfake": fake, "Kafka 4.3": theirs, "C loop, same system calls": floor}
            yield from rated(f"{api} on {CONNECTIONS} connections", "request", ours, peers, "kfake", goal)


def metered(effort: Effort) -> Iterator[Row]:
    """Produce and Fetch of 64 clients in turn, with a byte rate of each kind for each of them, and without any."""
    with ExitStack() as stack:
        plain, limited = (stack.enter_context(machine.turnstile("--topic", f"{TOPIC}:{PARTITIONS}")) for _ in range(2))
        set_quotas(limited)
        path = stack.enter_context(frames.file_of(*frames.produce_and_fetch(CONNECTIONS, TOPIC, PARTITIONS)))
        for server in (plain, limited):
            produce_and_fetch(server, path, WARM_UP_S)
        runs: list[tuple[Load, Load]] = []
        for turn in range(effort.rounds):
            sides = [plain, limited] if turn % 2 else [limited, plain]
            loads = {side.pid: produce_and_fetch(side, path, effort.seconds) for side in sides}
            runs.append((loads[plain.pid], loads[limited.pid]))
    without, with_quotas = (machine.median(side) for side in zip(*runs, strict=True))
    ratio = with_quotas.per_s / without.per_s
    scores = {"byte quotas: rate": ratio, "byte quotas: CPU": without.cpu_us / with_quotas.cpu_us}
    yield Row(f"Produce + Fetch of {CONNECTIONS} clients with byte quotas", f"{with_quotas.per_s:,.0f}/s",
              f"without quotas {without.per_s:,.0f}/s: {ratio:.2f} x", "0.9 x", ratio >= 0.9, scores)  # fmt: skip
    yield Row("- server CPU per request", f"{with_quotas.cpu_us:.0f} us",
              f"without quotas {without.cpu_us:.0f} us: {with_quotas.cpu_us / without.cpu_us:.2f} x")  # fmt: skip


def set_quotas(server: Server) -> None:
    """Byte rates that no client reaches, as the default of all of them."""
    machine.put_quota(server, {"client-id": None}, {"producer_byte_rate": ENOUGH, "consumer_byte_rate": ENOUGH})  # type: ignore[dict-item]  # None: the default


def produce_and_fetch(server: Server, path: str, seconds: float) -> Load:
    """Drive the requests of `path`, Produce and Fetch in turn."""
    load = machine.drive(server, "requests", frames=path, cycle=2, concurrency=CONNECTIONS, seconds=seconds)
    if load.refused:
        raise CannotMeasure(f"{load.refused} connections were refused")
    return load
