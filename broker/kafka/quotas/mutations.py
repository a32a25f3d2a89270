"""The cost of created and deleted partitions to a client under `controller_mutation_rate` (KIP-599).

Topics are charged one by one, in the order of the request. Strict: a topic is refused while the bucket is below zero, and
costs nothing then. Otherwise it is done at any level of the bucket. Time that a request waits after it was charged
counts towards its throttle time. Source: ControllerMutationQuotaManager of Kafka 4.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import trio

from broker.serve.call import Call
from broker.serve.client_quotas import ClientQuotas
from shards.limits.client_quota_managers import MUTATION
from shards.loop.deferred import Deferred, MaybeDeferred
from shards.quotas.sharded_quotas import RecordedCharge


class Mutations:
    """Charges mutations to the clients of this shard."""

    def __init__(self, quotas: ClientQuotas) -> None:
        self._meters = quotas.meters
        self._rehearsal = quotas.rehearsal

    @property
    def in_use(self) -> bool:
        """Whether any client has such a quota, or one is observed."""
        return self._meters.in_use(MUTATION) or self._rehearsal.in_use(MUTATION)

    async def charge(self, call: Call, sizes: Mapping[str, int], *, strict: bool) -> Bill:
        """Charges topics of so many partitions each to the client that called."""
        bill = Bill()
        for name, partitions in sizes.items():
            charged = await self._record(call, partitions, strict=strict)
            if charged.throttle_ms:
                bill.throttled_until_s = trio.current_time() + charged.throttle_ms / 1000
            if not charged.accepted:
                bill.refused.add(name)
                continue
            bill.paid[name] = partitions
            observed = self._rehearsal.mutate(call, partitions, strict=strict)
            if observed is not None:
                bill.observed[name] = observed
        call.mutations += sum(bill.paid.values())
        return bill

    async def take_back(self, call: Call, bill: Bill, failed: Iterable[str]) -> None:
        """Returns the charges for topics that were not created, extended or deleted after all."""
        paid = {name: bill.paid[name] for name in failed if name in bill.paid}
        partitions = sum(paid.values())
        if partitions:
            await self._record(call, -partitions, strict=False)
            call.mutations -= partitions
        for name in paid.keys() & bill.observed.keys():
            self._rehearsal.take_back(call, paid[name], bill.observed[name])

    async def _record(self, call: Call, partitions: int, *, strict: bool) -> RecordedCharge:
        charged = self._meters.charge(MUTATION, call.user, call.client_id or "", partitions, strict=strict)
        recorded = await charged if isinstance(charged, Deferred) else charged
        call.stand_in |= recorded.stand_in
        return recorded


class Bill:
    """The outcome of a charge: partitions of each topic that was paid for, the refused topics, and what the observed quotas
    answer to those that were paid for."""

    def __init__(self) -> None:
        self.paid: dict[str, int] = {}
        self.refused: set[str] = set()
        self.observed: dict[str, MaybeDeferred[RecordedCharge]] = {}
        self.throttled_until_s = -math.inf

    @property
    def throttle_ms(self) -> int:
        """The rest of the throttle time, in ms from now."""
        left_s = self.throttled_until_s - trio.current_time()
        return round(left_s * 1000) if left_s > 0 else 0
