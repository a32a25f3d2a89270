"""The units that a shard used of each rate over the last windows, so that a home which starts knows its predecessor's.

told_use_before_decisions  A home that starts, or on which the rates of listeners are switched on, decides nothing before it
    knows its configuration and every other shard has told its use (`awaited` is empty), is known to be dead, or did not
    tell within TELL_MS.
use_survives_one_death  Shards that may die together, `together` of them, each tell their use of a home among themselves to a
    shard of others, a stand-in, at the end of the pass. So when they die, only the memory of their last pass is lost; when the
    stand-in dies, too, that use is lost, as it is when a Kafka broker restarts. Of a broker's rates each shard is alone.
told_once  Use is told by the shard that lives, or by the stand-in of one that is dead: by no two of them, unless the link between
    these is broken while both live, which errs on the strict side.
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
        together: int = 1,
    ) -> None:
        self._me: Final = me
        self._home = home
        self._post = post
        self._resume = resume
        self._up: set[int] = set()
        self._totals: dict[str, int] = {}
        # In this pass, of keys at home here or on a shard that may die together with this one.
        self._spent: dict[str, int] = {}
        self._together = together
        self._stand_in = (me + together) % shards
        self._round = 1
        self._what = ""  # prefix of the keys that are asked for
        self.awaited = {shard for shard in range(shards) if shard != me}
        self._since_ms: int | None = None
        self._configured = False
        self._told: list[RateUse] = []
        self.start(Window())

    def start(self, window: Window) -> None:
        """Starts with nothing remembered."""
        self._window = window
        self._recent = Recent(window)
        # The use of shards whose stand-in this shard is (use_survives_one_death).
        self._of_living: dict[int, Recent] = {}
        self._of_dead: list[Recent] = []

    def configured(self, *, now_ms: int) -> None:
        """The shape of the windows is known for good: the entries told so far can be counted."""
        if not self._configured:
            self._configured = True
            if not self.awaited:
                self._finish(now_ms)

    def used(self, key: str, units: int, home: int, *, now_ms: int) -> None:
        """Units were used here."""
        self._recent.add(key, units, now_ms=now_ms)
        if self._dies_with_me(home):
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
        """Its process has ended: it will not tell, and its stand-in does from now on (told_once)."""
        if peer in self._of_living:
            self._of_dead = [each for each in self._of_dead if each.entries(now_ms=now_ms)]
            self._of_dead.append(self._of_living.pop(peer))
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
        """Tells the stand-in what was used here in this pass (use_survives_one_death)."""
        if self._spent:
            spent, self._spent = self._spent, {}
            stand_in = self._stand_in
            if stand_in not in self._up:
                stand_in = min(self._up, key=lambda peer: (self._dies_with_me(peer), peer), default=self._me)
            if stand_in != self._me:
                for key, units in spent.items():
                    self._post(stand_in, ("spent", key, units))

    # Messages

    def spent(self, peer: int, now_ms: int, key: str, units: int) -> None:
        """A shard whose stand-in this one is used these units (use_survives_one_death)."""
        if peer not in self._of_living:
            self._of_living[peer] = Recent(self._window)
        self._of_living[peer].add(key, units, now_ms=now_ms)

    def tell(self, peer: int, now_ms: int, number: int, what: str) -> None:
        """A home asks for the use of its keys: of those that begin with `what`. A home that starts asks for all ("") and gets
        what its predecessor used, too, and others that are dead or may be."""
        recents = [self._recent]
        if not what:
            recents += self._of_dead
            recents += [of for shard, of in self._of_living.items() if shard == peer or shard not in self._up]
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

    def _dies_with_me(self, shard: int) -> bool:
        return shard // self._together == self._me // self._together

    def _heard_all(self, peer: int, now_ms: int) -> None:
        if peer in self.awaited:
            self.awaited.discard(peer)
            if not self.awaited and self._configured:
                self._finish(now_ms)

    def _finish(self, now_ms: int) -> None:
        told, self._told = self._told, []
        self._resume(sorted(told), now_ms)
