"""A cluster with the shape of testcontainers' KafkaContainer, so that a suite changes one line: its import."""

from __future__ import annotations

from typing import Unpack

from turnstile.cluster import Cluster
from turnstile.options import ClusterOptions


class KafkaContainer(Cluster):
    """`with KafkaContainer() as kafka: kafka.get_bootstrap_server()`, without Docker and in under a second.

    `image` and `port` are accepted and mean nothing: there is no container, and ports are free ones. Further options are
    those of Cluster.
    """

    def __init__(self, image: str = "", port: int = 9093, **options: Unpack[ClusterOptions]) -> None:
        super().__init__(**options)

    def start(self, timeout: int = 30) -> KafkaContainer:
        """See Cluster.start; `timeout` is accepted and means nothing."""
        super().start()
        return self

    def __enter__(self) -> KafkaContainer:
        return self.start()

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """See Cluster.stop; both options are accepted, and what they ask for is always done."""
        super().stop()

    def with_kraft(self) -> KafkaContainer:
        """There is no ZooKeeper in any case."""
        return self

    def get_container_host_ip(self) -> str:
        """The address of the first broker."""
        return self.bootstrap.split(",")[0].rpartition(":")[0].strip("[]")

    def get_exposed_port(self, port: int = 9093) -> int:
        """The port of the first broker, whichever is asked for."""
        return int(self.bootstrap.split(",")[0].rpartition(":")[2])
