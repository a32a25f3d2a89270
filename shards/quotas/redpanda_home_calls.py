"""Charges of Redpanda's buckets and of its node throughput whose home is another shard.

The home decides them, or this shard does while the home is away.

always_answered  Every charge is answered within ANSWER_WITHIN_MS, whatever happens to its home.
decided_once     On this shard a charge has one decision: the home's, or this shard's own. A home whose answer comes late may have
    recorded the charge as well.
tried_again      A home is away once its link breaks or it does not answer in time. It is back when the link is up again, or when
    it answers a `probe`, a call that charges nothing. A charge while the home is away sends a probe, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from shards.loop.deferred import Deferred, MaybeDeferred
from shards.loop.timers import Timer, Timers
from shards.quotas.away_homes import ANSWER_WITHIN_MS
from shards.quotas.history_replication import Call

T = TypeVar("T")


class RedpandaHomeCalls(Generic[T]):
    """`method`: the home's method that decides a charge. `read` turns its result into an answer. `probe`: arguments by which it
    charges nothing. A Deferred that `ask` returns must not be cancelled."""

    def __init__(
        self, method: str, *, call: Call, timers: Timers, read: Callable[[Any], T], probe: tuple[object, ...]
    ) -> None:
        self._method = method
        self._call = call
        self._timers = timers
        self._read = read
        self._probe = probe
        self._away: set[int] = set()
        self._tried: set[int] = set()

    def ask(self, home: int, *args: object, decide: Callable[[], T]) -> MaybeDeferred[T]:
        """The answer to a charge, `args`: the home's, or that of `decide` if the home is away or does not answer in time."""
        if home in self._away:
            self._try_again(home)
            return decide()
        answer: Deferred[T] = Deferred()
        late = partial(self._decide, home, answer, decide)
        due = self._timers.after(ANSWER_WITHIN_MS, late)
        self._call(home, self._method, *args).add_callback(partial(self._home_answered, answer, late, due))
        return answer

    def peer_up(self, shard: int) -> None:
        """The link to a shard is up."""
        self._away.discard(shard)
        self._tried.discard(shard)

    def peer_lost(self, shard: int) -> None:
        """The link to a shard broke."""
        self._away.add(shard)

    def _home_answered(
        self, answer: Deferred[T], late: Callable[[], None], due: Timer, reply: Deferred[object]
    ) -> None:
        """The home has answered, or the call to it has failed."""
        self._timers.cancel(due)
        try:
            found = self._read(reply.result())
        except Exception:  # PeerLost, DeadlineExceeded, or a mistake there, which was reported there
            late()
            return
        if not answer.resolved:
            answer.resolve(found)

    def _decide(self, home: int, answer: Deferred[T], decide: Callable[[], T]) -> None:
        """Decides a charge here, unless the home's answer came first."""
        if not answer.resolved:
            self._away.add(home)
            answer.resolve(decide())

    def _try_again(self, home: int) -> None:
        if home not in self._tried:
            self._tried.add(home)
            self._call(home, self._method, *self._probe).add_callback(partial(self._answered_again, home))

    def _answered_again(self, home: int, reply: Deferred[object]) -> None:
        self._tried.discard(home)
        try:
            reply.result()
        except Exception:  # as above; the next charge asks again
            return
        self._away.discard(home)
