"""InitProducerId (22), versions 0-5: KIP-98, KIP-360 (a transactional producer that knows its id gets its next epoch), KIP-890.

With a transactional id the id's coordinator answers (transaction_coordinator.py), without one any shard, with a new id always.
Source: KafkaApis.handleInitProducerIdRequest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.kafka.security.guarded_route import GuardedRoute
from broker.kafka.transactions import guards
from broker.kafka.transactions.api import ask_coordinator, refusal
from broker.kafka.transactions.homes import ClusterHomes
from broker.kafka.transactions.messages import InitProducer
from broker.kafka.transactions.producer_ids import ProducerIds
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from broker.wire.primitives import from_timedelta
from shards.errors import DeadlineExceeded, PeerLost, RemoteError
from shards.loop.deferred import MaybeDeferred, Spawn, then

if TYPE_CHECKING:
    from broker.wire.requests import InitProducerIdRequest
    from broker.wire.responses import InitProducerIdTypes

INIT_PRODUCER_ID = 22
FENCED_SINCE = 4
"""Earlier versions answer INVALID_PRODUCER_EPOCH instead of PRODUCER_FENCED (KIP-588)."""


def routes(ids: ProducerIds, homes: ClusterHomes, spawn: Spawn) -> list[GuardedRoute]:
    def init_producer_id(request: InitProducerIdRequest, call: Call[InitProducerIdTypes]) -> MaybeDeferred[Message]:
        known, epoch = request.producer_id, request.producer_epoch
        if (known < 0) != (epoch < 0):
            return _respond(call, codes.INVALID_REQUEST)
        if request.transactional_id is not None:
            return _transactional(homes, request, call)
        return _respond(call, codes.NONE, ids.take_now(), 0) if ids.at_hand else spawn(_respond_later(call))

    async def _respond_later(call: Call[InitProducerIdTypes]) -> Message:
        try:
            await ids.refill()
        except (PeerLost, DeadlineExceeded, RemoteError):
            return _respond(call, codes.COORDINATOR_NOT_AVAILABLE)
        return _respond(call, codes.NONE, ids.take_now(), 0)

    return [GuardedRoute(INIT_PRODUCER_ID, init_producer_id, guards.init_producer_id)]


def _transactional(
    homes: ClusterHomes, request: InitProducerIdRequest, call: Call[InitProducerIdTypes]
) -> MaybeDeferred[Message]:
    transactional_id = request.transactional_id or ""
    code = refusal(homes, transactional_id)
    if code:
        return _respond(call, code)

    def response(answer: Sequence[int] | None) -> Message:
        return _respond(call, *answer) if answer is not None else _respond(call, codes.COORDINATOR_NOT_AVAILABLE)

    timeout_ms = from_timedelta(request.transaction_timeout)
    message = InitProducer(transactional_id, timeout_ms, request.producer_id, request.producer_epoch)
    return then(ask_coordinator(homes, message), response)


def _respond(
    call: Call[InitProducerIdTypes], code: int, producer_id: int = -1, epoch: int = -1
) -> InitProducerIdTypes.InitProducerIdResponse:
    if code == codes.PRODUCER_FENCED and call.api_version < FENCED_SINCE:
        code = codes.INVALID_PRODUCER_EPOCH
    return call.types.InitProducerIdResponse(error_code=code, producer_id=producer_id, producer_epoch=epoch)
