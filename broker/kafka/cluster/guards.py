"""Guards of the APIs that concern the cluster as a whole: CLUSTER_AUTHORIZATION_FAILED. Source: KafkaApis, ControllerApis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.kafka.security.access import Access
from broker.kafka.security.acl import Operation
from broker.kafka.security.guards import (
    CLUSTER_MESSAGE,
    after,
    of_cluster,
    whole,
)
from broker.serve.call import Answer, Call, Handler

if TYPE_CHECKING:
    from broker.wire.requests import DescribeClusterRequest
    from broker.wire.responses import DescribeClusterTypes


def describe_cluster(access: Access, handler: Handler) -> Handler:
    def handle(request: DescribeClusterRequest, call: Call) -> Answer:
        def show(
            response: DescribeClusterTypes.DescribeClusterResponse,
        ) -> DescribeClusterTypes.DescribeClusterResponse:
            if request.include_cluster_authorized_operations and not response.error_code:
                response.cluster_authorized_operations = access.cluster_operations(call)
            return response

        return after(handler(request, call), show)

    return handle


describe_quorum = of_cluster(
    Operation.DESCRIBE, whole("DescribeQuorumResponse", error_message=CLUSTER_MESSAGE, topics=(), nodes=())
)
update_features = of_cluster(
    Operation.ALTER, whole("UpdateFeaturesResponse", error_message=CLUSTER_MESSAGE, results=())
)
