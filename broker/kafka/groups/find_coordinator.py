"""FindCoordinator 0-6: which broker coordinates a group or a transactional id.

Version 4 asks for several keys at once (KIP-699). Groups and transactional ids are spread over the brokers by a hash
of their name, so no broker has to be asked. A key of a share partition (type 2, from version 6), "group:topic id:partition", is
placed with its group; one that Kafka can't read is INVALID_REQUEST. Who first asks for a coordinator of groups or of
transactional ids makes its internal topic (internal_topics.py).
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.groups import guards
from broker.kafka.security.guarded_route import GuardedRoute
from broker.kafka.topics.internal_topics import InternalTopics
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.internal_topics import GROUP_METADATA, TRANSACTION_STATE
from shards.loop.deferred import MaybeDeferred, then

if TYPE_CHECKING:
    from broker.wire.requests import FindCoordinatorRequest
    from broker.wire.responses import FindCoordinatorTypes

T = TypeVar("T")
GROUP, TRANSACTION, SHARE = 0, 1, 2
SHARE_SINCE = 6
_ID_BYTES = 16
_WRONG_KEY = "This is not the key of a group, a transactional id or a share partition."


_TOPICS = {GROUP: GROUP_METADATA, TRANSACTION: TRANSACTION_STATE}


def routes(cluster: ClusterMetadata, internal_topics: InternalTopics) -> list[GuardedRoute]:
    def find(request: FindCoordinatorRequest, call: Call[FindCoordinatorTypes]) -> MaybeDeferred[Message]:
        topic = _TOPICS.get(request.key_type)
        if topic is None or (call.api_version >= 4 and not request.coordinator_keys):
            return answer(request, call)
        return then(internal_topics.make(topic, call), lambda _: answer(request, call))

    def answer(request: FindCoordinatorRequest, call: Call[FindCoordinatorTypes]) -> Message:
        types = call.types
        kind = request.key_type
        if call.api_version >= 4:
            coordinators = tuple(
                _found(partial(types.Coordinator, key=key), cluster, call, kind, key, "")
                for key in request.coordinator_keys
            )
            return types.FindCoordinatorResponse(coordinators=coordinators)
        return _found(types.FindCoordinatorResponse, cluster, call, kind, request.key, "NONE")  # as Kafka has it

    return [GuardedRoute(10, find, guards.find_coordinator, prepared=True)]


def _found(
    make: Callable[..., T],
    cluster: ClusterMetadata,
    call: Call[FindCoordinatorTypes],
    kind: int,
    key: str,
    no_error: str,
) -> T:
    """The object that `make` makes of a coordinator's fields; `no_error` is the error message where there is no error."""
    owner: str | None = key
    if kind not in (GROUP, TRANSACTION):
        owner = _group_of(key) if kind == SHARE and call.api_version >= SHARE_SINCE else None
    if owner is None:
        return make(node_id=-1, host="", port=-1, error_code=codes.INVALID_REQUEST, error_message=_WRONG_KEY)
    broker = cluster.coordinator(owner)
    host, port = cluster.endpoint(broker, call)
    return make(node_id=broker, host=host, port=port, error_code=codes.NONE, error_message=no_error)


def _group_of(key: str) -> str | None:
    """The group in the key of a share partition; None: it is no such key. A group id may have colons.

    Source: SharePartitionKey of Kafka 4.3.
    """
    group, *rest = key.rsplit(":", 2)
    try:
        topic_id, partition = rest
        int(partition)
        is_id = len(urlsafe_b64decode(topic_id + "==")) == _ID_BYTES
    except ValueError:
        return None
    return group if group.strip() and is_id else None
