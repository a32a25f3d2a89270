"""The shards of all brokers, as the mesh of one shard names them and as the pool of the cluster does."""

from __future__ import annotations

from collections.abc import Sequence

from shards.mesh.mesh import COORDINATOR
from shards.mesh.peer import Peer, PeerKey
from shards.ownership import BrokerShard
from shards.tokens.cluster_pool import NAME, ClusterPool


class ClusterPeers:
    """Tells `pool`, of a shard of `broker`, what the mesh tells of other shards; the coordinator is none of them."""

    def __init__(self, broker: int, pool: ClusterPool) -> None:
        self._broker = broker
        self._pool = pool
        self.receivers = {NAME: self._receive}

    def key_of(self, place: BrokerShard) -> PeerKey:
        """The key in the mesh of a shard of any broker."""
        return place[1] if place[0] == self._broker else place

    def up(self, key: PeerKey, peer: Peer) -> None:
        """It can be sent to."""
        if key != COORDINATOR:
            self._pool.peer_up(self._place_of(key), peer.epoch)

    def lost(self, key: PeerKey) -> None:
        """Its links broke."""
        if key != COORDINATOR:
            self._pool.peer_lost(self._place_of(key))

    def dead(self, key: PeerKey) -> None:
        """Its process has ended."""
        if key != COORDINATOR:
            self._pool.peer_dead(self._place_of(key))

    def _receive(self, key: PeerKey, message: Sequence[object]) -> None:
        self._pool.receive(self._place_of(key), message)

    def _place_of(self, key: PeerKey) -> BrokerShard:
        return (self._broker, key) if isinstance(key, int) else key
