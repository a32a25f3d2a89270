"""Connection creation rates across shards (KIP-612): the questions of the accept path, and the messages that answer them.

A rate's window lives at its home: that of an address, of a user or of the cluster at the home of its key, where rate_windows.py
decides; those of the broker and of all its listeners together at the home of "rate:broker", where listener_throttle.py decides
(and says why). Any other shard is a holder: it asks for one unit per connection, once per pass and key.

    holder -> home   ask key units when | unused key units when | count listener units
    home -> holder   within key units over delay when | go listener units until when | blocked listener until
    rate_recovery.py backup key units | ask_use round prefix | use round last [when key units]...
                     use_of_dead round shard last [when key units]...

recorded_before_going_on  A unit is recorded at the home before its connection goes on: so no number of shards admits more
    than one Kafka broker would.
waiters_answered_in_order  Waiters of a key are answered in the order they asked; they are told from `receive`, `flush` and `tick`,
    never from `record` or `record_some`.
refused_by_used_units_only  While no link breaks, each recorded unit is that of a connection that went on, or is on its way to
    one that waits: no connection is refused because of a unit that nothing uses.
losses_err_on_the_strict_side  When the links between a home and a holder break, its unanswered asks are asked again when
    they are up; units that are recorded for the holder stay so until their sample is obsolete. That errs on the strict side,
    also where both processes live: a unit is recorded before it is used, so what is on its way may be lost. Only the memory of
    a home that starts makes a difference between a peer that is lost and one that is dead (rate_recovery.py,
    told_use_before_decisions).
Times are milliseconds of the machine's monotonic clock, the same in all processes. The links keep the order of messages
and deliver nothing of an earlier incarnation (mesh.py, channels_deliver_in_order and downs_follow_ups).
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from shards.config.image import ClusterImage
from shards.limits.rate import Window
from shards.ownership import home_of
from shards.rates.rate_home import RateHome, RecordEvent
from shards.rates.rate_queues import UNAVAILABLE, RateQueues, RateWaiter
from shards.rates.rate_recovery import RateRecovery, RateUse
from shards.settings.ranges import INT_MAX

__all__ = ["NAME", "UNAVAILABLE", "RateWaiter", "Rates", "RatesSnapshot"]

NAME: Final = "rates"
"""The first field of each message, which tells it from those of the tokens."""
_ITEMS_PER_MESSAGE: Final = 2048
_LARGEST_BATCH: Final = 64


class RatesSnapshot(NamedTuple):
    """The rates of one shard at the end of a pass; copies of plain data.

    recorded  {key: units that count in its window}, of addresses and users at home here, and of the cluster
    waiting   {key: connections of this shard that wait for a unit}
    """

    recorded: dict[str, float]
    waiting: dict[str, int]


class Rates:
    """The rates of one shard, `me` of `shards`. `send(peer, message)` hands over a message; `blocked(listener, until_ms)` is
    called when a listener must not accept until then, and must not call back; `journal`: rate_home.py,
    window_changes_are_journaled.

    `limits_listeners`: whether connections have to ask for a unit of their listener. `limits_ips`: whether some address
    has a quota.
    """

    def __init__(
        self,
        me: int,
        shards: int,
        listeners: tuple[str, ...],
        image: ClusterImage,
        *,
        send: Callable[[int, tuple[object, ...]], None],
        blocked: Callable[[str, int], None] = lambda listener, until_ms: None,
        journal: RecordEvent = lambda kind, detail, version: None,
        every: tuple[str, ...] = ("",),
        together: int = 1,
    ) -> None:
        """`every`: what keys begin with (rate_home.py); `together`: how many shards may die at once (rate_recovery.py)."""
        self.me: Final = me
        self.shards: Final = shards
        self.limits_listeners = False
        self.limits_ips = False
        self.listeners_home: Final = home_of("rate:broker", shards)
        self._listeners: Final = listeners
        self._image = image
        self._send = send
        self._blocked = blocked
        self._outbox: dict[int, list[tuple[object, ...]]] = {}
        self._delayed: set[str] = set()  # listeners whose last connection, of any shard, had to wait
        self._local: list[tuple[object, ...]] = []  # items of this shard for itself
        self._queues = RateQueues(self._post)
        self._here = RateHome(
            me, listeners, image, post=self._post, block=self._block_all, journal=journal, every=every
        )
        self._recovery = RateRecovery(me, shards, self.home, self._post, self._resume, together)
        self._handlers: dict[str, Callable[..., None]] = {
            "ask": self._here.asked, "unused": self._here.undo, "count": self._here.count, "within": self._within,
            "go": self._go, "blocked": self._block, "backup": self._recovery.receive_backup, "ask_use": self._recovery.send_use,
            "use": self._recovery.receive_use, "use_of_dead": self._recovery.receive_use_of_dead,
        }  # fmt: skip

    # The accept path

    def record(self, key: str, waiter: RateWaiter, *, now_ms: int) -> int | None:
        """Record one connection of `listener:NAME`, `ip:ADDRESS`, `user:NAME` or `cluster`: the answer as `RateWaiter.recorded`
        gets it, or None: the waiter is told later."""
        queue = self._queues.get(key)
        home = self.home(key) if queue is None else queue.home
        if home == self.me and (queue is None or not queue.waiters):
            wait_ms = self._here.record(key, now_ms=now_ms)
            if wait_ms is not None:
                if not wait_ms or key.startswith("listener:"):
                    self._recovery.record_use(key, 1, home, now_ms=now_ms)
                return wait_ms
        self._ask(key, home, 1, waiter, now_ms)
        return None

    def record_some(self, key: str, units: int, waiter: RateWaiter, *, now_ms: int) -> None:
        """Records `units` connections of a key, one after the other. The waiter is told once for each, later."""
        self._ask(key, self.home(key), units, waiter, now_ms)

    def _ask(self, key: str, home: int, units: int, waiter: RateWaiter, now_ms: int) -> None:
        self._queues.wait(key, home, waiter, now_ms, units)
        if home == self.me:
            self._local.append(("ask", key, units, now_ms))
        else:
            self._queues.ask(key, units)

    def count(self, listener: str, units: int, *, now_ms: int) -> None:
        """Record units in a listener's rate without asking. -1: the connection violated its address's rate, so the unit of
        its listener is taken back; +1: a connection held for such a violation gets in after all."""
        if self.limits_listeners:
            self._recovery.record_use(f"listener:{listener}", units, self.listeners_home, now_ms=now_ms)
            self._post(self.listeners_home, ("count", listener, units))

    def has_quota(self, key: str) -> bool:
        """True if connections of this address or user, or those to the cluster, have to be recorded in that rate."""
        quota = self._image.rate_of(key).rate
        return quota is not None and quota < INT_MAX

    def home(self, key: str) -> int:
        """The shard that keeps the window of `listener:NAME`, `ip:ADDRESS`, `user:NAME` or `cluster`."""
        return self.listeners_home if key.startswith("listener:") else home_of("rate:" + key, self.shards)

    def batch(self, listener: str) -> int:
        """The number of accepted connections of a listener that may wait on a shard; the others stay in the backlog. As many as its
        quota allows in one second while none is delayed, so that messages are few; in 10 ms while connections are."""
        quota = self._here.listeners.tightest(listener)
        if quota is None:
            return _LARGEST_BATCH
        return max(1, min(_LARGEST_BATCH, int(quota / 100 if listener in self._delayed else quota)))

    # Configuration, peers, time

    def apply(self, version: int, *, now_ms: int) -> None:
        """The image has become `version`: its quotas hold from here on."""
        image, here = self._image, self._here
        here.listeners.advance(now_ms=now_ms)  # due connections go on under the version that ends
        here.version = version
        window = Window(image.get("quota.window.num"), image.get("quota.window.size.seconds") * 1000)
        if window != here.window:
            here.start(window)
            self._recovery.start(window)
        quota = image.rate_of("broker").rate if self._listeners else None
        quotas = {name: image.rate_of(f"listener:{name}").rate for name in self._listeners}
        here.listeners.configure(quota, quotas, image.inter_broker_listener if len(self._listeners) > 1 else None)
        self.limits_ips = image.limits_ip_rates
        limits_listeners = quota is not None or any(each is not None for each in quotas.values())
        if limits_listeners and not self.limits_listeners and self.me == self.listeners_home and here.complete:
            here.forget_listeners()
            self._recovery.ask_for_listeners(now_ms=now_ms)
        self.limits_listeners = limits_listeners
        self._recovery.configured(now_ms=now_ms)

    def reset(self, *, now_ms: int) -> None:
        """Forgets every connection that was recorded, here and for other homes; called on each shard of a cluster."""
        self._delayed.clear()
        self._recovery.start(self._here.window)
        self._here.reset(now_ms)

    def note_unrecorded(self, listener: str, total: int, *, now_ms: int) -> None:
        """A listener has taken `total` connections so far; called a few times a second. A rate that is switched on starts
        from them, as Kafka records connections also without a quota."""
        self._recovery.note_unrecorded(f"listener:{listener}", total, count=not self.limits_listeners, now_ms=now_ms)

    def peer_up(self, peer: int) -> None:
        """An incarnation of a peer can be sent to."""
        self._outbox[peer] = []
        self._recovery.peer_up(peer)
        self._queues.home_up(peer)

    def peer_lost(self, peer: int, *, now_ms: int) -> None:
        """The links to a peer broke, whether its process lives or not (losses_err_on_the_strict_side)."""
        self._outbox.pop(peer, None)
        self._here.forget(peer)
        self._queues.home_lost(peer, now_ms)
        self._recovery.peer_lost(peer)

    def peer_dead(self, peer: int, *, now_ms: int) -> None:
        """The process of a peer whose links broke has ended: what it has not told of its use will not come."""
        self._recovery.peer_dead(peer, now_ms=now_ms)

    def receive(self, peer: int, items: list[Any], *, now_ms: int) -> None:
        """The items of a message from a peer."""
        for item in items:
            self._handlers[item[0]](peer, now_ms, *item[1:])

    def next_ms(self) -> int | None:
        """The time at which `advance` has something to do, in ms; None: not before the next call."""
        return self._here.listeners.next_ms()

    def advance(self, *, now_ms: int) -> None:
        """Does what is due by now: blocked listeners go on."""
        self._here.listeners.advance(now_ms=now_ms)

    def tick(self, *, now_ms: int) -> None:
        """Deadlines; about four times a second."""
        self._recovery.tick(now_ms=now_ms)
        self._queues.give_up(now_ms, lambda home: home == self.me or home in self._outbox)

    @property
    def busy(self) -> bool:
        """True if `flush` has something to do."""
        return bool(self._local or self._queues.asking or any(self._outbox.values()))

    def flush(self, *, now_ms: int) -> None:
        """Ends a pass: tells waiters what was decided here, and sends what was queued, one message for each peer."""
        while self._local:
            local, self._local = self._local, []
            self.receive(self.me, local, now_ms=now_ms)
        self._queues.flush(now_ms)
        self._recovery.flush()
        for peer, items in self._outbox.items():
            if items:
                self._outbox[peer] = []
                for start in range(0, len(items), _ITEMS_PER_MESSAGE):
                    self._send(peer, (NAME, items[start : start + _ITEMS_PER_MESSAGE]))

    def describe(self, most: int = 1000, *, now_ms: int) -> dict[str, Any]:
        """Connections a second of the addresses and users at home here, [key, rate]: at most `most` of each kind, the last that
        connected first; and how many wait here."""
        rates = [rate for each in self._here.windows.values() for rate in each.describe(most, now_ms=now_ms)]
        return {"waiting": sum(self._queues.waiting().values()), "rates": rates}

    def connection_rate(self, key: str, *, now_ms: int) -> float | None:
        """Connections a second of an address or user at home here, such as `user:alice`; None: no record of it counts any more."""
        return self._here.windows[key.partition(":")[0]].rate(key, now_ms=now_ms)

    def snapshot(self, *, now_ms: int) -> RatesSnapshot:
        """See RatesSnapshot; for simulations and tests, at the end of a pass."""
        self._queues.check()
        return RatesSnapshot(
            recorded={
                key: units
                for each in self._here.windows.values()
                for key, units in each.recorded(now_ms=now_ms).items()
            },
            waiting=self._queues.waiting(),
        )

    # Answers

    def _within(self, peer: int, now_ms: int, key: str, units: int, over: int, delay_ms: int, at_ms: int) -> None:
        if units:
            self._hand_out(peer, key, units, 0, at_ms, now_ms)
        if over:
            for waiter in self._queues.answered(key, over, now_ms):
                waiter.recorded(key, delay_ms)

    def _go(self, peer: int, now_ms: int, listener: str, units: int, until_ms: int, at_ms: int) -> None:
        key = f"listener:{listener}"
        if units:
            self._hand_out(peer, key, units, 0, at_ms, now_ms)
        if until_ms:
            self._hand_out(peer, key, 1, max(0, until_ms - now_ms), at_ms, now_ms)
        else:
            self._delayed.discard(listener)

    def _hand_out(self, home: int, key: str, units: int, wait_ms: int, at_ms: int, now_ms: int) -> None:
        """Hands units that their home recorded at `at_ms` (0: nowhere) to as many waiters; those of waiters that timed out are
        given back."""
        waiters = self._queues.answered(key, units, now_ms)
        if waiters and at_ms:
            self._recovery.record_use(key, len(waiters), home, now_ms=now_ms)
        for waiter in waiters:
            waiter.recorded(key, wait_ms)
        unused = units - len(waiters)
        if unused and at_ms:
            self._post(home, ("unused", key, unused, at_ms))

    def _block(self, peer: int, now_ms: int, listener: str, until_ms: int) -> None:
        self._delayed.add(listener)
        self._blocked(listener, until_ms)

    # Parts

    def _resume(self, remembered: list[RateUse], now_ms: int) -> None:
        self._here.resume(remembered, now_ms)

    def _block_all(self, listener: str, until_ms: int) -> None:
        for items in self._outbox.values():
            items.append(("blocked", listener, until_ms))
        self._delayed.add(listener)
        self._blocked(listener, until_ms)

    def _post(self, peer: int, item: tuple[object, ...]) -> None:
        """Queues an item for the end of the pass; dropped when the peer is down."""
        if peer == self.me:
            self._local.append(item)
        elif peer in self._outbox:
            self._outbox[peer].append(item)
