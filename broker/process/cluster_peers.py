"""The shards of all brokers, as the mesh of one shard names them and as the pool and the rate of the cluster do."""

from __future__ import annotations

from shards.mesh.exchange import Receiver
from shards.mesh.mesh import COORDINATOR
from shards.mesh.peer import Peer, PeerKey
from shards.ownership import BrokerShard
from shards.rates import cluster_rate
from shards.rates.cluster_rate import ClusterRate
from shards.tokens import cluster_pool
from shards.tokens.cluster_pool import ClusterPool


class ClusterPeers:
    """Tells the pool and the rate of the cluster, on a shard of `broker`, what the mesh tells of other shards; the coordinator is
    none of them."""

    def __init__(self, broker: int, pool: ClusterPool, rate: ClusterRate) -> None:
        self._broker = broker
        self._parts: tuple[ClusterPool | ClusterRate, ...] = (pool, rate)
        self.receivers: dict[str, Receiver] = {
            cluster_pool.NAME: lambda key, message: pool.receive(self._place_of(key), message),
            cluster_rate.NAME: lambda key, message: rate.receive(self._place_of(key), message),
        }

    def key_of(self, place: BrokerShard) -> PeerKey:
        """The key in the mesh of a shard of any broker."""
        return place[1] if place[0] == self._broker else place

    def peer_up(self, key: PeerKey, peer: Peer) -> None:
        """A peer can be sent to."""
        if key != COORDINATOR:
            for part in self._parts:
                part.peer_up(self._place_of(key), peer.epoch)

    def peer_lost(self, key: PeerKey) -> None:
        """The links to a peer broke."""
        if key != COORDINATOR:
            for part in self._parts:
                part.peer_lost(self._place_of(key))

    def peer_dead(self, key: PeerKey) -> None:
        """The process of a peer has ended."""
        if key != COORDINATOR:
            for part in self._parts:
                part.peer_dead(self._place_of(key))

    def _place_of(self, key: PeerKey) -> BrokerShard:
        return (self._broker, key) if isinstance(key, int) else key
