"""The connections of one listener on their way from accept(2) to their decision: the one place that advances them.

admission_steps.py is the table of the steps, step_actions.py says what each asks for. Caps are compared in
shards/tokens/connection_tokens.py. While no rate is set a connection is decided inside the callback that accepted it, mostly by
comparing numbers (`arrived`); a refused one never becomes more than a descriptor. Nothing is read here from the socket of a
refused connection or written to it; it is closed, or ends as refused_sockets.py says.

Invariants
descriptors_end_once  Every accepted descriptor is handed over or closed exactly once (outcomes.py,
    decided_and_counted_once).
admitted_hold_their_tokens  A refused connection holds no token, and an admitted one a token of each of its pools.
listener_stops_while_one_waits  While a connection waits under a rule that lets it wait (KIP-402), its listener accepts no
    other on this shard. pacing.py has the other reasons.
nothing_admitted_after_close  After `close` nothing is admitted.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from broker.accept.admission_steps import ENDS, TRANSITIONS, UNCAPPED, Event, Step
from broker.accept.observed_world import OpenT
from broker.accept.pacing import Pacing
from broker.accept.pending_connection import PendingConnection
from broker.accept.refused_sockets import Answering, Dismissal
from broker.accept.step_actions import Deciders, StepActions
from broker.metrics.outcomes import Outcomes, Refusal, refusal_by_pool
from broker.runtime.shard_context import ShardContext
from shards.tokens.tokens import ADMITTED, Admitted, Refused

Open = Callable[[int, int, str, int, tuple[str, ...]], object]
"""Takes over an admitted descriptor: fd, number, ip, port, the pools of which it holds a token each."""


class Rehearsing(Protocol):
    """ObservedWorld.opener of one listener."""

    def __call__(self, open_connection: OpenT, /) -> OpenT: ...


class Admission:
    """The admission of one listener. `direct`: no rate is set, and no cap of the cluster, so that a connection needs its broker's
    tokens and nothing else.

    `forced`: connections take their token of the broker's pool in any case; then `direct` is False. `more_pools`: the
    pools of a slot besides the listener's and the broker's. `answering` takes over refused descriptors whose clients get an answer.
    """

    def __init__(
        self,
        context: ShardContext,
        deciders: Deciders,
        outcomes: Outcomes,
        pacing: Pacing,
        open_connection: Open,
        *,
        answering: Answering,
        more_pools: tuple[str, ...] = (),
    ) -> None:
        self.listener = outcomes.listener
        self.pacing = pacing
        self.direct = True
        self.forced = False
        self._outcomes = outcomes
        self._open_connection = self._open = open_connection  # `follow` replaces the second while a limit is observed
        self._tokens = context.tokens
        self._image = context.image
        self._poller = context.poller
        self._refused_sockets = deciders.refused_sockets
        self._answering = answering
        self._make_room = deciders.make_room
        self._dismissal: Dismissal | None = None
        self._force = deciders.force
        self._numbers = deciders.numbers
        self._pending = deciders.pending
        self._fd_ceiling = deciders.fd_ceiling
        self._slot_pools = (f"listener:{self.listener}", "broker", *more_pools)
        self._steps = StepActions(context, deciders, pacing, self.listener, self._slot_pools, self.advance)
        enter: dict[Step, Callable[[PendingConnection], Event | None]] = {
            Step.CORE_RATE: self._steps.core_rate,
            Step.CLUSTER_RATE: self._steps.cluster_rate,
            Step.LISTENER_RATE: self._steps.listener_rate,
            Step.SLOT: self._steps.slot,
            Step.IP_RATE: self._steps.ip_rate,
            Step.IP_TOKENS: self._steps.ip_tokens,
            Step.TOKENS: self._steps.all_tokens,
            Step.HELD: self._steps.hold,
            Step.IP_RATE_AGAIN: self._steps.ip_rate,
            Step.LATE_TOKENS: self._steps.late_tokens,
            Step.CLUSTER_TOKENS: self._steps.cluster_tokens,
            Step.ADMITTED: self._admit,
            Step.REFUSED: self._refuse,
        }
        self._capped, self._uncapped = (
            {step: {event: (target, enter[target]) for event, target in ways.items()} for step, ways in table.items()}
            for table in (TRANSITIONS, UNCAPPED)
        )
        self._ways = self._uncapped
        self._cluster = context.cluster

    def follow(self, *, forced: bool, direct: bool, rehearsing: Rehearsing) -> None:
        """The image has another version: sets `forced` and `direct`. `rehearsing(open)` is the function that takes over descriptors
        in place of `open`: `open` itself while no cap is observed."""
        self.forced, self.direct = forced, direct
        self._ways = self._capped if self._cluster.is_on else self._uncapped
        self._open = rehearsing(self._open_connection)
        self._dismissal = self._refused_sockets.dismissal(self._answering)
        self.pacing.update()

    def arrived(self, fd: int, ip: str, port: int) -> None:
        """Decides about a fresh descriptor, now or when a home has answered."""
        if ":" in ip:
            ip = self._image.limits.counted(ip)
        if fd >= self._fd_ceiling and not self._make_room():
            self.no_descriptor(ip, port)
            os.close(fd)
            return
        number = next(self._numbers)
        pools = (*self._slot_pools, "ip:" + ip)
        if not self.direct:
            pending = PendingConnection(self, fd, number, ip, port, pools=pools, at_ns=self._poller.now_ns)
            pending.forced = self.forced
            self.advance(pending, Event.PASSED)
            return
        # The same as advance(pending, Event.UNRATED), without the detour where there is nothing to wait for.
        tokens = self._tokens
        taken = tokens.take_at_hand(pools)
        if taken == len(pools):
            self._outcomes.admitted(number, ip, port, tokens.version, 0.0)
            self._open(fd, number, ip, port, pools)
            return
        pending = PendingConnection(self, fd, number, ip, port, pools=pools, at_ns=self._poller.now_ns)
        decision = tokens.take_rest(pools, taken, pending)
        if decision is ADMITTED:
            self._outcomes.admitted(number, ip, port, tokens.version, 0.0)
            self._open(fd, number, ip, port, pools)
        elif isinstance(decision, Refused):
            refusal = refusal_by_pool(decision)
            self._outcomes.refused(number, ip, port, refusal, 0.0)
            if self._dismissal is None:
                os.close(fd)
            else:
                self._dismissal(fd, ip, port, refusal)
        else:
            pending.step = Step.TOKENS
            self._steps.wait_for_tokens(pending, pools)
            self._pending.add(pending)

    def no_descriptor(self, ip: str, port: int) -> None:
        """A connection is closed because this process has no descriptor left for it."""
        refusal = Refusal("fd_limit", "RLIMIT_NOFILE", self._fd_ceiling, 0)
        self._outcomes.refused(next(self._numbers), ip, port, refusal, 0.0)

    def advance(self, pending: PendingConnection, event: Event | None) -> None:
        """Ends the present step with `event`, and every further step that need not wait; None: the step goes on waiting."""
        while event is not None:
            if pending.wanted or pending.permits:
                self._steps.end_step(pending)
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
                pending.refusal = self._steps.unavailable(pending.rule.name)
            self.advance(pending, Event.REFUSE)

    # Answers

    def decided(self, pending: PendingConnection, decision: Refused | Admitted) -> None:
        """The tokens that a connection asked for were granted or refused."""
        self.advance(pending, self._steps.answered(pending, decision))

    def recorded(self, pending: PendingConnection, wait_ms: int) -> None:
        """The home of the rate that a connection asked has answered."""
        if pending.step is Step.CLUSTER_RATE:
            self.advance(pending, self._steps.cluster_recorded(pending, wait_ms))
        elif pending.step is Step.LISTENER_RATE:
            self.advance(pending, self._steps.listener_recorded(pending, wait_ms))
        else:
            self.advance(pending, self._steps.ip_recorded(pending, wait_ms))

    def let_go(self, pending: PendingConnection, *, early: bool) -> None:
        """A held connection has waited for its delay, or, `early`, its place is needed."""
        again = not early and self._image.get("turnstile.ip.rate.recheck")
        self.advance(pending, Event.RECHECK if again else Event.REFUSE)

    def pace(self, pending: PendingConnection) -> None:
        """The rule of the pool that a connection waits for has changed: stops the listener, or lets it go on
        (listener_stops_while_one_waits)."""
        waits = pending.rule.wait and pending.step is not Step.LATE_TOKENS
        if waits and pending.stopped is None:
            self._steps.stop(pending)
        elif not waits and pending.stopped is not None:
            pending.stopped.give_back()
            pending.stopped = None

    # Ends

    def _admit(self, pending: PendingConnection) -> None:
        pending.take_tokens_off()  # handed over: `pools` are the same, and the forced one
        if pending.forced:
            self._force()
        self._hand_over(pending)

    def _hand_over(self, pending: PendingConnection) -> None:
        """Counts a connection as admitted, and hands its descriptor and tokens over to be served."""
        number, ip, port = pending.number, pending.ip, pending.port
        self._outcomes.admitted(number, ip, port, self._tokens.version, self._waited_ms(pending))
        self._open(pending.fd, number, ip, port, pending.pools)

    def _refuse(self, pending: PendingConnection) -> None:
        if pending.tokens or pending.suspended:
            self._steps.give_tokens_back(pending)
        self._count_refused(pending)
        if self._dismissal is None:
            os.close(pending.fd)
        else:
            self._dismissal(pending.fd, pending.ip, pending.port, pending.refusal)

    def _count_refused(self, pending: PendingConnection) -> None:
        self._outcomes.refused(pending.number, pending.ip, pending.port, pending.refusal, self._waited_ms(pending))

    def _waited_ms(self, pending: PendingConnection) -> float:
        return (self._poller.now_ns - pending.at_ns) / 1e6
