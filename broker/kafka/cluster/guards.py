"""Guards of the APIs that concern the cluster as a whole, and configs: CLUSTER_AUTHORIZATION_FAILED and the like.

Source: KafkaApis, ControllerApis, ConfigHelper.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.kafka.security.access import MESSAGES, Access, Guard, after, answered, unless
from broker.kafka.security.acl import CLUSTER_NAME, Operation, ResourceType
from broker.serve.call import Answer, Call, Handler
from broker.wire import codes
from broker.wire.wire import Types

DENIED = codes.CLUSTER_AUTHORIZATION_FAILED
MESSAGE = MESSAGES[DENIED]


def of_cluster(operation: Operation, refused: Callable[[Types, Any], Any]) -> Guard:
    """Of an API that asks for an operation on the cluster."""
    return unless(
        lambda access, call, request: codes.NONE if access.may_cluster(call, operation) else DENIED,
        lambda types, request, code: refused(types, request),
    )


def whole(response_class: str, **fields: Any) -> Callable[[Types, Any], Any]:
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
