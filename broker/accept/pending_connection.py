"""A connection before its decision: its step, its permits and its tokens.

permits_end_with_their_step  A step may need a place among the held connections, a stopped listener or a timer: each is a permit.
    The connection gives its permits back when it leaves the step, whichever event ends the step. Then it does not wait for
    tokens (`wanted`) any more, either. It gives its tokens back when it is refused or held, and hands them over when admitted.
late_answers_change_nothing  An answer that arrives after the decision changes nothing. Such answers come while the shard ends.
"""

from __future__ import annotations

from typing import Protocol

from broker.accept.admission_steps import ENDS, WAITS_FOR_TOKENS, Step
from broker.accept.permit import Permit
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
    """One accepted connection, until it is admitted or refused; the TokenWaiter and the RateWaiter of what it asks for.

    `pools`: the pools of which it takes one token each, in this order: listener, broker, other pools of its slot, address.
    `forced`: True if it takes a token of the broker's pool even over the cap (KIP-402: the inter-broker listener).
    `at_ns`: the time of accept. `asked_ns`: the time at which it asked for tokens.
    """

    # Defaults are attributes of the class: most connections never change them, and an instance is made in half the time.
    step = Step.ARRIVED
    forced = False
    wanted: tuple[str, ...] = ()  # the pools that it waits for a token of
    tokens: tuple[str, ...] = ()  # the pools of which it holds a token
    suspended = False  # Tokens.suspend has its tokens, and may revoke them
    pool = ""  # the pool that it waits for, under `rule`
    rule = UNLIMITED
    asked_ns = 0
    delay_ms = 0  # for which it is HELD
    refusal: Refusal  # set before the event REFUSE
    permits: tuple[Permit, ...] = ()  # held until the present step ends
    stopped: Permit | None = None  # the one of `permits` that keeps the listener from accepting, if it has one

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

    def began_to_wait(self, pool: str, rule: CapRule) -> None:
        """Called by the tokens when this connection begins to wait for a pool."""
        self.pool, self.rule = pool, rule
        if rule.wait or self.stopped is not None:
            self.admission.pace(self)

    def rule_changed(self, rule: CapRule) -> None:
        """From now on `rule` is the rule of the pool that this connection waits for; nothing changes if it waits for none."""
        if self.step in WAITS_FOR_TOKENS and rule != self.rule:
            self.began_to_wait(self.pool, rule)

    def let_go(self, *, early: bool = False) -> None:
        """Called by the held connections when the delay is over; `early`: before that, as another connection needs the place."""
        self.admission.let_go(self, early=early)

    # What it holds

    def keep_permit(self, permit: Permit) -> None:
        """Keeps a permit until the connection leaves the present step."""
        self.permits += (permit,)

    def give_permits_back(self) -> None:
        """Gives back the permits of the present step, in the order in which they were taken."""
        permits, self.permits = self.permits, ()
        for permit in permits:
            permit.give_back()
        self.stopped = None

    def take_tokens_off(self) -> tuple[str, ...]:
        """Takes the tokens off this connection. Returns their pools: the caller gives the tokens back, or hands them over."""
        tokens, self.tokens = self.tokens, ()
        return tokens
