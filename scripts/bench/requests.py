"""Benchmarks of small requests on connections that stay open: ApiVersions, Metadata, and what byte quotas cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from scripts.bench import frames, machine
from scripts.bench.machine import CannotMeasure, Load, Server
from scripts.bench.rounds import CPU, OURS, RATE, take_turns
from scripts.bench.table import Row
from scripts.bench.wire import WARM_UP_S, Effort, Field, of_peer, rated
from scripts.peers import servers
from scripts.peers.fetching import Missing

CONNECTIONS = 64
TOPIC, PARTITIONS = "metered", 4
ENOUGH = 1e12
"""Bytes a second that no client reaches, so that every request is charged and none throttled."""


def small(field: Field) -> Iterator[Row]:
    """One request in flight on each of 64 connections."""
    with ExitStack() as stack:
        try:
            kafka: Server | None = of_peer(stack.enter_context(servers.kafka()))
        except Missing:
            kafka = None
        for api, frame, goal in (("ApiVersions", frames.API_VERSIONS, 1.6), ("Metadata", frames.METADATA, 1.2)):
            path = stack.enter_context(frames.file_of(frame))
            contenders = {
                OURS: field.turnstile,
                "kfake": field.kfake,
                "Kafka 4.3": kafka,
                "C loop, same system calls": field.floor,
            }
            found = field.turns("requests", contenders, frames=path, concurrency=CONNECTIONS)
            yield from rated(f"{api} on {CONNECTIONS} connections", "request", found, "kfake", goal)


def metered(effort: Effort) -> Iterator[Row]:
    """Produce and Fetch of 64 clients in turn, with a byte rate of each kind for each of them, and without any."""
    with ExitStack() as stack:
        plain, limited = (stack.enter_context(machine.turnstile("--topic", f"{TOPIC}:{PARTITIONS}")) for _ in range(2))
        set_quotas(limited)
        path = stack.enter_context(frames.file_of(*frames.produce_and_fetch(CONNECTIONS, TOPIC, PARTITIONS)))
        sides = {OURS: limited, "without quotas": plain}
        for server in sides.values():
            produce_and_fetch(server, path, WARM_UP_S)
        found = take_turns(
            effort.rounds, sides, lambda server, _: produce_and_fetch(server, path, effort.seconds), (RATE, CPU)
        )
    yield from rated(
        f"Produce + Fetch of {CONNECTIONS} clients with byte quotas", "request", found, "without quotas", 0.9
    )


def set_quotas(server: Server) -> None:
    """Byte rates that no client reaches, as the default of all of them."""
    machine.put_quota(server, {"client-id": None}, {"producer_byte_rate": ENOUGH, "consumer_byte_rate": ENOUGH})  # type: ignore[dict-item]  # None: the default


def produce_and_fetch(server: Server, path: str, seconds: float) -> Load:
    """Drive the requests of `path`, Produce and Fetch in turn."""
    load = machine.drive(server, "requests", frames=path, cycle=2, concurrency=CONNECTIONS, seconds=seconds)
    if load.refused:
        raise CannotMeasure(f"{load.refused} connections were refused")
    return load
