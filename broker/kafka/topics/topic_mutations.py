"""Shared by CreateTopics, DeleteTopics and CreatePartitions: how a batch of topics is checked, charged and carried out.

Each topic of a batch has an outcome of its own. The coordinator decides and stores; every shard has applied a change before
its answer goes out. Partitions are charged to `controller_mutation_rate` (KIP-599) as Kafka charges them: mutations.py.
Source: ReplicationControlManager and ControllerApis of Kafka 4.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from broker.kafka.api_error import ApiError
from broker.kafka.quotas.mutations import Bill, Mutations
from broker.kafka.remote import ChangeFailed, CoordinatorCalls, ask_coordinator, changed_by
from broker.serve.call import Call
from broker.serve.client_quotas import ClientQuotas
from broker.wire import codes

if TYPE_CHECKING:
    from broker.wire.requests import CreatableTopic, CreatePartitionsTopic

STRICT_SINCE = {19: 6, 20: 5, 37: 3}
"""The version of CreateTopics, DeleteTopics and CreatePartitions from which a mutation beyond the quota is refused."""


DUPLICATE = ApiError(codes.INVALID_REQUEST, "Duplicate topic name.")

AnyTopic = TypeVar("AnyTopic", "CreatableTopic", "CreatePartitionsTopic")
Arguments = TypeVar("Arguments")


def repeated(names: Iterable[str]) -> set[str]:
    """The names that occur more than once."""
    return {name for name, count in Counter(names).items() if count > 1}


class CheckedTopics(NamedTuple, Generic[Arguments]):
    """The topics of a request, by name: errors of those that are named twice or fail a check, and the coordinator's arguments
    for the others."""

    errors: dict[str, ApiError]
    wanted: dict[str, Arguments]


def check_topics(
    topics: Sequence[AnyTopic], check: Callable[[AnyTopic], ApiError], asked: Callable[[AnyTopic], Arguments]
) -> CheckedTopics[Arguments]:
    """`check`: a topic's error, NO_ERROR for none. `asked`: the coordinator's arguments for a topic."""
    twice = repeated(topic.name for topic in topics)
    errors = dict.fromkeys(twice, DUPLICATE)
    wanted = {}
    for topic in topics:
        if topic.name not in twice:
            error = check(topic)
            if error.code:
                errors[topic.name] = error
            else:
                wanted[topic.name] = asked(topic)
    return CheckedTopics(errors, wanted)


class TopicMutations:
    """Changes of topics, asked of the coordinator and charged to the client that asked."""

    def __init__(self, mesh: CoordinatorCalls, quotas: ClientQuotas) -> None:
        self._mesh = mesh
        self._mutations = Mutations(quotas)

    async def mutate(
        self,
        method: str,
        call: Call,
        wanted: Mapping[str, object],
        sizes: dict[str, int],
        *,
        validate_only: bool | None = None,
        late: dict[str, ApiError] | None = None,
    ) -> dict[str, ApiError]:
        """Asks the coordinator for `wanted`, {name: argument}; returns the errors, by name.

        `sizes` are the partitions of each topic, which are charged to the client's quota, if it has one: of every topic
        that would succeed, also when it is only validated, and of every topic that fails for a reason in `late`. In strict
        versions a topic beyond the quota is refused; in older ones it is done and throttles the client (call.throttle_ms).
        `validate_only` None: the method has no such option.
        """
        late = late or {}
        options = () if validate_only is None else (bool(validate_only),)
        errors: dict[str, ApiError] = {}
        bill = Bill()
        if self._mutations.in_use:
            sound = {name: asked for name, asked in wanted.items() if name not in late}
            errors = await self._ask(method, call, sound, True) if options and sound else {}
            charged = {name: sizes[name] for name in wanted if name in sizes and name not in errors}
            bill = await self._mutations.charge(call, charged, strict=call.api_version >= STRICT_SINCE[call.api_key])
            errors |= dict.fromkeys(bill.refused, ApiError(*bill.error))
        errors = {**late, **errors}
        allowed = {name: asked for name, asked in wanted.items() if name not in errors}
        if allowed:
            failed = await self._ask(method, call, allowed, *options)
            await self._mutations.take_back(call, bill, failed)
            errors |= failed
        call.throttle_ms = bill.throttle_ms
        return errors

    async def _ask(
        self, method: str, call: Call, wanted: Mapping[str, object], *options: object
    ) -> dict[str, ApiError]:
        """The coordinator's objection to each of `wanted`, by name; `wanted[name]` is the argument, None for the name itself."""
        asked = [name if value is None else value for name, value in wanted.items()]
        try:
            results = await ask_coordinator(self._mesh, method, changed_by(call), asked, *options)
        except ChangeFailed as failed:
            return dict.fromkeys(wanted, failed.error)
        return {name: ApiError.of(result) for name, result in zip(wanted, results, strict=True) if result[0]}
