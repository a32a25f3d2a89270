"""StreamsGroupDescribe: the groups as the homes know them. Source: StreamsGroup.asDescribedGroup of Kafka 4.3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.groups.router import GroupRouter
from broker.kafka.groups.streams.guards import undescribed
from broker.kafka.groups.streams.messages import DescribedMember, DescribeStreamsGroup, StreamsDescription
from broker.kafka.groups.streams.records import facts_of
from broker.kafka.groups.streams.topology import InternalTopic, Subtopology, topology_of
from broker.kafka.remote import ask_each, or_lost
from broker.kafka.security.authorized_operations import ALL_GROUP_OPERATIONS, OPERATIONS_UNKNOWN
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from shards.loop.deferred import MaybeDeferred, then
from shards.loop.turns import Turns

if TYPE_CHECKING:
    from broker.wire.requests import StreamsGroupDescribeRequest
    from broker.wire.responses import StreamsGroupDescribeTypes


class StreamsDescriptions:
    """Describes streams groups to clients of this shard."""

    def __init__(self, cluster: ClusterMetadata, groups: GroupRouter, turns: Turns) -> None:
        self._cluster = cluster
        self._groups = groups
        self._turns = turns

    def describe(
        self, request: StreamsGroupDescribeRequest, call: Call[StreamsGroupDescribeTypes], *, is_on: bool
    ) -> MaybeDeferred[Message]:
        """`is_on` False: all are UNSUPPORTED_VERSION."""
        wanted = [*dict.fromkeys(request.group_ids)]
        if not is_on:
            groups = tuple(undescribed(call.types, group, codes.UNSUPPORTED_VERSION) for group in wanted)
            return call.types.StreamsGroupDescribeResponse(groups=groups)
        operations = ALL_GROUP_OPERATIONS if request.include_authorized_operations else OPERATIONS_UNKNOWN

        def response(answers: list[Any]) -> Message:
            answered = zip(wanted, answers, strict=True)
            return call.types.StreamsGroupDescribeResponse(
                groups=tuple(_group(call.types, *each, operations) for each in answered)
            )

        return then(ask_each(self._turns, wanted, self._ask), response)

    def _ask(self, group: str) -> MaybeDeferred[Any]:
        """None: it can't be asked here."""
        if not group or not self._cluster.coordinates(group):
            return None
        return or_lost(self._groups.ask(DescribeStreamsGroup(group)), lambda: None)


def _group(types: StreamsGroupDescribeTypes, group: str, answer: Sequence[Any] | None, operations: int) -> Any:
    if not group:
        return undescribed(types, group, codes.INVALID_GROUP_ID)
    if answer is None:
        return undescribed(types, group, codes.NOT_COORDINATOR)
    if len(answer) < 2:
        what = "is not a streams group" if answer else "not found"
        return undescribed(types, group, codes.GROUP_ID_NOT_FOUND, f"Group {group} {what}.")
    told = StreamsDescription(*answer)
    return types.DescribedGroup(
        error_code=codes.NONE,
        error_message=None,
        group_id=group,
        group_state=told.state,
        group_epoch=told.epoch,
        assignment_epoch=told.assignment_epoch,
        topology=_topology(types, told),
        members=tuple(_member(types, DescribedMember(*member)) for member in told.members),
        authorized_operations=operations,
    )


def _topology(types: StreamsGroupDescribeTypes, told: StreamsDescription) -> Any:
    topology, counts = topology_of(told.topology), told.partitions
    if topology is None:
        return None
    return types.Topology(
        epoch=topology.epoch,
        subtopologies=None
        if counts is None
        else tuple(_subtopology(types, each, counts) for each in topology.subtopologies),
    )


def _subtopology(types: StreamsGroupDescribeTypes, told: Subtopology, counts: dict[str, int]) -> Any:
    def internal(topics: Sequence[InternalTopic]) -> Any:
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
        subtopology_id=told.id,
        source_topics=tuple(sorted(told.sources)),
        repartition_sink_topics=tuple(sorted(told.repartition_sinks)),
        state_changelog_topics=internal(told.changelogs),
        repartition_source_topics=internal(told.repartition_sources),
    )


def _member(types: StreamsGroupDescribeTypes, told: DescribedMember) -> Any:
    facts = facts_of(told.facts)
    endpoint = facts.endpoint
    return types.Member(
        member_id=told.id,
        member_epoch=told.epoch,
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
        assignment=_assignment(types, told.assigned),
        target_assignment=_assignment(types, told.target),
        is_classic=False,
    )


def _assignment(types: StreamsGroupDescribeTypes, packed: Sequence[Any]) -> Any:
    active, standby = (
        tuple(types.TaskIds(subtopology_id=name, partitions=tuple(numbers)) for name, numbers in role)
        for role in packed
    )
    return types.Assignment(active_tasks=active, standby_tasks=standby, warmup_tasks=())
