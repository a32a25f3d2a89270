"""A holder's side of rates that are at home elsewhere: connections that wait for a unit, and spare units.

answers_in_order_of_asks  The next answers for a key are the `orphaned` ones; those for the `waiters` follow, oldest first. An
    orphaned answer is one whose waiter timed out; its unit is given back to the home.
spare_units_are_short_lived  A spare unit is used within GRANT_MS of being recorded, or given back. A holder asks for spare
    units in proportion to the units it used lately.
unused_allowances_are_forgotten  An allowance without waiters and without recent use is forgotten.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import repeat
from typing import Final, Protocol

GRANT_MS: Final = 100
DEADLINE_MS: Final = 1000
UNAVAILABLE: Final = -1
_MOST_SPARE: Final = 256


class RateWaiter(Protocol):
    """A connection that asked for a unit."""

    def recorded(self, key: str, wait_ms: int) -> None:
        """The answer, once. 0: go on. For a listener: the ms to wait before going on. For an address: the ms to hold the
        connection, which violates the address's rate and is recorded nowhere; for a user and the cluster likewise.
        UNAVAILABLE: the home did not answer."""


class Allowance:
    """This shard's part of one rate: connections that wait for a unit, and spare units. `home` is the rate's home."""

    __slots__ = ("at_ms", "home", "orphaned", "since_ms", "spare", "until_ms", "used", "waiters")

    def __init__(self, home: int) -> None:
        self.home = home
        self.waiters: deque[RateWaiter] = deque()
        self.since_ms = 0  # when the first of them asked, or the home last answered
        self.orphaned = 0
        self.spare = 0
        self.at_ms = 0  # when the spare units were recorded
        self.until_ms = 0
        self.used = 0  # units since the home was last asked, halved as time goes by

    def use(self, now_ms: int) -> bool:
        """Takes a spare unit; False if there is none. Waiting connections have asked for units of their own."""
        if not self.spare or now_ms >= self.until_ms:
            return False
        self.spare -= 1
        self.used += 1
        return True

    def next(self) -> RateWaiter | None:
        """The waiter that the next answer is for; None: the waiter timed out."""
        if self.orphaned:
            self.orphaned -= 1
            return None
        return self.waiters.popleft()


class Allowances:
    """All allowances of one shard. `post(home, item)` queues an item for another shard."""

    def __init__(self, post: Callable[[int, tuple[object, ...]], None]) -> None:
        self._post = post
        self._allowances: dict[str, Allowance] = {}
        self._due: list[tuple[int, str]] = []  # one entry for each allowance: when to look at it
        self.asking: dict[str, int] = {}  # units to ask for at the end of the pass
        self.get = self._allowances.get

    def wait(self, key: str, home: int, waiter: RateWaiter, now_ms: int, units: int = 1) -> None:
        """The waiter is told when the home has answered, once for each unit."""
        allowance = self._allowances.get(key)
        if allowance is None:
            allowance = self._allowances[key] = Allowance(home)
            heappush(self._due, (now_ms + GRANT_MS, key))
        if not allowance.waiters:
            allowance.since_ms = now_ms
        if units == 1:
            allowance.waiters.append(waiter)
        else:
            allowance.waiters.extend(repeat(waiter, units))

    def ask(self, key: str, units: int = 1) -> None:
        """Asks for more units at the end of the pass."""
        self.asking[key] = self.asking.get(key, 0) + units

    def flush(self) -> None:
        """Sends one ask for each key in `asking`."""
        if self.asking:
            asking, self.asking = self.asking, {}
            for key, units in asking.items():
                allowance = self._allowances[key]
                self._post(allowance.home, ("ask", key, units, min(_MOST_SPARE, 2 * allowance.used)))
                allowance.used = 0

    def answered(self, key: str, now_ms: int) -> Allowance:
        """The allowance of a key for which the home has answered."""
        allowance = self._allowances[key]
        allowance.since_ms = now_ms
        return allowance

    def grant(self, key: str, spare: int, at_ms: int, *, current: bool) -> None:
        """The home granted spare units, recorded at `at_ms`; they are given back at once if their version is not `current`."""
        if spare:
            allowance = self._allowances[key]
            self._give_back(key, allowance)
            allowance.spare, allowance.at_ms, allowance.until_ms = spare, at_ms, at_ms + GRANT_MS
            if not current:
                self._give_back(key, allowance)

    def void(self) -> None:
        """Another version of the configuration is in force: spare units of the old one are given back."""
        for key, allowance in self._allowances.items():
            self._give_back(key, allowance)

    def next_ms(self) -> int | None:
        """The time at which `expire` has something to do, in ms; None: nothing is due."""
        return self._due[0][0] if self._due else None

    def expire(self, now_ms: int) -> None:
        """Gives back spare units whose time is over (spare_units_are_short_lived) and forgets unused allowances
        (unused_allowances_are_forgotten)."""
        due = self._due
        while due and due[0][0] <= now_ms:
            _, key = heappop(due)
            allowance = self._allowances[key]
            if allowance.spare and allowance.until_ms > now_ms:
                heappush(due, (allowance.until_ms, key))
                continue
            self._give_back(key, allowance)
            allowance.used //= 2
            if allowance.used or allowance.waiters or allowance.orphaned:
                heappush(due, (now_ms + GRANT_MS, key))
            else:
                del self._allowances[key]

    def give_up(self, now_ms: int, is_up: Callable[[int], bool]) -> None:
        """Tells UNAVAILABLE to connections that waited DEADLINE_MS for an answer. A listener may be blocked for long, so a
        connection that waits for one has no deadline while the home is up."""
        late = [
            (key, allowance)
            for key, allowance in self._allowances.items()
            if allowance.waiters
            and now_ms - allowance.since_ms >= DEADLINE_MS
            and not (key.startswith("listener:") and is_up(allowance.home))
        ]
        for key, allowance in late:
            waiters, allowance.waiters = allowance.waiters, deque()
            unsent = self.asking.pop(key, 0)
            if is_up(allowance.home):
                allowance.orphaned += len(waiters) - unsent
            for waiter in waiters:
                waiter.recorded(key, UNAVAILABLE)

    def home_up(self, home: int) -> None:
        """A home came up: units are asked for on behalf of every connection that waits for it."""
        for key, allowance in self._allowances.items():
            if allowance.home == home and allowance.waiters:
                self.asking[key] = len(allowance.waiters)

    def home_lost(self, home: int, now_ms: int) -> None:
        """The links to a home broke: its grants, and the asks that it had not answered, are void."""
        for allowance in self._allowances.values():
            if allowance.home == home:
                allowance.spare = allowance.orphaned = 0
                allowance.since_ms = now_ms

    def waiting(self) -> int:
        """Connections of this shard that wait for a unit of any rate."""
        return sum(len(allowance.waiters) for allowance in self._allowances.values())

    def snapshot(self) -> dict[str, tuple[int, int]]:
        """{key: (connections that wait for a unit, spare units)}, of every allowance."""
        return {key: (len(allowance.waiters), allowance.spare) for key, allowance in self._allowances.items()}

    def _give_back(self, key: str, allowance: Allowance) -> None:
        if allowance.spare:
            self._post(allowance.home, ("unused", key, allowance.spare, allowance.at_ms))
            allowance.spare = 0
