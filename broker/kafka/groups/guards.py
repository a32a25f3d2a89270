"""Guards of the APIs that name groups, and what these commit: GROUP_AUTHORIZATION_FAILED. Source: KafkaApis."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from broker.kafka.security.access import Access, SplitItems
from broker.kafka.security.acl import CLUSTER_NAME, Operation, ResourceType
from broker.kafka.security.guards import GROUP_DENIED as DENIED
from broker.kafka.security.guards import (
    MESSAGES,
    TOPIC_DENIED,
    Guard,
    after,
    answered,
    by_topic,
    described,
    of_group,
    of_group_and_topics,
    of_partitions,
    unless,
)
from broker.serve.call import Answer, Call, Handler
from broker.wire import codes
from broker.wire.codec import Message

if TYPE_CHECKING:
    from broker.wire.requests import (
        DeleteGroupsRequest,
        FindCoordinatorRequest,
        JoinGroupRequest,
        OffsetCommitRequest,
        OffsetFetchRequest,
    )
    from broker.wire.responses import (
        DeleteGroupsTypes,
        FindCoordinatorTypes,
        JoinGroupTypes,
        OffsetCommitTypes,
        OffsetFetchTypes,
    )

T = TypeVar("T")
GROUP = ResourceType.GROUP
TOPIC = ResourceType.TOPIC
_GROUPS_SINCE = 8  # of OffsetFetch
OFFSET_TOPIC_IDS_SINCE = 10
"""The version of OffsetCommit and OffsetFetch from which topics are named by id."""
_NOT_TOLD = -(2**31)
"""The operations of a group that there is not."""
_KEYS_SINCE = 4  # of FindCoordinator
_NO_PROTOCOL_SINCE = 7  # of JoinGroup


def join(access: Access, handler: Handler) -> Handler:
    def handle(request: JoinGroupRequest, call: Call[JoinGroupTypes]) -> Answer:
        if access.may(call, Operation.READ, GROUP, request.group_id):
            return handler(request, call)
        return call.types.JoinGroupResponse(
            error_code=DENIED, generation_id=-1, protocol_type=None, leader="", member_id="", members=(),
            protocol_name=None if call.api_version >= _NO_PROTOCOL_SINCE else "",
        )  # fmt: skip

    return handle


sync = of_group(
    Operation.READ,
    lambda types, request: types.SyncGroupResponse(
        error_code=DENIED, protocol_type=None, protocol_name=None, assignment=b""
    ),
)
heartbeat = of_group(Operation.READ, lambda types, request: types.HeartbeatResponse(error_code=DENIED))
leave = of_group(Operation.READ, lambda types, request: types.LeaveGroupResponse(error_code=DENIED, members=()))


def heartbeat_code(access: Access, call: Call, group: str, topics: Iterable[str]) -> int:
    """NONE if the client may read the group and describe all topics that its member names, else the error."""
    if not access.may(call, Operation.READ, GROUP, group):
        return DENIED
    return codes.NONE if all(access.may(call, Operation.DESCRIBE, TOPIC, name) for name in topics) else TOPIC_DENIED


def _heartbeat_code(access: Access, call: Call, request: Any) -> int:
    """A regular expression just does not match a topic that the client may not describe."""
    return heartbeat_code(access, call, request.group_id, request.subscribed_topic_names or ())


consumer_heartbeat = unless(
    _heartbeat_code,
    lambda types, request, code: types.ConsumerGroupHeartbeatResponse(
        error_code=code, error_message=None, member_epoch=0, heartbeat_interval=0
    ),
)


share_heartbeat = unless(
    _heartbeat_code,
    lambda types, request, code: types.ShareGroupHeartbeatResponse(
        error_code=code, error_message=MESSAGES[code], member_epoch=0, heartbeat_interval=0
    ),
)


def _uncommitted(types: OffsetCommitTypes, request: OffsetCommitRequest) -> Message:
    made: Any = of_partitions(*_COMMITTED, code=DENIED)
    return types.OffsetCommitResponse(topics=tuple(made(types, topic) for topic in request.topics))


_COMMITTED = ("OffsetCommitResponseTopic", "OffsetCommitResponsePartition")
offset_commit = of_group_and_topics(
    of_group(Operation.READ, _uncommitted),
    by_topic(
        Operation.READ, of_partitions(*_COMMITTED), ids_since=OFFSET_TOPIC_IDS_SINCE, alone="OffsetCommitResponse"
    ),
)
offset_delete = of_group_and_topics(
    of_group(Operation.DELETE, lambda types, request: types.OffsetDeleteResponse(error_code=DENIED, topics=())),
    by_topic(Operation.READ, of_partitions("OffsetDeleteResponseTopic", "OffsetDeleteResponsePartition")),
)


def offset_fetch(access: Access, handler: Handler) -> Handler:
    """The guard of OffsetFetch. A request for all topics is answered without those that the client may not describe."""

    def handle(request: OffsetFetchRequest, call: Call[OffsetFetchTypes]) -> Answer:
        if call.api_version < _GROUPS_SINCE:
            return _offset_fetch_of_one(access, handler, request, call)
        allowed, denied = access.split(
            call, Operation.DESCRIBE, GROUP, request.groups, lambda group: str(group.group_id)
        )
        refused = [
            call.types.OffsetFetchResponseGroup(group_id=group.group_id, topics=(), error_code=DENIED)
            for group in denied
        ]
        request.groups = tuple(allowed)
        hidden = {group.group_id: _hide(access, call, group) for group in allowed}

        def show(response: OffsetFetchTypes.OffsetFetchResponse) -> OffsetFetchTypes.OffsetFetchResponse:
            for group in response.groups or ():
                if not group.error_code:
                    _show(access, call, group, hidden.get(group.group_id), "OffsetFetchResponseTopics",
                          "OffsetFetchResponsePartitions")  # fmt: skip
            return answered(response, "groups", refused)

        return after(handler(request, call), show)

    return handle


def _offset_fetch_of_one(
    access: Access, handler: Handler, request: OffsetFetchRequest, call: Call[OffsetFetchTypes]
) -> Answer:
    if not access.may(call, Operation.DESCRIBE, GROUP, request.group_id):
        topics = [_unfetched(call.types, topic, DENIED, "OffsetFetchResponseTopic", "OffsetFetchResponsePartition")
                  for topic in request.topics or ()] if call.api_version < 2 else []  # fmt: skip
        return call.types.OffsetFetchResponse(error_code=DENIED, topics=tuple(topics))
    hidden = _hide(access, call, request)

    def show(response: OffsetFetchTypes.OffsetFetchResponse) -> OffsetFetchTypes.OffsetFetchResponse:
        _show(access, call, response, hidden, "OffsetFetchResponseTopic", "OffsetFetchResponsePartition")
        return response

    return after(handler(request, call), show)


def _hide(access: Access, call: Call, group: Any) -> list[Any] | None:
    """Takes the topics out of the request that the client may not describe; None if it asks for all topics."""
    if group.topics is None:
        return None
    allowed, denied = _may_see(access, call, group.topics)
    group.topics = tuple(allowed)
    return denied


def _may_see(access: Access, call: Call, topics: Iterable[T]) -> SplitItems[T]:
    """`topics`: of an OffsetFetch or its answer."""

    def named(topic: Any) -> str | None:
        return access.name_of(topic.topic_id) if call.api_version >= OFFSET_TOPIC_IDS_SINCE else topic.name

    return access.split(call, Operation.DESCRIBE, TOPIC, topics, named)


def _show(
    access: Access,
    call: Call[OffsetFetchTypes],
    group: Any,
    hidden: list[Any] | None,
    topic_class: str,
    partition_class: str,
) -> None:
    if hidden is None:
        group.topics = tuple(_may_see(access, call, group.topics).allowed)
    else:
        code = codes.TOPIC_AUTHORIZATION_FAILED
        answered(group, "topics", [_unfetched(call.types, each, code, topic_class, partition_class) for each in hidden])


def _unfetched(types: OffsetFetchTypes, topic: Any, code: int, topic_class: str, partition_class: str) -> Any:
    one = getattr(types, partition_class)
    partitions = tuple(
        one(partition_index=number, committed_offset=-1, committed_leader_epoch=-1, metadata="", error_code=code)
        for number in topic.partition_indexes
    )
    named = {"topic_id": topic.topic_id} if hasattr(topic, "topic_id") else {}
    return getattr(types, topic_class)(name=topic.name, **named, partitions=partitions)


def describe_by(field: str, refusal: Callable[[Any, str], Any]) -> Guard:
    """The guard of an API that describes the groups in a `field`; `refusal` answers for groups that the client may not describe."""

    def guard(access: Access, handler: Handler) -> Handler:
        def handle(request: Any, call: Call[Any]) -> Answer:
            asked = getattr(request, field)
            allowed, denied = access.split(call, Operation.DESCRIBE, GROUP, asked, lambda group: str(group))
            setattr(request, field, tuple(allowed))
            refused = [refusal(call.types, group) for group in dict.fromkeys(denied)]

            def show(response: Any) -> Any:
                for group in response.groups:
                    if request.include_authorized_operations and group.authorized_operations != _NOT_TOLD:
                        group.authorized_operations = access.operations(call, GROUP, group.group_id)
                return answered(response, "groups", refused)

            return after(handler(request, call), show)

        return handle

    return guard


describe = describe_by(
    "groups",
    lambda types, group: types.DescribedGroup(
        error_code=DENIED, error_message=None, group_id=group, group_state="", protocol_type="",
        protocol_data="", members=(),
    ),
)  # fmt: skip


def undescribed(types: Any, group: str, code: int, message: str | None = None) -> Any:
    """A consumer or share group that is not described, with the error that says why."""
    return types.DescribedGroup(
        error_code=code, error_message=message, group_id=group, group_state="", group_epoch=0, assignment_epoch=0,
        assignor_name="", members=(),
    )  # fmt: skip


def describe_members(topics_of: Callable[[Any], Iterable[str]], hidden: Callable[..., Any] = undescribed) -> Guard:
    """The guard of an API that describes groups with members: a group with a topic that the client may not describe is hidden.

    `topics_of`: the names of a described group's topics; `hidden`: a group that is not described, as `undescribed` makes it.
    """

    def guard(access: Access, handler: Handler) -> Handler:
        def shown(call: Call[Any], group: Any) -> Any:
            if all(access.may(call, Operation.DESCRIBE, TOPIC, topic) for topic in topics_of(group)):
                return group
            return hidden(call.types, group.group_id, TOPIC_DENIED, MESSAGES[TOPIC_DENIED])

        def handle(request: Any, call: Call[Any]) -> Answer:
            def hide(response: Any) -> Any:
                response.groups = tuple(shown(call, group) for group in response.groups)
                return response

            return after(handler(request, call), hide)

        return describe_by("group_ids", lambda types, group: hidden(types, group, DENIED))(access, handle)

    return guard


def _assigned_topics(group: Any, *fields: str) -> set[str]:
    """`fields` of a member that name topics."""
    assignments = (getattr(member, field) for member in group.members for field in fields)
    return {str(each.topic_name) for assignment in assignments for each in assignment.topic_partitions}


describe_consumer_groups = describe_members(lambda group: _assigned_topics(group, "assignment", "target_assignment"))
describe_share_groups = describe_members(lambda group: _assigned_topics(group, "assignment"))


def list_groups(access: Access, handler: Handler) -> Handler:
    hiding = described(GROUP, "groups", "group_id")(access, handler)

    def handle(request: Any, call: Call) -> Answer:
        return (handler if access.may_cluster(call, Operation.DESCRIBE) else hiding)(request, call)

    return handle


def delete_groups(access: Access, handler: Handler) -> Handler:
    def handle(request: DeleteGroupsRequest, call: Call[DeleteGroupsTypes]) -> Answer:
        allowed, denied = access.split(call, Operation.DELETE, GROUP, request.groups_names, lambda group: str(group))
        request.groups_names = tuple(allowed)
        refused = [call.types.DeletableGroupResult(group_id=each, error_code=DENIED) for each in dict.fromkeys(denied)]
        return after(handler(request, call), lambda response: answered(response, "results", refused))

    return handle


_GROUP_KEY, _TRANSACTION_KEY, _SHARE_KEY = 0, 1, 2
_SHARE_KEYS_SINCE = 6
_FOUND = {
    _GROUP_KEY: (Operation.DESCRIBE, GROUP, DENIED),
    _TRANSACTION_KEY: (
        Operation.DESCRIBE,
        ResourceType.TRANSACTIONAL_ID,
        codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    _SHARE_KEY: (Operation.CLUSTER_ACTION, ResourceType.CLUSTER, codes.CLUSTER_AUTHORIZATION_FAILED),
}
"""The operation that a client must be allowed to find out where a key is, and the error if it is not."""


def find_coordinator(access: Access, handler: Handler) -> Handler:
    def handle(request: FindCoordinatorRequest, call: Call[FindCoordinatorTypes]) -> Answer:
        kind = request.key_type
        if kind not in _FOUND or (kind == _SHARE_KEY and call.api_version < _SHARE_KEYS_SINCE):
            return handler(request, call)
        operation, resource, code = _FOUND[kind]
        if call.api_version < _KEYS_SINCE:
            if access.may(call, operation, resource, request.key):
                return handler(request, call)
            return call.types.FindCoordinatorResponse(
                node_id=-1, host="", port=-1, error_code=code, error_message=MESSAGES[code]
            )
        asked = request.coordinator_keys
        allowed, denied = access.split(
            call, operation, resource, asked, lambda key: CLUSTER_NAME if kind == _SHARE_KEY else str(key)
        )
        request.coordinator_keys = tuple(allowed)
        refused = [
            call.types.Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message="")
            for key in denied
        ]
        return after(handler(request, call), lambda response: answered(response, "coordinators", refused))

    return handle
