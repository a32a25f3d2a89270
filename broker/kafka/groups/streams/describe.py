"""StreamsGroupDescribe: the groups as the homes know them. Source: StreamsGroup.asDescribedGroup of Kafka 4.3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from broker.kafka.groups.streams.messages import DescribedMember, StreamsDescription
from broker.kafka.groups.streams.records import facts_of
from broker.kafka.groups.streams.tasks import PackedTasks
from broker.kafka.groups.streams.topology import InternalTopic, Subtopology, topology_of
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message

if TYPE_CHECKING:
    from broker.wire.responses import StreamsGroupDescribeTypes


def described(call: Call[StreamsGroupDescribeTypes], group: str, answer: Sequence[Any], operations: int) -> Message:
    """A DescribedGroup of what the group's home answers: the fields of a StreamsDescription."""
    types, description = call.types, StreamsDescription(*answer)
    return types.DescribedGroup(
        error_code=codes.NONE,
        error_message=None,
        group_id=group,
        group_state=description.state,
        group_epoch=description.epoch,
        assignment_epoch=description.assignment_epoch,
        topology=_topology(types, description),
        members=tuple(_member(types, DescribedMember(*member)) for member in description.members),
        authorized_operations=operations,
    )


def _topology(
    types: StreamsGroupDescribeTypes, description: StreamsDescription
) -> StreamsGroupDescribeTypes.Topology | None:
    topology, counts = topology_of(description.topology), description.partitions
    if topology is None:
        return None
    return types.Topology(
        epoch=topology.epoch,
        subtopologies=None
        if counts is None
        else tuple(_subtopology(types, each, counts) for each in topology.subtopologies),
    )


def _subtopology(
    types: StreamsGroupDescribeTypes, subtopology: Subtopology, counts: dict[str, int]
) -> StreamsGroupDescribeTypes.Subtopology:
    def internal(topics: Sequence[InternalTopic]) -> Sequence[StreamsGroupDescribeTypes.TopicInfo]:
        return tuple(
            types.TopicInfo(
                name=topic.name,
                partitions=counts.get(topic.name, topic.partitions),
                replication_factor=topic.replication_factor,
                topic_configs=tuple(types.KeyValue(key=key, value=value) for key, value in topic.configs),
            )
            for topic in topics
        )

    return types.Subtopology(
        subtopology_id=subtopology.id,
        source_topics=tuple(sorted(subtopology.sources)),
        repartition_sink_topics=tuple(sorted(subtopology.repartition_sinks)),
        state_changelog_topics=internal(subtopology.changelogs),
        repartition_source_topics=internal(subtopology.repartition_sources),
    )


def _member(types: StreamsGroupDescribeTypes, member: DescribedMember) -> StreamsGroupDescribeTypes.Member:
    facts = facts_of(member.facts)
    endpoint = facts.endpoint
    return types.Member(
        member_id=member.id,
        member_epoch=member.epoch,
        instance_id=None,
        rack_id=facts.rack_id,
        client_id=facts.client_id,
        client_host=facts.client_host,
        topology_epoch=facts.topology_epoch,
        process_id=facts.process_id,
        user_endpoint=None if endpoint is None else types.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=tuple(types.KeyValue(key=key, value=value) for key, value in facts.tags),
        task_offsets=(),
        task_end_offsets=(),
        assignment=_assignment(types, member.assigned),
        target_assignment=_assignment(types, member.target),
        is_classic=False,
    )


def _assignment(types: StreamsGroupDescribeTypes, packed: PackedTasks) -> StreamsGroupDescribeTypes.Assignment:
    active, standby = (
        tuple(types.TaskIds(subtopology_id=name, partitions=tuple(numbers)) for name, numbers in role)
        for role in packed
    )
    return types.Assignment(active_tasks=active, standby_tasks=standby, warmup_tasks=())
