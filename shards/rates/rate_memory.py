"""The units that a shard used of each rate over the last windows, so that a home which starts knows its predecessor's.

told_use_before_decisions  A home that starts, or on which the rates of listeners are switched on, decides nothing before it
    knows its configuration and every other shard has told its use (`awaited` is empty), is known to be dead, or did not
    tell within TELL_MS.
use_survives_one_death  A home's own use is told to another shard, its stand-in, at the end of the pass; the stand-in
    remembers it. So when one shard dies, only the memory of its last pass is lost; when two die at once, their own use is
    lost, as it is when a Kafka broker restarts.
told_use_is_never_shorter  Use counts at the end of the period it is told for: a little longer than the truth, never
    shorter.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from shards.limits.rate import Window

TELL_MS: Final = 500
_ENTRIES_PER_ITEM: Final = 2048

RateUse = tuple[int, str, int]
"""(the ms at which it counts, the key of the rate, units)"""


class Recent:
    """Units of each key over the last windows: one dict for each period of a window's size, the oldest dropped as a whole."""

    def __init__(self, window: Window) -> None:
        self._size_ms = window.size_ms
        self._span_ms = (window.samples + 1) * window.size_ms
        self._slots: deque[tuple[int, dict[str, int]]] = deque(maxlen=window.samples + 1)
        self._slot: dict[str, int] = {}
        self._end_ms = 0

    def add(self, key: str, units: int, *, now_ms: int) -> None:
        if now_ms >= self._end_ms:
            self._end_ms = (now_ms // self._size_ms + 1) * self._size_ms
            self._slot = {}
            self._slots.append((self._end_ms, self._slot))
        self._slot[key] = self._slot.get(key, 0) + units

    def entries(self, *, now_ms: int) -> list[RateUse]:
        """The units of the last windows, oldest first (told_use_is_never_shorter)."""
        return [
            (min(end_ms, now_ms), key, units)
            for end_ms, slot in self._slots
            if end_ms > now_ms - self._span_ms
            for key, units in slot.items()
            if units > 0
        ]


class RateMemory:
    """The memory of one shard. `resume(entries, now_ms)` is called once every shard has told its use: all entries, oldest
    first."""

    def __init__(
        self,
        me: int,
        shards: int,
        home: Callable[[str], int],
        post: Callable[[int, tuple[object, ...]], None],
        resume: Callable[[list[RateUse], int], None],
    ) -> None:
        self._me: Final = me
        self._home = home
        self._post = post
        self._resume = resume
        self._up: set[int] = set()
        self._totals: dict[str, int] = {}
        self._spent: dict[str, int] = {}  # of keys at home here, in this pass
        self._stand_in = (me + 1) % shards
        self._round = 1
        self._what = ""  # prefix of the keys that are asked for
        self.awaited = {shard for shard in range(shards) if shard != me}
        self._since_ms: int | None = None
        self._configured = False
        self._told: list[RateUse] = []
        self.start(Window())

    def start(self, window: Window) -> None:
        """Starts with nothing remembered."""
        self._recent = Recent(window)
        self._for_others = Recent(
            window
        )  # the use of homes for which this shard is the stand-in (use_survives_one_death)

    def configured(self, *, now_ms: int) -> None:
        """The shape of the windows is known for good: the entries told so far can be counted."""
        if not self._configured:
            self._configured = True
            if not self.awaited:
                self._finish(now_ms)

    def used(self, key: str, units: int, home: int, *, now_ms: int) -> None:
        """Units were used here."""
        self._recent.add(key, units, now_ms=now_ms)
        if home == self._me:
            self._spent[key] = self._spent.get(key, 0) + units

    def note_unrecorded(self, key: str, total: int, *, count: bool, now_ms: int) -> None:
        """`total` units of a key were used since the start; those since the last call are remembered if `count`."""
        before = self._totals.get(key, total)
        self._totals[key] = total
        if count and total > before:
            self.used(key, total - before, self._home(key), now_ms=now_ms)

    def ask_again(self, *, now_ms: int) -> None:
        """Asks every shard for its use of the listeners' rates; this shard's own use is added. Only while `awaited` is empty."""
        self._round += 1
        self._what = "listener:"
        self._told = [entry for entry in self._recent.entries(now_ms=now_ms) if entry[1].startswith(self._what)]
        self.awaited = set(self._up)
        self._since_ms = now_ms
        for peer in self.awaited:
            self._post(peer, ("tell", self._round, self._what))
        if not self.awaited:
            self._finish(now_ms)

    def peer_up(self, peer: int) -> None:
        self._up.add(peer)
        if peer in self.awaited:
            self._post(peer, ("tell", self._round, self._what))

    def peer_lost(self, peer: int) -> None:
        """Its links broke. What it has not told is waited for: it lives, and is asked again when they are up
        (told_use_before_decisions)."""
        self._up.discard(peer)

    def peer_dead(self, peer: int, *, now_ms: int) -> None:
        """Its process has ended: it will not tell."""
        self._heard_all(peer, now_ms)

    def tick(self, *, now_ms: int) -> None:
        """Waits for no shard longer than TELL_MS."""
        if self.awaited:
            if self._since_ms is None:
                self._since_ms = now_ms
            elif now_ms - self._since_ms >= TELL_MS:
                for peer in list(self.awaited):
                    self._heard_all(peer, now_ms)

    def flush(self) -> None:
        """Tells the stand-in what this home used itself in this pass (use_survives_one_death)."""
        if self._spent:
            spent, self._spent = self._spent, {}
            stand_in = self._stand_in if self._stand_in in self._up else min(self._up, default=self._me)
            if stand_in != self._me:
                for key, units in spent.items():
                    self._post(stand_in, ("spent", key, units))

    # Messages

    def spent(self, peer: int, now_ms: int, key: str, units: int) -> None:
        """A home, for which this shard is the stand-in, used these units itself (use_survives_one_death)."""
        self._for_others.add(key, units, now_ms=now_ms)

    def tell(self, peer: int, now_ms: int, number: int, what: str) -> None:
        """A home asks for the use of its keys: of those that begin with `what`. A home that starts asks for all ("") and gets
        what its predecessor used itself, too."""
        recents = (self._recent,) if what else (self._recent, self._for_others)
        found = [
            entry
            for recent in recents
            for entry in recent.entries(now_ms=now_ms)
            if entry[1].startswith(what) and self._home(entry[1]) == peer
        ]
        for start in range(0, len(found) or 1, _ENTRIES_PER_ITEM):
            end = start + _ENTRIES_PER_ITEM
            self._post(peer, ("recent", number, end >= len(found), found[start:end]))

    def heard(self, peer: int, now_ms: int, number: int, last: bool, entries: list[RateUse]) -> None:
        """A shard tells what it used."""
        if number == self._round and peer in self.awaited:
            self._told += [(at_ms, key, units) for at_ms, key, units in entries]
            if last:
                self._heard_all(peer, now_ms)

    def _heard_all(self, peer: int, now_ms: int) -> None:
        if peer in self.awaited:
            self.awaited.discard(peer)
            if not self.awaited and self._configured:
                self._finish(now_ms)

    def _finish(self, now_ms: int) -> None:
        told, self._told = self._told, []
        self._resume(sorted(told), now_ms)
