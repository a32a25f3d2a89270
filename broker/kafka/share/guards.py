"""Guards of ShareFetch and ShareAcknowledge: GROUP_AUTHORIZATION_FAILED. Topics are asked for by the handler, whose sessions
remember them. Source: KafkaApis."""

from broker.kafka.security.acl import Operation
from broker.kafka.security.guards import GROUP_DENIED, MESSAGES, of_group

share_fetch = of_group(
    Operation.READ,
    lambda types, request: types.ShareFetchResponse(
        error_code=GROUP_DENIED,
        error_message=MESSAGES[GROUP_DENIED],
        acquisition_lock_timeout=0,
        responses=(),
        node_endpoints=(),
    ),
)
share_acknowledge = of_group(
    Operation.READ,
    lambda types, request: types.ShareAcknowledgeResponse(
        error_code=GROUP_DENIED, error_message=MESSAGES[GROUP_DENIED], responses=(), node_endpoints=()
    ),
)
