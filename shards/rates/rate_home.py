"""The home of connection creation rates on one shard: it has their windows, and answers each ask for units of them.

Each shard is home to a part of its broker's addresses and users. One shard of a broker is home to the rates of the broker and of
all its listeners. The rates of the whole cluster have a RateHome of their own (cluster_rate.py).

earlier_use_known_first  A home that starts decides no ask before it knows the use that an earlier home recorded, or has waited
    for it in vain (rate_recovery.py, told_use_before_decisions). Until then asks wait in `_parked`.
late_asks_record_nothing  An ask that is read DEADLINE_MS after it was sent is answered UNAVAILABLE, unless it is of a listener: its
    connections have been told so, and a unit recorded for them would refuse others. The home may have stood still so long.
only_recorded_units_are_taken_back  Units that were recorded nowhere, as their key had no quota, are told with the time 0. Those
    of before a reset are in no window any more.
window_changes_are_journaled  Each change of a window is journaled, in order. So the arithmetic can be done again from the
    journal, which shows that no unit was recorded beyond a quota (docs/internals/journal.md has the shapes):
      grant    pool to tokens at_ms          units recorded for shard `to`; a listener's last one may have to wait for its time
      grant    ... violated                  an address or user asked for more than its quota; the excess was taken back at once
      grant    ... charged false             a listener's units that no ask was for; negative: taken back, as Kafka does
      grant    pool started remembered       the windows of keys with this prefix start anew, from [at_ms, key, units]
      reclaim  pool from tokens at_ms        units recorded at `at_ms` were not used
"""

from collections.abc import Callable

from shards.config.image import ClusterImage
from shards.limits.caps import OF_CLUSTER
from shards.limits.rate import Window
from shards.rates.listener_throttle import ListenerThrottle
from shards.rates.rate_queues import DEADLINE_MS, UNAVAILABLE
from shards.rates.rate_recovery import RateUse
from shards.rates.rate_windows import RateWindows, WindowAnswer
from shards.settings.ranges import INT_MAX

Post = Callable[[int, tuple[object, ...]], None]
RecordEvent = Callable[[str, dict[str, object], int], None]
"""record(kind, detail, version): an event for the journal, and the configuration it came about under."""

_REMEMBERED_PER_EVENT = 2048


class RateHome:
    """The rate home of shard `me`. `post(peer, item)` queues an answer; `block(listener, until_ms)` tells every shard that a
    listener must not accept until then; `journal` gets each event (window_changes_are_journaled)."""

    def __init__(
        self,
        me: int,
        listeners: tuple[str, ...],
        image: ClusterImage,
        *,
        post: Post,
        block: Callable[[str, int], None],
        journal: RecordEvent,
        every: tuple[str, ...] = ("",),
    ) -> None:
        """`every`: the prefixes of the keys of this home; "" is a prefix of all."""
        self.complete = False
        self.version = 0
        self._me = me
        self._listener_names = listeners
        self._image = image
        self._post = post
        self._block = block
        self._journal = journal
        self._parked: list[tuple[int, str, int, int]] = []
        self._reset_ms = -1
        self._violated = "", 0  # the key that last violated its quota, and when
        self._every = every
        self._anew = every  # prefixes of the keys whose windows start from the entries that `resume` gets
        self.start(Window())

    def start(self, window: Window) -> None:
        """Makes empty windows of this shape, which never changes while a cluster runs. Called before the first `resume`."""
        self.window = window
        self._empty_windows()
        self.listeners = ListenerThrottle(self._listener_names, window, self._answer)

    def reset(self, now_ms: int) -> None:
        """Empties every window, and journals that (window_changes_are_journaled)."""
        self._empty_windows()
        self._reset_ms = now_ms
        self._journal_start(self._every, [])
        self.listeners.reset(now_ms=now_ms)

    def forget_listeners(self) -> None:
        """Empties the windows of the listeners; no ask is decided until `resume` has filled them again."""
        self.listeners.forget_rates()
        self.complete = False
        self._anew = ("listener:",)

    def record(self, key: str, *, now_ms: int) -> int | None:
        """Records one connection of this shard. Returns its wait in ms, as `RateWaiter.recorded` gets it; None if it can't be
        decided now: the caller has to ask, and to wait for the answer."""
        if not self.complete:
            return None
        if not key.startswith("listener:"):
            quota = self._quota(key)
            return 0 if quota is None else self._admit(self._me, key, 1, quota, now_ms).delay_ms
        until_ms = self.listeners.ask_one(key[9:], now_ms=now_ms)
        if until_ms is None:
            return None
        self._journal_grant(self._me, key, 1, now_ms)
        if not until_ms:
            return 0
        self._block(key[9:], until_ms)
        return until_ms - now_ms

    def asked(self, peer: int, now_ms: int, key: str, units: int, asked_ms: int) -> None:
        """Shard `peer` asked at `asked_ms` for `units` of a key, a unit for each connection that waits there."""
        if not self.complete:
            self._parked.append((peer, key, units, asked_ms))
        elif key.startswith("listener:"):
            self.listeners.ask(peer, key[9:], units, now_ms=now_ms)
        elif now_ms - asked_ms >= DEADLINE_MS:
            self._post(peer, ("within", key, 0, units, UNAVAILABLE, 0))
        elif (quota := self._quota(key)) is None:
            self._post(peer, ("within", key, units, 0, 0, 0))
        else:
            within, delay_ms = self._admit(peer, key, units, quota, now_ms)
            self._post(peer, ("within", key, within, units - within, delay_ms, now_ms))

    def undo(self, peer: int, now_ms: int, key: str, units: int, at_ms: int) -> None:
        """Takes back units that were recorded at `at_ms` and that shard `peer` has not used."""
        if at_ms <= self._reset_ms:
            return
        detail = {"pool": f"rate:{key}", "from": peer, "tokens": units, "at_ms": at_ms}
        self._journal("reclaim", detail, self.version)
        if key.startswith("listener:"):
            self.listeners.undo(key[9:], units, at_ms=at_ms)
        else:
            self._windows_of(key).undo(key, units, at_ms=at_ms)

    def count(self, peer: int, now_ms: int, listener: str, units: int) -> None:
        """See Rates.count."""
        self.listeners.advance(now_ms=now_ms)
        pool = f"rate:listener:{listener}"
        detail = {"pool": pool, "to": peer, "tokens": units, "at_ms": now_ms, "charged": False}
        self._journal("grant", detail, self.version)
        self.listeners.record(listener, units, now_ms=now_ms)

    def forget(self, peer: int) -> None:
        """Drops the asks of a shard whose links broke; that shard asks again when they are up."""
        self.listeners.forget(peer)
        self._parked = [ask for ask in self._parked if ask[0] != peer]

    def resume(self, remembered: list[RateUse], now_ms: int) -> None:
        """Counts the use that the other shards have told, oldest first, and then answers the asks that waited for it
        (earlier_use_known_first)."""
        self._journal_start(self._anew, remembered)
        self._anew = self._every
        for at_ms, key, units in remembered:
            if key.startswith("listener:"):
                self.listeners.record(key[9:], units, now_ms=at_ms)
            else:
                self._windows_of(key).record(key, units, now_ms=at_ms)
        self.complete = True
        parked, self._parked = self._parked, []
        for peer, key, units, asked_ms in parked:
            self.asked(peer, now_ms, key, units, asked_ms)

    def _quota(self, key: str) -> float | None:
        """None: nothing of it is recorded."""
        quota = self._image.rate_of(key).rate
        return None if quota is None or quota >= INT_MAX else quota

    def _admit(self, peer: int, key: str, units: int, quota: float, now_ms: int) -> WindowAnswer:
        """As RateWindows.admit, and journaled."""
        answer = self._windows_of(key).admit(key, units, quota, now_ms=now_ms)
        if answer.within == units:
            self._journal_grant(peer, key, units, now_ms)
        elif answer.within or (key, now_ms) != self._violated:
            # Once for each ms is enough: a violation changes the window only in that it was measured at that instant.
            self._violated = key, now_ms
            detail = {"pool": f"rate:{key}", "to": peer, "tokens": answer.within, "at_ms": now_ms, "violated": True}
            self._journal("grant", detail, self.version)
        return answer

    def _empty_windows(self) -> None:
        self.windows = {kind: RateWindows(self.window) for kind in ("ip", "user", *OF_CLUSTER)}

    def _windows_of(self, key: str) -> RateWindows:
        return self.windows[key.partition(":")[0]]

    def _answer(self, peer: int, listener: str, units: int, until_ms: int, at_ms: int) -> None:
        self._journal_grant(peer, f"listener:{listener}", units + bool(until_ms), at_ms)
        self._post(peer, ("go", listener, units, until_ms, at_ms))
        if until_ms:
            self._block(listener, until_ms)

    # window_changes_are_journaled

    def _journal_grant(self, peer: int, key: str, units: int, at_ms: int) -> None:
        self._journal("grant", {"pool": f"rate:{key}", "to": peer, "tokens": units, "at_ms": at_ms}, self.version)

    def _journal_start(self, prefixes: tuple[str, ...], remembered: list[RateUse]) -> None:
        for what in prefixes:
            entries = [entry for entry in remembered if entry[1].startswith(what)]
            for start in range(0, len(entries) or 1, _REMEMBERED_PER_EVENT):
                some = entries[start : start + _REMEMBERED_PER_EVENT]
                detail = {"pool": f"rate:{what}", "started": not start, "remembered": some}
                self._journal("grant", detail, self.version)
