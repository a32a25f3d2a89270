"""The cap of a user's connections, asked when a client has proven who it is: `turnstile.max.connections.per.user`, Turnstile's own.

The pool `user:NAME` has a home, tokens and caches as that of an address (docs/internals/tokens.md). Clients of listeners without
SASL have no pool of a user.

Invariants
counted_without_a_cap  A connection that has logged in holds a token of its user's pool, also while no cap is set. So a cap that
    appears counts those that were made before.
one_token_of_a_user  A connection asks once. A session that is proven again is of the same user (KIP-368), and keeps its token.
admitted_before  The connection was admitted, and counted as that, when it was accepted. Refused here, it is journaled and
    counted as refused for its user, and closes as every admitted one does.
"""

from __future__ import annotations

from functools import partial
from uuid import uuid4

from broker.metrics.outcomes import Outcomes, Refusal, refusal_by_pool
from broker.runtime.shard_context import ShardContext
from broker.serve.channel import Channel
from shards.limits.caps import CapRule
from shards.loop.deferred import Deferred, MaybeDeferred
from shards.tokens.tokens import ADMITTED, Admitted, Refused


def too_many_connects() -> str:
    """The text by which MSK refuses a login for its limits. Source: aws-msk-iam-auth issue 28."""
    return f"[{uuid4()}]: Too many connects"


class UserAdmission:
    """Of one listener's connections on one shard."""

    def __init__(self, context: ShardContext, outcomes: Outcomes) -> None:
        self._tokens = context.tokens
        self._poller = context.poller
        self._outcomes = outcomes

    def admit(self, channel: Channel, user: str) -> MaybeDeferred[Refusal | None]:
        """A token of the user's pool for a connection that has just proven to be of `user`; or why it has none. A channel that
        closes meanwhile cancels it."""
        attempt = UserAttempt(self, channel, user, self._poller.now_ns)
        decision = self._tokens.take((attempt.pool,), attempt)
        if decision is not None:
            return self.decided(attempt, decision)
        attempt.answer.ends_by(partial(self._gave_up, attempt))
        return attempt.answer

    def _gave_up(self, attempt: UserAttempt) -> None:
        """Its connection has closed, and was journaled as that: the audit is told that it may have held a token."""
        channel = attempt.channel
        self._tokens.cancel(attempt)
        waited_ms = (self._poller.now_ns - attempt.asked_ns) / 1e6
        self._outcomes.login_given_up(
            channel.id, channel.ip, channel.port, attempt.user, self._tokens.version, waited_ms
        )

    def decided(self, attempt: UserAttempt, decision: Admitted | Refused) -> Refusal | None:
        """Counts and journals the decision; why the connection is refused, None if it holds a token now."""
        channel, user = attempt.channel, attempt.user
        waited_ms = (self._poller.now_ns - attempt.asked_ns) / 1e6
        if decision is ADMITTED:
            channel.hold((attempt.pool, *channel.pools))  # observed pools are the last ones (rehearsal.py)
            self._outcomes.authenticated(channel.id, channel.ip, channel.port, user, self._tokens.version, waited_ms)
            return None
        assert isinstance(decision, Refused)
        refusal = refusal_by_pool(decision)
        self._outcomes.user_refused(channel.id, channel.ip, channel.port, user, refusal, waited_ms)
        return refusal


class UserAttempt:
    """A connection whose user's pool is asked for a token: the TokenWaiter of that pool."""

    __slots__ = ("_admission", "answer", "asked_ns", "channel", "pool", "user")

    def __init__(self, admission: UserAdmission, channel: Channel, user: str, asked_ns: int) -> None:
        self._admission = admission
        self.channel = channel
        self.user = user
        self.pool = f"user:{user}"
        self.asked_ns = asked_ns
        self.answer: Deferred[Refusal | None] = Deferred()

    def decided(self, decision: Admitted | Refused) -> None:
        """Called by the tokens when the home has answered."""
        self.answer.resolve(self._admission.decided(self, decision))

    def waits(self, pool: str, rule: CapRule) -> None:
        """Called by the tokens whenever it comes to wait for a pool: its client waits for the answer to its login anyway."""
