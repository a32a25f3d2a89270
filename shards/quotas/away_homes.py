"""The batches of charges that other homes were asked and have not answered, and the homes that are away, as they do not answer.

Pure: the time is an argument, and the caller sends. A charge whose home is another shard is asked there; while that home is
*away*, it is decided here. A home is away from the moment its link is lost, or a batch has waited ANSWER_WITHIN_MS; it is back
when it answers an update of the charge history (replication_queue.py).

asked_once      a charge is decided by its home's answer or here, never by both, as far as this shard knows; and a home decides
                none that its asker decides, unless its answer takes longer than ANSWER_WITHIN_MS - STALE_AFTER_MS
bounded_wait    a charge waits for ANSWER_WITHIN_MS at most, and none waits for a shard that is away
"""

from collections import deque
from collections.abc import Iterable
from typing import Final, Generic, TypeVar

ANSWER_WITHIN_MS: Final = 250
"""A charge without an answer for so long is decided without its home, and the home is away."""
STALE_AFTER_MS: Final = 200
"""A home does not decide a charge that is older: the asker soon does, or has. The rest of ANSWER_WITHIN_MS is for the answer's
way."""

B = TypeVar("B")


class PendingBatch(Generic[B]):
    """A batch of charges under way to their home, until it is answered or due; then `over`."""

    __slots__ = ("batch", "due_ms", "over")

    def __init__(self, batch: B, due_ms: int) -> None:
        self.batch = batch
        self.due_ms = due_ms
        self.over = False


class AwayHomes(Generic[B]):
    """The other shards of a broker as homes of charges. `away` changes by `mark_away` and `mark_back` alone."""

    def __init__(self, others: Iterable[int]) -> None:
        self.away: set[int] = set()
        self._gave_up_ms: dict[int, int] = {}  # when another shard may have given up on this one at the latest
        self._pending: dict[int, deque[PendingBatch[B]]] = {shard: deque() for shard in others}

    def ask(self, home: int, batch: B, *, now_ms: int) -> PendingBatch[B]:
        """A batch leaves for its home."""
        pending = PendingBatch(batch, now_ms + ANSWER_WITHIN_MS)
        self._pending[home].append(pending)
        return pending

    def answered(self, home: int, pending: PendingBatch[B]) -> bool:
        """A batch is answered, or its call failed. True if it is not decided yet."""
        was_over, pending.over = pending.over, True
        waiting = self._pending[home]
        while waiting and waiting[0].over:
            waiting.popleft()
        return not was_over

    def next_due_ms(self) -> int | None:
        """The time at which the first batch is due; None: none waits."""
        return min((waiting[0].due_ms for waiting in self._pending.values() if waiting), default=None)

    def overdue(self, *, now_ms: int) -> list[B]:
        """The batches that have waited too long. Their homes are away, and all else that these were asked is overdue with them."""
        late: list[B] = []
        for home, waiting in self._pending.items():
            if waiting and waiting[0].due_ms <= now_ms:
                late += self.mark_away(home)
        return late

    def is_stale(self, asker: int, asked_ms: int, *, now_ms: int) -> bool:
        """True if another shard has given up a batch that it asked of this one, or soon will; with all that it asked till then."""
        if now_ms - asked_ms >= STALE_AFTER_MS:
            self._gave_up_ms[asker] = now_ms
        return asked_ms <= self._gave_up_ms.get(asker, -1)

    def mark_away(self, shard: int) -> list[B]:
        """A shard is away. Returns the batches that it was asked, for which it is waited no longer."""
        self.away.add(shard)
        waiting = self._pending[shard]
        late = [pending for pending in waiting if not pending.over]
        waiting.clear()
        for pending in late:
            pending.over = True
        return [pending.batch for pending in late]

    def mark_back(self, shard: int) -> None:
        """A shard answers: charges are asked there from now on."""
        self.away.discard(shard)

    def check(self) -> None:
        """Raises AssertionError when an invariant does not hold that can be seen here."""
        for shard, waiting in self._pending.items():
            assert shard not in self.away or not waiting, "bounded_wait: none waits for a shard that is away"
            assert all(not pending.over for pending in list(waiting)[:1]), "asked_once"
