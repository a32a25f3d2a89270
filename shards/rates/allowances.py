"""A holder's side of rates that are at home elsewhere: who waits for a unit, and what may be used without asking.

S1  `waiters` and `deaf` together are the answers that are still to come, oldest first; `deaf` ones are waited for by nobody.
S2  A spare unit is used within GRANT_MS of being recorded, or goes back. Only who used units lately asks for spare ones.
S3  A share that is neither waited for nor used lately is forgotten.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final, Protocol

GRANT_MS: Final = 100
DEADLINE_MS: Final = 1000
UNAVAILABLE: Final = -1
_MOST_SPARE: Final = 256


class RateWaiter(Protocol):
    """Who asked for a unit."""

    def recorded(self, key: str, wait_ms: int) -> None:
        """The answer, once. 0: go on. For a listener, the ms to wait before going on. For an address, the ms to hold the
        connection that violates its rate, of which nothing is recorded. UNAVAILABLE: its home did not answer."""


class Allowance:
    """One key."""

    __slots__ = ("at_ms", "deaf", "home", "since_ms", "spare", "until_ms", "used", "waiters")

    def __init__(self, home: int) -> None:
        self.home = home
        self.waiters: deque[RateWaiter] = deque()
        self.since_ms = 0  # when the first of them asked, or the home last answered
        self.deaf = 0
        self.spare = 0
        self.at_ms = 0  # when the spare units were recorded
        self.until_ms = 0
        self.used = 0  # units since the home was last asked, halved as time goes by

    def use(self, now_ms: int) -> bool:
        """Take a spare unit, if there is one; whoever waits has asked for its own."""
        if not self.spare or now_ms >= self.until_ms:
            return False
        self.spare -= 1
        self.used += 1
        return True

    def next(self) -> RateWaiter | None:
        """Whose answer comes next; None: nobody's any more."""
        if self.deaf:
            self.deaf -= 1
            return None
        return self.waiters.popleft()


class Allowances:
    """All shares of one shard. `post(home, item)` queues what has to be sent."""

    def __init__(self, post: Callable[[int, tuple[Any, ...]], None]) -> None:
        self._post = post
        self._shares: dict[str, Allowance] = {}
        self._due: list[tuple[int, str]] = []  # one entry for each share: when to look at it
        self.asking: dict[str, int] = {}  # units to ask for at the end of the pass
        self.get = self._shares.get

    def wait(self, key: str, home: int, waiter: RateWaiter, now_ms: int) -> None:
        """The waiter is told when the home has answered."""
        share = self._shares.get(key)
        if share is None:
            share = self._shares[key] = Allowance(home)
            heappush(self._due, (now_ms + GRANT_MS, key))
        if not share.waiters:
            share.since_ms = now_ms
        share.waiters.append(waiter)

    def ask(self, key: str) -> None:
        """Asks for one more unit at the end of the pass."""
        self.asking[key] = self.asking.get(key, 0) + 1

    def flush(self) -> None:
        """Asks, once for each key."""
        if self.asking:
            asking, self.asking = self.asking, {}
            for key, units in asking.items():
                share = self._shares[key]
                self._post(share.home, ("ask", key, units, min(_MOST_SPARE, 2 * share.used)))
                share.used = 0

    def answered(self, key: str, now_ms: int) -> Allowance:
        """The home has answered for some of those who wait."""
        share = self._shares[key]
        share.since_ms = now_ms
        return share

    def grant(self, key: str, spare: int, at_ms: int, *, current: bool) -> None:
        """Spare units, recorded at `at_ms`; under a version that is not `current` any more they go straight back."""
        if spare:
            share = self._shares[key]
            self._give_back(key, share)
            share.spare, share.at_ms, share.until_ms = spare, at_ms, at_ms + GRANT_MS
            if not current:
                self._give_back(key, share)

    def void(self) -> None:
        """Another version holds."""
        for key, share in self._shares.items():
            self._give_back(key, share)

    def next_ms(self) -> int | None:
        return self._due[0][0] if self._due else None

    def expire(self, now_ms: int) -> None:
        """S2 and S3, for what is due."""
        due = self._due
        while due and due[0][0] <= now_ms:
            _, key = heappop(due)
            share = self._shares[key]
            if share.spare and share.until_ms > now_ms:
                heappush(due, (share.until_ms, key))
                continue
            self._give_back(key, share)
            share.used //= 2
            if share.used or share.waiters or share.deaf:
                heappush(due, (now_ms + GRANT_MS, key))
            else:
                del self._shares[key]

    def give_up(self, now_ms: int, is_up: Callable[[int], bool]) -> None:
        """Nobody waits longer than DEADLINE_MS for an answer; who waits for a listener has no deadline while the home is
        up, as it may be blocked for long."""
        late = [
            (key, share)
            for key, share in self._shares.items()
            if share.waiters
            and now_ms - share.since_ms >= DEADLINE_MS
            and not (key.startswith("listener:") and is_up(share.home))
        ]
        for key, share in late:
            waiters, share.waiters = share.waiters, deque()
            unsent = self.asking.pop(key, 0)
            if is_up(share.home):
                share.deaf += len(waiters) - unsent
            for waiter in waiters:
                waiter.recorded(key, UNAVAILABLE)

    def home_up(self, home: int) -> None:
        """Everybody who waits for it is asked for, again or at last."""
        for key, share in self._shares.items():
            if share.home == home and share.waiters:
                self.asking[key] = len(share.waiters)

    def home_down(self, home: int, now_ms: int) -> None:
        """What it granted and was asked is void."""
        for share in self._shares.values():
            if share.home == home:
                share.spare = share.deaf = 0
                share.since_ms = now_ms

    def waiting(self) -> int:
        return sum(len(share.waiters) for share in self._shares.values())

    def _give_back(self, key: str, share: Allowance) -> None:
        if share.spare:
            self._post(share.home, ("unused", key, share.spare, share.at_ms))
            share.spare = 0
