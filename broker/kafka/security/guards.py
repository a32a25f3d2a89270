"""The common parts of guards of several subjects. A guard stands before a handler: it answers what its client may not do, and asks
the handler for the rest. Source: KafkaApis, ControllerApis, AuthHelper."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypeVar, cast

from broker.kafka.security.access import Access
from broker.kafka.security.acl import Operation, ResourceType
from broker.serve.call import Answer, Call, Handler
from broker.wire import codes
from broker.wire.codec import Message
from shards.loop.deferred import Deferred

T = TypeVar("T")
CLUSTER_DENIED = codes.CLUSTER_AUTHORIZATION_FAILED
GROUP_DENIED = codes.GROUP_AUTHORIZATION_FAILED
TOPIC_DENIED = codes.TOPIC_AUTHORIZATION_FAILED
MESSAGES = {
    codes.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    codes.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    codes.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}
CLUSTER_MESSAGE = MESSAGES[CLUSTER_DENIED]

_NEVER = 99
Guard: TypeAlias = Callable[[Access, Handler], Handler]
"""Makes of a handler one that answers first what its client may not do."""

MakeRefusal: TypeAlias = Callable[..., Message]
"""(types, request) -> the whole answer to a request that is denied; `unless` gives the error code, too."""
Made: TypeAlias = Callable[..., Message]
"""(types, topic of the request) -> the answer to a topic that the client may not touch."""


def unless(code: Callable[[Access, Call, Any], int], refused: MakeRefusal) -> Guard:
    """The guard of an API that is answered or denied as a whole; `code` gives the error, NONE: it is answered."""

    def guard(access: Access, handler: Handler) -> Handler:
        def handle(request: Message, call: Call) -> Answer:
            denied = code(access, call, request)
            if not denied:
                return handler(request, call)
            return refused(call.types, request, denied)

        return handle

    return guard


def described(resource: ResourceType, field: str, name: str) -> Guard:
    """The guard of an API that lists all: the items of `field` that the client may not describe are left out."""

    def guard(access: Access, handler: Handler) -> Handler:
        def handle(request: Message, call: Call) -> Answer:
            def show(response: Message) -> Message:
                items = getattr(response, field)
                kept = (each for each in items if access.may(call, Operation.DESCRIBE, resource, getattr(each, name)))
                setattr(response, field, tuple(kept))
                return response

            return after(handler(request, call), show)

        return handle

    return guard


def after(answer: Answer, make: Callable[[Any], Message]) -> Answer:
    """The result of `make` on a handler's answer, when it is there."""
    made: Answer = answer.then(make) if isinstance(answer, Deferred) else make(answer)
    return made


def answered(response: T, field: str, more: Iterable[object]) -> T:
    """The response, with more items in one of its arrays."""
    setattr(response, field, (*getattr(response, field), *more))
    return response


# Of the cluster, of a group, of topics


def of_cluster(operation: Operation, refused: MakeRefusal) -> Guard:
    """The guard of an API that asks for an operation on the cluster."""
    return unless(
        lambda access, call, request: codes.NONE if access.may_cluster(call, operation) else CLUSTER_DENIED,
        lambda types, request, code: refused(types, request),
    )


def whole(response_class: str, **fields: object) -> MakeRefusal:
    """An answer with an error of its own."""
    return lambda types, request: getattr(types, response_class)(error_code=CLUSTER_DENIED, **fields)


def of_group(operation: Operation, refused: MakeRefusal) -> Guard:
    """The guard of an API whose request has one `group_id`."""
    return unless(
        lambda access, call, request: (
            codes.NONE if access.may(call, operation, ResourceType.GROUP, request.group_id) else GROUP_DENIED
        ),
        lambda types, request, code: refused(types, request),
    )


def of_group_and_topics(group: Guard, topics: Guard) -> Guard:
    """The group's guard first; then that of the topics."""
    return lambda access, handler: group(access, topics(access, handler))


def by_topic(
    operation: Operation,
    made: Made,
    *,
    answers: str = "topics",
    name: str = "name",
    ids_since: int = _NEVER,
    alone: str | None = None,
    **fields: object,
) -> Guard:
    """The guard of an API whose request has `topics`, and whose response has an item for each of them in `answers`.

    `ids_since`: the version from which topics are named by id. `alone`: the class of the response that is given without the handler
    when no topic is allowed; `fields` are what else it has.
    """

    def guard(access: Access, handler: Handler) -> Handler:
        def handle(request: Any, call: Call) -> Answer:
            def named(topic: Any) -> str | None:
                by_id = call.api_version >= ids_since
                return access.name_of(topic.topic_id) if by_id else getattr(topic, name)

            allowed, denied = access.split(call, operation, ResourceType.TOPIC, request.topics, named)
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
    topic_class: str,
    partition_class: str,
    index: str = "partition_index",
    *,
    code: int = TOPIC_DENIED,
    **fields: object,
) -> Made:
    """The answer is a topic of `partitions`, each with the error."""

    def made(types: object, topic: Any) -> Message:
        one = getattr(types, partition_class)
        numbers = (
            partition if isinstance(partition, int) else getattr(partition, index) for partition in topic.partitions
        )
        partitions = tuple(one(**{index: number}, error_code=code, **fields) for number in numbers)
        named = {"topic": topic.topic} if hasattr(topic, "topic") else {"name": topic.name}
        if hasattr(topic, "topic_id"):
            named["topic_id"] = topic.topic_id
        topic_denied: Message = getattr(types, topic_class)(**named, partitions=partitions)
        return topic_denied

    return made
