"""The connections of one listener on their way from accept(2) to their decision: the one place that advances them.

What steps there are and what follows what stands in steps.py; here is what each step does when it is entered: it asks,
and returns the event that ends it, or None when it has to wait. The answer then comes back through `decided`, `recorded`,
`let_go` or an alarm. While no rate is set a connection is decided inside the callback that accepted it, mostly by
comparing numbers (`arrived`); a refused one never becomes more than a descriptor. Refusing is closing, before anything
is read from the socket or written to it.

Invariants
A1  Every accepted descriptor is handed over or closed exactly once (outcomes.py, O1).
A2  A refused connection holds no token, and an admitted one a token of each of its pools.
A3  While a connection waits under a rule that lets it wait (KIP-402), and only then, its listener accepts no other on
    this shard.
A4  After `close` nothing is admitted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from broker.accept.core_rates import MOST_MS, CoreRates
from broker.accept.held_connections import HeldConnections
from broker.accept.pacing import Pacing
from broker.accept.pending_connection import PendingConnection
from broker.accept.permit import Permit
from broker.accept.steps import ENDS, TRANSITIONS, Event, Step
from broker.outcomes import Outcomes, Refusal, refusal_by_pool
from broker.shard_context import ShardContext
from shards.limits.overrides import normalise_ip
from shards.rates.rates import UNAVAILABLE, Rates
from shards.tokens.tokens import ADMITTED, Admitted, Refused

Open = Callable[[int, int, str, int, tuple[str, ...]], object]
"""Takes over an admitted descriptor: fd, number, ip, port, the pools of which it holds a token each."""

_LISTENER_RATE: Final = "max.connection.creation.rate"
_IP_RATE: Final = "connection_creation_rate"
_LATE_MS: Final = 1000
"""How long a rechecked connection waits for a full pool; as long as any waits for a home that does not answer."""


@dataclass(frozen=True, slots=True)
class Deciders:
    """What the admissions of all listeners of a shard share, besides the tokens."""

    rates: Rates
    core_rates: CoreRates
    held: HeldConnections
    force: Callable[[], None]  # takes a token of the broker's pool, whatever its cap (eviction.py)
    numbers: Iterator[int]  # of connections: unique in this incarnation of the shard
    pending: set[PendingConnection]  # the connections that wait
    fd_ceiling: int  # the first descriptor number too many for a connection


class Admission:
    """One listener's. `direct`: no rate is set, so that a connection needs its tokens and nothing else.

    `forced`: connections take their token of the broker's pool in any case; then `direct` is False. `more_pools`: what a
    slot consists of besides the listener's token and the broker's.
    """

    def __init__(
        self,
        context: ShardContext,
        deciders: Deciders,
        outcomes: Outcomes,
        pacing: Pacing,
        open_connection: Open,
        *,
        more_pools: tuple[str, ...] = (),
    ) -> None:
        self.listener = outcomes.listener
        self.pacing = pacing
        self.direct = True
        self.forced = False
        self._outcomes = outcomes
        self._open = open_connection
        self._tokens = context.tokens
        self._image = context.image
        self._poller = context.poller
        self._timers = context.timers
        self._counters = context.counters
        self._rates = deciders.rates
        self._core_rates = deciders.core_rates
        self._held = deciders.held
        self._force = deciders.force
        self._numbers = deciders.numbers
        self._pending = deciders.pending
        self._fd_ceiling = deciders.fd_ceiling
        self._pool = f"listener:{self.listener}"
        self._slot_pools = (self._pool, "broker", *more_pools)
        self._forced_pools = (self._pool, *more_pools)  # of a slot: the broker's own is taken in any case
        enter: dict[Step, Callable[[PendingConnection], Event | None]] = {
            Step.CORE_RATE: self._core_rate,
            Step.LISTENER_RATE: self._listener_rate,
            Step.SLOT: self._slot,
            Step.IP_RATE: self._ip_rate,
            Step.IP_TOKENS: self._ip_tokens,
            Step.TOKENS: self._all_tokens,
            Step.HELD: self._hold,
            Step.IP_RATE_AGAIN: self._ip_rate,
            Step.LATE_TOKENS: self._late_tokens,
            Step.ADMITTED: self._admit,
            Step.REFUSED: self._refuse,
        }
        self._ways = {
            step: {event: (target, enter[target]) for event, target in ways.items()}
            for step, ways in TRANSITIONS.items()
        }

    def arrived(self, fd: int, ip: str, port: int) -> None:
        """Decides about a fresh descriptor, now or when a home has answered."""
        if ":" in ip:
            ip = normalise_ip(ip)
        if fd >= self._fd_ceiling and not self._held.make_room():
            os.close(fd)
            self.no_descriptor(ip, port)
            return
        number = next(self._numbers)
        pools = (*self._slot_pools, "ip:" + ip)
        pending = PendingConnection(self, fd, number, ip, port, pools, self._poller.now_ns)
        if not self.direct:
            pending.forced = self.forced
            self.advance(pending, Event.PASSED)
            return
        # The same as advance(pending, Event.UNRATED), without the detour where there is nothing to wait for.
        tokens = self._tokens
        decision = tokens.take(pools, pending)
        if decision is ADMITTED:
            self._outcomes.admitted(number, ip, port, tokens.version, 0.0)
            self._open(fd, number, ip, port, pools)
        elif isinstance(decision, Refused):
            os.close(fd)
            self._outcomes.refused(number, ip, port, refusal_by_pool(decision), 0.0)
        else:
            pending.step = Step.TOKENS
            self._wait_for_tokens(pending, pools)
            self._pending.add(pending)

    def no_descriptor(self, ip: str, port: int) -> None:
        """A connection was closed because this process has no descriptor left for it."""
        refusal = Refusal("fd_limit", "RLIMIT_NOFILE", self._fd_ceiling, 0)
        self._outcomes.refused(next(self._numbers), ip, port, refusal, 0.0)

    def advance(self, pending: PendingConnection, event: Event | None) -> None:
        """Ends the present step with `event`, and every further step that need not wait; None: it goes on waiting."""
        while event is not None:
            if pending.permits:
                pending.leave()
            pending.step, enter = self._ways[pending.step][event]
            event = enter(pending)
        if pending.step in ENDS:
            self._pending.discard(pending)
        else:
            self._pending.add(pending)

    def close(self) -> None:
        """The shard ends: accepts no more, and refuses every connection that still waits."""
        self.pacing.close()
        for pending in [each for each in self._pending if each.admission is self]:
            if pending.step is not Step.HELD:
                pending.refusal = self._unavailable(pending.rule.name)
            self.advance(pending, Event.REFUSE)

    # Answers

    def decided(self, pending: PendingConnection, decision: Refused | Admitted) -> None:
        """The tokens it asked for were granted or refused."""
        self.advance(pending, self._answered(pending, decision))

    def recorded(self, pending: PendingConnection, wait_ms: int) -> None:
        """The rate it was to be recorded in has answered."""
        if pending.step is Step.LISTENER_RATE:
            self.advance(pending, self._listener_recorded(pending, wait_ms))
        else:
            self.advance(pending, self._ip_recorded(pending, wait_ms))

    def let_go(self, pending: PendingConnection, *, early: bool) -> None:
        """A held connection has waited for its delay, or has to make room."""
        again = not early and self._image.get("turnstile.ip.rate.recheck")
        self.advance(pending, Event.RECHECK if again else Event.REFUSE)

    def pace(self, pending: PendingConnection) -> None:
        """The rule it waits under is another: stops the listener, or lets it go on (A3)."""
        waits = pending.rule.wait and pending.step is not Step.LATE_TOKENS
        if waits and pending.stopped is None:
            self._stop(pending)
        elif not waits and pending.stopped is not None:
            pending.stopped.give_back()
            pending.stopped = None

    # Rates

    def _core_rate(self, pending: PendingConnection) -> Event | None:
        if not self._core_rates.active:
            return Event.PASSED
        wait_ms = self._core_rates.take(pending.ip, now_ms=self._now_ms())
        if wait_ms == 0:
            return Event.PASSED
        self._stop(pending)
        if wait_ms is not None:
            self._counters.add("rate_waits", 1, self.listener)
            self._wake(pending, wait_ms, Event.PASSED)
        else:
            rule = self._image.core_rate_of(pending.ip)
            pending.refusal = Refusal("core_rate", rule.name, rule.rate or 0, self._tokens.version)
            self._wake(pending, MOST_MS, Event.REFUSE)
        return None

    def _listener_rate(self, pending: PendingConnection) -> Event | None:
        if not self._rates.limits_listeners:
            return Event.PASSED
        wait_ms = self._rates.record(self._pool, pending, now_ms=self._now_ms())
        if wait_ms == 0:
            return Event.PASSED
        pending.hold(self.pacing.join())
        return None if wait_ms is None else self._listener_recorded(pending, wait_ms)

    def _listener_recorded(self, pending: PendingConnection, wait_ms: int) -> Event | None:
        if wait_ms == UNAVAILABLE:
            pending.refusal = self._unavailable(_LISTENER_RATE)
            return Event.REFUSE
        if wait_ms == 0:
            return Event.PASSED
        self._counters.accept_delayed(self.listener, wait_ms)
        self._wake(pending, wait_ms, Event.PASSED)
        return None

    def _ip_rate(self, pending: PendingConnection) -> Event | None:
        if pending.step is Step.IP_RATE:  # a change may revoke its slot meanwhile: it is not open yet
            self._tokens.suspend(pending.take_tokens_off(), pending)
            pending.suspended = True
        wait_ms = self._rates.record(pending.pools[-1], pending, now_ms=self._now_ms())
        return None if wait_ms is None else self._ip_recorded(pending, wait_ms)

    def _ip_recorded(self, pending: PendingConnection, wait_ms: int) -> Event:
        if wait_ms == UNAVAILABLE:
            pending.refusal = self._unavailable(_IP_RATE)
            return Event.REFUSE
        if wait_ms:
            quota = self._image.quota_for_ip(pending.ip)
            pending.refusal = Refusal("ip_rate", _IP_RATE, quota or 0, self._tokens.version)
            pending.delay_ms = wait_ms
            return Event.OVER
        if pending.step is Step.IP_RATE_AGAIN:
            self._rates.count(self.listener, 1, now_ms=self._now_ms())  # recorded after all, but not delayed
        return Event.PASSED

    def _hold(self, pending: PendingConnection) -> Event | None:
        """The slot is free again, and what was recorded is taken back."""
        self._give_tokens_back(pending)
        self._rates.count(self.listener, -1, now_ms=self._now_ms())
        self._counters.ip_delayed(self.listener, pending.delay_ms)
        pending.hold(self._held.hold(pending, pending.delay_ms))
        return None

    # Tokens

    def _slot(self, pending: PendingConnection) -> Event | None:
        if not (self._rates.limits_ips and self._rates.has_quota(pending.ip)):
            return Event.UNRATED
        return self._take(pending, self._forced_pools if pending.forced else self._slot_pools)

    def _ip_tokens(self, pending: PendingConnection) -> Event | None:
        """Its slot is held, or taken again, by the same request: refused, it has neither."""
        pending.suspended = False
        return self._taken(pending, self._but_forced(pending), self._tokens.resume(pending.pools[-1:], pending))

    def _all_tokens(self, pending: PendingConnection) -> Event | None:
        return self._take(pending, self._but_forced(pending))

    def _but_forced(self, pending: PendingConnection) -> tuple[str, ...]:
        """The pools of which it has to ask for a token."""
        return (*self._forced_pools, pending.pools[-1]) if pending.forced else pending.pools

    def _late_tokens(self, pending: PendingConnection) -> Event | None:
        """Its acceptor has long gone on, so it does not stop it, and does not wait for others to close."""
        event = self._all_tokens(pending)
        if event is None:
            self._alarm(pending, _LATE_MS, partial(self._too_late, pending))
        return event

    def _too_late(self, pending: PendingConnection) -> None:
        pending.refusal = refusal_by_pool(Refused(pending.pool, pending.rule, self._tokens.version))
        self.advance(pending, Event.REFUSE)

    def _take(self, pending: PendingConnection, pools: tuple[str, ...]) -> Event | None:
        return self._taken(pending, pools, self._tokens.take(pools, pending))

    def _taken(
        self, pending: PendingConnection, pools: tuple[str, ...], decision: Admitted | Refused | None
    ) -> Event | None:
        if decision is ADMITTED:
            pending.tokens = pools
            return Event.PASSED
        if decision is not None:
            return self._answered(pending, decision)
        self._wait_for_tokens(pending, pools)
        return None

    def _wait_for_tokens(self, pending: PendingConnection, pools: tuple[str, ...]) -> None:
        pending.wanted = pools
        pending.asked_ns = self._poller.now_ns
        pending.hold(Permit(self._wait_no_more, pending))

    def _wait_no_more(self, pending: PendingConnection) -> None:
        """The home has answered, or the answer is not wanted any more."""
        if pending.stopped is None:
            self._counters.borrowed(self._poller.now_ns - pending.asked_ns)
        self._tokens.cancel(pending)

    def _answered(self, pending: PendingConnection, decision: Refused | Admitted) -> Event:
        if isinstance(decision, Refused):
            pending.refusal = refusal_by_pool(decision)
            return Event.REFUSE
        pending.tokens = pending.wanted
        return Event.PASSED

    def _give_tokens_back(self, pending: PendingConnection) -> None:
        if pending.suspended:
            pending.suspended = False
            self._tokens.cancel(pending)
        tokens = pending.take_tokens_off()
        if tokens:
            self._tokens.release(tokens)

    # Ends

    def _admit(self, pending: PendingConnection) -> None:
        pending.take_tokens_off()  # handed over: `pools` are the same, and the forced one
        if pending.forced:
            self._force()
        number, ip, port = pending.number, pending.ip, pending.port
        self._outcomes.admitted(number, ip, port, self._tokens.version, self._waited_ms(pending))
        self._open(pending.fd, number, ip, port, pending.pools)

    def _refuse(self, pending: PendingConnection) -> None:
        self._give_tokens_back(pending)
        os.close(pending.fd)
        self._outcomes.refused(pending.number, pending.ip, pending.port, pending.refusal, self._waited_ms(pending))

    # Parts

    def _wake(self, pending: PendingConnection, delay_ms: int, event: Event) -> None:
        self._alarm(pending, delay_ms, partial(self.advance, pending, event))

    def _alarm(self, pending: PendingConnection, delay_ms: int, function: Callable[[], None]) -> None:
        pending.hold(Permit(self._timers.cancel, self._timers.after(delay_ms, function)))

    def _stop(self, pending: PendingConnection) -> None:
        pending.stopped = self.pacing.stop()
        pending.hold(pending.stopped)

    def _unavailable(self, limit: str) -> Refusal:
        return Refusal("shard_unavailable", limit, 0, self._tokens.version)

    def _waited_ms(self, pending: PendingConnection) -> float:
        return (self._poller.now_ns - pending.at_ns) / 1e6

    def _now_ms(self) -> int:
        return self._poller.now_ns // 1_000_000
