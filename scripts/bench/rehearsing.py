"""Benchmark of rehearsal: what a connection costs while one limit is observed, beside the same cluster without."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from scripts.bench import machine, security
from scripts.bench.machine import Server
from scripts.bench.pairs import Pair, figures
from scripts.bench.table import Row
from scripts.bench.wire import CAPS, WARM_UP_S, Effort

Observe = Callable[[Server, bool], None]
"""Has one limit observed, or observed no more; returns when that is so on every shard."""
GOAL = 1.05
_WARM_UP_S = 0.5  # an address's first token of an observed pool comes from another shard
_PAIRS_A_ROUND = 8
"""Many short pairs: one differs from the next by 6 %, also on a machine that does nothing else; the median of forty by two."""
_CPU = "server CPU, us per connection"


def _setting(name: str, value: object) -> Observe:
    def observe(server: Server, is_on: bool) -> None:
        body: dict[str, Any] = {"upsert": {name: value} if is_on else {}, "remove": [] if is_on else [name]}
        machine.admin_of(server).put("/v1/cluster_config", body, observe=True)

    return observe


def _address_rate(server: Server, is_on: bool) -> None:
    key = "connection_creation_rate"
    asked = {"entity": {"ip": None}, "set": {key: 100_000.0} if is_on else {}, "remove": [] if is_on else [key]}
    machine.admin_of(server).put("/v1/quotas", {"alter": [asked]}, observe=True)


class Rehearsed(NamedTuple):
    """A limit to observe, for the connections of a security protocol; None: plaintext."""

    observe: Observe
    protocol: str | None = None


REHEARSED: Mapping[str, Rehearsed] = {
    "a cap of each address": Rehearsed(_setting("kafka_connections_max_per_ip", 90)),
    "a creation rate of the broker": Rehearsed(_setting("max.connection.creation.rate", 1_000_000)),
    "a creation rate of the whole cluster": Rehearsed(
        _setting("turnstile.cluster.max.connection.creation.rate", 1_000_000)
    ),
    "a creation rate of each address": Rehearsed(_address_rate),
    "a creation rate of each user": Rehearsed(
        _setting("turnstile.max.connection.creation.rate.per.user", 1_000_000), "SASL PLAIN"
    ),
}
"""None of these limits would refuse a connection: the cost of asking is measured."""


def rows(effort: Effort) -> Iterator[Row]:
    """Connect, ApiVersions, close, as wire.connections does; users log in before. Each pair of runs is of one cluster, as two
    clusters of the same code differ by more than what is measured."""
    for protocol in dict.fromkeys(case.protocol for case in REHEARSED.values()):
        with _cluster(protocol) as (server, client):
            machine.drive(server, "connect", seconds=WARM_UP_S, **client)  # the first login of a user takes long
            for what, case in REHEARSED.items():
                if case.protocol == protocol:
                    yield _row(what, server, client, case.observe, effort)


@contextmanager
def _cluster(protocol: str | None) -> Iterator[tuple[Server, Mapping[str, object]]]:
    """A cluster, and the values of its clients."""
    if protocol is None:
        with machine.turnstile(*CAPS) as server:
            yield server, {}
        return
    with security.PROTOCOLS[protocol]() as secured, security.turnstile(secured, *CAPS) as server:
        yield server, secured.client


def _row(what: str, server: Server, client: Mapping[str, object], observe: Observe, effort: Effort) -> Row:
    def run(is_on: bool) -> dict[str, float]:
        observe(server, is_on)
        machine.drive(server, "connect", seconds=_WARM_UP_S, **client)
        load = machine.drive(server, "connect", seconds=effort.seconds / 4, **client)
        observe(server, False)
        return {_CPU: load.cpu_us}

    pair = Pair(partial(run, False), partial(run, True), partial(machine.settle, server))
    (cpu,) = figures(pair, _PAIRS_A_ROUND * effort.rounds)
    return Row(
        f"server CPU per connection, {what} observed",
        f"{cpu.after:.0f} us",
        f"nothing observed {cpu.before:.0f} us: {cpu.ratio.text('.3f', ' x')}",
        f"{GOAL} x",
        cpu.ratio.median <= GOAL,
        {f"observed, {what}: CPU": 1 / cpu.ratio.median},
    )
