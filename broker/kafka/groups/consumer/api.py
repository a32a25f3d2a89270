"""ConsumerGroupHeartbeat (68) 0-1 and ConsumerGroupDescribe (69) 0-1: the consumer group protocol of KIP-848.

Members choose their ids themselves from version 1 on; in version 0 the coordinator makes one for a member without. Rack ids
are kept and shown; no assignor looks at them, as in Kafka 4.1. While `group.coordinator.rebalance.protocols` lacks `consumer`,
or the feature `group.version` is 0, both are UNSUPPORTED_VERSION. A group of another broker, or whose home shard died during
the call, is NOT_COORDINATOR.

Not emulated: members of the classic protocol in a group that has members of this one, and the conversion of groups with
members (`group.consumer.migration.policy`).
Source: KafkaApis.handleConsumerGroupHeartbeat, GroupCoordinatorService of Kafka 4.1.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.groups import guards
from broker.kafka.groups.consumer.member import Heartbeat
from broker.kafka.groups.consumer.messages import ConsumerHeartbeat, DescribeConsumerGroup
from broker.kafka.groups.modern.member import LEAVE, LEAVE_STATIC, HeartbeatResult
from broker.kafka.groups.modern.responses import AssignmentOf, GroupDescriptions, described_by, heartbeat_response
from broker.kafka.groups.router import GroupRouter
from broker.kafka.remote import or_lost
from broker.kafka.security.guarded_route import GuardedRoute
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from broker.wire.primitives import from_timedelta
from shards.config.image import ClusterImage
from shards.loop.deferred import MaybeDeferred, then
from shards.loop.turns import Turns
from shards.settings.releases import GROUP_VERSION

if TYPE_CHECKING:
    from broker.wire.requests import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
    from broker.wire.responses import ConsumerGroupDescribeTypes, ConsumerGroupHeartbeatTypes

HEARTBEAT, DESCRIBE = 68, 69
PROTOCOL = "consumer"
OWN_ID_SINCE = 1
CONSUMER_MEMBER = 1
WAIT_S = 30.0
"""A heartbeat may wait until an expression is matched with all topics."""


def routes(cluster: ClusterMetadata, groups: GroupRouter, image: ClusterImage, turns: Turns) -> list[GuardedRoute]:
    handler = _ConsumerGroups(cluster, groups, image, turns)
    return [
        GuardedRoute(HEARTBEAT, handler.heartbeat, guards.consumer_heartbeat),
        GuardedRoute(DESCRIBE, handler.describe, guards.describe_consumer_groups),
    ]


class _ConsumerGroups:
    def __init__(self, cluster: ClusterMetadata, groups: GroupRouter, image: ClusterImage, turns: Turns) -> None:
        self._cluster = cluster
        self._groups = groups
        self._image = image
        self._descriptions = GroupDescriptions(
            "consumer", DescribeConsumerGroup, cluster, groups, turns=turns, described=described_by(image, _member)
        )

    def _is_on(self) -> bool:
        protocols = self._image.get("group.coordinator.rebalance.protocols")
        return PROTOCOL in protocols and self._image.feature_level(GROUP_VERSION) > 0

    # --- heartbeat -----------------------------------------------------------------------------------------------------

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, call: Call[ConsumerGroupHeartbeatTypes]
    ) -> MaybeDeferred[Message]:
        def lost() -> Message:
            return _answer(call, HeartbeatResult(codes.NOT_COORDINATOR))

        if not self._is_on():
            return _answer(call, HeartbeatResult(codes.UNSUPPORTED_VERSION))
        refused = _refusal(request, call.api_version) or self._unsupported_assignor(request)
        if refused is not None:
            return _answer(call, refused)
        if not self._cluster.coordinates(request.group_id):
            return lost()
        beat = _beat(request, call, with_reader=bool(self._image.get("authorizer.class.name")))
        answer = self._groups.ask(ConsumerHeartbeat(request.group_id, beat), timeout_s=WAIT_S)
        return or_lost(then(answer, lambda fields: _answer(call, HeartbeatResult(*fields))), lost)

    def _unsupported_assignor(self, request: ConsumerGroupHeartbeatRequest) -> HeartbeatResult | None:
        known = self._image.get("group.consumer.assignors")
        if request.server_assignor is None or request.server_assignor in known:
            return None
        message = f"ServerAssignor {request.server_assignor} is not one of {', '.join(known)}."
        return HeartbeatResult(codes.UNSUPPORTED_ASSIGNOR, message)

    # --- describe ------------------------------------------------------------------------------------------------------

    def describe(
        self, request: ConsumerGroupDescribeRequest, call: Call[ConsumerGroupDescribeTypes]
    ) -> MaybeDeferred[Message]:
        return self._descriptions.describe(request, call, is_on=self._is_on())


def _member(
    call: Call[ConsumerGroupDescribeTypes], member: Sequence[Any], assignment: AssignmentOf
) -> ConsumerGroupDescribeTypes.Member:
    member_id, instance, rack, epoch, client_id, client_host, names, regex, assigned, target = member
    more = {"member_type": CONSUMER_MEMBER} if call.api_version >= 1 else {}
    return call.types.Member(
        member_id=member_id, instance_id=instance, rack_id=rack, member_epoch=epoch, client_id=client_id,
        client_host=client_host, subscribed_topic_names=tuple(names), subscribed_topic_regex=regex or "",
        assignment=assignment(assigned), target_assignment=assignment(target), **more,
    )  # fmt: skip


def _refusal(request: ConsumerGroupHeartbeatRequest, version: int) -> HeartbeatResult | None:
    """The refusal of a request that is invalid for every group; None: it is valid."""
    message, epoch = None, request.member_epoch
    if (version >= OWN_ID_SINCE or epoch > 0 or epoch == LEAVE) and not request.member_id.strip():
        message = "MemberId can't be empty."
    elif not request.group_id.strip():
        message = "GroupId can't be empty."
    elif request.instance_id is not None and not request.instance_id.strip():
        message = "InstanceId can't be empty."
    elif request.rack_id is not None and not request.rack_id.strip():
        message = "RackId can't be empty."
    elif epoch == 0:
        message = _bad_join(request)
    elif epoch == LEAVE_STATIC and request.instance_id is None:
        message = "InstanceId can't be null."
    elif epoch < LEAVE_STATIC:
        message = "MemberEpoch is invalid."
    return None if message is None else HeartbeatResult(codes.INVALID_REQUEST, message)


def _bad_join(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if from_timedelta(request.rebalance_timeout) == -1:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.topic_partitions is None or request.topic_partitions:
        return "TopicPartitions must be empty when (re-)joining."
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None


def _beat(
    request: ConsumerGroupHeartbeatRequest, call: Call[ConsumerGroupHeartbeatTypes], *, with_reader: bool
) -> Heartbeat:
    """The heartbeat as msgpack carries it."""
    names, owned = request.subscribed_topic_names, request.topic_partitions
    return Heartbeat(
        member_id=request.member_id or str(uuid.uuid4()),
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_ms=from_timedelta(request.rebalance_timeout),
        names=None if names is None else tuple(sorted(set(names))),
        regex=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=None if owned is None else [(t.topic_id.hex, n) for t in owned if t.topic_id for n in t.partitions],  # type: ignore[arg-type]
        client_id=call.client_id or "",
        client_host=f"/{call.ip}",
        reader=(call.user, call.ip) if with_reader else ("", ""),
    )


def _answer(call: Call[ConsumerGroupHeartbeatTypes], result: HeartbeatResult) -> Message:
    return heartbeat_response(call.types.ConsumerGroupHeartbeatResponse, call, result)
