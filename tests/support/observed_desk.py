"""One shard whose limits are observed, and what it counts and journals; the test is the other shards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from cluster_pools import uncapped

from broker.accept.observed_world import ObservedWorld
from shards.config.image import ClusterImage
from shards.limits.caps import OBSERVED
from shards.limits.quota_entities import key_of_entity
from shards.loop.deferred import Deferred
from shards.rates.cluster_rate import ClusterRate
from shards.rates.observed_rates import METHOD, ObservedRates
from shards.tokens.tokens import Tokens


class OpenConnection:
    ip, port, listener = "10.0.0.1", 4711, "A"

    def __init__(self, pools: tuple[str, ...], number: int) -> None:
        self.id = number
        self.pools = pools

    def hold(self, pools: tuple[str, ...]) -> None:
        self.pools = pools


class Desk:
    """Shard 0 of `shards`; the others are the test. `journal` and `counted`: what was observed."""

    def __init__(self, shards: int = 1, **observed: str) -> None:
        self.image = ClusterImage(0)
        self.sent: list[Any] = []
        self.journal: list[dict[str, Any]] = []
        self.counted: list[tuple[str, str]] = []
        self.noted: list[tuple[str, list[str], int]] = []  # of what kind, for whom, and the delay
        self.now_ms = 0
        self.asked: list[tuple[tuple[Any, ...], Deferred[Any]]] = []
        self.tokens = Tokens(
            0,
            shards,
            epoch=1,
            send=lambda peer, message: self.sent.extend(message[1]),
            rule_of=self.image.rule_of,
            on_wait=lambda waiter, pool, rule: waiter.began_to_wait(pool, rule),
        )
        self.open: dict[int, OpenConnection] = {}
        self.mistakes: list[Exception] = []
        context = SimpleNamespace(
            log=SimpleNamespace(call_mistaken=self.mistakes.append),
            image=self.image,
            tokens=self.tokens,
            cluster=uncapped(),
            poller=SimpleNamespace(now_ns=0),
            journal=SimpleNamespace(
                add=lambda kind, **row: self.journal.append(row),
                refused=lambda conn, ip, port, listener, **row: self.journal.append({"conn": conn, **row}),
            ),
            counters=SimpleNamespace(add=lambda name, amount, listener: self.counted.append((name, listener))),
        )
        self.cluster_rate = ClusterRate((0, 0), 1, 1, self.image, send=cast(Any, None), now_ms=lambda: self.now_ms)
        rates = ObservedRates(
            0, shards, ("A", "B"), self.image, cluster=self.cluster_rate, call=self._call, now_ms=lambda: self.now_ms,
            notes=cast(
                Any,
                SimpleNamespace(
                    answered=lambda what, name, answer, arrivals, **how: self.noted.append(
                        (what, [name] * arrivals, answer.ms)
                    ),
                    within=lambda what, names, **how: self.noted.append((what, names, 0)),
                    began=lambda **how: None,
                ),
            ),
        )  # fmt: skip
        self.rates = rates
        self.rehearsal = ObservedWorld(cast(Any, context), self.open, rates)
        if shards > 1:
            self.tokens.peer_up(1, 2)
        self.observe(**observed)
        if shards > 1:
            self.hears(("sync", 1))

    def _call(self, peer: int, method: str, *asks: Any) -> Deferred[Any]:
        assert method == METHOD
        answer: Deferred[Any] = Deferred()
        self.asked.append((asks, answer))
        return answer

    def observe_rate_of(self, ip: str | None, per_s: float | None) -> None:
        """A quota of an address is observed; None: no more."""
        values = None if per_s is None else {"connection_creation_rate": per_s}
        self.image.apply(self.image.version + 1, [("observed_quota", key_of_entity((("ip", ip),)), values)])
        self.rehearsal.follow()

    def observe(self, **observed: str) -> None:
        """The image comes to another version, in which these caps and no others are observed."""
        records = [("observed", f"/{name.replace('__', '.')}", text) for name, text in observed.items()]
        change = self.image.apply(self.image.version + 1, records, whole=True)
        self.cluster_rate.apply()
        self.rehearsal.follow()
        self.tokens.apply(self.image.version, lambda: None, change.pools)
        self.says()

    def end_process(self) -> None:
        """As ShardProcess.serve, in order: its connections are closed first."""
        for number in list(self.open):
            self.close(number)
        self.rehearsal.close()
        self.says()

    def end_pass(self) -> None:
        """As ShardListeners.flush, of observed rates."""
        self.rates.flush()
        while self.cluster_rate.busy:
            self.cluster_rate.flush()
            self.rates.flush()

    def connect(self, number: int, ip: str = "10.0.0.1", *, forced: bool = False) -> None:
        """A connection that was admitted."""
        pools = ("listener:A", "broker", f"ip:{ip}")
        assert self.tokens.take_at_hand(pools) or self.tokens.take(pools, cast(Any, None))

        def opened(fd: int, number: int, ip: str, port: int, pools: tuple[str, ...]) -> None:
            self.open[number] = OpenConnection(pools, number)

        self.rehearsal.opener("A", pools[:2], opened, forced=forced)(9, number, ip, 4711, pools)

    def log_in(self, number: int, user: str) -> None:
        """It holds a token of its user's pool."""
        pool = f"user:{user}"
        assert self.tokens.take_at_hand((pool,)) or self.tokens.take((pool,), cast(Any, None))
        connection = self.open[number]
        connection.hold((pool, *connection.pools))
        self.rehearsal.users.came_in(connection)

    def close(self, number: int) -> None:
        self.tokens.release(self.open.pop(number).pools)

    def members(self) -> list[int]:
        return [number for number, each in self.open.items() if each.pools[-1].startswith(OBSERVED)]

    def in_use(self, pool: str) -> int:
        return self.tokens.snapshot().in_use.get(OBSERVED + pool, 0)

    def hears(self, *items: tuple[Any, ...]) -> list[Any]:
        self.tokens.receive(1, (2, list(items)))
        return self.says()

    def says(self) -> list[Any]:
        self.tokens.flush()
        self.tokens.check()
        assert self.mistakes == []
        sent, self.sent = self.sent, []
        return sent
