"""The cost of created and deleted partitions to a client under `controller_mutation_rate` (KIP-599).

Topics are charged one by one, in the order of the request. Strict: a topic is refused while the bucket is below zero, and
costs nothing then. Otherwise it is done at any level of the bucket. Time that a request waits after it was charged
counts towards its throttle time. Source: ControllerMutationQuotaManager of Kafka 4.1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import trio

from broker.serve.call import Call
from shards.limits.client_quota_managers import MUTATION
from shards.loop.deferred import Deferred
from shards.quotas.sharded_quotas import RecordedCharge, ShardedQuotas


class Mutations:
    """Charges mutations to the clients of this shard."""

    def __init__(self, meters: ShardedQuotas) -> None:
        self._meters = meters

    @property
    def in_use(self) -> bool:
        """Whether any client has such a quota."""
        return self._meters.in_use(MUTATION)

    async def charge(self, call: Call, sizes: Mapping[str, int], *, strict: bool) -> Bill:
        """Charges topics of so many partitions each to the client that called."""
        bill = Bill()
        for name, partitions in sizes.items():
            charged = await self._record(call, partitions, strict=strict)
            if charged.throttle_ms:
                bill.throttled_until_s = trio.current_time() + charged.throttle_ms / 1000
            if charged.accepted:
                bill.paid[name] = partitions
            else:
                bill.refused.add(name)
        call.mutations += sum(bill.paid.values())
        return bill

    async def take_back(self, call: Call, partitions: int) -> None:
        """Returns the charge for partitions that were not created or deleted after all."""
        if partitions:
            await self._record(call, -partitions, strict=False)
            call.mutations -= partitions

    async def _record(self, call: Call, partitions: int, *, strict: bool) -> RecordedCharge:
        charged = self._meters.charge(MUTATION, call.user, call.client_id or "", partitions, strict=strict)
        recorded = await charged if isinstance(charged, Deferred) else charged
        call.stand_in |= recorded.stand_in
        return recorded


class Bill:
    """The outcome of a charge: partitions of each topic that was paid for, and the refused topics."""

    def __init__(self) -> None:
        self.paid: dict[str, int] = {}
        self.refused: set[str] = set()
        self.throttled_until_s = -math.inf

    @property
    def throttle_ms(self) -> int:
        """The rest of the throttle time, in ms from now."""
        left_s = self.throttled_until_s - trio.current_time()
        return round(left_s * 1000) if left_s > 0 else 0
