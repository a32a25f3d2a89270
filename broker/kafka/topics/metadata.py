"""Metadata 0-13 and DescribeTopicPartitions 0: the topics, and the broker that leads each partition.

A request names topics, or ids from version 12 (KIP-516), or asks for all topics. A broker's address is its endpoint on the listener
by which the request came.

A topic that does not exist is created if both the request and auto.create.topics.enable allow it. The answer waits for the topic
and has its leaders; Kafka first answers UNKNOWN_TOPIC_OR_PARTITION. The partitions of such topics count against
controller_mutation_rate, as those of CreateTopics do. A topic beyond the quota is not created and answered as unknown, without a
throttle time. By Redpanda's semantics topics that Metadata creates cost nothing (broker/kafka/quotas/mutations.py).

Followers are not emulated: a replica other than the leader is only named, and counts as in sync (shards/config/replicas.py). Nor
are racks, except that an answer shows broker.rack.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from broker.kafka.api_error import code_named
from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.quotas.mutations import Bill, Mutations
from broker.kafka.remote import ChangeFailed, CoordinatorCalls, ask_coordinator, changed_by
from broker.kafka.security.authorized_operations import ALL_CLUSTER_OPERATIONS, ALL_TOPIC_OPERATIONS, OPERATIONS_UNKNOWN
from broker.kafka.security.guarded_route import GuardedRoute
from broker.kafka.topics import metadata_guards
from broker.serve.call import Call
from broker.serve.client_quotas import ClientQuotas
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.image import ClusterImage, Topic
from shards.config.internal_topics import CONFIGS, INTERNAL_TOPICS
from shards.config.topic_changes import illegal_name
from shards.errors import ClientFault
from shards.loop.deferred import Deferred, MaybeDeferred, then
from shards.loop.turns import Turns
from shards.ownership import PARTITIONS

if TYPE_CHECKING:
    from broker.wire.requests import DescribeTopicPartitionsRequest, MetadataRequest
    from broker.wire.responses import DescribeTopicPartitionsTypes, MetadataTypes

PIECE = 1000
"""The number of partitions that are described before other work of the shard gets a turn."""
MAX_PARTITIONS = 2000
"""Most partitions in one DescribeTopicPartitions response (max.request.partition.size.limit)."""


def routes(
    cluster: ClusterMetadata, image: ClusterImage, mesh: CoordinatorCalls, quotas: ClientQuotas, turns: Turns
) -> list[GuardedRoute]:
    handler = _Metadata(cluster, image, mesh, quotas, turns)
    return [
        GuardedRoute(3, handler.metadata, metadata_guards.metadata, prepared=True),
        GuardedRoute(75, handler.describe_partitions, metadata_guards.describe_topic_partitions),
    ]


class _Metadata:
    def __init__(
        self, cluster: ClusterMetadata, image: ClusterImage, mesh: CoordinatorCalls, quotas: ClientQuotas, turns: Turns
    ) -> None:
        self._turns = turns
        self._cluster = cluster
        self._image = image
        self._mesh = mesh
        self._mutations = Mutations(quotas)

    # --- Metadata ----------------------------------------------------------------------------------------------

    def metadata(self, request: MetadataRequest, call: Call[MetadataTypes]) -> MaybeDeferred[Message]:
        wanted = request.topics
        # In version 0, which has no null, an empty list of topics asks for all of them.
        if wanted is None or (not wanted and call.api_version == 0):
            return self._answer(
                request, call, (made for topic in self._all() for made in self._found(call, request, topic))
            )
        if call.api_version >= 10:
            ids = [*dict.fromkeys(topic.topic_id for topic in wanted if topic.topic_id)]
            if call.api_version < 12 and (ids or any(topic.name is None for topic in wanted)):
                raise ClientFault("INVALID_REQUEST", "topics by id need version 12")
            if ids:
                return self._answer(request, call, (made for each in ids for made in self._by_id(call, request, each)))
        names = [*dict.fromkeys(topic.name for topic in wanted if topic.name is not None)]
        if len(names) < len(wanted) and any(topic.name is None for topic in wanted):
            raise ClientFault("INVALID_REQUEST", "a topic has neither name nor id")
        missing = [name for name in names if name not in self._image.topics and not illegal_name(name)]
        if missing and request.allow_auto_topic_creation and self._creates():
            return self._turns.spawn(self._create(request, call, names, missing))
        return self._answer(request, call, (made for each in names for made in self._by_name(call, request, each, {})))

    def _answer(
        self,
        request: MetadataRequest,
        call: Call[MetadataTypes],
        topics: Iterable[MetadataTypes.MetadataResponseTopic | None],
    ) -> MaybeDeferred[Message]:
        """The answer with these topics. A None among `topics` is a place at which other work may take its turn."""
        made = self._turns.collect(topics)
        return then(
            made, lambda all_made: self._response(request, call, [each for each in all_made if each is not None])
        )

    def _creates(self) -> bool:
        return bool(self._image.get("auto.create.topics.enable"))

    def _all(self) -> list[Topic]:
        return sorted(self._image.topics)

    async def _create(
        self, request: MetadataRequest, call: Call[MetadataTypes], names: Sequence[str], missing: Sequence[str]
    ) -> Message:
        bill = Bill()
        if self._mutations.in_use:
            default = self._image.get("num.partitions")
            sizes = {name: PARTITIONS if name in CONFIGS else default for name in missing}
            call.tells_mutations = False
            bill = await self._mutations.charge(call, sizes, strict=True)
            missing = [*bill.paid]
        failed = await self._ask_for(call, missing) if missing else {}
        await self._mutations.take_back(call, bill, failed)
        made = (one for each in names for one in self._by_name(call, request, each, failed))
        answer = self._answer(request, call, made)
        return await answer if isinstance(answer, Deferred) else answer

    async def _ask_for(self, call: Call, missing: Sequence[str]) -> dict[str, int]:
        """Creates topics. Returns the error codes of those that were not created."""
        wanted = [[name, -1, CONFIGS.get(name, {})] for name in missing]
        try:
            results = await ask_coordinator(self._mesh, "create_topics", changed_by(call), wanted, False)
        except ChangeFailed:
            return dict.fromkeys(missing, codes.LEADER_NOT_AVAILABLE)  # retriable: clients ask again
        return {name: code_named(error) for name, (error, _) in zip(missing, results, strict=True) if error}

    def _response(
        self, request: MetadataRequest, call: Call[MetadataTypes], topics: Sequence[MetadataTypes.MetadataResponseTopic]
    ) -> Message:
        types, cluster = call.types, self._cluster
        brokers = []
        for broker in range(cluster.brokers):
            host, port = cluster.endpoint(broker, call)
            brokers.append(
                types.MetadataResponseBroker(node_id=broker, host=host, port=port, rack=cluster.rack(broker))
            )
        allowed = request.include_cluster_authorized_operations
        return types.MetadataResponse(
            brokers=tuple(brokers),
            cluster_id=cluster.cluster_id,
            controller_id=cluster.controller,
            topics=tuple(topics),
            cluster_authorized_operations=ALL_CLUSTER_OPERATIONS if allowed else OPERATIONS_UNKNOWN,
            error_code=codes.NONE,
        )

    def _found(
        self, call: Call[MetadataTypes], request: MetadataRequest, topic: Topic
    ) -> Iterator[MetadataTypes.MetadataResponseTopic | None]:
        """The topic; before it a None for each PIECE of its partitions (`_answer`)."""
        made = call.types.MetadataResponsePartition
        partitions = []
        for first in range(0, len(topic.leaders), PIECE):
            partitions += [
                made(
                    error_code=codes.NONE, partition_index=n, leader_id=topic.leaders[n], leader_epoch=0,
                    replica_nodes=replicas, isr_nodes=replicas, offline_replicas=(),
                )
                for n, replicas in enumerate(topic.replicas[first : first + PIECE], first)
            ]  # fmt: skip
            yield None
        yield call.types.MetadataResponseTopic(
            error_code=codes.NONE,
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=tuple(partitions),
            topic_authorized_operations=_operations(request),
        )

    def _missing(
        self, call: Call[MetadataTypes], code: int, name: str | None, topic_id: uuid.UUID | None, operations: int
    ) -> MetadataTypes.MetadataResponseTopic:
        return call.types.MetadataResponseTopic(
            error_code=code,
            name=name,
            topic_id=topic_id,
            is_internal=name in INTERNAL_TOPICS,
            partitions=(),
            topic_authorized_operations=operations,
        )

    def _by_id(
        self, call: Call[MetadataTypes], request: MetadataRequest, topic_id: uuid.UUID
    ) -> Iterator[MetadataTypes.MetadataResponseTopic | None]:
        topic = self._image.topics.by_id(topic_id)
        if topic is not None:
            yield from self._found(call, request, topic)
        else:
            yield self._missing(call, codes.UNKNOWN_TOPIC_ID, None, topic_id, OPERATIONS_UNKNOWN)

    def _by_name(
        self, call: Call[MetadataTypes], request: MetadataRequest, name: str, failed: dict[str, int]
    ) -> Iterator[MetadataTypes.MetadataResponseTopic | None]:
        topic = self._image.topics.get(name)
        if topic is not None:
            yield from self._found(call, request, topic)
        elif illegal_name(name):
            yield self._missing(call, codes.INVALID_TOPIC_EXCEPTION, name, None, _operations(request))
        else:
            code = failed.get(name, codes.UNKNOWN_TOPIC_OR_PARTITION)
            yield self._missing(call, code, name, None, _operations(request))

    # --- DescribeTopicPartitions (KIP-966) -----------------------------------------------------------------------

    def describe_partitions(
        self, request: DescribeTopicPartitionsRequest, call: Call[DescribeTopicPartitionsTypes]
    ) -> Message:
        """The partitions of topics, in the order of their names, up to the request's limit. The cursor of the answer says where
        the next request has to go on."""
        types = call.types
        cursor = request.cursor
        names = sorted({topic.name for topic in request.topics}) or self._image.topics.names()
        names = [name for name in names if cursor is None or name >= cursor.topic_name]
        room = max(1, min(request.response_partition_limit, MAX_PARTITIONS))
        topics: list[DescribeTopicPartitionsTypes.DescribeTopicPartitionsResponseTopic] = []
        for name in names:
            start = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
            if room == 0:
                following = types.Cursor(topic_name=name, partition_index=start)
                return types.DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=following)
            count = self._describe_partitions_of(call, name, start, room, topics)
            room -= count
            topic = self._image.topics.get(name)
            if topic is not None and start + count < len(topic.leaders):
                following = types.Cursor(topic_name=name, partition_index=start + count)
                return types.DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=following)
        return types.DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=None)

    def _describe_partitions_of(
        self,
        call: Call[DescribeTopicPartitionsTypes],
        name: str,
        start: int,
        room: int,
        topics: list[DescribeTopicPartitionsTypes.DescribeTopicPartitionsResponseTopic],
    ) -> int:
        """Adds one topic to `topics`, with at most `room` of its partitions from `start` on. Returns how many it added."""
        types = call.types
        topic = self._image.topics.get(name)
        leaders: Sequence[int]
        replicas: Sequence[Sequence[int]]
        if topic is None:
            code = codes.INVALID_TOPIC_EXCEPTION if illegal_name(name) else codes.UNKNOWN_TOPIC_OR_PARTITION
            leaders, replicas = [], []
        else:
            code, leaders, replicas = codes.NONE, topic.leaders, topic.replicas
        partitions = tuple(
            types.DescribeTopicPartitionsResponsePartition(
                error_code=codes.NONE, partition_index=n, leader_id=leaders[n], leader_epoch=0,
                replica_nodes=replicas[n], isr_nodes=replicas[n], offline_replicas=(),
                # Java's admin client fails on null here.
                eligible_leader_replicas=(), last_known_elr=(),
            )
            for n in range(len(leaders))[start : start + room]
        )  # fmt: skip
        topics.append(
            types.DescribeTopicPartitionsResponseTopic(
                error_code=code,
                name=name,
                topic_id=topic.id if topic is not None else None,
                is_internal=name in INTERNAL_TOPICS,
                partitions=partitions,
                topic_authorized_operations=ALL_TOPIC_OPERATIONS,
            )
        )
        return len(partitions)


def _operations(request: MetadataRequest) -> int:
    wanted = request.include_topic_authorized_operations
    return ALL_TOPIC_OPERATIONS if wanted else OPERATIONS_UNKNOWN
