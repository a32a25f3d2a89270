"""Where connections come in: the listeners of one shard, and everything that decides about those who knock."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from broker.accept import eviction
from broker.accept.admission import Admission, Admit
from broker.accept.core_rates import CoreRates
from broker.accept.eviction import Eviction
from broker.accept.held_connections import HeldConnections
from broker.accept.listener import Listener
from broker.accept.pacing import Pacing
from broker.accept.rated import Rated
from broker.journal.writer import JournalWriter
from broker.serve.connection import Connection
from broker.shard_counters import RECORDED, ShardCounters, TopTalkers
from broker.timers import Timers
from shards.config.image import ClusterImage
from shards.mesh.poller import Poller
from shards.rates.rates import NAME, Rates
from shards.tokens.tokens import Tokens

_MOST_HELD = 20_000
_FOR_ALL = ("broker:all",)
"""Beside another listener the inter-broker one is let into the broker's pool in any case, but not beyond this one."""


class Entrance:
    """The admission of one shard. `fd_ceiling` is the first descriptor number too many for a connection.

    `timers.run` has to run, `flush` to be called at the end of each pass, `tick` a few times a second.
    """

    def __init__(
        self,
        shard: int,
        shards: int,
        listeners: Sequence[str],
        image: ClusterImage,
        tokens: Tokens,
        poller: Poller,
        journal: JournalWriter,
        counters: ShardCounters,
        top_talkers: TopTalkers,
        connections: dict[int, Connection],
        *,
        send: Callable[[int, tuple[Any, ...]], None],
        request: Callable[..., Awaitable[Any]],
        fd_ceiling: int,
    ) -> None:
        self.start_soon: Callable[..., Any]  # set before the first listener opens
        self.timers = Timers(poller)
        self.top_talkers = top_talkers
        self.rates = Rates(
            shard, shards, tuple(listeners), image, send=send, blocked=self._blocked, journal=self._recorded
        )
        self.held = HeldConnections(self.timers, min(_MOST_HELD, fd_ceiling // 2))
        self.room = Eviction(
            shard,
            shards,
            tokens,
            connections,
            poller,
            send=send,
            request=request,
            start_soon=lambda *call: self.start_soon(*call),
        )
        self._core = CoreRates(image)
        self._image = image
        self._tokens = tokens
        self._poller = poller
        self._journal = journal
        self._counters = counters
        self._fd_ceiling = fd_ceiling
        self._numbers = iter(range(1, 1 << 62))
        self._names = tuple(listeners)
        self._admissions: dict[str, Admission] = {}
        self._paths: dict[str, Rated] = {}
        self._listeners: list[Listener] = []
        self._armed_ms: int | None = None

    # Listeners

    def open(self, name: str, sock: socket.socket, admit: Admit) -> None:
        """Accepts on a listening socket; what is admitted goes to `admit`."""
        pacing = Pacing(name, self._poller, self.timers, self._counters, lambda: self.rates.batch(name))
        admission = self._admissions[name] = Admission(
            name,
            self._tokens,
            self._poller,
            self._journal,
            self._counters,
            self.top_talkers,
            admit,
            self._numbers,
            pacing,
            self.held,
            self.room.force,
            fd_ceiling=self._fd_ceiling,
            more_pools=_FOR_ALL if len(self._names) > 1 else (),
        )
        self._paths[name] = Rated(
            admission,
            self.rates,
            self._core,
            self.held,
            self.timers,
            self._tokens,
            self._poller,
            self._image,
            self._counters,
        )
        self._look_at_image(admission)
        listener = Listener(sock, self._poller, admission.arrived, admission.no_descriptor)
        self._listeners.append(listener)
        pacing.start(listener)

    def close(self) -> None:
        """Accepts no more, and closes what is held."""
        for admission in self._admissions.values():
            admission.pacing.stop()
        self.held.let_go_all()

    # Configuration, peers, messages

    def image_changed(self, version: int) -> None:
        """The view has become `version`; when this returns, no rate of an older one is left to be spent here."""
        self._observe()
        self._core.image_changed()
        self.room.protected = self._image.inter_broker_listener if len(self._names) > 1 else None
        self.rates.apply(version, now_ms=self._now_ms())
        for admission in self._admissions.values():
            self._look_at_image(admission)

    def _look_at_image(self, admission: Admission) -> None:
        name = admission.listener
        waits = self._image.rule_of("broker").wait
        forced = waits and name == self.room.protected
        admission.first = int(forced)
        admission.slots_wait = (waits and not forced) or self._image.rule_of(f"listener:{name}").wait
        rated = self.rates.limits_listeners or self.rates.limits_ips or self._core.active or forced
        admission.rated = self._paths[name].begin if rated else None
        admission.pacing.look()

    def peer_up(self, peer: int) -> None:
        self.rates.peer_up(peer)

    def peer_down(self, peer: int) -> None:
        self.rates.peer_down(peer, now_ms=self._now_ms())

    def receive(self, peer: int, message: Sequence[Any]) -> None:
        """A one-way message of another shard: of its tokens, unless it begins with a name."""
        first = message[0]
        if first == NAME:
            self.rates.receive(peer, message[1], now_ms=self._now_ms())
        elif first == eviction.NAME:
            self.room.told(message[1])
        else:
            self._tokens.receive(peer, message)  # type: ignore[arg-type]  # as it came from the mesh

    # Time

    def flush(self) -> None:
        """Ends a pass: rates and tokens tell who waits, who may then need the other; sends what came of it."""
        rates, tokens = self.rates, self._tokens
        rates.flush(now_ms=self._now_ms())
        tokens.flush()
        while rates.busy:
            rates.flush(now_ms=self._now_ms())
            tokens.flush()
        self.room.flush()
        due_ms = rates.next_ms()
        if due_ms is not None and (self._armed_ms is None or due_ms < self._armed_ms):
            self._armed_ms = due_ms
            self.timers.after(due_ms - self._poller.now_ns / 1e6, partial(self._advance, due_ms))

    def tick(self) -> None:
        """What is due without any event, and gauges."""
        now_ms = self._now_ms()
        self.rates.tick(now_ms=now_ms)
        self._core.tick(now_ms=now_ms)
        self._observe()
        for listener in self._listeners:
            listener.resume_after_exhaustion()
        for admission in self._admissions.values():
            admission.pacing.tick()
        pending = sum(each.pending + each.pacing.waiting for each in self._admissions.values())
        self._counters.set("waiting", pending)
        self._counters.set("held", len(self.held))

    def describe_gauges(self) -> list[list[Any]]:
        """KIP-612's rate of each address that connected within the last hour and has a quota, at most 200 of a shard."""
        ips = self.rates.describe(200, now_ms=self._now_ms())["ips"]
        return [["kafka_server_socket_server_metrics_connection_accept_rate", {"ip": ip}, rate] for ip, rate in ips]

    def _advance(self, due_ms: int) -> None:
        if self._armed_ms == due_ms:  # else a sooner one came between, and has been followed by another
            self._armed_ms = None
        self.rates.advance(now_ms=self._now_ms())

    def _observe(self) -> None:
        """Tells the rates how much came in while nothing asked them."""
        for name in self._names:
            total = sum(self._counters.value(counter, name) for counter in RECORDED)
            self.rates.observe(name, total, now_ms=self._now_ms())

    def _recorded(self, kind: str, detail: dict[str, Any], version: int) -> None:
        self._journal.add(kind, detail=detail, version=version)

    def _blocked(self, listener: str, until_ms: int) -> None:
        admission = self._admissions.get(listener)
        if admission is not None:
            admission.pacing.block(until_ms)

    def _now_ms(self) -> int:
        return self._poller.now_ns // 1_000_000
