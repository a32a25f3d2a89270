"""The keys of which each other shard is yet to be sent the charge history. Pure: the caller makes an update of them, and sends it.

one_update_under_way  at most one update is under way to a shard; what is to be sent meanwhile waits as keys, not as messages
updates_before_charges  what a shard that was away is to be sent leaves before the first charge that it is asked again: an update,
    even of no key, is what shows that it is back
"""

import itertools
from collections.abc import Container, Iterable
from typing import NamedTuple, TypeVar

from shards.quotas.charge_history import MeterKey

V = TypeVar("V")


class HistoryUpdate(NamedTuple):
    """An update for another shard: the keys of which it is sent everything, and the keys of which it is sent the points from a
    number on; `complete`: with this one it has been sent everything."""

    whole: dict[MeterKey, None]
    since: dict[MeterKey, int]
    complete: bool


class _Other:
    def __init__(self) -> None:
        self.is_under_way = False
        self.needs_all = False
        self.whole: dict[MeterKey, None] = {}  # keys of which it is to be sent everything
        self.since: dict[MeterKey, int] = {}  # keys, and from which point on it is to be sent them


class ReplicationQueue:
    """The queues of all other shards of a broker; `away` are the shards that do not answer (away_homes.py)."""

    def __init__(self, others: Iterable[int], away: Container[int]) -> None:
        self._away = away
        self._others = {shard: _Other() for shard in others}

    def add(self, key: MeterKey, number: int) -> None:
        """Every other shard is to be sent the point of that number of a key, and those after it."""
        for other in self._others.values():
            other.since.setdefault(key, number)

    def add_everything(self, shard: int, keys: Iterable[MeterKey]) -> None:
        """A shard came up: it is to be sent everything, of these keys."""
        other = self._others[shard]
        other.is_under_way = False
        other.needs_all = True
        other.whole = dict.fromkeys(keys)
        other.since.clear()

    def has_update(self, shard: int) -> bool:
        """True if an update is due to a shard; one that is away is sent one to see whether it answers."""
        other = self._others[shard]
        return not other.is_under_way and (bool(other.since) or other.needs_all or shard in self._away)

    def take_update(self, shard: int, most: int) -> HistoryUpdate:
        """The next update for a shard, of at most so many keys; it is under way from now on (one_update_under_way)."""
        other = self._others[shard]
        other.is_under_way = True
        whole = _take(other.whole, most)
        since = _take(other.since, most - len(whole))
        complete = other.needs_all and not other.whole
        if complete:
            other.needs_all = False
        return HistoryUpdate(whole, since, complete)

    def arrived(self, shard: int) -> None:
        """An update was answered. The caller sends the next one, if any, before it asks the shard for anything."""
        self._others[shard].is_under_way = False

    def failed(self, shard: int, update: HistoryUpdate) -> None:
        """An update was not answered: its keys are sent again. It may have arrived (charge_history.py, counted_once)."""
        other = self._others[shard]
        other.is_under_way = False
        other.needs_all = other.needs_all or update.complete
        other.whole.update(update.whole)
        other.since.update(update.since)


def _take(keys: dict[MeterKey, V], most: int) -> dict[MeterKey, V]:
    return {key: keys.pop(key) for key in list(itertools.islice(keys, most))}
