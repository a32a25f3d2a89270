"""The connection creation rates of a broker and of its listeners, at the one shard that is home to all of them.

In Kafka a listener has one acceptor thread, which records each connection, sleeps for its delay and only then takes the
next connection. Here every shard accepts on every listener, so the home does the acceptor's part: it puts the asks of all
shards into one queue per listener and works through it in that order. The rates of the broker and of its listeners have
one home because one connection is recorded in both.

delays_are_computed_once  A connection is recorded in the broker's rate (not on the inter-broker listener beside another
    one), then in the listener's. The larger delay, at most one window, holds that connection and blocks the listener. A
    delay is computed once: no change of a quota moves it.
blocked_listeners_record_nothing  A blocked listener records no ask: asks wait, first come, first served.
due_asks_recorded_at_their_time  Asks that became due between two calls are recorded at the time at which they were due, in
    that order.
Source: SocketServer.ConnectionQuotas.recordConnectionAndGetThrottleTimeMs, Acceptor (KIP-612).
"""

from collections import deque
from collections.abc import Callable, Mapping

from shards.limits.rate import Rate, Window

AnswerAsk = Callable[[int, str, int, int, int], None]
"""answer(holder, listener, units that go now, when one more goes (0: there is none), when recorded)."""


class PendingAsk:
    """`units` connections of a shard that wait."""

    __slots__ = ("holder", "units")

    def __init__(self, holder: int, units: int) -> None:
        self.holder = holder
        self.units = units


class ListenerRate:
    """One listener's rate, its quota (None: no limit), until when it is blocked, and the asks that wait."""

    __slots__ = ("blocked_until_ms", "exempt", "name", "queue", "quota", "rate")

    def __init__(self, name: str, window: Window) -> None:
        self.name = name
        self.rate = Rate(window)
        self.quota: float | None = None
        self.exempt = False
        self.blocked_until_ms = 0
        self.queue: deque[PendingAsk] = deque()


class ListenerThrottle:
    """The rates of all listeners of a broker. `ask`, `ask_one`, `advance` and `record` first work off what was due until then."""

    def __init__(self, listeners: tuple[str, ...], window: Window, answer: AnswerAsk) -> None:
        self.window = window
        self.listeners = {name: ListenerRate(name, window) for name in listeners}
        self.rate = Rate(window)
        self.quota: float | None = None
        self._answer = answer

    def configure(self, quota: float | None, quotas: Mapping[str, float | None], exempt: str | None) -> None:
        """Other quotas from the next record on; `exempt`: the listener that the broker's rate does not count."""
        self.quota = quota
        for name, listener in self.listeners.items():
            listener.quota = quotas[name]
            listener.exempt = name == exempt

    def tightest(self, name: str) -> float | None:
        """The lowest quota that a connection of this listener counts for; None: none."""
        listener = self.listeners[name]
        quotas = (listener.quota, None if listener.exempt else self.quota)
        return min((quota for quota in quotas if quota is not None), default=None)

    def reset(self, *, now_ms: int) -> None:
        """Starts with empty windows and no listener blocked; asks that waited are answered by the new windows."""
        self.forget_rates()
        for listener in self.listeners.values():
            listener.blocked_until_ms = 0
            self._work(listener, now_ms)

    def forget_rates(self) -> None:
        """Starts with empty windows; the queues stay."""
        self.rate = Rate(self.window)
        for listener in self.listeners.values():
            listener.rate = Rate(self.window)

    def ask(self, holder: int, name: str, units: int, *, now_ms: int) -> None:
        """A holder has `units` connections. Answered now or when it is their turn."""
        self.advance(now_ms=now_ms)
        listener = self.listeners[name]
        listener.queue.append(PendingAsk(holder, units))
        if now_ms >= listener.blocked_until_ms:
            self._work(listener, now_ms)

    def ask_one(self, name: str, *, now_ms: int) -> int | None:
        """As `ask`, for one connection of this shard. 0: it goes now; else the time in ms at which it goes. None: others wait
        before it."""
        self.advance(now_ms=now_ms)
        listener = self.listeners[name]
        if listener.queue or now_ms < listener.blocked_until_ms:
            return None
        delay_ms = self._charge(listener, now_ms)
        if delay_ms:
            listener.blocked_until_ms = now_ms + delay_ms
            return listener.blocked_until_ms
        return 0

    def advance(self, *, now_ms: int) -> None:
        """Works off the asks that have become due by now, each at the time at which it was due
        (due_asks_recorded_at_their_time)."""
        while (listener := self._next()) is not None and listener.blocked_until_ms <= now_ms:
            self._work(listener, listener.blocked_until_ms)

    def next_ms(self) -> int | None:
        """The time at which `advance` has something to do, in ms; None: not before the next ask."""
        listener = self._next()
        return None if listener is None else listener.blocked_until_ms

    def record(self, name: str, units: int, *, now_ms: int) -> None:
        """Counts units that were decided elsewhere; negative units are taken back as Kafka does, from the current sample."""
        self.advance(now_ms=now_ms)
        listener = self.listeners[name]
        listener.rate.record(units, now_ms=now_ms)
        if not listener.exempt:
            self.rate.record(units, now_ms=now_ms)

    def undo(self, name: str, units: int, *, at_ms: int) -> None:
        """Units recorded at `at_ms` were not used."""
        listener = self.listeners[name]
        listener.rate.undo(units, at_ms=at_ms)
        if not listener.exempt:
            self.rate.undo(units, at_ms=at_ms)

    def forget(self, holder: int) -> None:
        """The links to a holder broke: its asks leave the queues. Its recorded units stay, as its connections were made."""
        for listener in self.listeners.values():
            listener.queue = deque(ask for ask in listener.queue if ask.holder != holder)

    def _next(self) -> ListenerRate | None:
        """The listener that is unblocked first, of those with asks in their queues."""
        first = None
        for listener in self.listeners.values():
            if listener.queue and (first is None or listener.blocked_until_ms < first.blocked_until_ms):
                first = listener
        return first

    def _work(self, listener: ListenerRate, at_ms: int) -> None:
        """Goes through the queue until something blocks the listener."""
        queue = listener.queue
        while queue:
            ask = queue[0]
            go = 0
            while ask.units:
                ask.units -= 1
                delay_ms = self._charge(listener, at_ms)
                if delay_ms:
                    break
                go += 1
            else:
                queue.popleft()
                self._answer(ask.holder, listener.name, go, 0, at_ms)
                continue
            listener.blocked_until_ms = at_ms + delay_ms
            if not ask.units:
                queue.popleft()
            self._answer(ask.holder, listener.name, go, listener.blocked_until_ms, at_ms)
            return

    def _charge(self, listener: ListenerRate, at_ms: int) -> int:
        """Records one connection (delays_are_computed_once); returns its delay in ms."""
        size_ms = self.window.size_ms
        broker_ms = 0
        if not listener.exempt:
            broker_ms = self.rate.charge(1, self.quota, now_ms=at_ms, max_ms=size_ms)
        return max(broker_ms, listener.rate.charge(1, listener.quota, now_ms=at_ms, max_ms=size_ms))
