"""The brokers that are named as replicas of a partition. Pure.

A partition is stored once, at the broker that leads it; the others are names, for clients that ask for a replication factor
and look whether they got it. Nothing is copied to them, they count as in sync, and no partition moves: its leader is always
among its replicas. A topic's record has "replicas" only where there is any but leaders.
Sources: StripedReplicaPlacer and ReplicationControlManager of Kafka 4.1.
"""

from collections.abc import Iterable, Sequence
from functools import cache

from shards.config.stored_records import TopicRecord

Result = list[str]  # [error name or "", message]


def spread(leaders: Sequence[int], factor: int, brokers: int) -> list[list[int]]:
    """The replicas of each partition: its leader and the brokers that follow it."""
    return [[(leader + n) % brokers for n in range(factor)] for leader in leaders]


def topic_record(
    topic_id: str, leaders: Sequence[int], replicas: Sequence[Sequence[int]], configs: dict[str, str]
) -> TopicRecord:
    """The record of a topic whose partitions are there."""
    if all(tuple(each) == (leader,) for leader, each in zip(leaders, replicas, strict=True)):
        return {"id": topic_id, "leaders": [*leaders], "configs": configs}
    return {"id": topic_id, "leaders": [*leaders], "replicas": [[*each] for each in replicas], "configs": configs}


def replaced(topic: TopicRecord, leaders: Sequence[int], replicas: Sequence[Sequence[int]]) -> TopicRecord:
    """A topic's record with its partitions there."""
    return topic_record(topic["id"], leaders, replicas, topic["configs"])


def replicas_of(topic: TopicRecord) -> list[Sequence[int]]:
    """The replicas of each partition of a topic's record."""
    return topic.get("replicas") or [_alone(leader) for leader in topic["leaders"]]


@cache
def _alone(leader: int) -> tuple[int]:
    """One object for all partitions with this leader, of which there may be a million."""
    return (leader,)


def factor_problem(factor: int, brokers: int) -> Result | None:
    """The refusal of so many replicas; None: there can be."""
    if factor <= 0:
        message = "Replication factor must be larger than 0, or -1 to use the default value."
    elif factor > brokers:
        message = (
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot "
            f"be reached because only {brokers} broker(s) are registered."
        )
    else:
        return None
    return ["INVALID_REPLICATION_FACTOR", message]


def number_problem(assigned: int, added: int) -> Result | None:
    """The refusal of assignments of another number of partitions than is to be added; None: it is the same."""
    if assigned == added:
        return None
    return [
        "INVALID_REPLICA_ASSIGNMENT",
        f"Attempted to add {added} additional partition(s), but only {assigned} assignment(s) were specified.",
    ]


def assignments_problem(assigned: Iterable[Sequence[int]], brokers: int, factor: int | None) -> Result | None:
    """The first assignment_problem of the replicas of many partitions."""
    found = (assignment_problem(replicas, brokers, factor) for replicas in assigned)
    return next((problem for problem in found if problem), None)


def assignment_problem(replicas: Sequence[int], brokers: int, factor: int | None = None) -> Result | None:
    """The refusal of these as replicas of one partition; None: they can be. `factor`: as many as those of the others have to be."""
    what = "The manual partition assignment includes"
    message = None
    before = None
    for broker in sorted(replicas):
        if not 0 <= broker < brokers:
            message = f"{what} broker {broker}, but no such broker is registered."
            break
        if broker == before:
            message = f"{what} the broker {broker} more than once."
            break
        before = broker
    if not replicas:
        message = f"{what} an empty replica list."
    elif message is None and factor is not None and len(replicas) != factor:
        message = (
            f"{what} a partition with {len(replicas)} replica(s), but this is not consistent with previous "
            f"partitions, which have {factor} replica(s)."
        )
    return None if message is None else ["INVALID_REPLICA_ASSIGNMENT", message]
