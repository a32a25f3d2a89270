"""The cluster as clients see it: its brokers, the endpoint of each, and the broker that coordinates a group."""

from __future__ import annotations

from broker.serve.call import Call
from shards.config.advertised import AUTO, Address, advertised
from shards.config.image import ClusterImage
from shards.ownership import leader_of, partition_of


class ClusterMetadata:
    """Broker `me` of `brokers`, numbered from 0. Where each of them is comes from the image (shards/config/advertised.py)."""

    controller = 0  # the coordinator takes changes from any broker; clients need one name

    def __init__(self, image: ClusterImage, me: int, brokers: int, cluster_id: str) -> None:
        self._image = image
        self.me = me
        self.brokers = brokers
        self.cluster_id = cluster_id

    def endpoint(self, broker: int, call: Call) -> Address:
        """Where the client of `call` is told that `broker` is: an address of the listener that the request came by."""
        image = self._image
        host, port = advertised(image.static, image.advertised, broker, call.listener).address
        return Address(call.reached if host == AUTO else host, port)

    def rack(self, broker: int) -> str | None:
        static = self._image.static
        return static.get(f"{broker}/broker.rack", static.get("/broker.rack"))

    def coordinator(self, key: str) -> int:
        """The broker that coordinates a group, or a transactional id."""
        return leader_of(partition_of(key), self.brokers)

    def coordinates(self, key: str) -> bool:
        """Whether that is this broker."""
        return self.coordinator(key) == self.me
