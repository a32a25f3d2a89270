"""InitProducerId (22), versions 0-5: KIP-98, KIP-360 (a producer that knows its id gets its next epoch).

Ids come from the coordinator in blocks, so that most requests are answered at once; the rest of a block that a shard has
when it ends is never used. Not emulated: transactions. A transactional id is refused with UNSUPPORTED_VERSION, which
every client takes as fatal, rather than let in to fail in the middle of its first transaction.
"""

import trio

from broker.log.partitions import PartitionCalls
from broker.protocol import codes
from broker.protocol.codec import Message
from broker.protocol.requests import InitProducerIdRequest
from broker.serve.call import Call, Route
from shards.errors import DeadlineExceeded, PeerLost, RemoteError
from shards.mesh.deferred import MaybeDeferred, Spawn
from shards.mesh.mesh import COORDINATOR

INIT_PRODUCER_ID = 22
BLOCK = 1000
LAST_EPOCH = 32_766  # Short.MAX_VALUE - 1: a producer that is there gets a new id


class ProducerIds:
    """Producer ids, unique in the cluster. One task at a time asks for the next block; other tasks wait for it."""

    def __init__(self, mesh: PartitionCalls) -> None:
        self._mesh = mesh
        self._next = self._end = 0
        self._asking = trio.Lock()

    def take_now(self) -> int | None:
        """None when the block is used up."""
        if self._next == self._end:
            return None
        self._next += 1
        return self._next - 1

    async def take(self) -> int:
        """Raises PeerLost, DeadlineExceeded or RemoteError without a coordinator."""
        while (producer_id := self.take_now()) is None:
            async with self._asking:
                if self._next == self._end:
                    first = await self._mesh.request(COORDINATOR, "allocate_producer_ids", BLOCK)
                    self._next, self._end = first, first + BLOCK
        return producer_id


def routes(ids: ProducerIds, spawn: Spawn) -> list[Route]:
    def init_producer_id(request: InitProducerIdRequest, call: Call) -> MaybeDeferred[Message]:
        if request.transactional_id is not None:
            return _respond(call, codes.UNSUPPORTED_VERSION)
        known, epoch = request.producer_id, request.producer_epoch
        if (known < 0) != (epoch < 0):
            return _respond(call, codes.INVALID_REQUEST)
        if known >= 0 and epoch < LAST_EPOCH:
            return _respond(call, codes.NONE, known, epoch + 1)
        producer_id = ids.take_now()
        return spawn(_respond_later(call)) if producer_id is None else _respond(call, codes.NONE, producer_id, 0)

    async def _respond_later(call: Call) -> Message:
        try:
            return _respond(call, codes.NONE, await ids.take(), 0)
        except (PeerLost, DeadlineExceeded, RemoteError):
            return _respond(call, codes.COORDINATOR_NOT_AVAILABLE)

    return [Route.of(INIT_PRODUCER_ID, init_producer_id)]


def _respond(call: Call, code: int, producer_id: int = -1, epoch: int = -1) -> Message:
    return call.types.InitProducerIdResponse(error_code=code, producer_id=producer_id, producer_epoch=epoch)
