"""Guards of the APIs that name topics: the handler is asked for those that the client may touch, the others are answered
TOPIC_AUTHORIZATION_FAILED, as by Kafka, whether they exist or not. Source: KafkaApis, ControllerApis."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from broker.kafka.security.access import MESSAGES, Access, Guard, after, answered
from broker.kafka.security.acl import Operation, ResourceType
from broker.serve.call import Answer, Call, Handler
from broker.wire import codes
from broker.wire.wire import Types
from shards.errors import ClientFault

DENIED = codes.TOPIC_AUTHORIZATION_FAILED
TOPIC = ResourceType.TOPIC
_IDS_SINCE = {0: 13, 1: 13}

Made = Callable[[Types, Any], Any]
"""The answer to a topic that the client may not touch."""


def by_topic(
    operation: Operation,
    made: Made,
    *,
    answers: str = "topics",
    name: str = "name",
    alone: str | None = None,
    **fields: Any,
) -> Guard:
    """Of an API whose request has `topics`, and whose response has an item for each of them in `answers`.

    `alone`: the class of the response that is given without the handler when no topic is allowed; `fields` are what else it has.
    """

    def guard(access: Access, handler: Handler) -> Handler:
        def handle(request: Any, call: Call) -> Answer:
            allowed, denied = access.split(call, operation, TOPIC, request.topics, lambda topic: getattr(topic, name))
            if not denied:
                return handler(request, call)
            refused = [made(call.types, topic) for topic in denied]
            if alone and not allowed:
                return cast(Answer, getattr(call.types, alone)(**{answers: tuple(refused)}, **fields))
            request.topics = tuple(allowed)
            return after(handler(request, call), lambda response: answered(response, answers, refused))

        return handle

    return guard


def of_partitions(
    topic_class: str, partition_class: str, index: str = "partition_index", *, code: int = DENIED, **fields: Any
) -> Made:
    """The answer is a topic of `partitions`, each with the error."""

    def made(types: Types, topic: Any) -> Any:
        one = getattr(types, partition_class)
        numbers = (
            partition if isinstance(partition, int) else getattr(partition, index) for partition in topic.partitions
        )
        partitions = tuple(one(**{index: number}, error_code=code, **fields) for number in numbers)
        named = {"topic": topic.topic} if hasattr(topic, "topic") else {"name": topic.name}
        return getattr(types, topic_class)(**named, partitions=partitions)

    return made


list_offsets = by_topic(
    Operation.DESCRIBE,
    of_partitions("ListOffsetsTopicResponse", "ListOffsetsPartitionResponse", timestamp=-1, offset=-1),
)
offset_for_leader_epoch = by_topic(
    Operation.DESCRIBE,
    of_partitions("OffsetForLeaderTopicResult", "EpochEndOffset", "partition", leader_epoch=-1, end_offset=-1),
    name="topic",
)
delete_records = by_topic(
    Operation.DELETE, of_partitions("DeleteRecordsTopicResult", "DeleteRecordsPartitionResult", low_watermark=-1)
)


def _producers(types: Types, topic: Any) -> Any:
    partitions = tuple(
        types.PartitionResponse(
            partition_index=number, error_code=DENIED, error_message=MESSAGES[DENIED], active_producers=()
        )
        for number in topic.partition_indexes
    )
    return types.TopicResponse(name=topic.name, partitions=partitions)


describe_producers = by_topic(Operation.READ, _producers)
create_partitions = by_topic(
    Operation.ALTER,
    lambda types, topic: types.CreatePartitionsTopicResult(name=topic.name, error_code=DENIED, error_message=None),
    answers="results",
)


def produce(access: Access, handler: Handler) -> Handler:
    def handle(request: Any, call: Call) -> Answer:
        if request.transactional_id is not None and not access.may(
            call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
        ):
            code = codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            return _produced(request, call, [_unproduced(call.types, topic, code) for topic in request.topic_data])
        name_of = partial(_name_of, access, call)
        _, denied = access.split(call, Operation.WRITE, TOPIC, request.topic_data, name_of)
        denied = [topic for topic in denied if _name_of(access, call, topic)]  # of no topic nothing is told but that
        if not denied:
            return handler(request, call)
        refused = [_unproduced(call.types, topic, DENIED) for topic in denied]
        request.topic_data = tuple(topic for topic in request.topic_data if all(topic is not each for each in denied))
        if not request.topic_data:
            return _produced(request, call, refused)
        response = handler(request, call)
        if request.acks == 0:
            return after(response, lambda _: _produced(request, call, refused))
        return after(response, lambda made: answered(made, "responses", refused))

    return handle


def _name_of(access: Access, call: Call, topic: Any) -> str:
    """Of a topic of Produce, by name or by id; "" if there is none."""
    by_id = call.api_version >= _IDS_SINCE[call.api_key]
    return access.name_of(topic.topic_id) or "" if by_id else topic.name


def _produced(request: Any, call: Call, refused: list[Any]) -> Answer:
    """The answer to a Produce of which nothing is taken."""
    if request.acks == 0 and refused:
        raise ClientFault("PRODUCE_FAILED", f"Produce with acks=0 failed: {MESSAGES[DENIED]}")
    return call.types.ProduceResponse(responses=tuple(refused))


def _unproduced(types: Types, topic: Any, code: int) -> Any:
    partitions = tuple(
        types.PartitionProduceResponse(
            index=each.index, error_code=code, base_offset=-1, log_append_time=-1, log_start_offset=-1,
            record_errors=(), error_message=MESSAGES[code],
        )
        for each in topic.partition_data
    )  # fmt: skip
    return types.TopicProduceResponse(
        name=getattr(topic, "name", None), topic_id=getattr(topic, "topic_id", None), partition_responses=partitions
    )


def fetch(access: Access, handler: Handler) -> Handler:
    """The partitions of a session are known to the handler alone, so it asks itself."""

    def handle(request: Any, call: Call) -> Answer:
        call.may_read = partial(access.may, call, Operation.READ, TOPIC)
        return handler(request, call)

    return handle


def create_topics(access: Access, handler: Handler) -> Handler:
    def handle(request: Any, call: Call) -> Answer:
        allowed: list[Any] = list(request.topics)
        denied: list[Any] = []
        if not access.may_cluster(call, Operation.CREATE):
            allowed, denied = access.split(call, Operation.CREATE, TOPIC, request.topics, lambda topic: str(topic.name))
        request.topics = tuple(allowed)
        refused = [_created(call.types, name) for name in dict.fromkeys(topic.name for topic in denied)]

        def show(response: Any) -> Any:
            for topic in response.topics:
                if not topic.error_code and not access.may(call, Operation.DESCRIBE_CONFIGS, TOPIC, topic.name):
                    topic.topic_config_error_code = DENIED
                    topic.num_partitions = topic.replication_factor = -1
                    topic.configs = ()
            return answered(response, "topics", refused)

        hides = call.api_version >= _CONFIGS_SINCE
        response = handler(request, call)
        return after(response, show if hides else lambda made: answered(made, "topics", refused))

    return handle


_CONFIGS_SINCE = 5


def _created(types: Types, name: str) -> Any:
    return types.CreatableTopicResult(
        name=name, topic_id=None, error_code=DENIED, error_message=None, topic_config_error_code=0, num_partitions=-1,
        replication_factor=-1, configs=(),
    )  # fmt: skip


def delete_topics(access: Access, handler: Handler) -> Handler:
    """Version 6 names topics by id or name. Whoever may not describe a topic is not told the name of an id."""

    def handle(request: Any, call: Call) -> Answer:
        if access.may_cluster(call, Operation.DELETE):
            return handler(request, call)
        refused: list[Any] = []

        def allowed(name: str | None, topic_id: Any) -> bool:
            known = name if name is not None else access.name_of(topic_id)
            if known is None or access.may(call, Operation.DELETE, TOPIC, known):
                return True
            told = known if name is not None or access.may(call, Operation.DESCRIBE, TOPIC, known) else None
            made = call.types.DeletableTopicResult(
                name=told,
                topic_id=topic_id if name is None else None,
                error_code=DENIED,
                error_message=MESSAGES[DENIED],
            )
            refused.append(made)
            return False

        if call.api_version >= 6:
            request.topics = tuple(topic for topic in request.topics if allowed(topic.name, topic.topic_id))
        else:
            request.topic_names = tuple(name for name in request.topic_names if allowed(name, None))
        return after(handler(request, call), lambda response: answered(response, "responses", refused))

    return handle
