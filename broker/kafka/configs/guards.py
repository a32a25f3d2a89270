"""Guards of the APIs of configs: a refused resource gets the error of its type. Source: ConfigHelper, ControllerApis."""

from __future__ import annotations

from typing import Any

from broker.kafka.security.access import Access
from broker.kafka.security.acl import CLUSTER_NAME, Operation, ResourceType
from broker.kafka.security.guards import (
    CLUSTER_DENIED,
    MESSAGES,
    Guard,
    after,
    answered,
    of_cluster,
    whole,
)
from broker.serve.call import Answer, Call, Handler
from broker.wire import codes

_TOPIC, _BROKER, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP = 2, 4, 8, 16, 32
_RESOURCES = {
    _TOPIC: (ResourceType.TOPIC, codes.TOPIC_AUTHORIZATION_FAILED),
    _GROUP: (ResourceType.GROUP, codes.GROUP_AUTHORIZATION_FAILED),
    **dict.fromkeys((_BROKER, _BROKER_LOGGER, _CLIENT_METRICS), (ResourceType.CLUSTER, CLUSTER_DENIED)),
}


def of_configs(operation: Operation, result_class: str, answers: str, **fields: object) -> Guard:
    """The guard of an API whose request names resources with configs; its response has an item for each of them in `answers`."""

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


describe_configs = of_configs(Operation.DESCRIBE_CONFIGS, "DescribeConfigsResult", "results", configs=())
alter_configs = of_configs(Operation.ALTER_CONFIGS, "AlterConfigsResourceResponse", "responses")
list_config_resources = of_cluster(
    Operation.DESCRIBE_CONFIGS, whole("ListConfigResourcesResponse", config_resources=())
)
