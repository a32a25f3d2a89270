"""The cluster as clients see it: its brokers, the endpoint of each, and the broker that coordinates a group."""

from __future__ import annotations

from broker.serve.call import Call
from shards.config.advertised import AUTO, Address, advertised
from shards.config.image import ClusterImage
from shards.ownership import bucket_of, leader_of_bucket


class ClusterMetadata:
    """Broker `me` of `brokers`, numbered from 0. Their addresses come from the image (shards/config/advertised.py)."""

    controller = 0  # the coordinator takes changes from any broker; clients need one name

    def __init__(self, image: ClusterImage, me: int, brokers: int, cluster_id: str) -> None:
        self._image = image
        self.me = me
        self.brokers = brokers
        self.cluster_id = cluster_id

    def endpoint(self, broker: int, call: Call) -> Address:
        """The address of `broker` for the client of `call`, on the listener that the request came by."""
        image = self._image
        host, port = advertised(image.static, image.advertised, broker, call.listener).address
        return Address(host, port) if host != AUTO else self._reached(broker, port, call)

    def _reached(self, broker: int, port: int, call: Call) -> Address:
        """A broker's address on the host that the client reached. A proxy has a port for each broker, side by side, as wherever
        one port is given for several brokers."""
        near = call.reached_port
        beside = port if near is None else near + broker - self.me
        return Address(call.reached, beside if 0 < beside < 65536 else port)

    def rack(self, broker: int) -> str | None:
        static = self._image.static
        return static.get(f"{broker}/broker.rack", static.get("/broker.rack"))

    def coordinator(self, key: str) -> int:
        """The broker that coordinates a group, or a transactional id."""
        return leader_of_bucket(bucket_of(key), self.brokers)

    def coordinates(self, key: str) -> bool:
        """True if this broker coordinates it."""
        return self.coordinator(key) == self.me
