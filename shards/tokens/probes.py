"""Probes: one question to many holders; an answer proves that all the holder had sent before it has arrived.

one_probe_at_a_time  One probe is under way at a time, so however many refusals wait, they cost one question per holder and
    round trip.
late_pools_get_the_next_probe  Pools that need a probe while one is under way get the next.
"""

from collections.abc import Callable

from shards.tokens.peers import Peers


class Probes:
    """The probes of one home. refused_after_a_probe_only says which pools need one, and what it proves."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._wanted: dict[str, None] = {}
        self._number = 0
        self._keys: list[str] = []
        self._awaiting: set[int] = set()

    @property
    def wanted(self) -> bool:
        """True if begin() has something to do."""
        return bool(self._wanted) and not self._awaiting

    def want(self, key: str) -> None:
        """A pool needs the next probe."""
        self._wanted[key] = None

    def begin(self, cover: Callable[[str], list[int]]) -> None:
        """Asks the holders of all pools that need a probe. `cover(pool)` returns the pool's holders; an empty list: the
        pool needs no probe any more."""
        if self._awaiting:
            return
        keys, wanted, self._wanted = [], self._wanted, {}
        for key in wanted:
            holders = cover(key)
            if holders:
                keys.append(key)
                self._awaiting.update(holders)
        if keys:
            self._keys = keys
            self._number += 1
            for peer in sorted(self._awaiting):
                self._peers.outbox.post(peer, ("probe", self._number))

    def answered(self, peer: int, number: int) -> list[str]:
        """A peer answered probe `number`: the pools of the probe if this was its last answer, else none."""
        return self.lost(peer) if number == self._number else []

    def lost(self, peer: int) -> list[str]:
        """As `answered`, for a peer whose links broke: nothing that it had sent is still on the way."""
        if peer not in self._awaiting:
            return []
        self._awaiting.discard(peer)
        if self._awaiting:
            return []
        keys, self._keys = self._keys, []
        return keys
