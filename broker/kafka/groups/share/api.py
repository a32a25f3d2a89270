"""ShareGroupHeartbeat (76) 1 and ShareGroupDescribe (77) 1: the members of share groups (KIP-932).

Members choose their ids themselves. Rack ids are kept and shown; the assignor does not look at them, as in Kafka. While the
feature `share.version` is 0, both are UNSUPPORTED_VERSION. A group of another broker, or whose home shard died during the call,
is NOT_COORDINATOR.

Source: KafkaApis.handleShareGroupHeartbeat, GroupCoordinatorService of Kafka 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.groups import guards
from broker.kafka.groups.modern.member import LEAVE, HeartbeatResult
from broker.kafka.groups.modern.responses import AssignmentOf, GroupDescriptions, described_by, heartbeat_response
from broker.kafka.groups.router import GroupRouter
from broker.kafka.groups.share.member import ShareHeartbeat
from broker.kafka.groups.share.messages import DescribeShareGroup, ShareGroupHeartbeat
from broker.kafka.remote import or_lost
from broker.kafka.security.guarded_route import GuardedRoute
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.image import ClusterImage
from shards.loop.deferred import MaybeDeferred, then
from shards.loop.turns import Turns
from shards.settings.releases import SHARE_VERSION

if TYPE_CHECKING:
    from broker.wire.requests import ShareGroupDescribeRequest, ShareGroupHeartbeatRequest
    from broker.wire.responses import ShareGroupDescribeTypes, ShareGroupHeartbeatTypes

HEARTBEAT, DESCRIBE = 76, 77


def routes(cluster: ClusterMetadata, groups: GroupRouter, image: ClusterImage, turns: Turns) -> list[GuardedRoute]:
    handler = _ShareGroups(cluster, groups, image, turns)
    return [
        GuardedRoute(HEARTBEAT, handler.heartbeat, guards.share_heartbeat),
        GuardedRoute(DESCRIBE, handler.describe, guards.describe_share_groups),
    ]


def is_on(image: ClusterImage) -> bool:
    """True if there are share groups."""
    return image.feature_level(SHARE_VERSION) > 0


class _ShareGroups:
    def __init__(self, cluster: ClusterMetadata, groups: GroupRouter, image: ClusterImage, turns: Turns) -> None:
        self._cluster = cluster
        self._groups = groups
        self._image = image
        self._descriptions = GroupDescriptions(
            "share", DescribeShareGroup, cluster, groups, turns=turns, described=described_by(image, _member)
        )

    # --- heartbeat -----------------------------------------------------------------------------------------------------

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, call: Call[ShareGroupHeartbeatTypes]
    ) -> MaybeDeferred[Message]:
        def lost() -> Message:
            return _answer(call, HeartbeatResult(codes.NOT_COORDINATOR))

        if not is_on(self._image):
            return _answer(call, HeartbeatResult(codes.UNSUPPORTED_VERSION))
        refused = _refusal(request)
        if refused is not None:
            return _answer(call, HeartbeatResult(codes.INVALID_REQUEST, refused))
        if not self._cluster.coordinates(request.group_id):
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
        answer = self._groups.ask(ShareGroupHeartbeat(request.group_id, beat))
        return or_lost(then(answer, lambda fields: _answer(call, HeartbeatResult(*fields))), lost)

    # --- describe ------------------------------------------------------------------------------------------------------

    def describe(
        self, request: ShareGroupDescribeRequest, call: Call[ShareGroupDescribeTypes]
    ) -> MaybeDeferred[Message]:
        return self._descriptions.describe(request, call, is_on=is_on(self._image))


def _member(
    call: Call[ShareGroupDescribeTypes], member: Sequence[Any], assignment: AssignmentOf
) -> ShareGroupDescribeTypes.Member:
    member_id, rack, epoch, client_id, client_host, names, assigned = member
    return call.types.Member(
        member_id=member_id, rack_id=rack, member_epoch=epoch, client_id=client_id, client_host=client_host,
        subscribed_topic_names=tuple(names), assignment=assignment(assigned),
    )  # fmt: skip


def _refusal(request: ShareGroupHeartbeatRequest) -> str | None:
    """The refusal of a request that no group could answer; None: one can."""
    if not request.member_id.strip():
        return "MemberId can't be empty."
    if not request.group_id.strip():
        return "GroupId can't be empty."
    if request.rack_id is not None and not request.rack_id.strip():
        return "RackId can't be empty."
    if request.member_epoch == 0 and not request.subscribed_topic_names:
        return "SubscribedTopicNames must be set in first request."
    return "MemberEpoch is invalid." if request.member_epoch < LEAVE else None


def _answer(call: Call[ShareGroupHeartbeatTypes], result: HeartbeatResult) -> Message:
    return heartbeat_response(call.types.ShareGroupHeartbeatResponse, call, result)
