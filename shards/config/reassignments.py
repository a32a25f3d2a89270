"""Changes which brokers are named as replicas of existing partitions (KIP-455). Pure.

Replicas are names only, nothing is copied to them (replicas.py): a reassignment is done at once, there is never one in progress,
and none moves a leader.
Source: ReplicationControlManager.alterPartitionReassignments of Kafka 4.1.
"""

from collections.abc import Sequence

from shards.config.config_state import Change, ConfigState, RequestedChanges, bounded, storable
from shards.config.messages import Reassignment
from shards.config.replicas import Result, assignment_problem, replaced, replicas_of

NONE_IN_PROGRESS: Result = ["NO_REASSIGNMENT_IN_PROGRESS", ""]
STAYS: Result = [
    "INVALID_REPLICA_ASSIGNMENT",
    "Partitions do not move in this cluster: the leader has to stay among the replicas.",
]


def reassign(state: ConfigState, wanted: Sequence[Reassignment], factor_may_change: bool) -> RequestedChanges:
    """`wanted`: [topic, partition, replicas, or None to cancel]. One result each, in order; done at once, so that there is
    never anything to cancel."""
    bounded(wanted)
    changed: dict[str, list[Sequence[int]]] = {}
    results: list[Result] = []
    for name, partition, replicas in wanted:
        topic = state.topics.get(name)
        if topic is None or not 0 <= partition < len(topic["leaders"]):
            what = f"a topic named {name}" if topic is None else f"partition {name}:{partition}"
            results.append(["UNKNOWN_TOPIC_OR_PARTITION", f"Unable to find {what}."])
            continue
        now = changed.get(name) or replicas_of(topic)
        problem = _problem(state, topic["leaders"][partition], now[partition], replicas, factor_may_change)
        results.append(problem or ["", ""])
        if problem is None and replicas is not None:
            changed[name] = [*now[:partition], replicas, *now[partition + 1 :]]
    delta: list[Change] = []
    for name, of_each in changed.items():
        topic = state.topics[name]
        record = replaced(topic, topic["leaders"], of_each)
        if record != topic:
            delta.append(("topic", name, record))
    return RequestedChanges(storable(delta), results)


def _problem(
    state: ConfigState, leader: int, now: Sequence[int], replicas: Sequence[int] | None, factor_may_change: bool
) -> Result | None:
    if replicas is None:
        return NONE_IN_PROGRESS
    problem = assignment_problem(replicas, state.brokers)
    if problem is not None:
        return problem
    if not factor_may_change and len(replicas) != len(now):
        message = f"The replication factor is changed from {len(now)} to {len(replicas)}"
        return ["INVALID_REPLICATION_FACTOR", message]
    return None if leader in replicas else STAYS
