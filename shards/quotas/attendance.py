"""The shards that answer: where charges are asked, which of them wait for an answer, and what each shard is yet to be told.

Pure: the time is an argument, and the caller sends. Each other shard is *attended*, and charges at home there are asked
there, or *away*, and they are decided here. A shard is away from the moment its link is lost, or a charge has waited
ANSWER_WITHIN_MS; it is attended again when it answers what it was told, for which a shard that is away is told at least
nothing at all.

one_tell        at most one tell is under way to a shard; what is to be told meanwhile waits as keys, not as messages
told_first      what a shard that was away is to be told leaves before the first charge that it is asked again
asked_once      a charge is decided by its home's answer or here, never by both, as far as this shard knows; and a home decides
                none that its asker decides, unless its answer takes longer than ANSWER_WITHIN_MS - STALE_AFTER_MS
bounded_wait    a charge waits for ANSWER_WITHIN_MS at most, and none waits for a shard that is away
"""

import itertools
from collections import deque
from collections.abc import Iterable
from typing import Final, Generic, NamedTuple, TypeVar

from shards.quotas.history import MeterKey

ANSWER_WITHIN_MS: Final = 250
"""After so long a charge is decided without its home, and the home is away."""
STALE_AFTER_MS: Final = 200
"""After so long a home decides no charge that it reads: its asker soon does, or has. The rest is for the answer's way."""

B = TypeVar("B")
V = TypeVar("V")


class PendingBatch(Generic[B]):
    """A batch of charges under way to their home, until it is answered or due; then `over`."""

    __slots__ = ("batch", "due_ms", "over")

    def __init__(self, batch: B, due_ms: int) -> None:
        self.batch = batch
        self.due_ms = due_ms
        self.over = False


class _Other(Generic[B]):
    def __init__(self) -> None:
        self.asked: deque[PendingBatch[B]] = deque()
        self.is_told = False  # a tell is under way
        self.greets = False  # it is yet to be told everything
        self.whole: dict[MeterKey, None] = {}  # keys of which it is to be told everything
        self.since: dict[MeterKey, int] = {}  # keys, and from which point on it is to be told them


class Tell(NamedTuple):
    """A message to another shard: keys of which it is told everything, and keys of which the points from a number on;
    `complete`: with this it has been told everything."""

    whole: dict[MeterKey, None]
    since: dict[MeterKey, int]
    complete: bool


class Attendance(Generic[B]):
    """All other shards of a broker. `away` is for looking only."""

    def __init__(self, others: Iterable[int]) -> None:
        self.away: set[int] = set()
        self._gave_up_ms: dict[int, int] = {}  # when another shard may have given up on this one at the latest
        self._others: dict[int, _Other[B]] = {shard: _Other() for shard in others}

    # Charges

    def ask(self, home: int, batch: B, *, now_ms: int) -> PendingBatch[B]:
        """A batch leaves for its home."""
        asked = PendingBatch(batch, now_ms + ANSWER_WITHIN_MS)
        self._others[home].asked.append(asked)
        return asked

    def answered(self, home: int, asked: PendingBatch[B]) -> bool:
        """A batch is answered, or its call failed: whether it is still to be decided."""
        was_over, asked.over = asked.over, True
        waiting = self._others[home].asked
        while waiting and waiting[0].over:
            waiting.popleft()
        return not was_over

    def next_due_ms(self) -> int | None:
        """The time at which the first batch is due; None: none waits."""
        return min((other.asked[0].due_ms for other in self._others.values() if other.asked), default=None)

    def overdue(self, *, now_ms: int) -> list[B]:
        """The batches that have waited too long. Their homes are away, and with them goes all else that they were asked."""
        late: list[B] = []
        for home, other in self._others.items():
            if other.asked and other.asked[0].due_ms <= now_ms:
                late += self.lost(home)
        return late

    def is_stale(self, asker: int, asked_ms: int, *, now_ms: int) -> bool:
        """True if another shard has given up a batch that it asked of this one, or soon will; with all that it asked till then."""
        if now_ms - asked_ms >= STALE_AFTER_MS:
            self._gave_up_ms[asker] = now_ms
        return asked_ms <= self._gave_up_ms.get(asker, -1)

    # Shards

    def lost(self, shard: int) -> list[B]:
        """A shard is away: the batches that it will not be waited for."""
        self.away.add(shard)
        other = self._others[shard]
        late = [asked for asked in other.asked if not asked.over]
        other.asked.clear()
        for asked in late:
            asked.over = True
        return [asked.batch for asked in late]

    def greeted(self, shard: int, places: Iterable[MeterKey]) -> None:
        """A shard came up: it is to be told everything, of these keys."""
        other = self._others[shard]
        other.is_told = False
        other.greets = True
        other.whole = dict.fromkeys(places)
        other.since.clear()

    # Tells

    def publish(self, place: MeterKey, number: int) -> None:
        """Every other shard is to be told the point of that number of a key, and those after it."""
        for other in self._others.values():
            other.since.setdefault(place, number)

    def tells(self, shard: int) -> bool:
        """True if a shard is to be told something now; one that is away, to hear whether it answers."""
        other = self._others[shard]
        return not other.is_told and (bool(other.since) or other.greets or shard in self.away)

    def tell(self, shard: int, most: int) -> Tell:
        """The next tell to a shard, of at most so many keys; it is under way from now on (one_tell)."""
        other = self._others[shard]
        other.is_told = True
        whole = _take(other.whole, most)
        since = _take(other.since, most - len(whole))
        complete = other.greets and not other.whole
        if complete:
            other.greets = False
        return Tell(whole, since, complete)

    def told(self, shard: int, tell: Tell, *, arrived: bool) -> None:
        """A tell was answered: the shard is attended. The caller sends the next tell, if there is one, before it asks anything.

        Or it failed, and its keys are to be told again: a tell may come twice (history.py, counted_once).
        """
        other = self._others[shard]
        other.is_told = False
        if arrived:
            self.away.discard(shard)
        else:
            other.greets = other.greets or tell.complete
            other.whole.update(tell.whole)
            other.since.update(tell.since)

    def check(self) -> None:
        """Raises AssertionError when an invariant does not hold that can be seen here."""
        for shard, other in self._others.items():
            assert shard not in self.away or not other.asked, "bounded_wait: none waits for a shard that is away"
            assert all(not asked.over for asked in list(other.asked)[:1]), "asked_once"


def _take(keys: dict[MeterKey, V], most: int) -> dict[MeterKey, V]:
    return {place: keys.pop(place) for place in list(itertools.islice(keys, most))}
