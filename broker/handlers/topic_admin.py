"""CreateTopics 2-7, DeleteTopics 1-6 (by id from 6, KIP-516), CreatePartitions 0-3.

Kafka's checks, messages and order; a batch is answered topic by topic. The coordinator decides and stores; every shard
has applied a change before its answer goes out. A topic has one replica: of a manual assignment the first replica of each partition
is taken as its leader, and a replication factor above the number of brokers is refused as Kafka refuses it.
Source: ReplicationControlManager and ControllerApis of Kafka 4.1.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from broker.handlers.cluster_metadata import ClusterMetadata
from broker.handlers.config_entries import topic_entries
from broker.handlers.mutations import Bill, Mutations
from broker.handlers.remote import ChangeFailed, CoordinatorCalls, ask_coordinator, changed_by, code_named, spawned
from broker.protocol import codes
from broker.protocol.codec import Message
from broker.protocol.requests import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from broker.serve.call import Call, Route
from shards.config.image import ClusterImage
from shards.config.topic_changes import canonical_configs, illegal_name
from shards.limits.errors import ConfigInvalid
from shards.mesh.deferred import Spawn
from shards.quotas.sharded_quotas import ShardedQuotas

DUPLICATE = "Duplicate topic name."
STRICT_SINCE = {19: 6, 20: 5, 37: 3}
"""From which version of CreateTopics, DeleteTopics and CreatePartitions a mutation beyond the quota is refused."""


class Fault(NamedTuple):
    """The reason of a refusal; `code` 0: no fault."""

    code: int = codes.NONE
    message: str | None = None


OK = Fault()


class NewTopic(NamedTuple):
    """An argument of Coordinator.create_topics; `leaders` None: the coordinator chooses them."""

    name: str
    partitions: int
    configs: dict[str, str | None]
    leaders: list[int] | None


class MorePartitions(NamedTuple):
    """What Coordinator.create_partitions is asked for: `total` partitions."""

    name: str
    total: int
    leaders: list[int] | None


AnyTopic = TypeVar("AnyTopic", CreatableTopic, CreatePartitionsTopic)
Asked = TypeVar("Asked", NewTopic, MorePartitions)


def routes(
    cluster: ClusterMetadata, image: ClusterImage, mesh: CoordinatorCalls, meters: ShardedQuotas, spawn: Spawn
) -> list[Route]:
    handler = _Topics(cluster, image, mesh, meters)
    return [
        Route(19, 2, 7, spawned(spawn, handler.create)),
        Route(20, 1, 6, spawned(spawn, handler.delete)),
        Route(37, 0, 3, spawned(spawn, handler.add_partitions)),
    ]


class _Topics:
    def __init__(
        self, cluster: ClusterMetadata, image: ClusterImage, mesh: CoordinatorCalls, meters: ShardedQuotas
    ) -> None:
        self._cluster = cluster
        self._image = image
        self._mesh = mesh
        self._mutations = Mutations(meters)

    # --- CreateTopics ------------------------------------------------------------------------------------------

    async def create(self, request: CreateTopicsRequest, call: Call) -> Message:
        faults, wanted = _sort(request.topics, self._check, _new)
        if wanted:
            sizes = {name: len(new.leaders or ()) or self._partitions(new.partitions) for name, new in wanted.items()}
            faults |= await self._mutate("create_topics", call, wanted, sizes, validate_only=request.validate_only)
        results = tuple(
            self._created(call, topic, faults.get(topic.name, OK))
            for topic in {topic.name: topic for topic in request.topics}.values()
        )
        return call.types.CreateTopicsResponse(topics=results)

    def _check(self, topic: CreatableTopic) -> Fault:
        """Faults that are seen without the coordinator: of names, replicas, assignments and configs."""
        illegal = illegal_name(topic.name)
        if illegal:
            return Fault(codes.INVALID_TOPIC_EXCEPTION, illegal)
        if topic.name in self._image.topics:
            return Fault(codes.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
        fault = _check_configs(topic.configs)
        if fault.code:
            return fault
        if topic.assignments:
            return self._check_assignments(topic)
        return self._check_replicas(topic.replication_factor)

    def _check_replicas(self, factor: int) -> Fault:
        brokers = self._cluster.brokers
        if factor == 0 or factor < -1:
            message = "Replication factor must be larger than 0, or -1 to use the default value."
            return Fault(codes.INVALID_REPLICATION_FACTOR, message)
        if factor > brokers:
            return Fault(
                codes.INVALID_REPLICATION_FACTOR,
                f"ChangeFailed to replicate the partition {factor} time(s): The target replication factor of {factor} cannot "
                f"be reached because only {brokers} broker(s) are registered.",
            )
        return OK

    def _check_assignments(self, topic: CreatableTopic) -> Fault:
        if topic.replication_factor != -1:
            message = "A manual partition assignment was specified, but replication factor was not set to -1."
            return Fault(codes.INVALID_REQUEST, message)
        if topic.num_partitions != -1:
            message = "A manual partition assignment was specified, but numPartitions was not set to -1."
            return Fault(codes.INVALID_REQUEST, message)
        for assignment in topic.assignments:
            fault = self._check_assignment(assignment.broker_ids)
            if fault.code:
                return fault
        if {a.partition_index for a in topic.assignments} != set(range(len(topic.assignments))):
            message = "partitions should be a consecutive 0-based integer sequence"
            return Fault(codes.INVALID_REPLICA_ASSIGNMENT, message)
        return OK

    def _check_assignment(self, brokers: Sequence[int]) -> Fault:
        what = "The manual partition assignment includes"
        if not brokers:
            return Fault(codes.INVALID_REPLICA_ASSIGNMENT, f"{what} an empty replica list.")
        for broker in sorted(brokers):
            if not 0 <= broker < self._cluster.brokers:
                message = f"{what} broker {broker}, but no such broker is registered."
                return Fault(codes.INVALID_REPLICA_ASSIGNMENT, message)
        for broker, count in Counter(brokers).items():
            if count > 1:
                return Fault(codes.INVALID_REPLICA_ASSIGNMENT, f"{what} the broker {broker} more than once.")
        return OK

    def _created(self, call: Call, topic: CreatableTopic, fault: Fault) -> Message:
        types = call.types
        if fault.code:
            return types.CreatableTopicResult(
                name=topic.name, topic_id=None, error_code=fault.code, error_message=fault.message, num_partitions=-1,
                replication_factor=-1, configs=(),
            )  # fmt: skip
        made = self._image.topics.get(topic.name)
        own = canonical_configs({config.name: config.value for config in topic.configs})
        # Not there: it was only validated, or another client has deleted it already.
        default = self._image.get("num.partitions") if topic.num_partitions == -1 else topic.num_partitions
        count = len(made.leaders) if made is not None else len(topic.assignments) or default
        configs = tuple(
            types.CreatableTopicConfigs(
                name=e.name, value=e.value, read_only=False, config_source=e.source, is_sensitive=False
            )
            for e in topic_entries(self._image, own)
        )
        return types.CreatableTopicResult(
            name=topic.name,
            topic_id=made.id if made is not None else uuid.uuid4(),
            error_code=codes.NONE,
            error_message=None,
            topic_config_error_code=codes.NONE,
            num_partitions=count,
            replication_factor=1,
            configs=configs,
        )

    # --- DeleteTopics ------------------------------------------------------------------------------------------

    async def delete(self, request: DeleteTopicsRequest, call: Call) -> Message:
        types = call.types
        if call.api_version >= 6:
            asked = [(topic.name, topic.topic_id) for topic in request.topics]
        else:
            asked = [(name, None) for name in request.topic_names]
        named = [self._name(name, topic_id) for name, topic_id in asked]
        repeated = _repeated(name for name, fault in named if not fault.code)
        names = [name for name, fault in named if not fault.code and name not in repeated]
        ids = {name: topic.id for name in names if (topic := self._image.topics.get(name)) is not None}
        sizes = {name: len(topic.leaders) for name in names if (topic := self._image.topics.get(name)) is not None}
        if not self._image.get("delete.topic.enable"):
            sizes = {}
        faults = await self._mutate("delete_topics", call, dict.fromkeys(names), sizes) if names else {}
        faults |= {name: Fault(codes.INVALID_REQUEST, DUPLICATE) for name in repeated}
        results = []
        answered = set()
        for (asked_name, topic_id), (name, fault) in zip(asked, named, strict=True):
            if not fault.code:
                if name in answered:
                    continue
                answered.add(name)
                fault = faults.get(name, OK)
            found_id = topic_id or (ids.get(name) if not fault.code else None)
            shown = asked_name if fault.code else name
            results.append(
                types.DeletableTopicResult(
                    name=shown, topic_id=found_id, error_code=fault.code, error_message=fault.message
                )
            )
        return types.DeleteTopicsResponse(responses=tuple(results))

    def _name(self, name: str | None, topic_id: uuid.UUID | None) -> tuple[str, Fault]:
        """The name of a topic given by name or by id."""
        if name is not None and topic_id:
            return "", Fault(codes.INVALID_REQUEST, "You may not specify both topic name and topic id.")
        if name is not None:
            return name, OK
        if not topic_id:
            return "", Fault(codes.INVALID_REQUEST, "Neither topic name nor id were specified.")
        topic = self._image.topics.by_id(topic_id)
        if topic is None:
            return "", Fault(codes.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        return topic.name, OK

    # --- CreatePartitions --------------------------------------------------------------------------------------

    async def add_partitions(self, request: CreatePartitionsRequest, call: Call) -> Message:
        types = call.types
        faults, wanted = _sort(request.topics, self._check_added, _more)
        if wanted:
            sizes = {name: more.total - self._size(name) for name, more in wanted.items()}
            late = {
                topic.name: fault
                for topic in request.topics
                if sizes.get(topic.name, 0) > 0 and (fault := self._check_leaders(topic)).code
            }
            faults |= await self._mutate(
                "create_partitions", call, wanted, sizes, validate_only=request.validate_only, late=late
            )
        results = tuple(
            types.CreatePartitionsTopicResult(
                name=name, error_code=faults.get(name, OK).code, error_message=faults.get(name, OK).message
            )
            for name in dict.fromkeys(topic.name for topic in request.topics)
        )
        return types.CreatePartitionsResponse(results=results)

    def _check_added(self, topic: CreatePartitionsTopic) -> Fault:
        known = self._image.topics.get(topic.name)
        if known is None:
            return Fault(codes.UNKNOWN_TOPIC_OR_PARTITION)
        added = topic.count - len(known.leaders)
        if topic.assignments is None or added <= 0:
            return OK
        if len(topic.assignments) != added:
            return Fault(
                codes.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {added} additional partition(s), but only {len(topic.assignments)} assignment(s) "
                "were specified.",
            )
        return OK

    def _size(self, name: str) -> int:
        topic = self._image.topics.get(name)
        return 0 if topic is None else len(topic.leaders)

    def _check_leaders(self, topic: CreatePartitionsTopic) -> Fault:
        """Faults that Kafka looks for only after it has charged the partitions."""
        faults = [self._check_assignment(assignment.broker_ids) for assignment in topic.assignments or ()]
        return next((fault for fault in faults if fault.code), OK)

    # --- controller_mutation_rate, KIP-599 -----------------------------------------------------------------------

    def _partitions(self, asked: int) -> int:
        return self._image.get("num.partitions") if asked == -1 else asked

    async def _mutate(
        self,
        method: str,
        call: Call,
        wanted: Mapping[str, object],
        sizes: dict[str, int],
        *,
        validate_only: bool | None = None,
        late: dict[str, Fault] | None = None,
    ) -> dict[str, Fault]:
        """Asks for `wanted`, whose partitions are charged to the client's quota, if it has one, as Kafka charges them.

        Every topic that would succeed is charged, also when it is only validated, and every topic that fails for a reason
        in `late`. In strict versions a topic beyond the quota is refused; in older ones it is done and throttles the client.
        `validate_only` None: the method has no such option.
        """
        options = () if validate_only is None else (bool(validate_only),)
        faults: dict[str, Fault] = {}
        bill = Bill()
        if self._mutations.in_use:
            faults = await self._ask(method, call, wanted, True) if options else {}
            charged = {name: sizes[name] for name in wanted if name in sizes and name not in faults}
            bill = await self._mutations.charge(call, charged, strict=call.api_version >= STRICT_SINCE[call.api_key])
            faults |= dict.fromkeys(bill.refused, Fault(codes.THROTTLING_QUOTA_EXCEEDED))
        faults = {**(late or {}), **faults}
        allowed = {name: asked for name, asked in wanted.items() if name not in faults}
        if allowed:
            failed = await self._ask(method, call, allowed, *options)
            await self._mutations.take_back(call, sum(bill.paid.get(name, 0) for name in failed))
            faults |= failed
        call.throttle_ms = bill.throttle_ms
        return faults

    # --- the coordinator ---------------------------------------------------------------------------------------

    async def _ask(self, method: str, call: Call, wanted: Mapping[str, object], *options: object) -> dict[str, Fault]:
        """The coordinator's objection to each of `wanted`, by name; `wanted[name]` is the argument, None for the name itself."""
        asked = [name if value is None else value for name, value in wanted.items()]
        try:
            results = await ask_coordinator(self._mesh, method, changed_by(call), asked, *options)
        except ChangeFailed as failed:
            return {name: Fault(failed.code, failed.message) for name in wanted}
        return {
            name: Fault(code_named(error), message or None)
            for name, (error, message) in zip(wanted, results, strict=True)
            if error
        }


def _sort(
    topics: Sequence[AnyTopic], check: Callable[[AnyTopic], Fault], asked: Callable[[AnyTopic], Asked]
) -> tuple[dict[str, Fault], dict[str, Asked]]:
    """(faults of topics that are named twice or fail `check`, the coordinator's arguments for the other topics)."""
    repeated = _repeated(topic.name for topic in topics)
    faults = {name: Fault(codes.INVALID_REQUEST, DUPLICATE) for name in repeated}
    wanted = {}
    for topic in topics:
        if topic.name not in repeated:
            fault = check(topic)
            if fault.code:
                faults[topic.name] = fault
            else:
                wanted[topic.name] = asked(topic)
    return faults, wanted


def _new(topic: CreatableTopic) -> NewTopic:
    configs = {config.name: config.value for config in topic.configs}
    leaders = [a.broker_ids[0] for a in sorted(topic.assignments, key=lambda a: a.partition_index)]
    return NewTopic(topic.name, topic.num_partitions, configs, leaders or None)


def _more(topic: CreatePartitionsTopic) -> MorePartitions:
    leaders = [a.broker_ids[0] if a.broker_ids else -1 for a in topic.assignments or ()]
    return MorePartitions(topic.name, topic.count, leaders or None)


def _check_configs(configs: Sequence[CreatableTopicConfig]) -> Fault:
    nulls = [config.name for config in configs if config.value is None]
    if nulls:
        message = f"Null value not supported for topic configs: {','.join(nulls)}"
        return Fault(codes.INVALID_CONFIG, message)
    try:
        canonical_configs({config.name: config.value for config in configs})
    except ConfigInvalid as fault:
        return Fault(codes.INVALID_CONFIG, str(fault))
    return OK


def _repeated(names: Iterable[str]) -> set[str]:
    return {name for name, count in Counter(names).items() if count > 1}
