"""The listeners of one shard, with the rates, tokens and evictions that decide about their connections."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from broker.accept import eviction
from broker.accept.admission import Admission, Open
from broker.accept.core_rates import CoreRates
from broker.accept.eviction import Eviction
from broker.accept.held_connections import HeldConnections
from broker.accept.listener import Listener
from broker.accept.observed_world import ObservedWorld, OpenT
from broker.accept.pacing import Pacing
from broker.accept.pending_connection import PendingConnection
from broker.accept.proxied_admission import OpenAnnounced, ProxiedAdmission
from broker.accept.proxy_listener import MOST_WAITING, ProxyListener
from broker.accept.refused_sockets import Answering, RefusedSockets
from broker.accept.step_actions import Deciders
from broker.metrics.observed_rate_events import ObservedRateEvents
from broker.metrics.outcomes import Outcomes
from broker.metrics.shard_counters import RECORDED
from broker.runtime.shard_context import ShardContext
from broker.serve.connection import Connection
from shards.config.proxy_option import ProxyOption
from shards.limits.caps import OBSERVED
from shards.mesh.exchange import Receiver
from shards.quotas.history_replication import Call
from shards.rates.observed_rates import ObservedRates
from shards.rates.rates import NAME, Rates

_MOST_HELD = 20_000
_MOST_REFUSED_HELD = 2000  # per shard, and at most an eighth of its descriptors
_ALL_LISTENERS = ("broker:all",)
"""One more pool of a broker with several listeners. Its cap is `kafka_connections_max` where `max.connections` is tighter: the
inter-broker listener may exceed `max.connections`, but not this cap (shards/limits/connection_limits.py)."""
_OVER_TLS = ("ssl",)
"""An additional pool of the listeners with TLS."""


class ShardListeners:
    """The listeners named `listeners`. Connections get descriptors below `fd_ceiling`.

    `flush` is to be called at the end of each pass, `tick` a few times a second. Connections are recorded in `rates`.
    """

    def __init__(
        self,
        context: ShardContext,
        listeners: Sequence[str],
        connections: Mapping[int, Connection],
        *,
        fd_ceiling: int,
        call: Call,
        ssl: Collection[str] = (),
    ) -> None:
        """`call`: mesh.call. `ssl`: the listeners with TLS."""
        self._context = context
        self._image = context.image
        self._names = tuple(listeners)
        self._connections = connections
        self._ssl = frozenset(ssl)
        self.rates = Rates(
            context.shard,
            context.shards,
            self._names,
            context.image,
            send=context.send,
            blocked=self._blocked,
            journal=self._recorded,
        )
        self._held = HeldConnections(context.timers, min(_MOST_HELD, fd_ceiling // 2))
        self.eviction = Eviction(context, connections)
        self._observed_rates = ObservedRates(
            context.shard,
            context.shards,
            self._names,
            context.image,
            cluster=context.cluster_rate,
            call=call,
            now_ms=context.now_ms,
            notes=ObservedRateEvents(context.journal, context.image),
        )
        self.observed_world = ObservedWorld(context, connections, self._observed_rates)
        self._core_rates = CoreRates(context.image)
        self._pending: set[PendingConnection] = set()
        self._deciders = Deciders(
            rates=self.rates,
            core_rates=self._core_rates,
            held=self._held,
            refused_sockets=RefusedSockets(context.image, context.timers, min(_MOST_REFUSED_HELD, fd_ceiling // 8)),
            force=self.eviction.force,
            numbers=iter(range(1, 1 << 62)),
            pending=self._pending,
            fd_ceiling=fd_ceiling,
        )
        self._admissions: dict[str, Admission] = {}
        self._listeners: list[Listener] = []
        self._proxy_listeners: list[ProxyListener] = []  # some of them
        self._armed_ms: int | None = None

    # Listeners

    def open(self, outcomes: Outcomes, sock: socket.socket, open_connection: Open, *, answering: Answering) -> None:
        """Accepts on a listening socket. Admitted descriptors go to `open_connection`; refused ones whose clients get an answer
        go to `answering`."""
        pacing = self._pacing(outcomes.listener)
        admission = Admission(
            self._context,
            self._deciders,
            outcomes,
            pacing,
            open_connection,
            answering=answering,
            more_pools=self._more_pools(outcomes.listener),
        )
        listener = Listener(sock, self._context.poller, admission.arrived, admission.no_descriptor)
        self._start(admission, pacing, listener)

    def open_behind_proxies(
        self,
        outcomes: Outcomes,
        sock: socket.socket,
        option: ProxyOption,
        open_connection: Open,
        open_announced: OpenAnnounced,
        *,
        answering: Answering,
    ) -> None:
        """As `open`, where proxies announce their clients; the descriptors of announced clients go to `open_announced`."""
        pacing = self._pacing(outcomes.listener)
        admission = ProxiedAdmission(
            self._context,
            self._deciders,
            outcomes,
            pacing,
            open_connection,
            open_announced,
            answering=answering,
            more_pools=self._more_pools(outcomes.listener),
        )
        ceiling = self._deciders.fd_ceiling
        most = min(MOST_WAITING, ceiling // 4)
        listener = ProxyListener(sock, self._context, admission, option, most=most, fd_ceiling=ceiling)
        self._proxy_listeners.append(listener)
        self._start(admission, pacing, listener)

    def _pacing(self, name: str) -> Pacing:
        context = self._context
        return Pacing(name, context.poller, context.timers, context.counters, lambda: self.rates.batch(name))

    def _more_pools(self, listener: str) -> tuple[str, ...]:
        of_all = _ALL_LISTENERS if len(self._names) > 1 else ()
        return of_all + _OVER_TLS if listener in self._ssl else of_all

    def _start(self, admission: Admission, pacing: Pacing, listener: Listener) -> None:
        self._admissions[admission.listener] = admission
        self._look_at_image(admission)
        self._listeners.append(listener)
        pacing.start(listener)

    def close(self) -> None:
        """Accepts no more, and refuses every connection that waits."""
        for admission in self._admissions.values():
            admission.close()

    def reset(self) -> None:
        """Back to the start of the cluster: empty windows and full buckets, no socket held, no top talkers."""
        while self._deciders.make_room():
            pass
        self._context.top_talkers.clear()
        self._core_rates.reset()
        self.observed_world.reset()
        for admission in self._admissions.values():
            admission.pacing.unblock()
        self.rates.reset(now_ms=self._context.now_ms())
        self._context.cluster_rate.reset()

    # Configuration, peers, messages

    def image_changed(self, kinds: Collection[str]) -> None:
        """The image has another version; when this returns, no unit granted under an older one can be spent here."""
        self._note_taken()
        self._core_rates.read_settings()
        self.eviction.protect(self._image.inter_broker_listener if len(self._names) > 1 else None)
        self.rates.apply(self._image.version, now_ms=self._context.now_ms())
        self._context.cluster_rate.apply()
        self.observed_world.follow()
        self._context.cluster.follow(len(self._connections))
        for admission in self._admissions.values():
            self._look_at_image(admission)
        for pending in self._pending:
            pending.rule_changed(self._image.rule_of(pending.pool))

    def _look_at_image(self, admission: Admission) -> None:
        rates, rule_of, context = self.rates, self._image.rule_of, self._context
        is_protected = admission.listener == self.eviction.protected
        forced = rule_of("broker").wait and is_protected
        by_cluster = context.cluster.is_on or context.cluster_rate.is_on
        direct = not (rates.limits_listeners or rates.limits_ips or self._core_rates.active or forced or by_cluster)
        forced_there = rule_of(f"{OBSERVED}broker").wait and is_protected
        name = admission.listener
        slot_pools = (f"listener:{name}", "broker", *self._more_pools(name))

        def rehearsing(open_connection: OpenT) -> OpenT:
            return self.observed_world.opener(name, slot_pools, open_connection, forced=forced_there)

        admission.follow(forced=forced, direct=direct, rehearsing=rehearsing)

    def serve_on(self, serve: Callable[[str, Callable[..., object]], None]) -> None:
        """Offers evictions and observed rates to the other shards."""
        self.eviction.serve_on(serve)
        self._observed_rates.serve_on(serve)

    def peer_up(self, peer: int) -> None:
        """Another shard can be sent to."""
        self.rates.peer_up(peer)

    def peer_lost(self, peer: int) -> None:
        """The links to another shard broke; its process may live."""
        self.rates.peer_lost(peer, now_ms=self._context.now_ms())

    def peer_dead(self, peer: int) -> None:
        """The process of another shard has ended."""
        self.rates.peer_dead(peer, now_ms=self._context.now_ms())

    @property
    def receivers(self) -> dict[str, Receiver]:
        """The receivers of other shards' messages about rates and evictions, by name."""
        return {NAME: self._receive_rates, eviction.NAME: lambda peer, message: self.eviction.count(*message[1:])}

    def _receive_rates(self, peer: int, message: Sequence[Any]) -> None:
        self.rates.receive(peer, message[1], now_ms=self._context.now_ms())

    # Time

    def flush(self) -> None:
        """Ends a pass: answers waiting connections, which may then ask again, and sends the messages of the pass.

        Rates and tokens take turns until none has anything left to do: a connection that has its rate asks for tokens, one that
        has its slot asks for its rate, and one that has all tokens of its broker asks for that of the cluster. The eviction's
        message to the home follows that of the tokens on the same link.
        """
        cluster_rate = self._context.cluster_rate
        if self._context.tokens.continue_change():
            self._context.poller.wake()
        self._take_turns()
        self._observed_rates.flush()  # connections admitted until here ask in this pass
        while cluster_rate.busy:  # that flush may have asked for the observed rate of the cluster
            self._take_turns()
            self._observed_rates.flush()
        self.eviction.flush()
        next_ms = self.rates.next_ms(), cluster_rate.next_ms()
        due_ms = min((at_ms for at_ms in next_ms if at_ms is not None), default=None)
        if due_ms is not None and (self._armed_ms is None or due_ms < self._armed_ms):
            self._armed_ms = due_ms
            self._context.timers.after(due_ms - self._context.poller.now_ns / 1e6, partial(self._advance, due_ms))

    def _take_turns(self) -> None:
        rates, tokens, cluster = self.rates, self._context.tokens, self._context.cluster
        cluster_rate = self._context.cluster_rate
        cluster_rate.flush()
        rates.flush(now_ms=self._context.now_ms())
        tokens.flush()
        while cluster_rate.busy or rates.busy or cluster.flush():
            cluster_rate.flush()
            rates.flush(now_ms=self._context.now_ms())
            tokens.flush()

    def tick(self) -> None:
        """Deadlines, and gauges."""
        now_ms = self._context.now_ms()
        self.rates.tick(now_ms=now_ms)
        self._context.cluster_rate.tick()
        self._core_rates.tick(now_ms=now_ms)
        self.observed_world.rates.tick(now_ms=now_ms)
        self._note_taken()
        for listener in self._listeners:
            listener.resume_after_exhaustion()
        for admission in self._admissions.values():
            admission.pacing.tick()
        held = len(self._held)
        self._context.counters.set("waiting", len(self._pending) - held)
        self._context.counters.set("held", held)
        self._context.counters.set("proxy_waiting", sum(each.waiting for each in self._proxy_listeners))

    def describe_gauges(self) -> list[list[object]]:
        """KIP-612's rate of each address that connected within the last hour and has a quota, at most 200 of a shard; and of
        users likewise."""
        names = {
            "ip": "kafka_server_socket_server_metrics_connection_accept_rate",
            "user": "turnstile_user_connection_accept_rate",
        }
        split = ((*key.partition(":"), rate) for key, rate in self.connection_rates(200))
        return [[names[kind], {kind: name}, rate] for kind, _, name, rate in split]

    def connection_rates(self, most: int) -> list[tuple[str, float]]:
        """(key, connections a second) of the addresses and users with a rate that are at home here: at most `most` of each kind,
        the last that connected first."""
        rates: list[tuple[str, float]] = self.rates.describe(most, now_ms=self._context.now_ms())["rates"]
        return rates

    def connection_rate(self, key: str) -> float | None:
        """Connections a second of one address or user whose rate is at home here; None: it has no record that still counts."""
        return self.rates.connection_rate(key, now_ms=self._context.now_ms())

    def _advance(self, due_ms: int) -> None:
        if self._armed_ms == due_ms:  # else a timer for an earlier time was armed after this one, and has fired
            self._armed_ms = None
        self.rates.advance(now_ms=self._context.now_ms())
        self._context.cluster_rate.advance()

    def _note_taken(self) -> None:
        """Tells the rates how many connections each listener has taken in all: a rate that is switched on starts from these."""
        counters = self._context.counters
        for name in self._names:
            total = sum(counters.value(counter, name) for counter in RECORDED)
            self.rates.note_unrecorded(name, total, now_ms=self._context.now_ms())

    def _recorded(self, kind: str, detail: dict[str, object], version: int) -> None:
        self._context.journal.moved(kind, detail, version)

    def _blocked(self, listener: str, until_ms: int) -> None:
        admission = self._admissions.get(listener)
        if admission is not None:
            admission.pacing.block(until_ms)
