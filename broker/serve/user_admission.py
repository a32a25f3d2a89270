"""The limits of a user's connections, asked when a client has proven who it is: the rate of new ones, then the cap on open ones.
`turnstile.max.connection.creation.rate.per.user` and `turnstile.max.connections.per.user` are Turnstile's own.

The pool `user:NAME` has a home, tokens and caches as that of an address (docs/internals/tokens.md), and the rate of the same key a
home and windows as that of an address (docs/internals/rates.md). Clients of listeners without SASL have neither.

Invariants
counted_without_a_cap  A connection that has logged in holds a token of its user's pool, also while no cap is set. So a cap that
    appears counts those that were made before. A rate counts from when it is set.
one_token_of_a_user  A connection asks once. A session that is proven again is of the same user (KIP-368), and keeps its token.
rate_before_cap  As of an address: a login beyond the rate is not recorded in it, and asks for no token; one that the cap refuses
    stays recorded. It is refused at once: MSK answers so, too, and delaying the answer would hold the sockets of a storm.
admitted_before  The connection was admitted, and counted as that, when it was accepted. Refused here, it is journaled and
    counted as refused for its user, and closes as every admitted one does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import uuid4

from broker.metrics.outcomes import Outcomes, Refusal, refusal_by_pool
from broker.runtime.shard_context import ShardContext
from broker.serve.channel import Channel
from shards.limits.caps import CapRule
from shards.loop.deferred import Deferred, MaybeDeferred
from shards.rates.rates import UNAVAILABLE, Rates
from shards.tokens.tokens import ADMITTED, Admitted, Refused


def too_many_connects() -> str:
    """The text by which MSK refuses a login for its limits. Source: aws-msk-iam-auth issue 28."""
    return f"[{uuid4()}]: Too many connects"


class UserAdmission:
    """The admission of one listener's connections for their users, on one shard. `came_in` is called with each that has a token of
    its user's pool: observed limits of users are asked then."""

    def __init__(
        self, context: ShardContext, rates: Rates, outcomes: Outcomes, came_in: Callable[[Channel], None]
    ) -> None:
        self._image = context.image
        self._tokens = context.tokens
        self._poller = context.poller
        self._rates = rates
        self._outcomes = outcomes
        self._came_in = came_in

    def admit(self, channel: Channel, user: str) -> MaybeDeferred[Refusal | None]:
        """A token of the user's pool for a connection that has just proven to be of `user`; or why it has none. A channel that
        closes meanwhile cancels it."""
        attempt = UserAttempt(self, channel, user, self._poller.now_ns)
        wait_ms: int | None = 0
        if self._rates.has_quota(attempt.pool):
            wait_ms = self._rates.record(attempt.pool, attempt, now_ms=self._poller.now_ns // 1_000_000)
        decision = None if wait_ms is None else self.rated(attempt, wait_ms)
        if decision is not None:
            return self.decided(attempt, decision)
        attempt.answer.ends_by(partial(self._gave_up, attempt))
        return attempt.answer

    def rated(self, attempt: UserAttempt, wait_ms: int) -> Admitted | Refused | Refusal | None:
        """The user's rate has answered as to RateWaiter.recorded: what is decided by that, or by the cap; None: it waits."""
        if not wait_ms:
            return self._tokens.take((attempt.pool,), attempt)
        rule = self._image.rate_of(attempt.pool)
        if wait_ms == UNAVAILABLE:
            return Refusal("shard_unavailable", rule.name, 0, self._tokens.version)
        return Refusal("user_rate", rule.name, rule.rate or 0, self._tokens.version)

    def _gave_up(self, attempt: UserAttempt) -> None:
        """The connection of an attempt has closed and was journaled as closed: an event says that it may have held a token."""
        attempt.is_gone = True
        channel = attempt.channel
        self._tokens.cancel(attempt)
        waited_ms = (self._poller.now_ns - attempt.asked_ns) / 1e6
        self._outcomes.login_given_up(
            channel.id, channel.ip, channel.port, attempt.user, self._tokens.version, waited_ms
        )

    def decided(self, attempt: UserAttempt, decision: Admitted | Refused | Refusal) -> Refusal | None:
        """Counts and journals the decision; why the connection is refused, None if it holds a token now."""
        channel, user = attempt.channel, attempt.user
        waited_ms = (self._poller.now_ns - attempt.asked_ns) / 1e6
        if decision is ADMITTED:
            channel.hold((attempt.pool, *channel.pools))  # observed pools are the last ones (observed_world.py)
            self._outcomes.authenticated(channel.id, channel.ip, channel.port, user, self._tokens.version, waited_ms)
            self._came_in(channel)
            return None
        assert isinstance(decision, Refused | Refusal)
        refusal = decision if isinstance(decision, Refusal) else refusal_by_pool(decision)
        self._outcomes.user_refused(channel.id, channel.ip, channel.port, user, refusal, waited_ms)
        return refusal


class UserAttempt:
    """A connection whose user's rate is asked for a unit, and whose user's pool for a token: the RateWaiter of the one, then the
    TokenWaiter of the other. `is_gone`: it has closed meanwhile."""

    __slots__ = ("_admission", "answer", "asked_ns", "channel", "is_gone", "pool", "user")

    def __init__(self, admission: UserAdmission, channel: Channel, user: str, asked_ns: int) -> None:
        self._admission = admission
        self.channel = channel
        self.user = user
        self.pool = f"user:{user}"
        self.asked_ns = asked_ns
        self.is_gone = False
        self.answer: Deferred[Refusal | None] = Deferred()

    def recorded(self, key: str, wait_ms: int) -> None:
        """Called by the rates when the home has answered. The unit of a connection that is gone stays recorded."""
        if self.is_gone:
            return
        decision = self._admission.rated(self, wait_ms)
        if decision is not None:
            self.answer.resolve(self._admission.decided(self, decision))

    def decided(self, decision: Admitted | Refused) -> None:
        """Called by the tokens when the home has answered."""
        self.answer.resolve(self._admission.decided(self, decision))

    def began_to_wait(self, pool: str, rule: CapRule) -> None:
        """Called by the tokens when the attempt comes to wait for a pool: its client waits for the answer to its login anyway."""
