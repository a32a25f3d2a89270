"""A connection before its decision: its step, its permits and its tokens.

permits_end_with_their_step  A place among the held, a stopped listener or a timer that a step needs is a permit. It is
    given back when the connection leaves the step, whichever event ends it; so is its place among those that wait for
    tokens, `wanted`. Tokens are given back when the connection is refused or held, and handed over when it is admitted.
late_answers_change_nothing  An answer that arrives after the decision (the shard is ending) changes nothing.
"""

from __future__ import annotations

from typing import Protocol

from broker.accept.permit import Permit
from broker.accept.steps import ENDS, WAITS_FOR_TOKENS, Step
from broker.metrics.outcomes import Refusal
from shards.limits.caps import UNLIMITED, CapRule
from shards.tokens.tokens import Admitted, Refused


class Owner(Protocol):
    """The admission of its listener, as a pending connection sees it."""

    def decided(self, pending: PendingConnection, decision: Refused | Admitted) -> None: ...
    def recorded(self, pending: PendingConnection, wait_ms: int) -> None: ...
    def let_go(self, pending: PendingConnection, *, early: bool) -> None: ...
    def pace(self, pending: PendingConnection) -> None: ...


class PendingConnection:
    """One accepted descriptor, until it is admitted or refused. It is the TokenWaiter and the RateWaiter of its requests.

    `pools`: the keys of which it takes a token each, in this order: listener, broker, more of its slot, address.
    `forced`: whether it takes its token of the broker's pool in any case (KIP-402: the inter-broker listener).
    `at_ns`: when it was accepted. `asked_ns`: when tokens were asked for.
    """

    # Defaults are attributes of the class: most connections never change them, and an instance is made in half the time.
    step = Step.ARRIVED
    forced = False
    wanted: tuple[str, ...] = ()  # the pools whose tokens it asked for and waits for
    tokens: tuple[str, ...] = ()  # the pools of which it holds a token
    suspended = False  # its tokens are with Tokens.suspend, and may be revoked
    pool = ""  # the pool it waits for, under `rule`
    rule = UNLIMITED
    asked_ns = 0
    delay_ms = 0  # of HELD
    refusal: Refusal  # set before the event REFUSE
    permits: tuple[Permit, ...] = ()  # held until the present step ends
    stopped: Permit | None = None  # one of them: the listener accepts nothing as long as this is held

    def __init__(
        self, admission: Owner, fd: int, number: int, ip: str, port: int, *, pools: tuple[str, ...], at_ns: int
    ) -> None:
        self.admission = admission
        self.fd = fd
        self.number = number
        self.ip = ip
        self.port = port
        self.pools = pools
        self.at_ns = at_ns

    # Answers

    def decided(self, decision: Refused | Admitted) -> None:
        """Called by the tokens when a home has answered."""
        if self.step not in ENDS:
            self.admission.decided(self, decision)

    def recorded(self, key: str, wait_ms: int) -> None:
        """Called by the rates when a home has answered."""
        if self.step not in ENDS:
            self.admission.recorded(self, wait_ms)

    def waits(self, pool: str, rule: CapRule) -> None:
        """Called by the tokens whenever it comes to wait for a pool."""
        self.pool, self.rule = pool, rule
        if rule.wait or self.stopped is not None:
            self.admission.pace(self)

    def rule_changed(self, rule: CapRule) -> None:
        """The pool it waits for, if it waits for one, has `rule` from now on."""
        if self.step in WAITS_FOR_TOKENS and rule != self.rule:
            self.waits(self.pool, rule)

    def let_go(self, *, early: bool = False) -> None:
        """Called by the held connections: the delay is over, or, `early`, the place is needed."""
        self.admission.let_go(self, early=early)

    # What it holds

    def hold(self, permit: Permit) -> None:
        """Until the connection leaves the present step."""
        self.permits += (permit,)

    def give_permits_back(self) -> None:
        """Those of the present step, in the order in which they were taken."""
        permits, self.permits = self.permits, ()
        for permit in permits:
            permit.give_back()
        self.stopped = None

    def take_tokens_off(self) -> tuple[str, ...]:
        """The pools of which it held a token: the caller gives those back, or hands them over."""
        tokens, self.tokens = self.tokens, ()
        return tokens
