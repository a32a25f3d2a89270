"""The common answers of the handlers of groups with members: consumer (KIP-848), share (KIP-932) and streams groups (KIP-1071).

Places of partitions are (topic id in hex, number), as the groups have them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.groups.guards import undescribed
from broker.kafka.groups.modern.member import HeartbeatResult, TopicIdPartition
from broker.kafka.groups.router import GroupMessage, GroupRouter
from broker.kafka.remote import ask_each, or_lost
from broker.kafka.security.authorized_operations import ALL_GROUP_OPERATIONS, OPERATIONS_UNKNOWN
from broker.runtime.partitions_by_topic import by_topic
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.image import ClusterImage
from shards.loop.deferred import MaybeDeferred, then
from shards.loop.turns import Turns

if TYPE_CHECKING:
    from broker.wire.requests import (
        ConsumerGroupDescribeRequest,
        ShareGroupDescribeRequest,
        StreamsGroupDescribeRequest,
    )

    DescribeModernRequest: TypeAlias = (
        ConsumerGroupDescribeRequest | ShareGroupDescribeRequest | StreamsGroupDescribeRequest
    )

AssignmentOf = Callable[[Iterable[TopicIdPartition]], Any]
MadeMember = Callable[[Call[Any], Sequence[object], AssignmentOf], Message]
"""A Member of the response, of what the group's home says of it; the function makes the Assignment of some places."""
MadeGroup = Callable[[Call[Any], str, Sequence[object], int], Message]
"""A DescribedGroup of the response, of the group's id, what its home answers, and the operations that a client is told."""


class GroupDescriptions:
    """Describes the groups of one protocol. `kind` (consumer, share, streams) names the response; `question` is asked of a group's
    home, which answers [] for a group that there is not, ["other"] for one of another protocol; `described` and `undescribed` make
    groups of the response (guards.undescribed).
    """

    def __init__(
        self,
        kind: str,
        question: Callable[[str], GroupMessage],
        cluster: ClusterMetadata,
        groups: GroupRouter,
        *,
        turns: Turns,
        described: MadeGroup,
        undescribed: Callable[..., Message] = undescribed,
    ) -> None:
        self._kind = kind
        self._question = question
        self._cluster = cluster
        self._groups = groups
        self._turns = turns
        self._describe = described
        self._undescribed = undescribed

    def describe(self, request: DescribeModernRequest, call: Call, *, is_on: bool) -> MaybeDeferred[Message]:
        """`is_on` False: all are UNSUPPORTED_VERSION."""
        wanted = [*dict.fromkeys(request.group_ids)]
        make: Callable[..., Message] = getattr(call.types, f"{self._kind.capitalize()}GroupDescribeResponse")
        if not is_on:
            return make(
                groups=tuple(self._undescribed(call.types, group, codes.UNSUPPORTED_VERSION) for group in wanted)
            )
        operations = ALL_GROUP_OPERATIONS if request.include_authorized_operations else OPERATIONS_UNKNOWN

        def response(answers: list[Sequence[object] | None]) -> Message:
            answered = zip(wanted, answers, strict=True)
            return make(groups=tuple(self._described(call, *each, operations) for each in answered))

        return then(ask_each(self._turns, wanted, self._ask), response)

    def _ask(self, group: str) -> MaybeDeferred[Sequence[object] | None]:
        """The answer of a group's home; None: it can't be asked here."""
        if not group or not self._cluster.coordinates(group):
            return None
        return or_lost(self._groups.ask(self._question(group)), lambda: None)

    def _described(self, call: Call, group: str, answer: Sequence[object] | None, operations: int) -> Message:
        if not group:
            return self._undescribed(call.types, group, codes.INVALID_GROUP_ID)
        if answer is None:
            return self._undescribed(call.types, group, codes.NOT_COORDINATOR)
        if len(answer) < 2:
            what = f"is not a {self._kind} group" if answer else "not found"
            return self._undescribed(call.types, group, codes.GROUP_ID_NOT_FOUND, f"Group {group} {what}.")
        return self._describe(call, group, answer, operations)


def described_by(image: ClusterImage, member: MadeMember) -> MadeGroup:
    """Describes consumer and share groups, of whose home the answer is [state, epoch, assignment epoch, assignor, members]."""

    def described(call: Call[Any], group: str, answer: Sequence[Any], operations: int) -> Message:
        state, epoch, assignment_epoch, assignor, members = answer

        def assignment(places: Iterable[TopicIdPartition]) -> object:
            return _assignment(image, call, places)

        made: Message = call.types.DescribedGroup(
            error_code=codes.NONE,
            error_message=None,
            group_id=group,
            group_state=state,
            group_epoch=epoch,
            assignment_epoch=assignment_epoch,
            assignor_name=assignor,
            members=tuple(member(call, each, assignment) for each in members),
            authorized_operations=operations,
        )
        return made

    return described


def _assignment(image: ClusterImage, call: Call[Any], places: Iterable[TopicIdPartition]) -> object:
    """An assignment, without topics that are gone."""
    topics = []
    for topic_id, numbers in _by_topic(places):
        topic = image.topics.by_id(topic_id)
        if topic is not None:
            named = call.types.TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=numbers)
            topics.append(named)
    return call.types.Assignment(topic_partitions=tuple(topics))


def heartbeat_response(made: Callable[..., Message], call: Call[Any], result: HeartbeatResult) -> Message:
    """`made`: the class of the response."""
    types = call.types
    assignment = None
    if result.assignment is not None:
        assignment = types.Assignment(
            topic_partitions=tuple(
                types.TopicPartitions(topic_id=topic, partitions=numbers)
                for topic, numbers in _by_topic(result.assignment)
            )
        )
    return made(
        error_code=result.code,
        error_message=result.message,
        member_id=result.member_id,
        member_epoch=result.epoch,
        heartbeat_interval=result.interval_ms,
        assignment=assignment,
    )


def _by_topic(places: Iterable[TopicIdPartition]) -> list[tuple[UUID, tuple[int, ...]]]:
    return [(UUID(hex=topic), tuple(numbers)) for topic, numbers in by_topic(places).items()]
