"""Guards of the APIs of streams groups: GROUP_AUTHORIZATION_FAILED, or TOPIC_AUTHORIZATION_FAILED where a topology has a topic that
the client may not describe. Source: KafkaApis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.kafka.groups.guards import describe_members, heartbeat_code
from broker.kafka.security.access import Access
from broker.kafka.security.guards import MESSAGES, unless
from broker.serve.call import Call

if TYPE_CHECKING:
    from broker.wire.requests import StreamsGroupHeartbeatRequest
    from broker.wire.responses import StreamsGroupDescribeTypes


def topics_of(subtopologies: Any) -> set[str]:
    """The names of all topics of the subtopologies of a request or response."""
    return {
        str(name)
        for each in subtopologies
        for name in (
            *each.source_topics,
            *(topic.name for topic in each.repartition_source_topics),
            *(topic.name for topic in each.state_changelog_topics),
        )
    }


def _heartbeat_code(access: Access, call: Call, request: StreamsGroupHeartbeatRequest) -> int:
    names = topics_of(request.topology.subtopologies) if request.topology is not None else ()
    return heartbeat_code(access, call, request.group_id, names)


heartbeat = unless(
    _heartbeat_code,
    lambda types, request, code: types.StreamsGroupHeartbeatResponse(
        error_code=code, error_message=MESSAGES[code], member_id="", member_epoch=0, heartbeat_interval=0,
        acceptable_recovery_lag=0, task_offset_interval=0, status=None, active_tasks=None, standby_tasks=None, warmup_tasks=None,
        endpoint_information_epoch=0, partitions_by_user_endpoint=None,
    ),
)  # fmt: skip


def undescribed(types: StreamsGroupDescribeTypes, group: str, code: int, message: str | None = None) -> Any:
    """A group that is not described."""
    return types.DescribedGroup(
        error_code=code, error_message=message, group_id=group, group_state="", group_epoch=0, assignment_epoch=0, topology=None,
        members=(),
    )  # fmt: skip


def _topics_of_group(group: Any) -> set[str]:
    return topics_of(() if group.topology is None else group.topology.subtopologies or ())


describe = describe_members(_topics_of_group, undescribed)
