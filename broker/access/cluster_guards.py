"""Guards of the APIs that concern the cluster as a whole, configs and transactions: CLUSTER_AUTHORIZATION_FAILED and the like.

Source: KafkaApis, ControllerApis, ConfigHelper.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.access.access import MESSAGES, Access, Guard, after, answered
from broker.access.acl import CLUSTER_NAME, Operation, ResourceType
from broker.protocol import codes
from broker.protocol.codec import Message
from broker.protocol.wire import Types
from broker.serve.call import Answer, Call, Handler

DENIED = codes.CLUSTER_AUTHORIZATION_FAILED
MESSAGE = MESSAGES[DENIED]
Refused = Callable[[Types, Any], Any]
"""The whole answer to a request of a client that may not ask it."""


def of_cluster(operation: Operation, refused: Refused) -> Guard:
    """Of an API that asks for an operation on the cluster."""

    def guard(access: Access, handler: Handler) -> Handler:
        def handle(request: Any, call: Call) -> Answer:
            if access.may_cluster(call, operation):
                return handler(request, call)
            made: Answer = refused(call.types, request)
            return made

        return handle

    return guard


def whole(response_class: str, **fields: Any) -> Refused:
    """An answer with an error of its own."""
    return lambda types, request: getattr(types, response_class)(error_code=DENIED, **fields)


def _alter_client_quotas(types: Types, request: Any) -> Any:
    def entry(asked: Any) -> Any:
        entity = tuple(
            types.EntityData(entity_type=each.entity_type, entity_name=each.entity_name) for each in asked.entity
        )
        return types.EntryData(error_code=DENIED, error_message=MESSAGE, entity=entity)

    return types.AlterClientQuotasResponse(entries=tuple(map(entry, request.entries)))


def _alter_scram(types: Types, request: Any) -> Any:
    names = dict.fromkeys(each.name for each in (*request.deletions, *request.upsertions))
    results = (
        types.AlterUserScramCredentialsResult(user=each, error_code=DENIED, error_message=MESSAGE) for each in names
    )
    return types.AlterUserScramCredentialsResponse(results=tuple(results))


def _alter_log_dirs(types: Types, request: Any) -> Any:
    def topic(asked: Any) -> Any:
        one = types.AlterReplicaLogDirPartitionResult
        partitions = tuple(one(partition_index=number, error_code=DENIED) for number in asked.partitions)
        return types.AlterReplicaLogDirTopicResult(topic_name=asked.name, partitions=partitions)

    return types.AlterReplicaLogDirsResponse(results=tuple(topic(each) for d in request.dirs for each in d.topics))


alter_client_quotas = of_cluster(Operation.ALTER_CONFIGS, _alter_client_quotas)
alter_scram = of_cluster(Operation.ALTER, _alter_scram)
alter_log_dirs = of_cluster(Operation.ALTER, _alter_log_dirs)
create_acls = of_cluster(
    Operation.ALTER,
    lambda types, request: types.CreateAclsResponse(
        results=tuple(types.AclCreationResult(error_code=DENIED, error_message=MESSAGE) for _ in request.creations)
    ),
)
delete_acls = of_cluster(
    Operation.ALTER,
    lambda types, request: types.DeleteAclsResponse(
        filter_results=tuple(
            types.DeleteAclsFilterResult(error_code=DENIED, error_message=MESSAGE, matching_acls=())
            for _ in request.filters
        )
    ),
)

# Configs

_TOPIC, _BROKER, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP = 2, 4, 8, 16, 32
_RESOURCES = {
    _TOPIC: (ResourceType.TOPIC, codes.TOPIC_AUTHORIZATION_FAILED),
    _GROUP: (ResourceType.GROUP, codes.GROUP_AUTHORIZATION_FAILED),
    **dict.fromkeys((_BROKER, _BROKER_LOGGER, _CLIENT_METRICS), (ResourceType.CLUSTER, DENIED)),
}


def of_configs(operation: Operation, result_class: str, answers: str, **fields: Any) -> Guard:
    """Of an API that names resources that have configs; its response has an item for each of them in `answers`."""

    def guard(access: Access, handler: Handler) -> Handler:
        def handle(request: Any, call: Call) -> Answer:
            kept, refused = [], []
            for each in request.resources:
                resource, code = _RESOURCES.get(each.resource_type, (None, 0))
                name = CLUSTER_NAME if resource is ResourceType.CLUSTER else each.resource_name
                if resource is None or access.may(call, operation, resource, name):
                    kept.append(each)
                    continue
                made = getattr(call.types, result_class)(
                    error_code=code, error_message=MESSAGES[code], resource_type=each.resource_type,
                    resource_name=each.resource_name, **fields,
                )  # fmt: skip
                refused.append(made)
            request.resources = tuple(kept)
            return after(handler(request, call), lambda response: answered(response, answers, refused))

        return handle

    return guard


# Transactions and producers


def init_producer_id(access: Access, handler: Handler) -> Handler:
    """Whoever may write to any topic may do so idempotently."""

    def handle(request: Any, call: Call) -> Answer:
        code = codes.NONE
        if request.transactional_id is not None:
            if not access.may(call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
                code = codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        elif not access.may_cluster(call, Operation.IDEMPOTENT_WRITE) and not access.may_any(
            call, Operation.WRITE, ResourceType.TOPIC
        ):
            code = DENIED
        if not code:
            return handler(request, call)
        return call.types.InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)

    return handle


def of_transaction(refused: Refused, *, group: bool = False) -> Guard:
    """Of an API whose request has one `transactional_id`, and perhaps a `group_id`; `refused(types, (request, code))`."""

    def guard(access: Access, handler: Handler) -> Handler:
        def handle(request: Any, call: Call) -> Answer:
            code = codes.NONE
            if not access.may(call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
                code = codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            elif group and not access.may(call, Operation.READ, ResourceType.GROUP, request.group_id):
                code = codes.GROUP_AUTHORIZATION_FAILED
            if not code:
                return handler(request, call)
            made: Answer = refused(call.types, (request, code))
            return made

        return handle

    return guard


end_txn = of_transaction(
    lambda types, asked: types.EndTxnResponse(error_code=asked[1], producer_id=-1, producer_epoch=-1)
)
add_offsets_to_txn = of_transaction(lambda types, asked: types.AddOffsetsToTxnResponse(error_code=asked[1]), group=True)


def _txn_offsets(types: Types, topics: Any, code: int) -> tuple[Any, ...]:
    return tuple(
        types.TxnOffsetCommitResponseTopic(
            name=topic.name,
            partitions=tuple(
                types.TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                for each in topic.partitions
            ),
        )
        for topic in topics
    )


def _txn_offset_commit_topics(access: Access, handler: Handler) -> Handler:
    def handle(request: Any, call: Call) -> Answer:
        topic = ResourceType.TOPIC
        allowed, denied = access.split(call, Operation.READ, topic, request.topics, lambda each: str(each.name))
        refused = _txn_offsets(call.types, denied, codes.TOPIC_AUTHORIZATION_FAILED)
        if denied and not allowed:
            return call.types.TxnOffsetCommitResponse(topics=refused)
        request.topics = tuple(allowed)
        return after(handler(request, call), lambda response: answered(response, "topics", refused))

    return handle


def txn_offset_commit(access: Access, handler: Handler) -> Handler:
    def refused(types: Types, asked: Any) -> Any:
        return types.TxnOffsetCommitResponse(topics=_txn_offsets(types, asked[0].topics, asked[1]))

    return of_transaction(refused, group=True)(access, _txn_offset_commit_topics(access, handler))


def add_partitions_to_txn(access: Access, handler: Handler) -> Handler:
    """Versions that clients use, up to 3. One topic that may not be written to, and none is added, as in Kafka."""

    def handle(request: Any, call: Call) -> Answer:
        if call.api_version >= 4:
            if access.may_cluster(call, Operation.CLUSTER_ACTION):
                return handler(request, call)
            return call.types.AddPartitionsToTxnResponse(error_code=DENIED, results_by_transaction=())
        topics = request.v3_and_below_topics
        if not access.may(call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.v3_and_below_transactional_id):
            return _unadded(call.types, topics, lambda topic: codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        _, denied = access.split(call, Operation.WRITE, ResourceType.TOPIC, topics, lambda each: str(each.name))
        if not denied:
            return handler(request, call)
        names = {each.name for each in denied}
        return _unadded(
            call.types,
            topics,
            lambda topic: codes.TOPIC_AUTHORIZATION_FAILED if topic in names else codes.OPERATION_NOT_ATTEMPTED,
        )

    return handle


def _unadded(types: Types, topics: Any, code: Callable[[str], int]) -> Message:
    one = types.AddPartitionsToTxnPartitionResult
    results = tuple(
        types.AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=tuple(
                one(partition_index=number, partition_error_code=code(topic.name)) for number in topic.partitions
            ),
        )
        for topic in topics
    )
    return types.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)


def describe_transactions(access: Access, handler: Handler) -> Handler:
    def handle(request: Any, call: Call) -> Answer:
        kind, code = ResourceType.TRANSACTIONAL_ID, codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        allowed, denied = access.split(
            call, Operation.DESCRIBE, kind, request.transactional_ids, lambda each: str(each)
        )
        request.transactional_ids = tuple(allowed)
        refused = [
            call.types.TransactionState(
                error_code=code, transactional_id=each, transaction_state="", transaction_timeout=0,
                transaction_start_time=None, producer_id=0, producer_epoch=0, topics=(),
            )
            for each in denied
        ]  # fmt: skip

        def show(response: Any) -> Any:
            for state in response.transaction_states:
                kept = (t for t in state.topics if access.may(call, Operation.DESCRIBE, ResourceType.TOPIC, t.topic))
                state.topics = tuple(kept)
            return answered(response, "transaction_states", refused)

        return after(handler(request, call), show)

    return handle


def list_transactions(access: Access, handler: Handler) -> Handler:
    def handle(request: Any, call: Call) -> Answer:
        def show(response: Any) -> Any:
            kind = ResourceType.TRANSACTIONAL_ID
            response.transaction_states = tuple(
                each
                for each in response.transaction_states
                if access.may(call, Operation.DESCRIBE, kind, each.transactional_id)
            )
            return response

        return after(handler(request, call), show)

    return handle
