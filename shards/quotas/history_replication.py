"""The replication of charge histories among the shards of a broker, so that each can go on from what the others recorded.

What is published goes to all other shards with the next flush; a shard that comes up is sent everything. An update is a call, on
the link that also has the charges: a shard that answers it has read all that was sent before. One that fails is made again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Final, TypeVar

from shards.errors import DeadlineExceeded, PeerLost
from shards.loop.deferred import Deferred
from shards.quotas.away_homes import AwayHomes
from shards.quotas.charge_history import ChargeHistory, CurvePart, MeterKey, Recorded
from shards.quotas.replication_queue import HistoryUpdate, ReplicationQueue

Call = Callable[..., Deferred[object]]
"""mesh.call: (peer, method, *args) -> value."""
REPLICATE: Final = "replicate_charges"
MOST_AT_ONCE: Final = 500
"""Keys: with the longest names of clients they are far from the length of a frame."""

B = TypeVar("B")


class HistoryReplication:
    """Sends `history` to the other shards. `touch()` has flush() called soon; `lose(shard)` is called when a shard does not answer
    an update, and one that answers is marked as back in `homes`."""

    def __init__(
        self,
        history: ChargeHistory,
        homes: AwayHomes[B],
        shards: Sequence[int],
        *,
        call: Call,
        touch: Callable[[], None],
        lose: Callable[[int], None],
    ) -> None:
        self._history = history
        self._homes = homes
        self._shards = shards
        self._call = call
        self._touch = touch
        self._lose = lose
        self._queue = ReplicationQueue(shards, homes.away)
        self._to_send: set[int] = set()
        self._since_ms = 0
        self._turn = history.turn()

    def publish(self, key: MeterKey, *, now_ms: int) -> None:
        """Every other shard is sent soon what is recorded of a key by now."""
        self._queue.add(key, self._history.publish(key, now_ms=now_ms))
        self._to_send.update(shard for shard in self._shards if shard not in self._homes.away)
        self._touch()

    def send_everything(self, shard: int) -> None:
        """A shard came up: it is sent everything, and is asked for charges once it has answered."""
        self._queue.add_everything(shard, self._history.keys())
        self._to_send.add(shard)
        self._touch()

    def retry(self) -> None:
        """Sends, again, what is left to send; and an update to shards that are away, to see whether they are back."""
        self._to_send.update(filter(self._queue.has_update, self._shards))
        if self._to_send:
            self._touch()

    def flush(self) -> None:
        """Sends the updates that are due."""
        while self._to_send:
            self._send(self._to_send.pop())

    def receive(self, rows: list[list[object]]) -> list[Recorded]:
        """The update of another shard: records that were not known here, since the last reset; the oldest first."""
        news = (self._history.merge(row) for row in map(CurvePart.read, rows) if row.began_ms >= self._since_ms)
        return sorted(itertools.chain.from_iterable(news), key=attrgetter("at_ms"))

    def expire(self, most: int, *, now_ms: int) -> None:
        """Forgets what counts no more, of `most` keys at a time, in turn."""
        visited = 0
        for key in itertools.islice(self._turn, most):
            visited += 1
            self._history.expire(key, now_ms=now_ms)
        if visited < most:
            self._turn = self._history.turn()

    def reset(self, *, now_ms: int) -> None:
        """Nothing was recorded before now."""
        self._since_ms = now_ms

    def _send(self, shard: int) -> None:
        if not self._queue.has_update(shard):
            return
        update = self._queue.take_update(shard, MOST_AT_ONCE)
        rows = [row for key in update.whole for row in self._history.whole(key)]
        rows += [row for key, number in update.since.items() for row in self._history.since(key, number)]
        self._call(shard, REPLICATE, rows, update.complete).add_callback(partial(self._answered, shard, update))

    def _answered(self, shard: int, update: HistoryUpdate, answer: Deferred[None]) -> None:
        try:
            answer.result()
        except PeerLost:
            self._queue.failed(shard, update)
            self._lose(shard)
            return
        except DeadlineExceeded:
            self._queue.failed(shard, update)
            self._lose(shard)
            self._to_send.add(shard)  # the shard may go on at any time, and is to read this first then
            self._touch()
            return
        except Exception:
            pass  # a mistake there, which was reported there: to send it again would not help
        self._queue.arrived(shard)
        self._homes.mark_back(shard)
        if self._queue.has_update(shard):
            self._to_send.add(shard)
            self._touch()
