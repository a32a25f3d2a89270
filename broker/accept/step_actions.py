"""The requests that a connection makes when it enters a step, and the event that each answer becomes; admission.py advances it.

Each method of a step returns the event that ends it, or None when the connection has to wait: the answer then comes back
through `cluster_recorded`, `listener_recorded`, `ip_recorded`, `answered` or an alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from broker.accept.admission_steps import Event, Step
from broker.accept.core_rates import MOST_MS, CoreRates
from broker.accept.held_connections import HeldConnections
from broker.accept.pacing import Pacing
from broker.accept.pending_connection import PendingConnection
from broker.accept.permit import Permit
from broker.accept.refused_sockets import RefusedSockets
from broker.metrics.outcomes import Refusal, refusal_by_ip_rate, refusal_by_pool
from broker.runtime.shard_context import ShardContext
from shards.limits.caps import CLUSTER
from shards.limits.quota_entities import CONNECTION_RATE
from shards.rates.rates import UNAVAILABLE, Rates
from shards.settings.broker_config import CLUSTER_RATE
from shards.tokens.cluster_pool import POOLS
from shards.tokens.tokens import ADMITTED, Admitted, Refused

_LISTENER_RATE: Final = "max.connection.creation.rate"


@dataclass(frozen=True, slots=True, eq=False)
class Deciders:
    """The limits and counters that the admissions of all listeners of a shard share, besides the tokens."""

    rates: Rates
    core_rates: CoreRates
    held: HeldConnections
    refused_sockets: RefusedSockets
    force: Callable[[], None]  # takes a token of the broker's pool, also beyond its cap (eviction.py)
    numbers: Iterator[int]  # of connections: unique in this incarnation of the shard
    pending: set[PendingConnection]  # the connections that wait
    fd_ceiling: int  # connections get descriptors below it

    def make_room(self) -> bool:
        """Closes one held socket: one that a cap refused, else one that is held for a rate. False: none is held."""
        return self.refused_sockets.make_room() or self.held.make_room()


class StepActions:
    """The actions of one listener. `slot_pools`: the pools of a slot, the listener's first, then the broker's."""

    def __init__(
        self,
        context: ShardContext,
        deciders: Deciders,
        pacing: Pacing,
        listener: str,
        slot_pools: tuple[str, ...],
        advance: Callable[[PendingConnection, Event], None],
    ) -> None:
        self._tokens = context.tokens
        self._cluster = context.cluster
        self._cluster_rate = context.cluster_rate
        self._image = context.image
        self._poller = context.poller
        self._timers = context.timers
        self._counters = context.counters
        self._rates = deciders.rates
        self._core_rates = deciders.core_rates
        self._held = deciders.held
        self._pacing = pacing
        self._listener = listener
        self._pool = slot_pools[0]
        self._slot_pools = slot_pools
        self._forced_pools = (slot_pools[0], *slot_pools[2:])  # the broker's own is taken in any case
        self._advance = advance

    # Rates

    def core_rate(self, pending: PendingConnection) -> Event | None:
        """CORE_RATE: a token of this shard's bucket, within MOST_MS."""
        if not self._core_rates.active:
            return Event.PASSED
        wait_ms = self._core_rates.take(pending.ip, now_ms=self._now_ms())
        if wait_ms == 0:
            return Event.PASSED
        self.stop(pending)
        if wait_ms is not None:
            self._counters.add("rate_waits", 1, self._listener)
            self._wake(pending, wait_ms, Event.PASSED)
        else:
            rule = self._image.core_rate_of(pending.ip)
            pending.refusal = Refusal("core_rate", rule.name, rule.rate or 0, self._tokens.version)
            self._wake(pending, MOST_MS, Event.REFUSE)
        return None

    def cluster_rate(self, pending: PendingConnection) -> Event | None:
        """CLUSTER_RATE: one unit of the rate of all brokers."""
        if not self._cluster_rate.is_on:
            return Event.PASSED
        wait_ms = self._cluster_rate.record(pending)
        return None if wait_ms is None else self.cluster_recorded(pending, wait_ms)

    def cluster_recorded(self, pending: PendingConnection, wait_ms: int) -> Event:
        """The answer to CLUSTER_RATE: UNAVAILABLE, 0, or more if the rate is violated."""
        if wait_ms == UNAVAILABLE:
            pending.refusal = self.unavailable(CLUSTER_RATE)
        elif wait_ms:
            per_s = self._image.rate_of(CLUSTER).rate
            pending.refusal = Refusal("cluster_rate", CLUSTER_RATE, per_s or 0, self._tokens.version)
        return Event.REFUSE if wait_ms else Event.PASSED

    def listener_rate(self, pending: PendingConnection) -> Event | None:
        """LISTENER_RATE: one unit, recorded in the listener's rate and in the broker's."""
        if not self._rates.limits_listeners:
            return Event.PASSED
        wait_ms = self._rates.record(self._pool, pending, now_ms=self._now_ms())
        if wait_ms == 0:
            return Event.PASSED
        pending.keep_permit(self._pacing.join())
        return None if wait_ms is None else self.listener_recorded(pending, wait_ms)

    def listener_recorded(self, pending: PendingConnection, wait_ms: int) -> Event | None:
        """The answer to LISTENER_RATE: UNAVAILABLE, or the milliseconds to wait before going on."""
        if wait_ms == UNAVAILABLE:
            pending.refusal = self.unavailable(_LISTENER_RATE)
            return Event.REFUSE
        if wait_ms == 0:
            return Event.PASSED
        self._counters.accept_delayed(self._listener, wait_ms)
        self._wake(pending, wait_ms, Event.PASSED)
        return None

    def ip_rate(self, pending: PendingConnection) -> Event | None:
        """IP_RATE and IP_RATE_AGAIN: one unit of the address's rate."""
        wait_ms = self._rates.record(pending.pools[-1], pending, now_ms=self._now_ms())
        if wait_ms is not None:
            return self.ip_recorded(pending, wait_ms)
        if pending.step is Step.IP_RATE:  # a change may revoke its slot while it waits: it is not open yet
            self._tokens.suspend(pending.take_tokens_off(), pending)
            pending.suspended = True
        return None

    def ip_recorded(self, pending: PendingConnection, wait_ms: int) -> Event:
        """The answer to IP_RATE: UNAVAILABLE, 0, or the milliseconds to be held for a violation."""
        if wait_ms == UNAVAILABLE:
            pending.refusal = self.unavailable(CONNECTION_RATE)
            return Event.REFUSE
        if wait_ms:
            quota = self._image.quota_for_ip(pending.ip)
            pending.refusal = refusal_by_ip_rate(quota or 0, self._tokens.version)
            pending.delay_ms = wait_ms
            return Event.OVER
        if pending.step is Step.IP_RATE_AGAIN:
            self._rates.count(self._listener, 1, now_ms=self._now_ms())  # recorded after all, but not delayed
        return Event.PASSED

    def hold(self, pending: PendingConnection) -> Event | None:
        """HELD: gives the slot back, and takes back the unit recorded in the listener's rate."""
        self.give_tokens_back(pending)
        self._rates.count(self._listener, -1, now_ms=self._now_ms())
        self._counters.ip_delayed(self._listener, pending.delay_ms)
        pending.keep_permit(self._held.hold(pending, pending.delay_ms))
        return None

    # Tokens

    def slot(self, pending: PendingConnection) -> Event | None:
        """SLOT: a token of the listener's and the broker's pool; UNRATED where the address has no rate."""
        if not (self._rates.limits_ips and self._rates.has_quota(pending.pools[-1])):
            return Event.UNRATED
        return self._take(pending, self._forced_pools if pending.forced else self._slot_pools)

    def ip_tokens(self, pending: PendingConnection) -> Event | None:
        """IP_TOKENS: one request that keeps the slot, or takes it again, and takes the address's token; refused, it has
        neither."""
        more = pending.pools[-1:]
        if pending.suspended:
            pending.suspended = False
            decision = self._tokens.resume(more, pending)
        else:
            held = pending.take_tokens_off()
            decision = self._tokens.take_rest(held + more, len(held), pending)
        return self._taken(pending, self._but_forced(pending), decision)

    def all_tokens(self, pending: PendingConnection) -> Event | None:
        """TOKENS: a token of every pool, in one request."""
        return self._take(pending, self._but_forced(pending))

    def _but_forced(self, pending: PendingConnection) -> tuple[str, ...]:
        """The pools of which it has to ask for a token."""
        return (*self._forced_pools, pending.pools[-1]) if pending.forced else pending.pools

    def late_tokens(self, pending: PendingConnection) -> Event | None:
        """LATE_TOKENS: a token of every pool, without stopping the listener and without waiting for other connections to
        close, as Kafka's acceptor has gone on by now. This step never refuses: a home refuses by a proof, or Tokens does when a
        home does not answer."""
        return self._take(pending, self._but_forced(pending), at_once=True)

    def cluster_tokens(self, pending: PendingConnection) -> Event | None:
        """CLUSTER_TOKENS: a token of the pool of all brokers. Where another shard has to be asked the other tokens are suspended,
        as the connection is not open yet."""
        decision = self._cluster.take(pending)
        if decision is ADMITTED:
            return Event.PASSED
        if isinstance(decision, Refused):
            pending.refusal = refusal_by_pool(decision)
            return Event.REFUSE
        self._tokens.suspend(pending.take_tokens_off(), pending)
        pending.suspended = True
        self.wait_for_tokens(pending, POOLS)
        return None

    def _cluster_answered(self, pending: PendingConnection) -> Event:
        """A connection has its token of the cluster's pool: it takes the tokens that it held meanwhile up again, or starts anew."""
        pending.suspended = False
        decision = self._tokens.resume((), pending)
        is_admitted = decision is ADMITTED
        if not (is_admitted and self._cluster.is_on):  # the cap may have been removed while it waited
            self._cluster.release()
        if is_admitted:
            pending.tokens = self._but_forced(pending)
            return Event.PASSED
        if isinstance(decision, Refused):
            pending.refusal = refusal_by_pool(decision)
            return Event.REFUSE
        self._tokens.cancel(pending)
        return Event.REVOKED_LATE if pending.delay_ms else Event.REVOKED

    def _take(self, pending: PendingConnection, pools: tuple[str, ...], *, at_once: bool = False) -> Event | None:
        return self._taken(pending, pools, self._tokens.take(pools, pending, at_once=at_once))

    def _taken(
        self, pending: PendingConnection, pools: tuple[str, ...], decision: Admitted | Refused | None
    ) -> Event | None:
        if decision is ADMITTED:
            pending.tokens = pools
            return Event.PASSED
        if isinstance(decision, Refused):
            pending.refusal = refusal_by_pool(decision)
            return Event.REFUSE
        self.wait_for_tokens(pending, pools)
        return None

    def wait_for_tokens(self, pending: PendingConnection, pools: tuple[str, ...]) -> None:
        """Tokens of `pools` were asked for; `answered` follows, unless the connection leaves the step before."""
        pending.wanted = pools
        pending.asked_ns = self._poller.now_ns

    def answered(self, pending: PendingConnection, decision: Refused | Admitted) -> Event:
        """The tokens it waited for were granted or refused."""
        wanted, pending.wanted = pending.wanted, ()
        if pending.stopped is None:
            self._counters.borrowed(self._poller.now_ns - pending.asked_ns)
        if isinstance(decision, Refused):
            pending.refusal = refusal_by_pool(decision)
            return Event.REFUSE
        if pending.step is Step.CLUSTER_TOKENS:
            return self._cluster_answered(pending)
        pending.tokens = wanted
        return Event.PASSED

    def end_step(self, pending: PendingConnection) -> None:
        """Gives back what the step held: its place among those that wait for tokens, then its permits."""
        if pending.wanted:
            pending.wanted = ()
            (self._cluster if pending.step is Step.CLUSTER_TOKENS else self._tokens).cancel(pending)
        pending.give_permits_back()

    def give_tokens_back(self, pending: PendingConnection) -> None:
        """Releases every token it holds, also those of a slot that a change may revoke meanwhile."""
        if pending.suspended:
            pending.suspended = False
            self._tokens.cancel(pending)
        tokens = pending.take_tokens_off()
        if tokens:
            self._tokens.release(tokens)

    # Parts

    def _wake(self, pending: PendingConnection, delay_ms: int, event: Event) -> None:
        alarm = self._timers.after(delay_ms, partial(self._advance, pending, event))
        pending.keep_permit(Permit(self._timers.cancel, alarm))

    def stop(self, pending: PendingConnection) -> None:
        """The listener of a connection accepts nothing until the connection leaves its step."""
        pending.stopped = self._pacing.stop()
        pending.keep_permit(pending.stopped)

    def unavailable(self, limit: str) -> Refusal:
        """The refusal of a connection whose limit's home does not answer."""
        return Refusal("shard_unavailable", limit, 0, self._tokens.version)

    def _now_ms(self) -> int:
        return self._poller.now_ns // 1_000_000
