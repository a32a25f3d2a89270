"""Reasons to refuse a heartbeat of a streams group: the epoch and the tasks of its member.

Source: GroupMetadataManager of Kafka 4.3.
"""

from __future__ import annotations

from broker.kafka.groups.streams.member import StreamsHeartbeat, StreamsMember, StreamsResult
from broker.kafka.groups.streams.tasks import Tasks
from broker.kafka.groups.streams.topology import ConfiguredTopology
from broker.wire import codes


def fenced_by(member: StreamsMember, request: StreamsHeartbeat) -> StreamsResult | None:
    """The previous epoch is accepted where the last answer may have been lost: the member owns no more than it was assigned."""
    if request.epoch == member.epoch:
        return None
    is_repeated = request.epoch == member.previous_epoch and request.epoch < member.epoch
    if is_repeated and request.owned is not None and member.progress.assigned.has_all(request.owned):
        return None
    kind = "greater" if request.epoch > member.epoch else "smaller"
    return StreamsResult(
        codes.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {kind} member epoch ({request.epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


def unknown_task(owned: Tasks | None, configured: ConfiguredTopology) -> str | None:
    """The fault of the tasks that a member says it has; None: there is none."""
    if owned is None or not configured.is_ready or configured.tasks is None:
        return None
    for subtopology, number in sorted(owned.active | owned.standby):
        count = configured.tasks.get(subtopology)
        if count is None:
            return f"Subtopology {subtopology} does not exist in the topology."
        if not 0 <= number < count:
            return (
                f"Task {number} for subtopology {subtopology} is invalid. Number of tasks for this subtopology: {count}"
            )
    return None
