"""The other shards as the token protocol sees them: incarnations, what to send, and which version each has applied.

A message is (session, items); an item is (kind, arguments...). All items of a pass go out in one message per peer.

    holder -> home   borrow key waiting welcome first last at_once | withdraw key ticket | give key n
                     report key n | reclaimed key n | probed number
    home -> holder   grant key n may_cache last | refuse key last cap name version wait returns | reclaim key revoke | recall kind
                     probe number
    both             sync version | synced version

sessions_are_unique  A session is the higher epoch of the two incarnations. Epochs only rise, so no two sessions of a pair
    are the same, and a message of another session (sent by, or meant for, an earlier incarnation) is dropped. Two
    incarnations that lose their links and meet again have the same session: links deliver nothing of an earlier link
    (mesh.py, downs_follow_ups).
only_an_end_makes_dead  A peer is unknown, up, lost (its links broke; its process may live) or dead. It starts as unknown,
    and only an end of its process makes it dead. Items are sent to peers that are up; the outbox of a lost peer is dropped.
sync_follows_reports  `sync version` follows every report that version made necessary, on the same link. So a shard that
    heard `sync` of every live peer (`applied_everywhere`) knows all use of its pools, and one that got `synced` of every live
    peer has told all.
unheard_peers_may_use_tokens  `unheard` are the older incarnations that have not told this one what they use: the pools at
    home here may be in use there by grants of this shard's predecessor. A younger incarnation has nothing that this one did
    not grant.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, Final

Item = tuple[Any, ...]
TokenMessage = tuple[int, list[Item]]
"""As it is sent. It may arrive with lists for tuples, so what receives one takes a sequence."""
NEVER: Final = -1  # the version of a peer that has told none
_ITEMS_PER_MESSAGE: Final = 2048  # so that a million reports are many bounded frames


class Peers:
    """The other shards of this broker, and the queue of items from this shard to itself (`local`)."""

    def __init__(self, me: int, shards: int, epoch: int) -> None:
        self.me: Final = me
        self._epoch: Final = epoch
        self._session: dict[int, int] = {}
        self._outbox: defaultdict[int, list[Item]] = defaultdict(list)  # of this pass, by peer that is up
        self._gives: dict[tuple[int, str], int] = {}  # place in the outbox of this pass's give, so that many are one
        self.local: deque[Item] = deque()
        others = [shard for shard in range(shards) if shard != me]
        self._epochs: dict[int, int] = {}  # of peers that are up or lost
        self.unheard = set(others)
        self.applied = dict.fromkeys(others, NEVER)  # what each peer that is not dead has applied
        self.confirmed = dict.fromkeys(others, NEVER)  # which of our versions each is known to have heard of

    # Incarnations

    def is_up(self, peer: int) -> bool:
        """True for this shard itself and for peers that can be sent to."""
        return peer in self._session or peer == self.me

    def is_dead(self, peer: int) -> bool:
        """True for a peer whose process is known to have ended, and no other has come up."""
        return peer not in self.applied and peer != self.me

    def epoch_of(self, peer: int) -> int | None:
        """The epoch of a peer that is up or lost; None for an unknown or dead one."""
        return self._epochs.get(peer)

    def up(self, peer: int, epoch: int) -> None:
        """An incarnation of a peer can be sent to."""
        self._epochs[peer] = epoch
        self._session[peer] = max(self._epoch, epoch)
        self.applied[peer] = self.confirmed[peer] = NEVER
        if epoch > self._epoch:
            self.unheard.discard(peer)

    def lost(self, peer: int) -> None:
        """The links to a peer broke. Versions wait for it until it is up again, or dead."""
        self._session.pop(peer, None)
        self._outbox.pop(peer, None)
        self._gives = {place: at for place, at in self._gives.items() if place[0] != peer}

    def dead(self, peer: int) -> None:
        """A peer is dead: nothing waits for it any more."""
        self.lost(peer)
        self._epochs.pop(peer, None)
        self.unheard.discard(peer)
        self.applied.pop(peer, None)
        self.confirmed.pop(peer, None)

    def fresh(self, peer: int, message: Sequence[Any]) -> bool:
        """True if a message comes from the peer's present incarnation and is meant for ours."""
        return bool(message[0] == self._session.get(peer))

    # Versions

    @property
    def applied_everywhere(self) -> float:
        """The version that every peer that is not dead has applied and reported for; NEVER while one has told none."""
        return min(self.applied.values(), default=float("inf"))

    def note_applied(self, peer: int, version: int) -> None:
        """A peer has applied a version; its reports came before."""
        self.unheard.discard(peer)
        self.applied[peer] = version

    def is_ahead(self, version: int) -> bool:
        """True if a peer that is not dead has told of a later version than this."""
        return any(told > version for told in self.applied.values())

    def have_confirmed(self, version: int) -> bool:
        """True if every peer that is not dead has applied this version, and answered that it heard of ours."""
        return self.applied_everywhere >= version and all(confirmed >= version for confirmed in self.confirmed.values())

    # What is to be sent

    def post(self, peer: int, item: Item) -> None:
        """Queues an item for the end of the pass; dropped when the peer is not up."""
        if peer == self.me:
            self.local.append(item)
        elif peer in self._session:
            self._outbox[peer].append(item)

    def post_all(self, item: Item) -> None:
        """Queues an item for every peer that is up."""
        for peer in self._session:
            self._outbox[peer].append(item)

    def give(self, peer: int, key: str, n: int) -> None:
        """Queues n tokens for their home; all of one pass and pool become one item, where the first was."""
        if peer not in self._session:
            return
        box = self._outbox[peer]
        at = self._gives.get((peer, key))
        if at is None:
            self._gives[peer, key] = len(box)
            box.append(("give", key, n))
        else:
            box[at] = ("give", key, box[at][2] + n)

    def report(self, peer: int, key: str, n: int) -> None:
        """Queues a report. Gives from now on may be of the reported tokens, so they must come after it."""
        self._gives.pop((peer, key), None)
        self.post(peer, ("report", key, n))

    def flush(self, send: Callable[[int, TokenMessage], None]) -> None:
        """Sends what was queued; once per pass."""
        outbox = self._outbox
        if not outbox:
            return
        self._gives.clear()
        for peer in tuple(outbox):  # a copy: sending to a peer that doesn't keep up may end its link, or another
            box = outbox.pop(peer, None)
            if box is not None:
                session = self._session[peer]
                for start in range(0, len(box), _ITEMS_PER_MESSAGE):
                    send(peer, (session, box[start : start + _ITEMS_PER_MESSAGE]))

    def queued(self, peer: int) -> list[Item]:
        """The items of this pass so far, for describe() and tests."""
        return self._outbox.get(peer, [])
