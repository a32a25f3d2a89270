"""The recovery of rates at a home that starts: each shard remembers the units that it used over the last windows, and sends them.

told_use_before_decisions  A home that starts, or on which the rates of listeners are switched on, decides nothing before it
    knows its configuration and every other shard has sent its use (`awaited` is empty), is known to be dead, or did not
    send it within WAIT_FOR_USE_MS.
use_survives_one_death  Shards that may die together, `together` of them, each send their use of a home among themselves to a
    shard outside, their backup shard, at the end of the pass. So when they die, only the use of their last pass is lost; when the
    backup shard dies, too, all of it is lost, as it is when a Kafka broker restarts. For a broker's own rates `together` is 1: each
    shard is taken to die alone.
seen_dead_late  A backup shard that sees a death after it was asked sends the use of the dead shard then, unless that one has sent
    it itself: shards of a broker may die together, and the home among them be up before all know that.
told_once  Use is sent by the shard that lives, or by the backup shard of one that is dead: by no two of them, unless the link
    between these is broken while both live, which errs on the strict side.
told_use_is_never_shorter  Use counts at the end of the period it is sent for: a little longer than the truth, never
    shorter.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from shards.limits.rate import Window

WAIT_FOR_USE_MS: Final = 500
_ENTRIES_PER_ITEM: Final = 2048

RateUse = tuple[int, str, int]
"""(the ms at which it counts, the key of the rate, units)"""


class RecentUse:
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


class RateRecovery:
    """The use of one shard, and what it received of the others. `resume(entries, now_ms)` is called once every shard has sent its
    use: all entries, oldest first."""

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
        self._to_back_up: dict[str, int] = {}
        self._together = together
        self._backup = (me + together) % shards
        self._round = 1
        self._prefix = ""  # prefix of the keys that are asked for
        self.awaited = {shard for shard in range(shards) if shard != me}
        self._since_ms: int | None = None
        self._configured = False
        self._received: list[RateUse] = []
        # The homes that were sent all use: in which of their rounds, and the shards that were up and so told theirs themselves.
        self._told: dict[int, tuple[int, frozenset[int]]] = {}
        self.start(Window())

    def start(self, window: Window) -> None:
        """Starts with nothing remembered."""
        self._window = window
        self._recent = RecentUse(window)
        # The use of shards whose backup shard this one is (use_survives_one_death).
        self._backups_of_living: dict[int, RecentUse] = {}
        self._backups_of_dead: list[RecentUse] = []

    def configured(self, *, now_ms: int) -> None:
        """The shape of the windows is known for good: the entries received so far can be counted."""
        if not self._configured:
            self._configured = True
            if not self.awaited:
                self._finish(now_ms)

    def record_use(self, key: str, units: int, home: int, *, now_ms: int) -> None:
        """Units were used here."""
        self._recent.add(key, units, now_ms=now_ms)
        if self._dies_with_me(home):
            self._to_back_up[key] = self._to_back_up.get(key, 0) + units

    def note_unrecorded(self, key: str, total: int, *, count: bool, now_ms: int) -> None:
        """`total` units of a key were used since the start; those since the last call are remembered if `count`."""
        before = self._totals.get(key, total)
        self._totals[key] = total
        if count and total > before:
            self.record_use(key, total - before, self._home(key), now_ms=now_ms)

    def ask_for_listeners(self, *, now_ms: int) -> None:
        """Asks every shard for its use of the listeners' rates; this shard's own use is added. Only while `awaited` is empty."""
        self._round += 1
        self._prefix = "listener:"
        self._received = [entry for entry in self._recent.entries(now_ms=now_ms) if entry[1].startswith(self._prefix)]
        self.awaited = set(self._up)
        self._since_ms = now_ms
        for peer in self.awaited:
            self._post(peer, ("ask_use", self._round, self._prefix))
        if not self.awaited:
            self._finish(now_ms)

    def peer_up(self, peer: int) -> None:
        self._up.add(peer)
        if peer in self.awaited:
            self._post(peer, ("ask_use", self._round, self._prefix))

    def peer_lost(self, peer: int) -> None:
        """The links to a peer broke. Its use that it has not sent is waited for: it lives, and is asked again when they are up
        (told_use_before_decisions)."""
        self._up.discard(peer)
        self._told.pop(peer, None)

    def peer_dead(self, peer: int, *, now_ms: int) -> None:
        """The process of a peer has ended: its backup shard sends its use from now on (told_once)."""
        if peer in self._backups_of_living:
            self._backups_of_dead = [each for each in self._backups_of_dead if each.entries(now_ms=now_ms)]
            self._backups_of_dead.append(self._backups_of_living.pop(peer))
            for home, (number, telling) in self._told.items():
                if peer in telling:
                    self._send(home, ("use_of_dead", number, peer), self._backups_of_dead[-1:], now_ms)
        self._received_all(peer, now_ms)

    def tick(self, *, now_ms: int) -> None:
        """Waits for no shard longer than WAIT_FOR_USE_MS."""
        if self.awaited:
            if self._since_ms is None:
                self._since_ms = now_ms
            elif now_ms - self._since_ms >= WAIT_FOR_USE_MS:
                for peer in list(self.awaited):
                    self._received_all(peer, now_ms)

    def flush(self) -> None:
        """Sends the backup shard what was used here in this pass (use_survives_one_death)."""
        if self._to_back_up:
            spent, self._to_back_up = self._to_back_up, {}
            backup = self._backup
            if backup not in self._up:
                backup = min(self._up, key=lambda peer: (self._dies_with_me(peer), peer), default=self._me)
            if backup != self._me:
                for key, units in spent.items():
                    self._post(backup, ("backup", key, units))

    # Messages

    def receive_backup(self, peer: int, now_ms: int, key: str, units: int) -> None:
        """A shard that has its backup here reports units that it used (use_survives_one_death)."""
        if peer not in self._backups_of_living:
            self._backups_of_living[peer] = RecentUse(self._window)
        self._backups_of_living[peer].add(key, units, now_ms=now_ms)

    def send_use(self, peer: int, now_ms: int, number: int, prefix: str) -> None:
        """A home asks for the use of its keys that begin with `prefix`. A home that starts asks for all (""), and is sent what its
        predecessor used, too, and what others used that are dead or may be."""
        recents = [self._recent]
        if not prefix:
            recents += self._backups_of_dead
            recents += [of for shard, of in self._backups_of_living.items() if shard == peer or shard not in self._up]
            self._told[peer] = number, frozenset(self._up - {peer})
        self._send(peer, ("use", number), recents, now_ms, prefix)

    def receive_use(self, peer: int, now_ms: int, number: int, last: bool, entries: list[RateUse]) -> None:
        """A shard sends what it used."""
        if number == self._round and peer in self.awaited:
            self._received += [(at_ms, key, units) for at_ms, key, units in entries]
            if last:
                self._received_all(peer, now_ms)

    def receive_use_of_dead(
        self, peer: int, now_ms: int, number: int, dead: int, last: bool, entries: list[RateUse]
    ) -> None:
        """A backup shard has seen that a shard is dead, after it had sent what it knew before (seen_dead_late)."""
        if number == self._round and dead in self.awaited:
            self._received += [(at_ms, key, units) for at_ms, key, units in entries]
            if last:
                self._received_all(dead, now_ms)

    def _send(
        self, home: int, begins: tuple[object, ...], recents: list[RecentUse], now_ms: int, prefix: str = ""
    ) -> None:
        """Sends a home the use of its keys that begin with `prefix`, in one or more items that begin alike."""
        found = [
            entry
            for recent in recents
            for entry in recent.entries(now_ms=now_ms)
            if entry[1].startswith(prefix) and self._home(entry[1]) == home
        ]
        for start in range(0, len(found) or 1, _ENTRIES_PER_ITEM):
            end = start + _ENTRIES_PER_ITEM
            self._post(home, (*begins, end >= len(found), found[start:end]))

    def _dies_with_me(self, shard: int) -> bool:
        return shard // self._together == self._me // self._together

    def _received_all(self, peer: int, now_ms: int) -> None:
        if peer in self.awaited:
            self.awaited.discard(peer)
            if not self.awaited and self._configured:
                self._finish(now_ms)

    def _finish(self, now_ms: int) -> None:
        received, self._received = self._received, []
        self._resume(sorted(received), now_ms)
