"""CreateTopics 2-7, with Kafka's checks, in its order and with its messages.

A request for more than 10,000 partitions is refused as a whole, as in Kafka. Followers are not emulated: a replica other than the
leader is only named in the topic's metadata (shards/config/replicas.py). Source: ReplicationControlManager of Kafka 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.kafka.api_error import NO_ERROR, ApiError
from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.configs.config_entries import topic_entries
from broker.kafka.remote import spawned
from broker.kafka.security.guarded_route import GuardedRoute
from broker.kafka.topics import guards
from broker.kafka.topics.topic_mutations import TopicMutations, check_topics
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.image import ClusterImage
from shards.config.messages import TopicToCreate
from shards.config.replicas import assignments_problem, factor_problem
from shards.config.topic_changes import MAX_PARTITIONS_PER_REQUEST, canonical_configs, illegal_name
from shards.loop.deferred import Spawn
from shards.settings.errors import ConfigInvalid
from shards.uuids import random_uuid

if TYPE_CHECKING:
    from broker.wire.requests import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
    from broker.wire.responses import CreateTopicsTypes


def routes(
    cluster: ClusterMetadata, image: ClusterImage, mutations: TopicMutations, spawn: Spawn
) -> list[GuardedRoute]:
    return [GuardedRoute(19, spawned(spawn, _CreateTopics(cluster, image, mutations).create), guards.create_topics)]


class _CreateTopics:
    def __init__(self, cluster: ClusterMetadata, image: ClusterImage, mutations: TopicMutations) -> None:
        self._cluster = cluster
        self._image = image
        self._mutations = mutations

    async def create(self, request: CreateTopicsRequest, call: Call[CreateTopicsTypes]) -> Message:
        errors, wanted = check_topics(request.topics, self._check, _new)
        asked = sum(
            len(topic.assignments) or max(0, self._partitions(topic.num_partitions)) for topic in request.topics
        )
        if asked > MAX_PARTITIONS_PER_REQUEST:
            too_many = ApiError(codes.POLICY_VIOLATION, "Excessively large number of partitions per request.")
            errors = dict.fromkeys((topic.name for topic in request.topics), too_many)
        elif wanted:
            sizes = {name: len(new.replicas or ()) or self._partitions(new.partitions) for name, new in wanted.items()}
            errors |= await self._mutations.mutate(
                "create_topics", call, wanted, sizes, validate_only=request.validate_only
            )
        results = tuple(
            self._created(call, topic, errors.get(topic.name, NO_ERROR))
            for topic in {topic.name: topic for topic in request.topics}.values()
        )
        return call.types.CreateTopicsResponse(topics=results)

    def _check(self, topic: CreatableTopic) -> ApiError:
        """The error of a topic that this shard can find by itself: in its name, replicas, assignments or configs."""
        illegal = illegal_name(topic.name)
        if illegal:
            return ApiError(codes.INVALID_TOPIC_EXCEPTION, illegal)
        if topic.name in self._image.topics:
            return ApiError(codes.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
        error = _check_configs(topic.configs)
        if error.code:
            return error
        if topic.assignments:
            return self._check_assignments(topic)
        return ApiError.of(factor_problem(self._factor(topic.replication_factor), self._cluster.brokers))

    def _check_assignments(self, topic: CreatableTopic) -> ApiError:
        if topic.replication_factor != -1:
            message = "A manual partition assignment was specified, but replication factor was not set to -1."
            return ApiError(codes.INVALID_REQUEST, message)
        if topic.num_partitions != -1:
            message = "A manual partition assignment was specified, but numPartitions was not set to -1."
            return ApiError(codes.INVALID_REQUEST, message)
        factor = len(topic.assignments[0].broker_ids)
        assigned = (assignment.broker_ids for assignment in topic.assignments)
        problem = assignments_problem(assigned, self._cluster.brokers, factor)
        if problem:
            return ApiError.of(problem)
        if {a.partition_index for a in topic.assignments} != set(range(len(topic.assignments))):
            message = "partitions should be a consecutive 0-based integer sequence"
            return ApiError(codes.INVALID_REPLICA_ASSIGNMENT, message)
        return NO_ERROR

    def _created(
        self, call: Call[CreateTopicsTypes], topic: CreatableTopic, error: ApiError
    ) -> CreateTopicsTypes.CreatableTopicResult:
        types = call.types
        if error.code:
            return types.CreatableTopicResult(
                name=topic.name, topic_id=None, error_code=error.code, error_message=error.message, num_partitions=-1,
                replication_factor=-1, configs=(),
            )  # fmt: skip
        made = self._image.topics.get(
            topic.name
        )  # None: the request only validates, or a client has deleted the topic since
        own = canonical_configs({config.name: config.value for config in topic.configs})
        asked = len(topic.assignments) or self._partitions(topic.num_partitions)
        count = len(made.leaders) if made is not None else asked
        given = len(topic.assignments[0].broker_ids) if topic.assignments else self._factor(topic.replication_factor)
        configs = tuple(
            types.CreatableTopicConfigs(
                name=e.name, value=e.value, read_only=False, config_source=e.source, is_sensitive=False
            )
            for e in topic_entries(self._image, own)
        )
        return types.CreatableTopicResult(
            name=topic.name,
            topic_id=made.id if made is not None else random_uuid(),
            error_code=codes.NONE,
            error_message=None,
            topic_config_error_code=codes.NONE,
            num_partitions=count,
            replication_factor=len(made.replicas[0]) if made is not None else given,
            configs=configs,
        )

    def _partitions(self, asked: int) -> int:
        return self._image.get("num.partitions") if asked == -1 else asked

    def _factor(self, asked: int) -> int:
        return self._image.get("default.replication.factor") if asked == -1 else asked


def _new(topic: CreatableTopic) -> TopicToCreate:
    configs = {config.name: config.value for config in topic.configs}
    replicas = [a.broker_ids for a in sorted(topic.assignments, key=lambda a: a.partition_index)]
    return TopicToCreate(topic.name, topic.num_partitions, configs, replicas or None, topic.replication_factor)


def _check_configs(configs: Sequence[CreatableTopicConfig]) -> ApiError:
    nulls = [config.name for config in configs if config.value is None]
    if nulls:
        message = f"Null value not supported for topic configs: {','.join(nulls)}"
        return ApiError(codes.INVALID_CONFIG, message)
    try:
        canonical_configs({config.name: config.value for config in configs})
    except ConfigInvalid as error:
        return ApiError(codes.INVALID_CONFIG, str(error))
    return NO_ERROR
