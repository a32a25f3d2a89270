"""DescribeCluster 0-2 (KIP-700), DescribeQuorum 0-2 (KIP-595, KIP-836).

The quorum has one voter, the coordinator; the version of the configuration stands for its offset. Not emulated: fenced
brokers, controller endpoints (KIP-919). Answers are Kafka 4.1's.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from broker.kafka.cluster import guards
from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.security.authorized_operations import ALL_CLUSTER_OPERATIONS, OPERATIONS_UNKNOWN
from broker.kafka.security.guarded_route import GuardedRoute
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.image import ClusterImage

if TYPE_CHECKING:
    from broker.wire.requests import (
        DescribeClusterRequest,
        DescribeQuorumRequest,
        PartitionData,
        TopicData,
    )
    from broker.wire.responses import DescribeClusterTypes, DescribeQuorumTypes

BROKERS, CONTROLLERS = 1, 2
METADATA_TOPIC = "__cluster_metadata"


def routes(cluster: ClusterMetadata, image: ClusterImage) -> list[GuardedRoute]:
    handler = _DescribeCluster(cluster, image)
    return [
        GuardedRoute(55, handler.describe_quorum, guards.describe_quorum),
        GuardedRoute(60, handler.describe_cluster, guards.describe_cluster),
    ]


class _DescribeCluster:
    def __init__(self, cluster: ClusterMetadata, image: ClusterImage) -> None:
        self._cluster = cluster
        self._image = image

    def describe_cluster(self, request: DescribeClusterRequest, call: Call[DescribeClusterTypes]) -> Message:
        types, cluster = call.types, self._cluster
        if request.endpoint_type != BROKERS:
            code, message = codes.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type."
            if request.endpoint_type == CONTROLLERS:
                code = codes.MISMATCHED_ENDPOINT_TYPE
                message = (
                    "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
                )
            return types.DescribeClusterResponse(error_code=code, error_message=message, cluster_id="", brokers=())
        brokers = []
        for broker in range(cluster.brokers):
            host, port = cluster.endpoint(broker, call)
            brokers.append(
                types.DescribeClusterBroker(
                    broker_id=broker, host=host, port=port, rack=cluster.rack(broker), is_fenced=False
                )
            )
        allowed = request.include_cluster_authorized_operations
        return types.DescribeClusterResponse(
            error_code=codes.NONE,
            error_message=None,
            cluster_id=cluster.cluster_id,
            controller_id=cluster.controller,
            brokers=tuple(brokers),
            cluster_authorized_operations=ALL_CLUSTER_OPERATIONS if allowed else OPERATIONS_UNKNOWN,
        )

    def describe_quorum(self, request: DescribeQuorumRequest, call: Call[DescribeQuorumTypes]) -> Message:
        """One voter, whose end offset is the version of the configuration."""
        types, controller = call.types, self._cluster.controller
        end = self._image.version + 1
        now_ms = int(time.time() * 1000)
        voter = types.ReplicaState(
            replica_id=controller, replica_directory_id=None, log_end_offset=end, last_fetch_timestamp=now_ms,
            last_caught_up_timestamp=now_ms,
        )  # fmt: skip
        topics = tuple(
            types.TopicData(
                topic_name=topic.topic_name,
                partitions=tuple(self._quorum_of(types, topic, p, voter, end) for p in topic.partitions),
            )
            for topic in request.topics
        )
        host, port = self._cluster.endpoint(controller, call)
        node = types.Node(node_id=controller, listeners=(types.Listener(name=call.listener, host=host, port=port),))
        return types.DescribeQuorumResponse(error_code=codes.NONE, error_message="", topics=topics, nodes=(node,))

    def _quorum_of(
        self,
        types: DescribeQuorumTypes,
        topic: TopicData,
        partition: PartitionData,
        voter: DescribeQuorumTypes.ReplicaState,
        end: int,
    ) -> DescribeQuorumTypes.PartitionData:
        known = topic.topic_name == METADATA_TOPIC and partition.partition_index == 0
        return types.PartitionData(
            partition_index=partition.partition_index,
            error_code=codes.NONE if known else codes.UNKNOWN_TOPIC_OR_PARTITION,
            error_message="" if known else "This server does not host this topic-partition.",
            leader_id=self._cluster.controller if known else 0,
            leader_epoch=1 if known else 0,
            high_watermark=end if known else 0,
            current_voters=(voter,) if known else (),
            observers=(),
        )
