"""Producer ids, unique in the cluster: this shard's block of them, and the next one, which the coordinator gives.

Most requests take one at once; what a shard has left of a block when it ends is never used.
Source: ProducerIdManager (RPCProducerIdManager) of Kafka 4.1.
"""

from __future__ import annotations

from typing import Any, Protocol

import trio

from shards.mesh.mesh import COORDINATOR
from shards.mesh.peer import PeerKey

BLOCK = 1000


class BlockCalls(Protocol):
    """The part of shards.mesh.mesh.Mesh that is needed."""

    async def request(self, key: PeerKey, method: str, *args: object, timeout_s: float = ...) -> Any: ...


class ProducerIds:
    """One task at a time asks for the next block; other tasks wait for it."""

    def __init__(self, mesh: BlockCalls) -> None:
        self._mesh = mesh
        self._next = self._end = 0
        self._asking = trio.Lock()

    @property
    def at_hand(self) -> bool:
        return self._next != self._end

    def take_now(self) -> int:
        """Only while one is `at_hand`."""
        assert self.at_hand
        self._next += 1
        return self._next - 1

    async def refill(self) -> None:
        """Returns when one is at hand. Raises PeerLost, DeadlineExceeded or RemoteError without a coordinator."""
        while not self.at_hand:
            async with self._asking:
                if not self.at_hand:
                    first = await self._mesh.request(COORDINATOR, "allocate_producer_ids", BLOCK)
                    self._next, self._end = first, first + BLOCK
