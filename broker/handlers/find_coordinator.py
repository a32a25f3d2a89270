"""FindCoordinator 0-6: which broker coordinates a group or a transactional id.

Version 4 asks for several keys at once (KIP-699). Groups and transactional ids are spread over the brokers by a hash
of their name, so no broker has to be asked. Share groups (key type 2) are not emulated: INVALID_REQUEST, as Kafka's
answer to keys it can't place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from broker.handlers.cluster_metadata import ClusterMetadata
from broker.protocol import codes
from broker.protocol.codec import Message
from broker.protocol.requests import FindCoordinatorRequest
from broker.serve.call import Call, Route

GROUP, TRANSACTION = 0, 1


def routes(cluster: ClusterMetadata) -> list[Route]:
    def find(request: FindCoordinatorRequest, call: Call) -> Message:
        types = call.types
        kind = request.key_type
        if call.api_version >= 4:
            coordinators = tuple(
                _found(partial(types.Coordinator, key=key), cluster, call, kind, key, "")
                for key in request.coordinator_keys
            )
            return types.FindCoordinatorResponse(coordinators=coordinators)
        return _found(types.FindCoordinatorResponse, cluster, call, kind, request.key, "NONE")  # as Kafka has it

    return [Route(10, 0, 6, find, prepared=True)]


def _found(
    make: Callable[..., Message], cluster: ClusterMetadata, call: Call, kind: int, key: str, no_error: str
) -> Message:
    """What `make` makes of a coordinator's fields; `no_error` is the error message where there is no error."""
    if kind not in (GROUP, TRANSACTION):
        message = "Only groups and transactional ids have a coordinator here."
        return make(node_id=-1, host="", port=-1, error_code=codes.INVALID_REQUEST, error_message=message)
    broker = cluster.coordinator(key)
    host, port = cluster.endpoint(broker, call.listener)
    return make(node_id=broker, host=host, port=port, error_code=codes.NONE, error_message=no_error)
