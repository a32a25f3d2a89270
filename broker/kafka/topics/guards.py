"""Guards of the APIs that name topics: the handler is asked for those that the client may touch, the others are answered
TOPIC_AUTHORIZATION_FAILED, as by Kafka, whether they exist or not. Source: KafkaApis, ControllerApis."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from broker.kafka.security.access import Access
from broker.kafka.security.acl import Operation, ResourceType
from broker.kafka.security.guards import (
    CLUSTER_DENIED,
    CLUSTER_MESSAGE,
    MESSAGES,
    after,
    answered,
    by_topic,
    of_cluster,
)
from broker.kafka.security.guards import TOPIC_DENIED as DENIED
from broker.serve.call import Answer, Call, Handler
from broker.wire.codec import Message

if TYPE_CHECKING:
    from broker.wire.requests import (
        AlterPartitionReassignmentsRequest,
        CreatableTopic,
        CreateTopicsRequest,
        DeleteTopicsRequest,
        ElectLeadersRequest,
        ListPartitionReassignmentsRequest,
    )
    from broker.wire.responses import (
        AlterPartitionReassignmentsTypes,
        CreateTopicsTypes,
        DeleteTopicsTypes,
        ElectLeadersTypes,
        ListPartitionReassignmentsTypes,
    )

TOPIC = ResourceType.TOPIC

create_partitions = by_topic(
    Operation.ALTER,
    lambda types, topic: types.CreatePartitionsTopicResult(name=topic.name, error_code=DENIED, error_message=None),
    answers="results",
)


def create_topics(access: Access, handler: Handler) -> Handler:
    def handle(request: CreateTopicsRequest, call: Call[CreateTopicsTypes]) -> Answer:
        allowed = list(request.topics)
        denied: list[CreatableTopic] = []
        if not access.may_cluster(call, Operation.CREATE):
            allowed, denied = access.split(call, Operation.CREATE, TOPIC, request.topics, lambda topic: str(topic.name))
        request.topics = tuple(allowed)
        refused = [_created(call.types, name) for name in dict.fromkeys(topic.name for topic in denied)]

        def show(response: CreateTopicsTypes.CreateTopicsResponse) -> CreateTopicsTypes.CreateTopicsResponse:
            for topic in response.topics:
                if not topic.error_code and not access.may(call, Operation.DESCRIBE_CONFIGS, TOPIC, topic.name):
                    topic.topic_config_error_code = DENIED
                    topic.num_partitions = topic.replication_factor = -1
                    topic.configs = ()
            return answered(response, "topics", refused)

        hides = call.api_version >= _CONFIGS_SINCE
        response = handler(request, call)
        return after(response, show if hides else lambda made: answered(made, "topics", refused))

    return handle


_CONFIGS_SINCE = 5


def _created(types: CreateTopicsTypes, name: str) -> CreateTopicsTypes.CreatableTopicResult:
    return types.CreatableTopicResult(
        name=name, topic_id=None, error_code=DENIED, error_message=None, topic_config_error_code=0, num_partitions=-1,
        replication_factor=-1, configs=(),
    )  # fmt: skip


def delete_topics(access: Access, handler: Handler) -> Handler:
    """Version 6 names topics by id or name. A client that may not describe a topic is not told the name of its id."""

    def handle(request: DeleteTopicsRequest, call: Call[DeleteTopicsTypes]) -> Answer:
        if access.may_cluster(call, Operation.DELETE):
            return handler(request, call)
        refused: list[DeleteTopicsTypes.DeletableTopicResult] = []

        def allowed(name: str | None, topic_id: UUID | None) -> bool:
            known = name if name is not None else access.name_of(topic_id)
            if known is None or access.may(call, Operation.DELETE, TOPIC, known):
                return True
            shown = known if name is not None or access.may(call, Operation.DESCRIBE, TOPIC, known) else None
            made = call.types.DeletableTopicResult(
                name=shown,
                topic_id=topic_id if name is None else None,
                error_code=DENIED,
                error_message=MESSAGES[DENIED],
            )
            refused.append(made)
            return False

        if call.api_version >= 6:
            request.topics = tuple(topic for topic in request.topics if allowed(topic.name, topic.topic_id))
        else:
            request.topic_names = tuple(name for name in request.topic_names if allowed(name, None))
        return after(handler(request, call), lambda response: answered(response, "responses", refused))

    return handle


def _elections(types: ElectLeadersTypes, request: ElectLeadersRequest) -> Message:
    results = tuple(
        types.ReplicaElectionResult(
            topic=each.topic,
            partition_result=tuple(
                types.PartitionResult(partition_id=n, error_code=CLUSTER_DENIED, error_message=CLUSTER_MESSAGE)
                for n in each.partitions
            ),
        )
        for each in request.topic_partitions or ()
    )
    return types.ElectLeadersResponse(error_code=CLUSTER_DENIED, replica_election_results=results)


def _reassignments(types: AlterPartitionReassignmentsTypes, request: AlterPartitionReassignmentsRequest) -> Message:
    responses = tuple(
        types.ReassignableTopicResponse(
            name=each.name,
            partitions=tuple(
                types.ReassignablePartitionResponse(
                    partition_index=partition.partition_index, error_code=CLUSTER_DENIED, error_message=CLUSTER_MESSAGE
                )
                for partition in each.partitions
            ),
        )
        for each in request.topics
    )
    return types.AlterPartitionReassignmentsResponse(
        error_code=CLUSTER_DENIED, error_message=CLUSTER_MESSAGE, responses=responses
    )


def _under_way(types: ListPartitionReassignmentsTypes, request: ListPartitionReassignmentsRequest) -> Message:
    nowhere: dict[str, tuple[int, ...]] = {"replicas": (), "adding_replicas": (), "removing_replicas": ()}
    topics = tuple(
        types.OngoingTopicReassignment(
            name=each.name,
            partitions=tuple(
                types.OngoingPartitionReassignment(partition_index=n, **nowhere) for n in each.partition_indexes
            ),
        )
        for each in request.topics or ()
    )
    return types.ListPartitionReassignmentsResponse(
        error_code=CLUSTER_DENIED, error_message=CLUSTER_MESSAGE, topics=topics
    )


elect_leaders = of_cluster(Operation.ALTER, _elections)
alter_partition_reassignments = of_cluster(Operation.ALTER, _reassignments)
list_partition_reassignments = of_cluster(Operation.DESCRIBE, _under_way)
