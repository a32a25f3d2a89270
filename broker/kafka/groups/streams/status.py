"""The statuses of a streams group that a heartbeat is answered with, by Kafka's codes and words
(StreamsGroupHeartbeatResponse.Status)."""

from enum import Enum
from typing import NamedTuple

STALE_TOPOLOGY, MISSING_SOURCE_TOPICS, INCORRECTLY_PARTITIONED_TOPICS = 0, 1, 2
MISSING_INTERNAL_TOPICS, SHUTDOWN_APPLICATION, ASSIGNMENT_DELAYED = 3, 4, 5


class Status(NamedTuple):
    """`code` is one of those above."""

    code: int
    detail: str


def stale(own: int, epoch: int) -> Status | None:
    """`own`: the epoch of the member's topology, `epoch`: that of the group's."""
    if own >= epoch:
        return None
    return Status(STALE_TOPOLOGY, f"The member's topology epoch {own} is behind the group's topology epoch {epoch}.")


class Delay(Enum):
    """The cause for which a group has an older assignment than its epoch, as Kafka calls it."""

    INITIAL_REBALANCE = "initial rebalance delay"
    ASSIGNMENT_INTERVAL = "assignment interval"


def delayed(waits_for: Delay | None) -> Status | None:
    """The status while a group's first members wait for others, or the group for the end of its assignment interval."""
    if waits_for is None:
        return None
    return Status(ASSIGNMENT_DELAYED, f"Assignment delayed due to the configured {waits_for.value}.")


def shutdown(member_id: str | None) -> Status | None:
    """`member_id`: the member that has asked for the end of the application; None: there is none."""
    if member_id is None:
        return None
    message = f"Streams group member {member_id} encountered a fatal error and requested a shutdown for the entire application."
    return Status(SHUTDOWN_APPLICATION, message)
