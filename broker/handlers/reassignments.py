"""ElectLeaders 0-2, AlterPartitionReassignments 0-1, ListPartitionReassignments 0: a partition has one replica, its leader.

So an election is never needed (ELECTION_NOT_NEEDED), a reassignment is accepted only where nothing would move, and none
is ever in progress. Answers are Kafka 4.1's.
"""

from __future__ import annotations

from broker.protocol import codes
from broker.protocol.codec import Message
from broker.protocol.requests import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
)
from broker.protocol.wire import Types
from broker.serve.call import Call, Route
from shards.config.image import ClusterImage

PREFERRED, UNCLEAN = 0, 1


def routes(image: ClusterImage) -> list[Route]:
    handler = _Reassignments(image)
    return [
        Route(43, 0, 2, handler.elect_leaders),
        Route(45, 0, 1, handler.reassign),
        Route(46, 0, 0, _list_reassignments),
    ]


class _Reassignments:
    def __init__(self, image: ClusterImage) -> None:
        self._image = image

    def elect_leaders(self, request: ElectLeadersRequest, call: Call) -> Message:
        types = call.types
        known = request.election_type in (PREFERRED, UNCLEAN)
        answer = self._not_needed if known else _of_no_kind
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

    def _not_needed(self, types: Types, name: str, partition: int) -> Message:
        code, message = codes.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
        if not self._exists(name, partition):
            what = f"partition as {name}-{partition}" if name in self._image.topics else f"topic as {name}"
            code, message = codes.UNKNOWN_TOPIC_OR_PARTITION, f"No such {what}"
        return types.PartitionResult(partition_id=partition, error_code=code, error_message=message)

    def reassign(self, request: AlterPartitionReassignmentsRequest, call: Call) -> Message:
        """Accepted where nothing would move; a partition's one replica stays where it is."""
        types = call.types
        responses = tuple(
            types.ReassignableTopicResponse(
                name=topic.name, partitions=tuple(self._reassigned(types, topic.name, p) for p in topic.partitions)
            )
            for topic in request.topics
        )
        return types.AlterPartitionReassignmentsResponse(
            error_code=codes.NONE, error_message=None, responses=responses,
            allow_replication_factor_change=request.allow_replication_factor_change,
        )  # fmt: skip

    def _reassigned(self, types: Types, name: str, partition: ReassignablePartition) -> Message:
        n, replicas = partition.partition_index, partition.replicas
        code, message = codes.NONE, None
        if not self._exists(name, n):
            code, message = codes.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist."
        elif replicas is None:
            code = codes.NO_REASSIGNMENT_IN_PROGRESS
        elif tuple(replicas) != (self._image.topics.get(name).leaders[n],):  # type: ignore[union-attr]
            code, message = codes.INVALID_REPLICA_ASSIGNMENT, "Partitions do not move in this cluster."
        return types.ReassignablePartitionResponse(partition_index=n, error_code=code, error_message=message)

    def _exists(self, name: str, partition: int) -> bool:
        topic = self._image.topics.get(name)
        return topic is not None and 0 <= partition < len(topic.leaders)


def _of_no_kind(types: Types, name: str, partition: int) -> Message:
    message = "No such kind of election."
    return types.PartitionResult(partition_id=partition, error_code=codes.INVALID_REQUEST, error_message=message)


def _list_reassignments(request: ListPartitionReassignmentsRequest, call: Call) -> Message:
    return call.types.ListPartitionReassignmentsResponse(error_code=codes.NONE, error_message=None, topics=())
