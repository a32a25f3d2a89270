"""OffsetCommit 2-9, OffsetFetch 1-9 (from 8 for several groups, KIP-709), OffsetDelete 0 (KIP-496).

A commit is checked here against the topics that exist and written at the group's home in one piece. A group that is not
known has committed nothing: offset -1, which is no error. Retention times in commits (versions 2 to 4) are
ignored, as since KIP-211. A stable fetch (KIP-447) is answered UNSTABLE_OFFSET_COMMIT for offsets of a transaction that is
not over. A member of a group of the consumer protocol says its epoch (KIP-848); any other epoch is answered
STALE_MEMBER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.groups import guards
from broker.kafka.groups.messages import CommitOffsets, DeleteOffsets, FetchOffsets
from broker.kafka.groups.router import GroupRouter
from broker.kafka.remote import ask_each, or_lost
from broker.kafka.security.guarded_route import GuardedRoute
from broker.runtime.places import by_topic
from broker.serve.call import Call
from broker.storage.topic_partition import TopicPartition
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.image import ClusterImage
from shards.loop.deferred import MaybeDeferred, then
from shards.loop.turns import Turns

if TYPE_CHECKING:
    from broker.wire.requests import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetDeleteRequest,
        OffsetFetchRequest,
        OffsetFetchRequestGroup,
        OffsetFetchRequestTopic,
        OffsetFetchRequestTopics,
        TxnOffsetCommitRequestPartition,
    )
    from broker.wire.responses import OffsetCommitTypes, OffsetDeleteTypes, OffsetFetchTypes

T = TypeVar("T")
Held = Sequence[tuple[str, int, int, int, str, int]]
"""[topic, partition, offset, leader epoch, metadata, code] each, as GroupCoordinator.fetch answers."""
Fetched = tuple[int, Held]
"""(code of the group, its offsets)."""
NOT_COORDINATOR_ANSWER: Fetched = (codes.NOT_COORDINATOR, ())
OffsetTopics: TypeAlias = "Sequence[OffsetFetchRequestTopic] | Sequence[OffsetFetchRequestTopics] | None"
"""The topics that an OffsetFetch names; None: all."""


def routes(cluster: ClusterMetadata, groups: GroupRouter, image: ClusterImage, turns: Turns) -> list[GuardedRoute]:
    handler = _Offsets(cluster, groups, image, turns)
    return [
        GuardedRoute(8, handler.commit, guards.offset_commit),
        GuardedRoute(9, handler.fetch, guards.offset_fetch),
        GuardedRoute(47, handler.delete, guards.offset_delete),
    ]


class _Offsets:
    def __init__(self, cluster: ClusterMetadata, groups: GroupRouter, image: ClusterImage, turns: Turns) -> None:
        self._turns = turns
        self._cluster = cluster
        self._groups = groups
        self._image = image

    # --- commit ------------------------------------------------------------------------------------------------

    def commit(self, request: OffsetCommitRequest, call: Call[OffsetCommitTypes]) -> MaybeDeferred[Message]:
        results: dict[TopicPartition, int] = {}
        places = []
        for topic in request.topics:
            for partition in topic.partitions:
                code, place = to_commit(self._image, topic.name, partition)
                results[topic.name, partition.partition_index] = code
                if not code:
                    places.append(place)

        def response(code: int) -> Message:
            return _commit_response(request, call, {place: known or code for place, known in results.items()})

        if not self._cluster.coordinates(request.group_id):
            return response(codes.NOT_COORDINATOR)
        message = CommitOffsets(
            group=request.group_id,
            member=request.member_id,
            instance=request.group_instance_id,
            generation=request.generation_id_or_member_epoch,
            offsets=places,
            version=call.api_version,
        )
        answer = self._groups.ask(message)
        return or_lost(then(answer, response), lambda: response(codes.NOT_COORDINATOR))

    # --- fetch -------------------------------------------------------------------------------------------------

    def fetch(self, request: OffsetFetchRequest, call: Call[OffsetFetchTypes]) -> MaybeDeferred[Message]:
        if call.api_version < 8:
            held = self._ask_offsets(request.group_id, request.topics, request.require_stable)
            return then(held, lambda held: _fetch_response(request, call, held))

        def ask(group: OffsetFetchRequestGroup) -> MaybeDeferred[Fetched]:
            member = group.member_id, group.member_epoch
            return self._ask_offsets(group.group_id, group.topics, request.require_stable, member)

        def response(answers: list[Fetched]) -> OffsetFetchTypes.OffsetFetchResponse:
            groups = tuple(_fetched_group(g, call, held) for g, held in zip(request.groups, answers, strict=True))
            return call.types.OffsetFetchResponse(groups=groups)

        return then(ask_each(self._turns, request.groups, ask), response)

    def _ask_offsets(
        self, group: str, topics: OffsetTopics, stable: bool, member: tuple[str | None, int] = (None, -1)
    ) -> MaybeDeferred[Fetched]:
        """What is committed of `topics` (None: all), as GroupCoordinator.fetch gives it."""
        if not self._cluster.coordinates(group):
            return NOT_COORDINATOR_ANSWER
        places = None
        if topics is not None:
            places = [(topic.name, partition) for topic in topics for partition in topic.partition_indexes]
        return or_lost(self._groups.ask(FetchOffsets(group, places, stable, *member)), lambda: NOT_COORDINATOR_ANSWER)

    # --- delete ------------------------------------------------------------------------------------------------

    def delete(self, request: OffsetDeleteRequest, call: Call[OffsetDeleteTypes]) -> MaybeDeferred[Message]:
        types = call.types
        results: dict[TopicPartition, int] = {}
        for topic in request.topics:
            known = self._image.topics.get(topic.name)
            for partition in topic.partitions:
                there = known is not None and 0 <= partition.partition_index < len(known.leaders)
                code = codes.NONE if there else codes.UNKNOWN_TOPIC_OR_PARTITION
                results[topic.name, partition.partition_index] = code
        places = [place for place, code in results.items() if not code]

        def response(answer: tuple[int, Sequence[int]]) -> OffsetDeleteTypes.OffsetDeleteResponse:
            code, each = answer
            if code:
                return types.OffsetDeleteResponse(error_code=code, topics=())
            results.update(zip(places, each, strict=True))
            topics = tuple(
                types.OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        types.OffsetDeleteResponsePartition(
                            partition_index=p.partition_index, error_code=results[topic.name, p.partition_index]
                        )
                        for p in topic.partitions
                    ),
                )
                for topic in request.topics
            )
            return types.OffsetDeleteResponse(error_code=codes.NONE, topics=topics)

        if not request.group_id:
            return response((codes.INVALID_GROUP_ID, ()))
        if not self._cluster.coordinates(request.group_id):
            return response((codes.NOT_COORDINATOR, ()))
        answer = self._groups.ask(DeleteOffsets(request.group_id, places))
        return or_lost(then(answer, response), lambda: response((codes.NOT_COORDINATOR, ())))


def to_commit(
    image: ClusterImage, name: str, partition: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition
) -> tuple[int, tuple[str, str, int, int, int, str]]:
    """(code, the commit to write if the code is 0)."""
    topic = image.topics.get(name)
    metadata = partition.committed_metadata or ""
    if topic is None or not 0 <= partition.partition_index < len(topic.leaders):
        return codes.UNKNOWN_TOPIC_OR_PARTITION, ("", "", 0, 0, 0, "")
    epoch = partition.committed_leader_epoch
    place = (name, topic.id.hex, partition.partition_index, partition.committed_offset, epoch, metadata)
    too_large = len(metadata) > image.get("offset.metadata.max.bytes")
    return codes.OFFSET_METADATA_TOO_LARGE if too_large else codes.NONE, place


def _commit_response(
    request: OffsetCommitRequest, call: Call[OffsetCommitTypes], results: dict[TopicPartition, int]
) -> Message:
    types = call.types
    topics = tuple(
        types.OffsetCommitResponseTopic(
            name=topic.name,
            partitions=tuple(
                types.OffsetCommitResponsePartition(
                    partition_index=p.partition_index, error_code=results[topic.name, p.partition_index]
                )
                for p in topic.partitions
            ),
        )
        for topic in request.topics
        if topic.partitions
    )
    return types.OffsetCommitResponse(topics=topics)


def _fetch_response(request: OffsetFetchRequest, call: Call[OffsetFetchTypes], fetched: Fetched) -> Message:
    """Versions up to 7: one group."""
    types = call.types
    code, held = fetched
    # Version 1 has no code for the whole: it goes to every partition asked for.
    part_code = code if call.api_version < 2 else codes.NONE
    topics = _by_topic(types.OffsetFetchResponsePartition, request.topics, held, part_code)
    return types.OffsetFetchResponse(
        error_code=code,
        topics=tuple(
            types.OffsetFetchResponseTopic(name=name, partitions=parts)
            for name, parts in topics
            if not code or call.api_version < 2
        ),
    )


def _fetched_group(
    group: OffsetFetchRequestGroup, call: Call[OffsetFetchTypes], fetched: Fetched
) -> OffsetFetchTypes.OffsetFetchResponseGroup:
    types = call.types
    code, held = fetched
    if code:
        return types.OffsetFetchResponseGroup(group_id=group.group_id, topics=(), error_code=code)
    topics = tuple(
        types.OffsetFetchResponseTopics(name=name, partitions=parts)
        for name, parts in _by_topic(types.OffsetFetchResponsePartitions, group.topics, held, codes.NONE)
    )
    return types.OffsetFetchResponseGroup(group_id=group.group_id, topics=topics, error_code=codes.NONE)


def _by_topic(
    make: Callable[..., T], asked: OffsetTopics, held: Held, code: int
) -> Iterator[tuple[str, tuple[T, ...]]]:
    """The partitions asked for, or all that are held, by topic: offset -1 where nothing is committed."""
    found = {(topic, partition): rest for topic, partition, *rest in held}
    places = by_topic(found).items() if asked is None else [(topic.name, topic.partition_indexes) for topic in asked]
    for name, partitions in places:
        yield name, tuple(
            make(
                partition_index=partition, committed_offset=offset, committed_leader_epoch=epoch, metadata=metadata,
                error_code=code or own_code,
            )
            for partition in partitions
            for offset, epoch, metadata, own_code in [found.get((name, partition), (-1, -1, "", codes.NONE))]
        )  # fmt: skip
