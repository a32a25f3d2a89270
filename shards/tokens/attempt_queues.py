"""Connections that wait for a token: in which pool, in which order, and whether the pool's home knows of them.

one_queue_per_attempt  An attempt waits for one pool at a time: the first of its pools of which it holds no token. While it
    waits for a pool it is in that pool's queue, and in no other. Tickets rise along a queue.
unasked_attempts_at_the_end  The attempts that the home does not know of (`asked` False) are at the end of their queue. `ask`
    returns them as one borrow, or as several borrows where attempts with and without `at_once` follow each other.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from shards.tokens.pool import Admitted, Refused, TokenWaiter


class Attempt:
    """A connection in flight: it holds a token of each of pools[:index] and waits for one of pools[index].

    A decided attempt (`decision` not None) is in no queue; `Tokens.flush` still has to tell its waiter.
    `at_once`: a full pool refuses this attempt even under a rule that lets others wait (KIP-402). `observed`: the connection is
    open already, and the decision changes nothing for it.
    """

    __slots__ = ("asked", "at_once", "deadline_s", "decision", "index", "observed", "pools", "ticket", "waiter")

    def __init__(
        self, pools: tuple[str, ...], waiter: TokenWaiter, *, at_once: bool = False, observed: bool = False
    ) -> None:
        self.at_once = at_once
        self.observed = observed
        self.pools = pools
        self.waiter = waiter
        self.deadline_s: float | None = None  # for the answer of this pool's home; set by the first tick after join()
        self.index: int  # these three are set by join()
        self.ticket: int
        self.asked: bool
        self.decision: Admitted | Refused | None = None

    @property
    def key(self) -> str:
        """The pool it waits for."""
        return self.pools[self.index]

    @property
    def taken(self) -> tuple[str, ...]:
        """The pools it holds a token of while it waits."""
        return self.pools[: self.index]


class AttemptQueues:
    """The attempts that wait, by pool, in order of arrival."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Attempt]] = {}
        self.unasked: dict[str, None] = {}  # the pools with attempts that their home may not know of
        self._ticket = 0

    def join(self, attempt: Attempt, index: int) -> None:
        """The attempt waits for pools[index], behind the attempts that wait for it already."""
        self._ticket += 1
        attempt.index = index
        attempt.ticket = self._ticket
        attempt.asked = False
        attempt.deadline_s = None
        key = attempt.pools[index]
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = deque()
        queue.append(attempt)
        self.unasked[key] = None

    def leave(self, attempt: Attempt) -> None:
        """The attempt gives up its place; if the home knows of it (`asked`), the caller tells the home."""
        queue = self._queues[attempt.key]
        queue.remove(attempt)
        if not queue:
            del self._queues[attempt.key]

    def pop(self, key: str) -> Attempt | None:
        """Takes the first attempt out of a queue; None if the queue is empty."""
        queue = self._queues.get(key)
        if queue is None:
            return None
        attempt = queue.popleft()
        if not queue:
            del self._queues[key]
        return attempt

    def pop_up_to(self, key: str, ticket: int, *, at_once: bool) -> list[Attempt]:
        """Takes the attempts up to a ticket out of a queue; with `at_once` only the attempts that are marked `at_once`."""
        found: list[Attempt] = []
        kept: list[Attempt] = []
        queue = self._queues.get(key)
        while queue and queue[0].ticket <= ticket:
            attempt = queue.popleft()
            (found if attempt.at_once or not at_once else kept).append(attempt)
        if queue is not None:
            queue.extendleft(reversed(kept))
            if not queue:
                del self._queues[key]
        return found

    def take_unasked(self) -> list[str]:
        """The pools with attempts that their home may not know of; each is returned once."""
        keys = list(self.unasked)
        self.unasked.clear()
        return keys

    def ask(self, key: str) -> list[tuple[int, int, int, bool]]:
        """The attempts that the home does not know of, in order, as runs of equal `at_once`: (count, first ticket, last ticket,
        `at_once`). They count as known from now on; the caller sends one borrow for each run."""
        runs: list[tuple[int, int, int, bool]] = []
        count, first, last, mark = 0, 0, 0, False
        for attempt in reversed(self._queues.get(key, ())):
            if attempt.asked:
                break
            attempt.asked = True
            if count and attempt.at_once is not mark:
                runs.append((count, first, last, mark))
                count = 0
            if not count:
                last, mark = attempt.ticket, attempt.at_once
            first = attempt.ticket
            count += 1
        if count:
            runs.append((count, first, last, mark))
        runs.reverse()
        return runs

    def forget(self, keys: Iterable[str]) -> None:
        """The home of these pools died or came up: it knows no attempt, and each deadline begins anew."""
        for key in keys:
            self.unasked[key] = None
            for attempt in self._queues[key]:
                attempt.asked = False
                attempt.deadline_s = None

    def pools(self) -> list[str]:
        """The pools with an attempt in their queue."""
        return list(self._queues)

    def __contains__(self, key: str) -> bool:
        return key in self._queues

    def __iter__(self) -> Iterator[Attempt]:
        for queue in self._queues.values():
            yield from queue

    def check(self) -> None:
        """Raises AssertionError when an invariant does not hold."""
        for key, queue in self._queues.items():
            tickets = [attempt.ticket for attempt in queue]
            assert tickets and tickets == sorted(tickets)
            assert all(attempt.key == key and attempt.decision is None for attempt in queue)
            asked = [attempt.asked for attempt in queue]
            assert asked == sorted(asked, reverse=True)
