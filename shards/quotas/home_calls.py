"""Charges that their home, another shard, decides; or this one at once, while that is away.

always_answered  Every charge is answered within ANSWER_WITHIN_MS, whatever becomes of its home.
decided_once     A charge counts once on this shard: by its home's answer, or by the decision here. A home that answers late may
    have recorded it, too.
tried_again      A home is away once its link breaks or it answers late. The next charge sends it a `probe`, which charges nothing;
    the answer to that ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from shards.loop.deferred import Deferred, MaybeDeferred
from shards.loop.timers import Timer, Timers
from shards.quotas.attendance import ANSWER_WITHIN_MS
from shards.quotas.publications import Call

T = TypeVar("T")


class HomeCalls(Generic[T]):
    """`read` makes an answer of what arrives. `probe`: arguments that charge nothing. Nothing may cancel what `ask` returns."""

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
        """The answer of the home, or of `decide` here."""
        if home in self._away:
            self._try_again(home)
            return decide()
        answer: Deferred[T] = Deferred()
        late = partial(self._decide, home, answer, decide)
        due = self._timers.after(ANSWER_WITHIN_MS, late)
        self._call(home, self._method, *args).add_callback(partial(self._came, answer, late, due))
        return answer

    def peer_up(self, shard: int) -> None:
        """The link to a shard is there."""
        self._away.discard(shard)
        self._tried.discard(shard)

    def peer_lost(self, shard: int) -> None:
        """The link to a shard broke."""
        self._away.add(shard)

    def _came(self, answer: Deferred[T], late: Callable[[], None], due: Timer, told: Deferred[object]) -> None:
        """The home has answered, or can't be asked."""
        self._timers.cancel(due)
        try:
            found = self._read(told.result())
        except Exception:  # PeerLost, DeadlineExceeded, or a mistake there, which was reported there
            late()
            return
        if not answer.resolved:
            answer.resolve(found)

    def _decide(self, home: int, answer: Deferred[T], decide: Callable[[], T]) -> None:
        """Decides a charge that the home has not."""
        if not answer.resolved:
            self._away.add(home)
            answer.resolve(decide())

    def _try_again(self, home: int) -> None:
        if home not in self._tried:
            self._tried.add(home)
            self._call(home, self._method, *self._probe).add_callback(partial(self._answered_again, home))

    def _answered_again(self, home: int, told: Deferred[object]) -> None:
        self._tried.discard(home)
        try:
            told.result()
        except Exception:  # as above; the next charge asks again
            return
        self._away.discard(home)
