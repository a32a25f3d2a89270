"""The acceptors of one broker, at the one shard that is home to its listeners' rates and to its own.

In Kafka a listener has one acceptor, which records each connection, waits for its delay and takes the next one only then.
Here every shard accepts on every listener, so their home is the acceptor: it puts the asks of all shards in one queue and
works through it in that order. The broker's rate and all listeners' live together because one record touches both.

A1  Record in the broker's rate (not for the inter-broker listener beside another one), then in the listener's; the larger
    delay, at most one window, holds that unit and blocks the acceptor. It is computed once: no change moves it.
A2  While an acceptor is blocked it records nothing; whoever asks waits, first come, first served.
A3  What was due while nobody looked is worked off at the time it was due, in that order.
A4  Spare units go out only when nobody was delayed and both rates stay within half of their quotas.
Source: SocketServer.ConnectionQuotas.recordConnectionAndGetThrottleTimeMs, Acceptor (KIP-612).
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from shards.limits.rate import Rate, Window
from shards.rates.windows import headroom

Answer = Callable[[int, str, int, int, int, int], None]
"""answer(holder, listener, units that go now, when one more goes (0: there is none), spare units, when recorded)."""


class Ask:
    """Units a holder waits for."""

    __slots__ = ("holder", "more", "units")

    def __init__(self, holder: int, units: int, more: int) -> None:
        self.holder = holder
        self.units = units
        self.more = more


class ListenerRate:
    """One listener's rate, its quota (None: no limit), until when it is blocked, and who waits."""

    __slots__ = ("blocked_until_ms", "exempt", "name", "queue", "quota", "rate")

    def __init__(self, name: str, window: Window) -> None:
        self.name = name
        self.rate = Rate(window)
        self.quota: float | None = None
        self.exempt = False
        self.blocked_until_ms = 0
        self.queue: deque[Ask] = deque()


class ListenerThrottle:
    """All acceptors of a broker. Every method that takes the time first does what was due until then."""

    def __init__(self, listeners: tuple[str, ...], window: Window, sharers: int, answer: Answer) -> None:
        self.window = window
        self.acceptors = {name: ListenerRate(name, window) for name in listeners}
        self.rate = Rate(window)
        self.quota: float | None = None
        self._sharers: Final = sharers
        self._answer = answer

    def configure(self, quota: float | None, quotas: Mapping[str, float | None], exempt: str | None) -> None:
        """Other quotas from the next record on; `exempt`: the listener that the broker's rate does not count."""
        self.quota = quota
        for name, acceptor in self.acceptors.items():
            acceptor.quota = quotas[name]
            acceptor.exempt = name == exempt

    def tightest(self, listener: str) -> float | None:
        """The lowest quota that a connection of this listener counts for; None: none."""
        acceptor = self.acceptors[listener]
        quotas = (acceptor.quota, None if acceptor.exempt else self.quota)
        return min((quota for quota in quotas if quota is not None), default=None)

    def forget_rates(self) -> None:
        """Start with empty windows; who waits goes on waiting."""
        self.rate = Rate(self.window)
        for acceptor in self.acceptors.values():
            acceptor.rate = Rate(self.window)

    def ask(self, holder: int, listener: str, units: int, more: int, *, now_ms: int) -> None:
        """A holder has `units` connections, and could use as many `more` soon. Answered now or when it is their turn."""
        self.advance(now_ms=now_ms)
        acceptor = self.acceptors[listener]
        acceptor.queue.append(Ask(holder, units, more))
        if now_ms >= acceptor.blocked_until_ms:
            self._work(acceptor, now_ms)

    def ask_one(self, listener: str, *, now_ms: int) -> int | None:
        """The same for one connection of this very shard: 0 to go now, or when it goes; None if others are before it."""
        self.advance(now_ms=now_ms)
        acceptor = self.acceptors[listener]
        if acceptor.queue or now_ms < acceptor.blocked_until_ms:
            return None
        delay_ms = self._charge(acceptor, now_ms)
        if delay_ms:
            acceptor.blocked_until_ms = now_ms + delay_ms
            return acceptor.blocked_until_ms
        return 0

    def advance(self, *, now_ms: int) -> None:
        """A3."""
        while (acceptor := self._next()) is not None and acceptor.blocked_until_ms <= now_ms:
            self._work(acceptor, acceptor.blocked_until_ms)

    def next_ms(self) -> int | None:
        """When `advance` has something to do; None: not before somebody asks."""
        acceptor = self._next()
        return None if acceptor is None else acceptor.blocked_until_ms

    def record(self, listener: str, units: int, *, now_ms: int) -> None:
        """Count what was decided elsewhere, or, negative, take back as Kafka does: in the current sample."""
        self.advance(now_ms=now_ms)
        acceptor = self.acceptors[listener]
        acceptor.rate.record(units, now_ms=now_ms)
        if not acceptor.exempt:
            self.rate.record(units, now_ms=now_ms)

    def undo(self, listener: str, units: int, *, at_ms: int) -> None:
        """Units recorded at `at_ms` were not used."""
        acceptor = self.acceptors[listener]
        acceptor.rate.undo(units, at_ms=at_ms)
        if not acceptor.exempt:
            self.rate.undo(units, at_ms=at_ms)

    def forget(self, holder: int) -> None:
        """A holder died: nobody of it waits any more. What was recorded for it stays, as its connections were made."""
        for acceptor in self.acceptors.values():
            acceptor.queue = deque(ask for ask in acceptor.queue if ask.holder != holder)

    def _next(self) -> ListenerRate | None:
        """The acceptor that goes on first, of those for which somebody waits."""
        first = None
        for acceptor in self.acceptors.values():
            if acceptor.queue and (first is None or acceptor.blocked_until_ms < first.blocked_until_ms):
                first = acceptor
        return first

    def _work(self, acceptor: ListenerRate, at_ms: int) -> None:
        """Goes through the queue until something blocks the acceptor."""
        queue = acceptor.queue
        while queue:
            ask = queue[0]
            go = 0
            while ask.units:
                ask.units -= 1
                delay_ms = self._charge(acceptor, at_ms)
                if delay_ms:
                    break
                go += 1
            else:
                queue.popleft()
                self._answer(ask.holder, acceptor.name, go, 0, self._spare(acceptor, ask.more, at_ms), at_ms)
                continue
            acceptor.blocked_until_ms = at_ms + delay_ms
            if not ask.units:
                queue.popleft()
            self._answer(ask.holder, acceptor.name, go, acceptor.blocked_until_ms, 0, at_ms)
            return

    def _charge(self, acceptor: ListenerRate, at_ms: int) -> int:
        """A1."""
        size_ms = self.window.size_ms
        broker_ms = 0
        if not acceptor.exempt:
            broker_ms = self.rate.charge(1, self.quota, now_ms=at_ms, max_ms=size_ms)
        return max(broker_ms, acceptor.rate.charge(1, acceptor.quota, now_ms=at_ms, max_ms=size_ms))

    def _spare(self, acceptor: ListenerRate, more: int, at_ms: int) -> int:
        """A4: as many units as both rates leave to each holder; they are recorded now."""
        if not more:
            return 0
        if acceptor.quota is not None:
            more = min(more, headroom(acceptor.rate, acceptor.quota, now_ms=at_ms) // self._sharers)
        if not acceptor.exempt:
            if self.quota is not None:
                more = min(more, headroom(self.rate, self.quota, now_ms=at_ms) // self._sharers)
            self.rate.record(more, now_ms=at_ms)
        acceptor.rate.record(more, now_ms=at_ms)
        return more
