"""The messages of the token protocol, and the outbox of one shard: all items of a pass for one peer go out as one message.

A message is (session, items); an item is (kind, arguments...). Items for this shard itself are read here (`local`).

    holder -> home   borrow key waiting welcome first last at_once | withdraw key ticket | give key n
                     report key n | reclaimed key n | probed number
    home -> holder   grant key n may_cache last | refuse key last cap name version wait returns | reclaim key revoke | recall kind
                     probe number
    both             sync version | synced version

sessions_are_unique  A session is the higher epoch of the two incarnations. Epochs only rise, so no two sessions of a pair
    are the same, and a message of another session (sent by, or meant for, an earlier incarnation) is dropped. Two
    incarnations that lose their links and meet again have the same session: links deliver nothing of an earlier link
    (mesh.py, downs_follow_ups).
sent_only_to_peers_that_are_up  Items are queued for peers that are up; what is queued for a peer is dropped when it is lost.
gives_follow_reports  Tokens that a report has told of are given back after it, in the same message.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, Final

Item = tuple[Any, ...]
TokenMessage = tuple[int, list[Item]]
"""A message as it is sent. It may arrive with lists for tuples, so receivers take sequences."""
_ITEMS_PER_MESSAGE: Final = 2048  # so that a million reports are many bounded frames


class Outbox:
    """The items of this pass, by peer that is up, and the items of this shard for itself (`local`)."""

    def __init__(self, me: int, epoch: int) -> None:
        self._me: Final = me
        self._epoch: Final = epoch
        self._sessions: dict[int, int] = {}  # sessions of peers that are up
        self._items: defaultdict[int, list[Item]] = defaultdict(list)
        self._gives: dict[tuple[int, str], int] = {}  # place among the items of this pass's give, so that many are one
        self.local: deque[Item] = deque()

    # Sessions

    def open(self, peer: int, epoch: int) -> None:
        """A peer is up, in this incarnation: items for it are sent from now on."""
        self._sessions[peer] = max(self._epoch, epoch)

    def close(self, peer: int) -> None:
        """A peer is not up any more: what is queued for it is dropped."""
        self._sessions.pop(peer, None)
        self._items.pop(peer, None)
        self._gives = {place: at for place, at in self._gives.items() if place[0] != peer}

    def is_open(self, peer: int) -> bool:
        """True for a peer that is up."""
        return peer in self._sessions

    def is_of_session(self, peer: int, message: Sequence[Any]) -> bool:
        """True if a message comes from the peer's present incarnation and is meant for this one."""
        return bool(message[0] == self._sessions.get(peer))

    # Items

    def post(self, peer: int, item: Item) -> None:
        """Queues an item for the end of the pass; dropped when the peer is not up."""
        if peer == self._me:
            self.local.append(item)
        elif peer in self._sessions:
            self._items[peer].append(item)

    def post_all(self, item: Item) -> None:
        """Queues an item for every peer that is up."""
        for peer in self._sessions:
            self._items[peer].append(item)

    def give(self, peer: int, key: str, n: int) -> None:
        """Queues n tokens for their home; all of one pass and pool become one item, where the first was."""
        if peer not in self._sessions:
            return
        items = self._items[peer]
        at = self._gives.get((peer, key))
        if at is None:
            self._gives[peer, key] = len(items)
            items.append(("give", key, n))
        else:
            items[at] = ("give", key, items[at][2] + n)

    def report(self, peer: int, key: str, n: int) -> None:
        """Queues a report of n tokens in use (gives_follow_reports)."""
        self._gives.pop((peer, key), None)
        self.post(peer, ("report", key, n))

    def flush(self, send: Callable[[int, TokenMessage], None]) -> None:
        """Sends what was queued; once per pass."""
        queued = self._items
        if not queued:
            return
        self._gives.clear()
        for peer in tuple(queued):  # a copy: sending to a peer that doesn't keep up may end its link, or another
            items = queued.pop(peer, None)
            if items is not None:
                session = self._sessions[peer]
                for start in range(0, len(items), _ITEMS_PER_MESSAGE):
                    send(peer, (session, items[start : start + _ITEMS_PER_MESSAGE]))

    def queued(self, peer: int) -> list[Item]:
        """The items for a peer so far in this pass, for tests."""
        return self._items.get(peer, [])
