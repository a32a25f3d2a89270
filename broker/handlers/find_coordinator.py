"""FindCoordinator 0-6: which broker coordinates a group or a transactional id.

Version 4 asks for several keys at once (KIP-699). Groups and transactional ids are spread over the brokers by a hash
of their name, so no broker has to be asked. Share groups (key type 2) are not emulated: INVALID_REQUEST, as Kafka's
answer to keys it can't place.
"""

from __future__ import annotations

from typing import Any

from broker.cluster_metadata import ClusterMetadata
from broker.protocol import codes
from broker.serve.call import Call, Route

GROUP, TRANSACTION = 0, 1


def routes(cluster: ClusterMetadata) -> list[Route]:
    def find(request: Any, call: Call) -> Any:
        types = call.types
        keys = request.coordinator_keys if call.api_version >= 4 else (request.key,)
        kind = getattr(request, "key_type", GROUP)
        found = [_find(cluster, call, kind, key) for key in keys]
        if call.api_version >= 4:
            coordinators = tuple(types.Coordinator(key=key, **fields) for key, fields in zip(keys, found, strict=True))
            return types.FindCoordinatorResponse(coordinators=coordinators)
        (fields,) = found
        if not fields["error_code"]:
            fields["error_message"] = "NONE"  # as Kafka has it
        return types.FindCoordinatorResponse(**fields)

    return [Route(10, 0, 6, find)]


def _find(cluster: ClusterMetadata, call: Call, kind: int, key: str) -> dict[str, Any]:
    if kind not in (GROUP, TRANSACTION):
        return {
            "node_id": -1, "host": "", "port": -1, "error_code": codes.INVALID_REQUEST,
            "error_message": "Only groups and transactional ids have a coordinator here.",
        }  # fmt: skip
    broker = cluster.coordinator(key)
    host, port = cluster.endpoint(broker, call.listener)
    return {"node_id": broker, "host": host, "port": port, "error_code": codes.NONE, "error_message": ""}
