"""StreamsGroupHeartbeat (88) 0 and StreamsGroupDescribe (89) 0: the groups of Kafka Streams (KIP-1071).

Members choose their ids themselves. While `group.coordinator.rebalance.protocols` lacks `streams`, or the feature
`streams.version` is 0, both are UNSUPPORTED_VERSION. A group of another broker, or whose home shard died during the call, is
NOT_COORDINATOR. Internal topics that a topology lacks are created in the name of the member that heartbeats, while its heartbeat
is answered; the next ones find them.

Not emulated, as in Kafka 4.3: static members, warm-up tasks, task offsets, regular expressions for source topics, another topology
for a group that there is. Rack ids and client tags are kept and shown; the assignor does not look at them.
Source: KafkaApis.handleStreamsGroupHeartbeat, GroupCoordinatorService of Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.groups.modern.member import LEAVE_STATIC, PackedPartitions
from broker.kafka.groups.modern.responses import GroupDescriptions
from broker.kafka.groups.router import GroupRouter
from broker.kafka.groups.streams import guards, tasks
from broker.kafka.groups.streams.describe import described
from broker.kafka.groups.streams.endpoints import Endpoint, TopicPartitions
from broker.kafka.groups.streams.internal_topics import InternalTopics
from broker.kafka.groups.streams.member import StreamsHeartbeat, StreamsResult
from broker.kafka.groups.streams.messages import DescribeStreamsGroup, StreamsGroupHeartbeat
from broker.kafka.groups.streams.status import Status
from broker.kafka.groups.streams.tasks import Tasks
from broker.kafka.groups.streams.topology import InternalTopic, Subtopology, Topology
from broker.kafka.remote import CoordinatorCalls, or_lost
from broker.kafka.security.access import Access
from broker.kafka.security.guarded_route import GuardedRoute
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from broker.wire.primitives import from_timedelta
from shards.config.image import ClusterImage
from shards.config.internal_topics import INTERNAL_TOPICS
from shards.config.topic_changes import illegal_name
from shards.loop.deferred import MaybeDeferred, then
from shards.loop.turns import Turns
from shards.settings.releases import STREAMS_VERSION

if TYPE_CHECKING:
    from broker.wire import requests
    from broker.wire.requests import StreamsGroupDescribeRequest, StreamsGroupHeartbeatRequest
    from broker.wire.responses import StreamsGroupDescribeTypes, StreamsGroupHeartbeatTypes

HEARTBEAT, DESCRIBE = 88, 89
PROTOCOL = "streams"


def routes(
    cluster: ClusterMetadata,
    groups: GroupRouter,
    image: ClusterImage,
    turns: Turns,
    mesh: CoordinatorCalls,
    access: Access,
) -> list[GuardedRoute]:
    topics = InternalTopics(mesh, access, turns)
    descriptions = GroupDescriptions(
        "streams",
        DescribeStreamsGroup,
        cluster,
        groups,
        turns=turns,
        described=described,
        undescribed=guards.undescribed,
    )
    handler = _StreamsGroups(cluster, groups, image, topics, descriptions)
    return [
        GuardedRoute(HEARTBEAT, handler.heartbeat, guards.heartbeat),
        GuardedRoute(DESCRIBE, handler.describe, guards.describe),
    ]


class _StreamsGroups:
    def __init__(
        self,
        cluster: ClusterMetadata,
        groups: GroupRouter,
        image: ClusterImage,
        topics: InternalTopics,
        descriptions: GroupDescriptions,
    ) -> None:
        self._cluster = cluster
        self._groups = groups
        self._image = image
        self._topics = topics
        self._descriptions = descriptions

    def _is_on(self) -> bool:
        protocols = self._image.get("group.coordinator.rebalance.protocols")
        return PROTOCOL in protocols and self._image.feature_level(STREAMS_VERSION) > 0

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, call: Call[StreamsGroupHeartbeatTypes]
    ) -> MaybeDeferred[Message]:
        def lost() -> Message:
            return _answer(call, StreamsResult(codes.NOT_COORDINATOR))

        if not self._is_on():
            return _answer(call, StreamsResult(codes.UNSUPPORTED_VERSION))
        refused = _unusable(request) or _refusal(request)
        if refused is not None:
            return _answer(call, refused)
        if not self._cluster.coordinates(request.group_id):
            return lost()
        answer = self._groups.ask(StreamsGroupHeartbeat(request.group_id, _heartbeat(request, call)))
        return or_lost(then(answer, lambda fields: self._answered(call, fields)), lost)

    def describe(
        self, request: StreamsGroupDescribeRequest, call: Call[StreamsGroupDescribeTypes]
    ) -> MaybeDeferred[Message]:
        return self._descriptions.describe(request, call, is_on=self._is_on())

    def _answered(self, call: Call[StreamsGroupHeartbeatTypes], fields: Sequence[Any]) -> Message:
        result = StreamsResult(*fields)
        if result.missing:
            status = self._topics.create(call, [InternalTopic(*each) for each in result.missing])
            if status is not None:
                result = result._replace(statuses=(*result.statuses, status))
        return _answer(call, result)


def _unusable(request: StreamsGroupHeartbeatRequest) -> StreamsResult | None:
    """Refuses topics that can't be those of a topology."""
    if request.topology is None:
        return None
    names = guards.topics_of(request.topology.subtopologies)
    internal = sorted(names & set(INTERNAL_TOPICS))
    if internal:
        message = f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
        return StreamsResult(codes.STREAMS_INVALID_TOPOLOGY, message)
    illegal = sorted(name for name in names if illegal_name(name))
    if illegal:
        message = f"Topic names {','.join(illegal)} are not valid topic names."
        return StreamsResult(codes.STREAMS_INVALID_TOPOLOGY, message)
    for subtopology in request.topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions:
                count = topic.partitions
                message = (
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to {count}."
                )
                return StreamsResult(codes.STREAMS_INVALID_TOPOLOGY, message)
    return None


def _refusal(request: StreamsGroupHeartbeatRequest) -> StreamsResult | None:
    """Refuses what no group could answer, in Kafka's order."""
    message = _unsupported(request) or _malformed(request)
    return None if message is None else StreamsResult(codes.INVALID_REQUEST, message)


def _unsupported(request: StreamsGroupHeartbeatRequest) -> str | None:
    if request.instance_id is not None:
        return "Static membership is not yet supported."
    if request.task_offsets is not None:
        return "TaskOffsets are not supported yet."
    if request.task_end_offsets is not None:
        return "TaskEndOffsets are not supported yet."
    if request.warmup_tasks:
        return "WarmupTasks are not supported yet."
    if request.topology is not None and any(each.source_topic_regex for each in request.topology.subtopologies):
        return "Regular expressions for source topics are not supported yet."
    return None


def _malformed(request: StreamsGroupHeartbeatRequest) -> str | None:
    if not request.member_id.strip():
        return "MemberId can't be empty."
    if not request.group_id.strip():
        return "GroupId can't be empty."
    if request.rack_id is not None and not request.rack_id.strip():
        return "RackId can't be empty."
    roles = {"ActiveTasks": request.active_tasks, "StandbyTasks": request.standby_tasks}
    if request.member_epoch == 0:
        if from_timedelta(request.rebalance_timeout) == -1:
            return "RebalanceTimeoutMs must be provided in first request."
        for role, owned in roles.items():
            if owned:
                return f"{role} must be empty when (re-)joining."
        if request.topology is None:
            return "Topology must be non-null when (re-)joining."
    elif request.member_epoch == LEAVE_STATIC:
        return "InstanceId can't be null."
    elif request.member_epoch < LEAVE_STATIC:
        return f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2."
    absent = [owned is None for owned in (*roles.values(), request.warmup_tasks)]
    if any(absent) and not all(absent):
        return "If one task-type is non-null, all must be non-null."
    if request.member_epoch != 0 and request.topology is not None:
        return "Topology can only be provided when (re-)joining."
    return _impossible(request)


def _impossible(request: StreamsGroupHeartbeatRequest) -> str | None:
    """Copartition groups that name no topic of their subtopology, and subtopologies there twice, which Kafka fails at."""
    for each in request.topology.subtopologies if request.topology is not None else ():
        for group in each.copartition_groups:
            known = len(each.source_topics), len(each.repartition_source_topics)
            indexes = (group.source_topics, group.repartition_source_topics)
            if any(not 0 <= index < count for count, numbers in zip(known, indexes, strict=True) for index in numbers):
                return f"A copartition group of subtopology {each.subtopology_id} names a topic that it has not."
        if not (each.source_topics or each.repartition_source_topics):
            return f"Subtopology {each.subtopology_id} has no source topic."
    ids = [each.subtopology_id for each in request.topology.subtopologies] if request.topology is not None else []
    return "A subtopology is there twice." if len(set(ids)) < len(ids) else None


def _heartbeat(request: StreamsGroupHeartbeatRequest, call: Call[StreamsGroupHeartbeatTypes]) -> StreamsHeartbeat:
    endpoint, tags = request.user_endpoint, request.client_tags
    owned = None
    if request.active_tasks is not None and request.standby_tasks is not None:
        owned = Tasks(_task_set(request.active_tasks), _task_set(request.standby_tasks))
    beat = StreamsHeartbeat(
        member_id=request.member_id,
        epoch=request.member_epoch,
        endpoint_epoch=request.endpoint_information_epoch,
        rack_id=request.rack_id,
        rebalance_ms=from_timedelta(request.rebalance_timeout),
        topology=None if request.topology is None else _topology(request.topology),
        process_id=request.process_id,
        endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        tags=None if tags is None else tuple((tag.key, tag.value) for tag in tags),
        shutdown=request.shutdown_application,
        client_id=call.client_id or "",
        client_host=f"/{call.ip}",
    )
    return beat if owned is None else beat._replace(owned=tasks.to_row(owned))  # type: ignore[arg-type]  # as the mesh carries it


def _task_set(task_ids: Sequence[requests.TaskIds]) -> tasks.TaskSet:
    return frozenset((each.subtopology_id, number) for each in task_ids for number in each.partitions)


def _topology(sent: requests.Topology) -> Topology:
    return Topology(sent.epoch, tuple(_subtopology(each) for each in sent.subtopologies))


def _subtopology(sent: requests.Subtopology) -> Subtopology:
    repartitioned = tuple(map(_internal_topic, sent.repartition_source_topics))
    return Subtopology(
        sent.subtopology_id,
        tuple(sent.source_topics),
        tuple(sent.repartition_sink_topics),
        repartitioned,
        tuple(map(_internal_topic, sent.state_changelog_topics)),
        tuple(
            (
                *(sent.source_topics[number] for number in group.source_topics),
                *(repartitioned[number].name for number in group.repartition_source_topics),
            )
            for group in sent.copartition_groups
        ),
    )


def _internal_topic(topic: requests.TopicInfo) -> InternalTopic:
    configs = tuple((each.key, each.value) for each in topic.topic_configs)
    return InternalTopic(topic.name, topic.partitions, topic.replication_factor, configs)


def _answer(call: Call[StreamsGroupHeartbeatTypes], result: StreamsResult) -> Message:
    types = call.types
    packed: Any = result.tasks  # as tasks.to_row packs them
    statuses = tuple(Status(*each) for each in result.statuses)
    endpoints = result.endpoints

    def role(owned: Sequence[PackedPartitions]) -> Sequence[StreamsGroupHeartbeatTypes.TaskIds]:
        return tuple(types.TaskIds(subtopology_id=name, partitions=tuple(numbers)) for name, numbers in owned)

    def partitions(read: Sequence[TopicPartitions]) -> Sequence[StreamsGroupHeartbeatTypes.TopicPartition]:
        return tuple(types.TopicPartition(topic=topic, partitions=tuple(numbers)) for topic, numbers in read)

    return types.StreamsGroupHeartbeatResponse(
        error_code=result.code,
        error_message=result.message,
        member_id=result.member_id,
        member_epoch=result.epoch,
        heartbeat_interval=timedelta(milliseconds=result.interval_ms),
        acceptable_recovery_lag=0,
        task_offset_interval=timedelta(),
        status=tuple(types.Status(status_code=each.code, status_detail=each.detail) for each in statuses),
        active_tasks=None if packed is None else role(packed[0]),
        standby_tasks=None if packed is None else role(packed[1]),
        warmup_tasks=None if packed is None else (),
        endpoint_information_epoch=result.endpoint_epoch,
        partitions_by_user_endpoint=None
        if endpoints is None
        else tuple(
            types.EndpointToPartitions(
                user_endpoint=types.Endpoint(host=endpoint[0], port=endpoint[1]),
                active_partitions=partitions(active),
                standby_partitions=partitions(standby),
            )
            for endpoint, active, standby in endpoints
        ),
    )
