"""OffsetCommit 2-9, OffsetFetch 1-9 (from 8 for several groups, KIP-709), OffsetDelete 0 (KIP-496).

A commit is checked here against the topics that exist and written at the group's home in one piece. A group that was
never heard of has committed nothing: offset -1, which is no error. Retention times in commits (versions 2 to 4) are
ignored, as since KIP-211. Stable fetches (KIP-447) and member epochs (KIP-848) have nothing to wait for here.
"""

from __future__ import annotations

from typing import Any

from broker.cluster_metadata import ClusterMetadata
from broker.groups.group_coordinator import GroupRouter
from broker.handlers.answers import or_lost
from broker.protocol import codes
from broker.serve.call import Call, Route
from shards.config.image import ClusterImage
from shards.mesh.deferred import MaybeDeferred, gather, then

Place = tuple[str, int]


def routes(cluster: ClusterMetadata, groups: GroupRouter, image: ClusterImage) -> list[Route]:
    handler = _Offsets(cluster, groups, image)
    return [Route(8, 2, 9, handler.commit), Route(9, 1, 9, handler.fetch), Route(47, 0, 0, handler.delete)]


class _Offsets:
    def __init__(self, cluster: ClusterMetadata, groups: GroupRouter, image: ClusterImage) -> None:
        self._cluster = cluster
        self._groups = groups
        self._image = image

    def _is_mine(self, group: str) -> bool:
        return self._cluster.coordinator(group) == self._cluster.me

    # --- commit ------------------------------------------------------------------------------------------------

    def commit(self, request: Any, call: Call) -> MaybeDeferred[Any]:
        results: dict[Place, int] = {}
        places = []
        for topic in request.topics:
            for partition in topic.partitions:
                code, place = self._to_commit(topic.name, partition)
                results[topic.name, partition.partition_index] = code
                if not code:
                    places.append(place)

        def response(code: int) -> Any:
            return _commit_response(request, call, {place: known or code for place, known in results.items()})

        if not self._is_mine(request.group_id):
            return response(codes.NOT_COORDINATOR)
        answer = self._groups.ask(
            request.group_id,
            "commit",
            request.member_id,
            getattr(request, "group_instance_id", None),
            request.generation_id_or_member_epoch,
            places,
        )
        return or_lost(then(answer, response), lambda: response(codes.NOT_COORDINATOR))

    def _to_commit(self, name: str, partition: Any) -> tuple[int, tuple[str, str, int, int, int, str]]:
        """(code, what to write if that is 0)."""
        topic = self._image.topics.get(name)
        metadata = partition.committed_metadata or ""
        if topic is None or not 0 <= partition.partition_index < len(topic.leaders):
            return codes.UNKNOWN_TOPIC_OR_PARTITION, ("", "", 0, 0, 0, "")
        epoch = getattr(partition, "committed_leader_epoch", -1)
        place = (name, topic.id.hex, partition.partition_index, partition.committed_offset, epoch, metadata)
        too_large = len(metadata) > self._image.get("offset.metadata.max.bytes")
        return codes.OFFSET_METADATA_TOO_LARGE if too_large else codes.NONE, place

    # --- fetch -------------------------------------------------------------------------------------------------

    def fetch(self, request: Any, call: Call) -> MaybeDeferred[Any]:
        if call.api_version < 8:
            held = self._ask_offsets(request.group_id, request.topics)
            return then(held, lambda held: _fetch_response(request, call, held))
        asked = [self._ask_offsets(group.group_id, group.topics) for group in request.groups]

        def response(answers: list[Any]) -> Any:
            groups = tuple(_fetched_group(g, call, held) for g, held in zip(request.groups, answers, strict=True))
            return call.types.OffsetFetchResponse(groups=groups)

        return then(gather(asked), response)

    def _ask_offsets(self, group: str, topics: Any) -> MaybeDeferred[Any]:
        """What is committed of `topics` (None: all), as GroupCoordinator.fetch gives it; None if no home here can tell."""
        if not self._is_mine(group):
            return None
        places = None
        if topics is not None:
            places = [(topic.name, partition) for topic in topics for partition in topic.partition_indexes]
        return or_lost(self._groups.ask(group, "fetch", places), lambda: None)

    # --- delete ------------------------------------------------------------------------------------------------

    def delete(self, request: Any, call: Call) -> MaybeDeferred[Any]:
        types = call.types
        results: dict[Place, int] = {}
        for topic in request.topics:
            known = self._image.topics.get(topic.name)
            for partition in topic.partitions:
                there = known is not None and 0 <= partition.partition_index < len(known.leaders)
                code = codes.NONE if there else codes.UNKNOWN_TOPIC_OR_PARTITION
                results[topic.name, partition.partition_index] = code
        places = [place for place, code in results.items() if not code]

        def response(answer: list[Any]) -> Any:
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

        if not self._is_mine(request.group_id):
            return response([codes.NOT_COORDINATOR, []])
        answer = self._groups.ask(request.group_id, "drop_offsets", places)
        return or_lost(then(answer, response), lambda: response([codes.NOT_COORDINATOR, []]))


def _commit_response(request: Any, call: Call, results: dict[Place, int]) -> Any:
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
    )
    return types.OffsetCommitResponse(topics=topics)


def _fetch_response(request: Any, call: Call, held: Any) -> Any:
    """Versions up to 7: one group. `held` is None if its home could not be asked."""
    types = call.types
    code = codes.NOT_COORDINATOR if held is None else codes.NONE
    # Version 1 has no code for the whole: it goes to every partition asked for.
    part_code = code if call.api_version < 2 else codes.NONE
    topics = () if code and call.api_version >= 2 else _by_topic(request.topics, held or [])
    return types.OffsetFetchResponse(
        error_code=code,
        topics=tuple(
            types.OffsetFetchResponseTopic(
                name=name,
                partitions=tuple(
                    types.OffsetFetchResponsePartition(**fields, error_code=part_code) for fields in parts
                ),
            )
            for name, parts in topics
        ),
    )


def _fetched_group(group: Any, call: Call, held: Any) -> Any:
    types = call.types
    if held is None:
        return types.OffsetFetchResponseGroup(group_id=group.group_id, topics=(), error_code=codes.NOT_COORDINATOR)
    topics = tuple(
        types.OffsetFetchResponseTopics(
            name=name,
            partitions=tuple(types.OffsetFetchResponsePartitions(**fields, error_code=codes.NONE) for fields in parts),
        )
        for name, parts in _by_topic(group.topics, held)
    )
    return types.OffsetFetchResponseGroup(group_id=group.group_id, topics=topics, error_code=codes.NONE)


def _by_topic(asked: Any, held: list[Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The partitions asked for, or all that are held, as fields of a response: offset -1 where nothing is committed."""
    found = {(topic, partition): rest for topic, partition, *rest in held}
    if asked is None:
        wanted: dict[str, list[int]] = {}
        for topic, partition in found:
            wanted.setdefault(topic, []).append(partition)
        places = [*wanted.items()]
    else:
        places = [(topic.name, topic.partition_indexes) for topic in asked]
    result = []
    for name, partitions in places:
        parts = []
        for partition in partitions:
            offset, epoch, metadata = found.get((name, partition), (-1, -1, ""))
            parts.append({
                "partition_index": partition, "committed_offset": offset,
                "committed_leader_epoch": epoch, "metadata": metadata,
            })  # fmt: skip
        result.append((name, parts))
    return result
