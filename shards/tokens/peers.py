"""The other shards as the token protocol sees them: which are up, lost or dead, and which version each has applied.

only_an_end_makes_dead  A peer is unknown, up, lost (its links broke; its process may live) or dead. It starts as unknown,
    and only an end of its process makes it dead.
sync_follows_reports  `sync version` follows every report that version made necessary, on the same link. So a shard that
    heard `sync` of every live peer (`applied_everywhere`) knows all use of its pools, and one that got `synced` of every live
    peer has told all.
unheard_peers_may_use_tokens  `unheard` are the older incarnations that have not told this one what they use: the pools at
    home here may be in use there by grants of this shard's predecessor. A younger incarnation has nothing that this one did
    not grant.
"""

from typing import Final

from shards.tokens.outbox import Outbox

NEVER: Final = -1  # the version of a peer that has told none


class Peers:
    """The other shards of this broker, and the `outbox` of messages to them."""

    def __init__(self, me: int, shards: int, epoch: int) -> None:
        self.me: Final = me
        self.outbox: Final = Outbox(me, epoch)
        self._epoch: Final = epoch
        others = [shard for shard in range(shards) if shard != me]
        self._epochs: dict[int, int] = {}  # epochs of peers that are up or lost
        self.unheard = set(others)
        self.applied = dict.fromkeys(others, NEVER)  # the version that each peer that is not dead has applied
        self.confirmed = dict.fromkeys(others, NEVER)  # which of our versions each is known to have heard of

    # Incarnations

    def is_up(self, peer: int) -> bool:
        """True for this shard itself and for peers that can be sent to."""
        return peer == self.me or self.outbox.is_open(peer)

    def is_dead(self, peer: int) -> bool:
        """True for a peer whose process is known to have ended, and no other has come up."""
        return peer not in self.applied and peer != self.me

    def epoch_of(self, peer: int) -> int | None:
        """The epoch of a peer that is up or lost; None for an unknown or dead one."""
        return self._epochs.get(peer)

    def mark_up(self, peer: int, epoch: int) -> None:
        """An incarnation of a peer can be sent to."""
        self._epochs[peer] = epoch
        self.outbox.open(peer, epoch)
        self.applied[peer] = self.confirmed[peer] = NEVER
        if epoch > self._epoch:
            self.unheard.discard(peer)

    def mark_lost(self, peer: int) -> None:
        """The links to a peer broke. Versions wait for it until it is up again, or dead."""
        self.outbox.close(peer)

    def mark_dead(self, peer: int) -> None:
        """The process of a peer has ended: nothing waits for it any more."""
        self.outbox.close(peer)
        self._epochs.pop(peer, None)
        self.unheard.discard(peer)
        self.applied.pop(peer, None)
        self.confirmed.pop(peer, None)

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
        """True if a peer that is not dead has applied a later version than this."""
        return any(applied > version for applied in self.applied.values())

    def have_confirmed(self, version: int) -> bool:
        """True if every peer that is not dead has applied this version, and answered that it heard of ours."""
        return self.applied_everywhere >= version and all(confirmed >= version for confirmed in self.confirmed.values())
