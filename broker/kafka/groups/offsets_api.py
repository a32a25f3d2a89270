"""OffsetCommit 2-10, OffsetFetch 1-10 (from 8 for several groups, KIP-709), OffsetDelete 0 (KIP-496).

A commit is checked here against the topics that exist and written at the group's home in one piece. A group that is not
known has committed nothing: offset -1, which is no error. Retention times in commits (versions 2 to 4) are
ignored, as since KIP-211. A stable fetch (KIP-447) is answered UNSTABLE_OFFSET_COMMIT for offsets of a transaction that is
not over. A member of a group of the consumer protocol says its epoch (KIP-848); any other epoch is answered
STALE_MEMBER_EPOCH. While the home of a group of this broker is being replaced, OffsetFetch is answered
COORDINATOR_LOAD_IN_PROGRESS, after which every client asks again; after NOT_COORDINATOR librdkafka 2.16 never fetches these
partitions (librdkafka issue 5586). Since version 10 topics are named by id (KIP-848), and UNKNOWN_TOPIC_ID where there is none
with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.groups import guards
from broker.kafka.groups.messages import CommitOffsets, DeleteOffsets, FetchOffsets
from broker.kafka.groups.router import GroupRouter
from broker.kafka.remote import ask_each, or_lost
from broker.kafka.security.guarded_route import GuardedRoute
from broker.runtime.partitions_by_topic import by_topic
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
        OffsetCommitRequestTopic,
        OffsetDeleteRequest,
        OffsetFetchRequest,
        OffsetFetchRequestGroup,
        OffsetFetchRequestTopics,
        TxnOffsetCommitRequestPartition,
    )
    from broker.wire.responses import OffsetCommitTypes, OffsetDeleteTypes, OffsetFetchTypes

T = TypeVar("T")
Held = Sequence[tuple[str, int, int, int, str, int]]
"""[topic, partition, offset, leader epoch, metadata, code] each, as GroupCoordinator.fetch answers."""
Fetched = tuple[int, Held]
"""(code of the group, its offsets)."""
Committed: TypeAlias = tuple[str | UUID, int]
"""A partition of an OffsetCommit, by its topic's id or name, whichever the version has."""
NOT_COORDINATOR_ANSWER: Fetched = (codes.NOT_COORDINATOR, ())
LOADING_ANSWER: Fetched = (codes.COORDINATOR_LOAD_IN_PROGRESS, ())


class AskedTopic(NamedTuple):
    """A topic of an OffsetFetch; `name` None: there is none with this id."""

    name: str | None
    topic_id: UUID | None
    partitions: Sequence[int]


class AskedGroup(NamedTuple):
    """A group of an OffsetFetch and its topics; None: all."""

    group: OffsetFetchRequestGroup
    topics: list[AskedTopic] | None


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
        results: dict[Committed, int] = {}
        places = []
        for topic in request.topics:
            name = self._name_of(topic, call.api_version)
            for partition in topic.partitions:
                code, place = codes.UNKNOWN_TOPIC_ID, None
                if name is not None:
                    code, place = to_commit(self._image, name, partition)
                results[topic.topic_id or topic.name, partition.partition_index] = code
                if place is not None and not code:
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

    def _name_of(self, topic: OffsetCommitRequestTopic | OffsetFetchRequestTopics, version: int) -> str | None:
        """The name of a topic in a request; None: it is named by an id that no topic has."""
        if version < guards.OFFSET_TOPIC_IDS_SINCE:
            return topic.name
        found = topic.topic_id and self._image.topics.by_id(topic.topic_id)
        return found.name if found else None

    # --- fetch -------------------------------------------------------------------------------------------------

    def fetch(self, request: OffsetFetchRequest, call: Call[OffsetFetchTypes]) -> MaybeDeferred[Message]:
        if call.api_version < 8:
            one = None
            if request.topics is not None:
                one = [AskedTopic(topic.name, None, topic.partition_indexes) for topic in request.topics]
            held = self._ask_offsets(request.group_id, one, request.require_stable)
            return then(held, lambda held: _fetch_response(one, call, held))

        asked = [AskedGroup(group, self._asked(group, call)) for group in request.groups]

        def ask(each: AskedGroup) -> MaybeDeferred[Fetched]:
            member = each.group.member_id, each.group.member_epoch
            return self._ask_offsets(each.group.group_id, each.topics, request.require_stable, member)

        def response(answers: list[Fetched]) -> OffsetFetchTypes.OffsetFetchResponse:
            fetched = zip(asked, answers, strict=True)
            return call.types.OffsetFetchResponse(
                groups=tuple(self._fetched_group(each, call, held) for each, held in fetched)
            )

        return then(ask_each(self._turns, asked, ask), response)

    def _asked(self, group: OffsetFetchRequestGroup, call: Call[OffsetFetchTypes]) -> list[AskedTopic] | None:
        if group.topics is None:
            return None
        return [
            AskedTopic(self._name_of(topic, call.api_version), topic.topic_id, topic.partition_indexes)
            for topic in group.topics
        ]

    def _fetched_group(
        self, asked: AskedGroup, call: Call[OffsetFetchTypes], fetched: Fetched
    ) -> OffsetFetchTypes.OffsetFetchResponseGroup:
        types, group_id = call.types, asked.group.group_id
        code, held = fetched
        if code:
            return types.OffsetFetchResponseGroup(group_id=group_id, topics=(), error_code=code)
        found = _by_place(held)
        topics = tuple(
            types.OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=_partitions(types.OffsetFetchResponsePartitions, topic, found, codes.NONE),
            )
            for topic in (self._held(held, call) if asked.topics is None else asked.topics)
        )
        return types.OffsetFetchResponseGroup(group_id=group_id, topics=topics, error_code=codes.NONE)

    def _held(self, held: Held, call: Call[OffsetFetchTypes]) -> list[AskedTopic]:
        """All topics of which something is committed; by id a topic that is gone can't be named."""
        if call.api_version < guards.OFFSET_TOPIC_IDS_SINCE:
            return _held_by_name(held)
        known = ((topic, self._image.topics.get(topic.name or "")) for topic in _held_by_name(held))
        return [topic._replace(topic_id=there.id) for topic, there in known if there is not None]

    def _ask_offsets(
        self,
        group: str,
        topics: Sequence[AskedTopic] | None,
        stable: bool,
        member: tuple[str | None, int] = (None, -1),
    ) -> MaybeDeferred[Fetched]:
        """The committed offsets of `topics` (None: all), as GroupCoordinator.fetch gives it."""
        if not self._cluster.coordinates(group):
            return NOT_COORDINATOR_ANSWER
        places = None
        if topics is not None:
            places = [(topic.name, number) for topic in topics if topic.name is not None for number in topic.partitions]
        return or_lost(self._groups.ask(FetchOffsets(group, places, stable, *member)), lambda: LOADING_ANSWER)

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


class CheckedCommit(NamedTuple):
    """An error code, and the commit to write if it is NONE."""

    code: int
    place: tuple[str, str, int, int, int, str]


def to_commit(
    image: ClusterImage, name: str, partition: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition
) -> CheckedCommit:
    topic = image.topics.get(name)
    metadata = partition.committed_metadata or ""
    if topic is None or not 0 <= partition.partition_index < len(topic.leaders):
        return CheckedCommit(codes.UNKNOWN_TOPIC_OR_PARTITION, ("", "", 0, 0, 0, ""))
    epoch = partition.committed_leader_epoch
    place = (name, topic.id.hex, partition.partition_index, partition.committed_offset, epoch, metadata)
    too_large = len(metadata) > image.get("offset.metadata.max.bytes")
    return CheckedCommit(codes.OFFSET_METADATA_TOO_LARGE if too_large else codes.NONE, place)


def _commit_response(
    request: OffsetCommitRequest, call: Call[OffsetCommitTypes], results: Mapping[Committed, int]
) -> Message:
    types = call.types
    topics = tuple(
        types.OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                types.OffsetCommitResponsePartition(
                    partition_index=p.partition_index,
                    error_code=results[topic.topic_id or topic.name, p.partition_index],
                )
                for p in topic.partitions
            ),
        )
        for topic in request.topics
        if topic.partitions
    )
    return types.OffsetCommitResponse(topics=topics)


def _fetch_response(asked: Sequence[AskedTopic] | None, call: Call[OffsetFetchTypes], fetched: Fetched) -> Message:
    """Versions up to 7: one group, topics by name."""
    types = call.types
    code, held = fetched
    # Version 1 has no code for the whole: it goes to every partition asked for.
    part_code = code if call.api_version < 2 else codes.NONE
    found = _by_place(held)
    return types.OffsetFetchResponse(
        error_code=code,
        topics=tuple(
            types.OffsetFetchResponseTopic(
                name=topic.name or "",
                partitions=_partitions(types.OffsetFetchResponsePartition, topic, found, part_code),
            )
            for topic in (_held_by_name(held) if asked is None else asked)
            if not code or call.api_version < 2
        ),
    )


def _held_by_name(held: Held) -> list[AskedTopic]:
    """All topics of which something is committed."""
    places = by_topic((topic, partition) for topic, partition, *_ in held)
    return [AskedTopic(name, None, numbers) for name, numbers in places.items()]


def _by_place(held: Held) -> dict[tuple[str | None, int], Any]:
    return {(topic, partition): rest for topic, partition, *rest in held}


def _partitions(
    make: Callable[..., T], topic: AskedTopic, found: Mapping[tuple[str | None, int], Any], code: int
) -> tuple[T, ...]:
    """`found`: as _by_place has it. Offset -1 where nothing is committed."""
    unknown = codes.UNKNOWN_TOPIC_ID if topic.name is None else codes.NONE
    return tuple(
        make(
            partition_index=number, committed_offset=offset, committed_leader_epoch=epoch, metadata=metadata,
            error_code=code or own_code,
        )
        for number in topic.partitions
        for offset, epoch, metadata, own_code in [found.get((topic.name, number), (-1, -1, "", unknown))]
    )  # fmt: skip
