"""The cost of created and deleted partitions to a client under `controller_mutation_rate` (KIP-599).

Topics are charged one by one, in the order of the request. Strict: a topic is refused while the bucket is below zero, and
costs nothing then. Otherwise it is done at any level of the bucket. Time that a request waits after it was charged
counts towards its throttle time. Source: ControllerMutationQuotaManager of Kafka 4.1.

By Redpanda's semantics a topic is refused in every version while the bucket owes anything, and costs its partitions all the same;
nothing is given back for what fails afterwards. Topics that Metadata creates cost nothing. Source: quota_manager, and the handlers
of topics (Redpanda 24.3).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import trio

from broker.serve.call import Call
from broker.serve.client_quotas import ClientQuotas
from broker.wire import codes
from shards.limits.client_quota_managers import MUTATION
from shards.loop.deferred import Deferred, MaybeDeferred
from shards.quotas.sharded_quotas import RecordedCharge

_METADATA: Final = 3
_TOO_MANY: Final = "Too many partition mutations requested"


class Mutations:
    """Charges mutations to the clients of this shard."""

    def __init__(self, quotas: ClientQuotas) -> None:
        self._meters = quotas.meters
        self._rehearsal = quotas.rehearsal
        self._buckets = quotas.buckets

    @property
    def in_use(self) -> bool:
        """True if any client has such a quota, or one is observed."""
        each = self._meters, self._rehearsal, self._buckets
        return any(quotas.in_use(MUTATION) for quotas in each)

    async def charge(self, call: Call, sizes: Mapping[str, int], *, strict: bool) -> Bill:
        """Charges topics of so many partitions each to the client that called."""
        bill = Bill()
        if self._buckets.in_use(MUTATION) and call.api_key == _METADATA:
            bill.paid = dict.fromkeys(sizes, 0)
            return bill
        if self._buckets.in_use(MUTATION):
            await self._charge_buckets(call, sizes, bill, strict=strict)
            return bill
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

    async def _charge_buckets(self, call: Call, sizes: Mapping[str, int], bill: Bill, *, strict: bool) -> None:
        bill.error = TopicRefusal(codes.THROTTLING_QUOTA_EXCEEDED if strict else codes.UNKNOWN_SERVER_ERROR, _TOO_MANY)
        longest_ms = 0
        for name, partitions in sizes.items():
            charged = self._buckets.charge(MUTATION, call.user, call.client_id, partitions)
            delay_ms = await charged if isinstance(charged, Deferred) else charged
            longest_ms = max(longest_ms, delay_ms)
            if delay_ms:
                bill.refused.add(name)
            else:
                bill.paid[name] = 0  # is never given back
        self._buckets.record_mutation_delay(call, sum(sizes.values()), longest_ms)
        call.node_throttle_ms = max(call.node_throttle_ms, longest_ms)

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


class TopicRefusal(NamedTuple):
    """The answer for a topic that is refused, and its text if it has one."""

    code: int
    message: str | None = None


class Bill:
    """The outcome of a charge: partitions of each topic that was paid for, the refused topics and their `error`, and what the
    observed quotas answer to those that were paid for."""

    def __init__(self) -> None:
        self.paid: dict[str, int] = {}
        self.refused: set[str] = set()
        self.error = TopicRefusal(codes.THROTTLING_QUOTA_EXCEEDED)
        self.observed: dict[str, MaybeDeferred[RecordedCharge]] = {}
        self.throttled_until_s = -math.inf

    @property
    def throttle_ms(self) -> int:
        """The rest of the throttle time, in ms from now."""
        left_s = self.throttled_until_s - trio.current_time()
        return round(left_s * 1000) if left_s > 0 else 0
