"""CreatePartitions 0-3. Kafka's checks, messages and order. Source: ReplicationControlManager of Kafka 4.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.kafka.api_error import NO_ERROR, ApiError
from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.remote import spawned
from broker.kafka.security.guarded_route import GuardedRoute
from broker.kafka.topics import guards
from broker.kafka.topics.topic_mutations import TopicMutations, check_topics
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.image import ClusterImage
from shards.config.messages import TopicToExtend
from shards.config.replicas import assignments_problem, number_problem
from shards.config.topic_changes import MAX_PARTITIONS_PER_REQUEST
from shards.loop.deferred import Spawn

if TYPE_CHECKING:
    from broker.wire.requests import CreatePartitionsRequest, CreatePartitionsTopic
    from broker.wire.responses import CreatePartitionsTypes


def routes(
    cluster: ClusterMetadata, image: ClusterImage, mutations: TopicMutations, spawn: Spawn
) -> list[GuardedRoute]:
    return [
        GuardedRoute(37, spawned(spawn, _CreatePartitions(cluster, image, mutations).create), guards.create_partitions)
    ]


class _CreatePartitions:
    def __init__(self, cluster: ClusterMetadata, image: ClusterImage, mutations: TopicMutations) -> None:
        self._cluster = cluster
        self._image = image
        self._mutations = mutations

    async def create(self, request: CreatePartitionsRequest, call: Call[CreatePartitionsTypes]) -> Message:
        types = call.types
        errors, wanted = check_topics(request.topics, self._check_added, _more)
        sizes = {name: more.total - self._size(name) for name, more in wanted.items()}
        if sum(max(0, added) for added in sizes.values()) > MAX_PARTITIONS_PER_REQUEST:
            too_many = ApiError(codes.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
            errors = dict.fromkeys((topic.name for topic in request.topics), too_many)
        elif wanted:
            late = {
                topic.name: error
                for topic in request.topics
                if sizes.get(topic.name, 0) > 0 and (error := self._check_replicas(topic)).code
            }
            errors |= await self._mutations.mutate(
                "create_partitions", call, wanted, sizes, validate_only=request.validate_only, late=late
            )
        results = tuple(
            types.CreatePartitionsTopicResult(
                name=name, error_code=errors.get(name, NO_ERROR).code, error_message=errors.get(name, NO_ERROR).message
            )
            for name in dict.fromkeys(topic.name for topic in request.topics)
        )
        return types.CreatePartitionsResponse(results=results)

    def _check_added(self, topic: CreatePartitionsTopic) -> ApiError:
        known = self._image.topics.get(topic.name)
        if known is None:
            return ApiError(codes.UNKNOWN_TOPIC_OR_PARTITION)
        added = topic.count - len(known.leaders)
        if topic.assignments is None or added <= 0:
            return NO_ERROR
        return ApiError.of(number_problem(len(topic.assignments), added))

    def _size(self, name: str) -> int:
        topic = self._image.topics.get(name)
        return 0 if topic is None else len(topic.leaders)

    def _check_replicas(self, topic: CreatePartitionsTopic) -> ApiError:
        """Errors that Kafka looks for only after it has charged the partitions."""
        known = self._image.topics.get(topic.name)
        factor = None if known is None else len(known.replicas[0])
        assigned = (assignment.broker_ids for assignment in topic.assignments or ())
        return ApiError.of(assignments_problem(assigned, self._cluster.brokers, factor))


def _more(topic: CreatePartitionsTopic) -> TopicToExtend:
    replicas = [assignment.broker_ids for assignment in topic.assignments or ()]
    return TopicToExtend(topic.name, topic.count, replicas or None)
