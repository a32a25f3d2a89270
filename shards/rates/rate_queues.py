"""The connections of one shard that wait for units of rates that are at home elsewhere, or at home here and not decided at once.

answers_in_order_of_asks  The next answers for a key are the `orphaned` ones; those for the `waiters` follow, oldest first. An
    orphaned answer is one whose waiter timed out; its unit is given back to the home.
empty_queues_are_forgotten  A queue without waiters and without orphaned answers is forgotten.
"""

from collections import deque
from collections.abc import Callable
from itertools import repeat
from typing import Final, Protocol

DEADLINE_MS: Final = 1000
UNAVAILABLE: Final = -1


class RateWaiter(Protocol):
    """A connection that asked for a unit."""

    def recorded(self, key: str, wait_ms: int) -> None:
        """The answer, once. 0: go on. For a listener: the ms to wait before going on. For an address: the ms to hold the
        connection, which violates the address's rate and is recorded nowhere; for a user and the cluster likewise.
        UNAVAILABLE: the home did not answer."""


class RateQueue:
    """The connections that wait for a unit of one rate. `home` is the rate's home."""

    __slots__ = ("home", "orphaned", "since_ms", "waiters")

    def __init__(self, home: int) -> None:
        self.home = home
        self.waiters: deque[RateWaiter] = deque()
        self.since_ms = 0  # when the first of them asked, or the home last answered
        self.orphaned = 0

    def next(self) -> RateWaiter | None:
        """The waiter that the next answer is for; None: the waiter timed out."""
        if self.orphaned:
            self.orphaned -= 1
            return None
        return self.waiters.popleft()


class RateQueues:
    """All queues of one shard. `post(home, item)` queues an item for another shard."""

    def __init__(self, post: Callable[[int, tuple[object, ...]], None]) -> None:
        self._post = post
        self._queues: dict[str, RateQueue] = {}
        self.asking: dict[str, int] = {}  # units to ask for at the end of the pass
        self.get = self._queues.get

    def wait(self, key: str, home: int, waiter: RateWaiter, now_ms: int, units: int = 1) -> None:
        """The waiter is told when the home has answered, once for each unit."""
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = RateQueue(home)
        if not queue.waiters:
            queue.since_ms = now_ms
        if units == 1:
            queue.waiters.append(waiter)
        else:
            queue.waiters.extend(repeat(waiter, units))

    def ask(self, key: str, units: int = 1) -> None:
        """Asks for more units at the end of the pass."""
        self.asking[key] = self.asking.get(key, 0) + units

    def flush(self, now_ms: int) -> None:
        """Sends one ask for each key in `asking`."""
        if self.asking:
            asking, self.asking = self.asking, {}
            for key, units in asking.items():
                self._post(self._queues[key].home, ("ask", key, units, now_ms))

    def answered(self, key: str, units: int, now_ms: int) -> list[RateWaiter]:
        """The home has answered for so many units: the waiters that these answers are for, without those that timed out."""
        queue = self._queues[key]
        queue.since_ms = now_ms
        waiters = [waiter for waiter in (queue.next() for _ in range(units)) if waiter is not None]
        self._forget_if_empty(key, queue)
        return waiters

    def give_up(self, now_ms: int, is_up: Callable[[int], bool]) -> None:
        """Tells UNAVAILABLE to connections that waited DEADLINE_MS for an answer. A listener may be blocked for long, so a
        connection that waits for one has no deadline while the home is up."""
        late = [
            (key, queue)
            for key, queue in self._queues.items()
            if queue.waiters
            and now_ms - queue.since_ms >= DEADLINE_MS
            and not (key.startswith("listener:") and is_up(queue.home))
        ]
        for key, queue in late:
            waiters, queue.waiters = queue.waiters, deque()
            unsent = self.asking.pop(key, 0)
            if is_up(queue.home):
                queue.orphaned += len(waiters) - unsent
            self._forget_if_empty(key, queue)
            for waiter in waiters:
                waiter.recorded(key, UNAVAILABLE)

    def home_up(self, home: int) -> None:
        """A home came up: units are asked for on behalf of every connection that waits for it."""
        for key, queue in self._queues.items():
            if queue.home == home and queue.waiters:
                self.asking[key] = len(queue.waiters)

    def home_lost(self, home: int, now_ms: int) -> None:
        """The links to a home broke: the asks that it had not answered are void."""
        for key, queue in list(self._queues.items()):
            if queue.home == home:
                queue.orphaned = 0
                queue.since_ms = now_ms
                self._forget_if_empty(key, queue)

    def waiting(self) -> dict[str, int]:
        """{key: connections of this shard that wait for a unit}."""
        return {key: len(queue.waiters) for key, queue in self._queues.items()}

    def check(self) -> None:
        """Raises AssertionError when empty_queues_are_forgotten does not hold."""
        assert all(queue.waiters or queue.orphaned for queue in self._queues.values())

    def _forget_if_empty(self, key: str, queue: RateQueue) -> None:
        if not queue.waiters and not queue.orphaned:
            del self._queues[key]
