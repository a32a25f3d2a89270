"""The messages among shards about the charges they decided, so that each can go on from what the others recorded.

What is published goes to all other shards with the next flush; a shard that comes up is told everything. A tell is a call, on
the link that also has the charges: whoever answers it has read all that was sent before. One that fails is made again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Final, TypeVar

from shards.errors import DeadlineExceeded, PeerLost
from shards.loop.deferred import Deferred
from shards.quotas.attendance import Attendance, Tell
from shards.quotas.history import CurvePart, History, MeterKey, Recorded

Call = Callable[..., Deferred[object]]
"""mesh.call: (peer, method, *args) -> value."""
TELL: Final = "tell_quotas"
MOST_AT_ONCE: Final = 500
"""Keys: with the longest names of clients they are far from the length of a frame."""

B = TypeVar("B")


class Publications:
    """Tells of `history`, to the shards of `attendance`. `touch()` has flush() called soon; `lose(shard)` is called when a shard
    does not answer."""

    def __init__(
        self,
        history: History,
        attendance: Attendance[B],
        shards: Sequence[int],
        *,
        call: Call,
        touch: Callable[[], None],
        lose: Callable[[int], None],
    ) -> None:
        self._history = history
        self._attendance = attendance
        self._shards = shards
        self._call = call
        self._touch = touch
        self._lose = lose
        self._to_tell: set[int] = set()
        self._since_ms = 0
        self._turn = history.turn()

    def publish(self, place: MeterKey, *, now_ms: int) -> None:
        """Every other shard is told soon of what is recorded of a key by now."""
        self._attendance.publish(place, self._history.publish(place, now_ms=now_ms))
        self._to_tell.update(shard for shard in self._shards if shard not in self._attendance.away)
        self._touch()

    def greet(self, shard: int) -> None:
        """A shard came up: it is told everything, and is attended once it has answered."""
        self._attendance.greeted(shard, self._history.places())
        self._to_tell.add(shard)
        self._touch()

    def retry(self) -> None:
        """Tells, again, what is left to tell; and shards that are away, to hear whether they are back."""
        self._to_tell.update(filter(self._attendance.tells, self._shards))
        if self._to_tell:
            self._touch()

    def flush(self) -> None:
        """Sends what is to be told."""
        while self._to_tell:
            self._tell(self._to_tell.pop())

    def hear(self, rows: list[list[object]]) -> list[Recorded]:
        """The news of another shard: records that were not known here, since the last reset; the oldest first."""
        told = (self._history.merge(row) for row in map(CurvePart.read, rows) if row.began_ms >= self._since_ms)
        return sorted(itertools.chain.from_iterable(told), key=attrgetter("at_ms"))

    def expire(self, most: int, *, now_ms: int) -> None:
        """Forgets what counts no more, of `most` keys at a time, in turn."""
        looked = 0
        for place in itertools.islice(self._turn, most):
            looked += 1
            self._history.expire(place, now_ms=now_ms)
        if looked < most:
            self._turn = self._history.turn()

    def reset(self, *, now_ms: int) -> None:
        """Nothing was recorded before now."""
        self._since_ms = now_ms

    def _tell(self, shard: int) -> None:
        if not self._attendance.tells(shard):
            return
        tell = self._attendance.tell(shard, MOST_AT_ONCE)
        rows = [row for place in tell.whole for row in self._history.whole(place)]
        rows += [row for place, number in tell.since.items() for row in self._history.since(place, number)]
        self._call(shard, TELL, rows, tell.complete).add_callback(partial(self._told, shard, tell))

    def _told(self, shard: int, tell: Tell, answer: Deferred[None]) -> None:
        try:
            answer.result()
        except PeerLost:
            self._attendance.told(shard, tell, arrived=False)
            self._lose(shard)
            return
        except DeadlineExceeded:
            self._attendance.told(shard, tell, arrived=False)
            self._lose(shard)
            self._to_tell.add(shard)  # it may go on at any time, and is to hear this first then
            self._touch()
            return
        except Exception:
            pass  # a mistake there, which was reported there: to tell it again would not help
        self._attendance.told(shard, tell, arrived=True)
        if self._attendance.tells(shard):
            self._to_tell.add(shard)
            self._touch()
