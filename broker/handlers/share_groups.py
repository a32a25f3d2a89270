"""ShareGroupHeartbeat (76) 1 and ShareGroupDescribe (77) 1: the members of share groups (KIP-932).

Members choose their ids themselves. Rack ids are kept and shown; the assignor does not look at them, as in Kafka. While the
feature `share.version` is 0, both are UNSUPPORTED_VERSION. A group of another broker, or whose home shard died during the call,
is NOT_COORDINATOR.

Source: KafkaApis.handleShareGroupHeartbeat, GroupCoordinatorService of Kafka 4.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from broker.groups.consumer.member import LEAVE, HeartbeatResult
from broker.groups.group_router import GroupRouter
from broker.groups.share.member import ShareHeartbeat
from broker.handlers.cluster_metadata import ClusterMetadata
from broker.handlers.remote import ask_each, or_lost
from broker.protocol import codes
from broker.protocol.codec import Message
from broker.protocol.requests import ShareGroupDescribeRequest, ShareGroupHeartbeatRequest
from broker.runtime.places import by_topic
from broker.serve.call import Call, Route
from shards.config.image import ClusterImage
from shards.limits.features import SHARE_VERSION, level_of
from shards.mesh.deferred import MaybeDeferred, then
from shards.mesh.turns import Turns

HEARTBEAT, DESCRIBE = 76, 77
OPERATIONS_UNKNOWN = -(2**31)
ALL_GROUP_OPERATIONS = 3400
"""Bits of AclOperation: read, delete, describe, and describe and alter configs."""


def routes(cluster: ClusterMetadata, groups: GroupRouter, image: ClusterImage, turns: Turns) -> list[Route]:
    handler = _ShareGroups(cluster, groups, image, turns)
    return [Route.of(HEARTBEAT, handler.heartbeat), Route.of(DESCRIBE, handler.describe)]


def is_on(image: ClusterImage) -> bool:
    """Whether there are share groups."""
    return level_of(image.features, SHARE_VERSION) > 0


class _ShareGroups:
    def __init__(self, cluster: ClusterMetadata, groups: GroupRouter, image: ClusterImage, turns: Turns) -> None:
        self._cluster = cluster
        self._groups = groups
        self._image = image
        self._turns = turns

    def _is_mine(self, group: str) -> bool:
        return self._cluster.coordinator(group) == self._cluster.me

    # --- heartbeat -----------------------------------------------------------------------------------------------------

    def heartbeat(self, request: ShareGroupHeartbeatRequest, call: Call) -> MaybeDeferred[Message]:
        def lost() -> Message:
            return _answer(call, HeartbeatResult(codes.NOT_COORDINATOR))

        if not is_on(self._image):
            return _answer(call, HeartbeatResult(codes.UNSUPPORTED_VERSION))
        refused = _refusal(request)
        if refused is not None:
            return _answer(call, HeartbeatResult(codes.INVALID_REQUEST, refused))
        if not self._is_mine(request.group_id):
            return lost()
        names = request.subscribed_topic_names
        beat = ShareHeartbeat(
            member_id=request.member_id,
            epoch=request.member_epoch,
            rack_id=request.rack_id,
            names=None if names is None else tuple(sorted(set(names))),
            client_id=call.client_id or "",
            client_host=f"/{call.ip}",
        )
        answer = self._groups.ask(request.group_id, "share_heartbeat", beat)
        return or_lost(then(answer, lambda told: _answer(call, HeartbeatResult(*told))), lost)

    # --- describe ------------------------------------------------------------------------------------------------------

    def describe(self, request: ShareGroupDescribeRequest, call: Call) -> MaybeDeferred[Message]:
        types = call.types
        wanted = [*dict.fromkeys(request.group_ids)]
        if not is_on(self._image):
            off = tuple(_undescribed(call, group, codes.UNSUPPORTED_VERSION) for group in wanted)
            return types.ShareGroupDescribeResponse(groups=off)

        def response(answers: list[Any]) -> Message:
            allowed = request.include_authorized_operations
            groups = tuple(
                self._described(call, group, answer, operations=allowed)
                for group, answer in zip(wanted, answers, strict=True)
            )
            return types.ShareGroupDescribeResponse(groups=groups)

        def ask(group: str) -> MaybeDeferred[Any]:
            """None: it can't be asked here."""
            if not group or not self._is_mine(group):
                return None
            return or_lost(self._groups.ask(group, "share_describe"), lambda: None)

        return then(ask_each(self._turns, wanted, ask), response)

    def _described(self, call: Call, group: str, answer: list[Any] | None, *, operations: bool) -> Message:
        if not group:
            return _undescribed(call, group, codes.INVALID_GROUP_ID)
        if answer is None:
            return _undescribed(call, group, codes.NOT_COORDINATOR)
        if len(answer) < 2:
            what = "is not a share group" if answer else "not found"
            return _undescribed(call, group, codes.GROUP_ID_NOT_FOUND, f"Group {group} {what}.")
        state, epoch, assignment_epoch, assignor, members = answer
        return call.types.DescribedGroup(
            error_code=codes.NONE,
            error_message=None,
            group_id=group,
            group_state=state,
            group_epoch=epoch,
            assignment_epoch=assignment_epoch,
            assignor_name=assignor,
            members=tuple(self._member(call, member) for member in members),
            authorized_operations=ALL_GROUP_OPERATIONS if operations else OPERATIONS_UNKNOWN,
        )

    def _member(self, call: Call, member: Sequence[Any]) -> Message:
        member_id, rack, epoch, client_id, client_host, names, assigned = member
        return call.types.Member(
            member_id=member_id, rack_id=rack, member_epoch=epoch, client_id=client_id, client_host=client_host,
            subscribed_topic_names=tuple(names), assignment=self._assignment(call, assigned),
        )  # fmt: skip

    def _assignment(self, call: Call, places: Iterable[Sequence[Any]]) -> Message:
        """Of topics that there still are."""
        topics = []
        for topic_id, numbers in _by_topic(places):
            topic = self._image.topics.by_id(topic_id)
            if topic is not None:
                named = call.types.TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=numbers)
                topics.append(named)
        return call.types.Assignment(topic_partitions=tuple(topics))


def _refusal(request: ShareGroupHeartbeatRequest) -> str | None:
    """Why no group could answer it; None: one can."""
    if not request.member_id.strip():
        return "MemberId can't be empty."
    if not request.group_id.strip():
        return "GroupId can't be empty."
    if request.rack_id is not None and not request.rack_id.strip():
        return "RackId can't be empty."
    if request.member_epoch == 0 and not request.subscribed_topic_names:
        return "SubscribedTopicNames must be set in first request."
    return "MemberEpoch is invalid." if request.member_epoch < LEAVE else None


def _answer(call: Call, result: HeartbeatResult) -> Message:
    types = call.types
    assignment = None
    if result.assignment is not None:
        assignment = types.Assignment(
            topic_partitions=tuple(
                types.TopicPartitions(topic_id=topic, partitions=numbers)
                for topic, numbers in _by_topic(result.assignment)
            )
        )
    return types.ShareGroupHeartbeatResponse(
        error_code=result.code,
        error_message=result.message,
        member_id=result.member_id,
        member_epoch=result.epoch,
        heartbeat_interval=result.interval_ms,
        assignment=assignment,
    )


def _by_topic(places: Iterable[Sequence[Any]]) -> list[tuple[UUID, tuple[int, ...]]]:
    return [(UUID(hex=topic), tuple(numbers)) for topic, numbers in by_topic(places).items()]


def _undescribed(call: Call, group: str, code: int, message: str | None = None) -> Message:
    return call.types.DescribedGroup(
        error_code=code, error_message=message, group_id=group, group_state="", group_epoch=0, assignment_epoch=0,
        assignor_name="", members=(),
    )  # fmt: skip
