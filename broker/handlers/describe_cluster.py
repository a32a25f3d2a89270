"""What a cluster without replication, ACLs or a Raft quorum answers when it is asked about them.

DescribeCluster 0-2, DescribeQuorum 0-2 (one voter, the coordinator), ElectLeaders 0-2 (never needed: a partition has
one replica), AlterPartitionReassignments 0-1 and ListPartitionReassignments 0 (none under way), DescribeAcls,
CreateAcls, DeleteAcls 1-3 (SECURITY_DISABLED), ListConfigResources 0-1. Answers are Kafka 4.1's own.
"""

from __future__ import annotations

import time

from broker.cluster_metadata import ClusterMetadata
from broker.handlers.metadata import ALL_CLUSTER_OPERATIONS, OPERATIONS_UNKNOWN
from broker.protocol import codes
from broker.protocol.codec import Message
from broker.protocol.requests import (
    AlterPartitionReassignmentsRequest,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeClusterRequest,
    DescribeQuorumRequest,
    ElectLeadersRequest,
    ListConfigResourcesRequest,
    ListPartitionReassignmentsRequest,
    PartitionData,
    ReassignablePartition,
    TopicData,
)
from broker.protocol.wire import Types
from broker.serve.call import Call, Route
from shards.config.image import ClusterImage

BROKERS, CONTROLLERS = 1, 2
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
METADATA_TOPIC = "__cluster_metadata"
_NO_AUTHORIZER = "No Authorizer is configured on the broker"


def routes(cluster: ClusterMetadata, image: ClusterImage) -> list[Route]:
    handler = _DescribeCluster(cluster, image)
    return [
        Route(29, 1, 3, _describe_acls),
        Route(30, 1, 3, _create_acls),
        Route(31, 1, 3, _delete_acls),
        Route(43, 0, 2, handler.elect_leaders),
        Route(45, 0, 1, handler.reassign),
        Route(46, 0, 0, _list_reassignments),
        Route(55, 0, 2, handler.describe_quorum),
        Route(60, 0, 2, handler.describe_cluster),
        Route(74, 0, 1, handler.list_config_resources),
    ]


class _DescribeCluster:
    def __init__(self, cluster: ClusterMetadata, image: ClusterImage) -> None:
        self._cluster = cluster
        self._image = image

    def describe_cluster(self, request: DescribeClusterRequest, call: Call) -> Message:
        types, cluster = call.types, self._cluster
        if request.endpoint_type != BROKERS:
            return types.DescribeClusterResponse(
                error_code=codes.MISMATCHED_ENDPOINT_TYPE,
                error_message="The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
                "CONTROLLER",
                cluster_id="",
                brokers=(),
            )
        brokers = []
        for broker in range(cluster.brokers):
            host, port = cluster.endpoint(broker, call.listener)
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

    def describe_quorum(self, request: DescribeQuorumRequest, call: Call) -> Message:
        """One voter, as far as it is: what the version of the configuration is to us, an offset is to a quorum."""
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
        host, port = self._cluster.endpoint(controller, call.listener)
        node = types.Node(node_id=controller, listeners=(types.Listener(name=call.listener, host=host, port=port),))
        return types.DescribeQuorumResponse(error_code=codes.NONE, error_message="", topics=topics, nodes=(node,))

    def _quorum_of(self, types: Types, topic: TopicData, partition: PartitionData, voter: Message, end: int) -> Message:
        known = topic.topic_name == METADATA_TOPIC and partition.partition_index == 0
        return types.PartitionData(
            partition_index=partition.partition_index,
            error_code=codes.NONE if known else codes.UNKNOWN_TOPIC_OR_PARTITION,
            error_message="" if known else "This server does not host this topic-partition.",
            leader_id=self._cluster.controller if known else -1,
            leader_epoch=1 if known else -1,
            high_watermark=end if known else -1,
            current_voters=(voter,) if known else (),
            observers=(),
        )

    def elect_leaders(self, request: ElectLeadersRequest, call: Call) -> Message:
        types = call.types
        wanted = request.topic_partitions
        if wanted is None:
            found: list[tuple[str, tuple[int, ...]]] = [(name, ()) for name in self._image.topics.names()]
        else:
            found = [(topic.topic, topic.partitions) for topic in wanted]
        results = tuple(
            types.ReplicaElectionResult(
                topic=name, partition_result=tuple(self._not_needed(types, name, n) for n in partitions)
            )
            for name, partitions in found
        )
        return types.ElectLeadersResponse(error_code=codes.NONE, replica_election_results=results)

    def _not_needed(self, types: Types, name: str, partition: int) -> Message:
        code, message = codes.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
        if not self._exists(name, partition):
            code, message = codes.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{partition}"
        return types.PartitionResult(partition_id=partition, error_code=code, error_message=message)

    def reassign(self, request: AlterPartitionReassignmentsRequest, call: Call) -> Message:
        """Accepted where nothing would move; a partition's one replica stays where it is."""
        types = call.types
        responses = tuple(
            types.ReassignableTopicResponse(
                name=topic.name, partitions=tuple(self._reassigned(types, topic.name, p) for p in topic.partitions)
            )
            for topic in request.topics
        )
        return types.AlterPartitionReassignmentsResponse(error_code=codes.NONE, error_message=None, responses=responses)

    def _reassigned(self, types: Types, name: str, partition: ReassignablePartition) -> Message:
        n, replicas = partition.partition_index, partition.replicas
        code, message = codes.NONE, None
        if not self._exists(name, n):
            code, message = codes.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist."
        elif replicas is None:
            code, message = codes.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."
        elif tuple(replicas) != (self._image.topics.get(name).leaders[n],):  # type: ignore[union-attr]
            code, message = codes.INVALID_REPLICA_ASSIGNMENT, "Partitions do not move in this cluster."
        return types.ReassignablePartitionResponse(partition_index=n, error_code=code, error_message=message)

    def _exists(self, name: str, partition: int) -> bool:
        topic = self._image.topics.get(name)
        return topic is not None and 0 <= partition < len(topic.leaders)

    def list_config_resources(self, request: ListConfigResourcesRequest, call: Call) -> Message:
        """Everything that has configs; version 0 asks for client metrics only, of which there are none."""
        types = call.types
        kinds = {CLIENT_METRICS} if call.api_version == 0 else set(request.resource_types)
        if kinds - {TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP}:
            return types.ListConfigResourcesResponse(error_code=codes.UNSUPPORTED_VERSION, config_resources=())
        found: list[tuple[int, str]] = []
        if not kinds or BROKER in kinds:
            found += [(BROKER, str(broker)) for broker in range(self._cluster.brokers)]
        if not kinds or TOPIC in kinds:
            found += [(TOPIC, name) for name in self._image.topics.names()]
        resources = tuple(types.ConfigResource(resource_name=name, resource_type=kind) for kind, name in found)
        return types.ListConfigResourcesResponse(error_code=codes.NONE, config_resources=resources)


def _list_reassignments(request: ListPartitionReassignmentsRequest, call: Call) -> Message:
    return call.types.ListPartitionReassignmentsResponse(error_code=codes.NONE, error_message=None, topics=())


def _describe_acls(request: DescribeAclsRequest, call: Call) -> Message:
    return call.types.DescribeAclsResponse(
        error_code=codes.SECURITY_DISABLED, error_message=_NO_AUTHORIZER, resources=()
    )


def _create_acls(request: CreateAclsRequest, call: Call) -> Message:
    types = call.types
    refused = types.AclCreationResult(error_code=codes.SECURITY_DISABLED, error_message=_NO_AUTHORIZER)
    return types.CreateAclsResponse(results=tuple(refused for _ in request.creations))


def _delete_acls(request: DeleteAclsRequest, call: Call) -> Message:
    types = call.types
    refused = types.DeleteAclsFilterResult(
        error_code=codes.SECURITY_DISABLED, error_message=_NO_AUTHORIZER, matching_acls=()
    )
    return types.DeleteAclsResponse(filter_results=tuple(refused for _ in request.filters))
