"""ElectLeaders 0-2, AlterPartitionReassignments 0-1, ListPartitionReassignments 0: a leader never moves.

Replicas beside the leader are names (shards/config/reassignments.py). So a reassignment that keeps the leader is done at
once, and none is ever in progress; an election is not needed, and where another replica is the preferred one it is not
available. Answers are Kafka's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from broker.kafka.api_error import ApiError
from broker.kafka.remote import ChangeFailed, CoordinatorCalls, ask_coordinator, changed_by, spawned
from broker.kafka.security.guarded_route import GuardedRoute
from broker.kafka.topics import guards
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.image import ClusterImage
from shards.loop.deferred import Spawn

if TYPE_CHECKING:
    from broker.wire.requests import (
        AlterPartitionReassignmentsRequest,
        ElectLeadersRequest,
        ListPartitionReassignmentsRequest,
    )
    from broker.wire.responses import (
        AlterPartitionReassignmentsTypes,
        ElectLeadersTypes,
        ListPartitionReassignmentsTypes,
    )

PREFERRED, UNCLEAN = 0, 1


def routes(image: ClusterImage, mesh: CoordinatorCalls, spawn: Spawn) -> list[GuardedRoute]:
    handler = _Reassignments(image, mesh)
    return [
        GuardedRoute(43, handler.elect_leaders, guards.elect_leaders),
        GuardedRoute(45, spawned(spawn, handler.reassign), guards.alter_partition_reassignments),
        GuardedRoute(46, _list_reassignments, guards.list_partition_reassignments),
    ]


class _Reassignments:
    def __init__(self, image: ClusterImage, mesh: CoordinatorCalls) -> None:
        self._image = image
        self._mesh = mesh

    def elect_leaders(self, request: ElectLeadersRequest, call: Call[ElectLeadersTypes]) -> Message:
        types = call.types
        known = request.election_type in (PREFERRED, UNCLEAN)
        answer = partial(self._elected, request.election_type) if known else _of_no_kind
        wanted = request.topic_partitions
        if wanted is None:
            found: list[tuple[str, tuple[int, ...]]] = [(name, ()) for name in self._image.topics.names()]
        else:
            found = [(topic.topic, topic.partitions) for topic in wanted]
        results = tuple(
            types.ReplicaElectionResult(topic=name, partition_result=tuple(answer(types, name, n) for n in partitions))
            for name, partitions in found
        )
        code = codes.NONE if known else codes.INVALID_REQUEST
        return types.ElectLeadersResponse(error_code=code, replica_election_results=results)

    def _elected(
        self, kind: int, types: ElectLeadersTypes, name: str, partition: int
    ) -> ElectLeadersTypes.PartitionResult:
        topic = self._image.topics.get(name)
        code, message = codes.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
        if topic is None or not 0 <= partition < len(topic.leaders):
            what = f"partition as {name}-{partition}" if topic is not None else f"topic as {name}"
            code, message = codes.UNKNOWN_TOPIC_OR_PARTITION, f"No such {what}"
        elif kind == PREFERRED and topic.replicas[partition][0] != topic.leaders[partition]:
            code = codes.PREFERRED_LEADER_NOT_AVAILABLE
            message = "The preferred leader was not available: partitions do not move in this cluster."
        return types.PartitionResult(partition_id=partition, error_code=code, error_message=message)

    async def reassign(
        self, request: AlterPartitionReassignmentsRequest, call: Call[AlterPartitionReassignmentsTypes]
    ) -> Message:
        types = call.types
        wanted = [(topic.name, p.partition_index, p.replicas) for topic in request.topics for p in topic.partitions]
        try:
            change_factor = request.allow_replication_factor_change
            answers = await ask_coordinator(self._mesh, "reassign", changed_by(call), wanted, change_factor)
        except ChangeFailed as failed:
            return types.AlterPartitionReassignmentsResponse(
                error_code=failed.code, error_message=failed.message, responses=(),
                allow_replication_factor_change=change_factor,
            )  # fmt: skip
        results = iter(answers)
        responses = tuple(
            types.ReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(_reassigned(types, p.partition_index, next(results)) for p in topic.partitions),
            )
            for topic in request.topics
        )
        return types.AlterPartitionReassignmentsResponse(
            error_code=codes.NONE, error_message=None if responses else "", responses=responses,
            allow_replication_factor_change=change_factor,
        )  # fmt: skip


def _reassigned(
    types: AlterPartitionReassignmentsTypes, partition: int, result: Sequence[str]
) -> AlterPartitionReassignmentsTypes.ReassignablePartitionResponse:
    code, message = ApiError.of(result)
    return types.ReassignablePartitionResponse(partition_index=partition, error_code=code, error_message=message)


def _of_no_kind(types: ElectLeadersTypes, name: str, partition: int) -> ElectLeadersTypes.PartitionResult:
    message = "No such kind of election."
    return types.PartitionResult(partition_id=partition, error_code=codes.INVALID_REQUEST, error_message=message)


def _list_reassignments(
    request: ListPartitionReassignmentsRequest, call: Call[ListPartitionReassignmentsTypes]
) -> Message:
    return call.types.ListPartitionReassignmentsResponse(error_code=codes.NONE, error_message=None, topics=())
