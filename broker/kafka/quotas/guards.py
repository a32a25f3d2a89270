"""Guards of the APIs of client quotas: CLUSTER_AUTHORIZATION_FAILED. Source: ControllerApis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.kafka.security.acl import Operation
from broker.kafka.security.guards import (
    CLUSTER_DENIED,
    CLUSTER_MESSAGE,
    of_cluster,
    whole,
)
from broker.wire.codec import Message

if TYPE_CHECKING:
    from broker.wire.requests import AlterClientQuotasRequest, EntryData
    from broker.wire.responses import AlterClientQuotasTypes


def _alter_client_quotas(types: AlterClientQuotasTypes, request: AlterClientQuotasRequest) -> Message:
    def entry(asked: EntryData) -> AlterClientQuotasTypes.EntryData:
        entity = tuple(
            types.EntityData(entity_type=each.entity_type, entity_name=each.entity_name) for each in asked.entity
        )
        return types.EntryData(error_code=CLUSTER_DENIED, error_message=CLUSTER_MESSAGE, entity=entity)

    return types.AlterClientQuotasResponse(entries=tuple(map(entry, request.entries)))


describe_client_quotas = of_cluster(
    Operation.DESCRIBE_CONFIGS, whole("DescribeClientQuotasResponse", error_message=CLUSTER_MESSAGE, entries=None)
)
alter_client_quotas = of_cluster(Operation.ALTER_CONFIGS, _alter_client_quotas)
