"""Client quotas on the path of a request: charges it, reports the delay in its response, and then mutes the channel.

As Kafka does since KIP-219: the response leaves at once, whatever its version, with the delay in `throttle_time_ms`, and
the channel is not read for that long. Produce is charged its size and keeps it; Fetch is charged what it would answer,
and when that is throttled, or its request time is, it is answered empty and takes its bytes back. Every request is
charged its handler time: what was measured, plus what `turnstile.request.cost` says. Produce without an acknowledgement
is exempt from that and counted as such, and ApiVersions is not counted, as it costs nothing here. Mutations are charged
by their handlers. The longest delay counts.

Sources: KafkaApis (handleProduceRequest, processFetchRequest), RequestHandlerHelper, ClientQuotaManager.throttle.
"""

from __future__ import annotations

import inspect
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from broker import wire
from broker.call import Call
from broker.metrics import ShardCounters
from journal.writer import Journal
from limits.quotas import FETCH, MUTATION, PRODUCE, REQUEST
from shards.meters import KINDS, Meters
from shards.settings import View

if TYPE_CHECKING:
    from broker.connection import Connection

_PRODUCE, _FETCH = 0, 1


class _Charge(NamedTuple):
    """One quota's answer to a request: the delay it asks for, and what was recorded."""

    kind: str
    throttle_ms: int
    amount: float


class Throttling:
    """`active`: whether any client quota was ever set; until then requests go past all this."""

    def __init__(self, meters: Meters, view: View, journal: Journal, counters: ShardCounters) -> None:
        self.active = False
        self._meters = meters
        self._view = view
        self._journal = journal
        self._counters = counters
        self._costs: dict[str, tuple[float, float]] = {}

    def view_changed(self) -> None:
        """Quotas, or what requests are said to cost, may have changed."""
        self._meters.view_changed()
        self.active = any(map(self._meters.in_use, KINDS))
        self._costs = {
            api: (fixed_us, per_kib_us) for api, fixed_us, per_kib_us in self._view.get("turnstile.request.cost")
        }

    def prepare(self, call: Call) -> None:
        """Before the handler: a Fetch reads no more than fits its quota's window."""
        if call.api_key == _FETCH:
            call.most_bytes = self._meters.most_at_once(call.user, call.client_id or "")

    async def settle(self, connection: Connection, call: Call, size: int, response: Any, began_ns: int) -> bytes | None:
        """The encoded response of a request of `size` bytes, charged; the connection is told how long to be mute."""
        spent_ns = time.perf_counter_ns() - began_ns
        if inspect.iscoroutine(response):
            response = await response
            began_ns = time.perf_counter_ns()
            spent_ns = 0
        encoded = None if response is None else wire.encode_response(call, response)
        spent_ns += time.perf_counter_ns() - began_ns
        charges = await self._charge(call, size, encoded, self._cost_ms(call, size, encoded) + spent_ns / 1e6)
        worst = max(charges, key=lambda charge: charge.throttle_ms)
        for charge in charges:
            self._tell(connection, call, charge)
        if not worst.throttle_ms:
            return encoded
        connection.throttle = worst.kind, worst.throttle_ms
        if call.api_key == _FETCH:
            fetched = next((charge for charge in charges if charge.kind == FETCH and not charge.throttle_ms), None)
            if fetched is not None:
                await self._record(FETCH, call, -fetched.amount)
            response = call.types.FetchResponse(error_code=0, session_id=0, responses=())
        return None if response is None else wire.encode_response(call, response, worst.throttle_ms)

    async def _charge(self, call: Call, size: int, encoded: bytes | None, handler_ms: float) -> list[_Charge]:
        """Every quota this request counts against; only those that are in use by anybody."""
        charges = [_Charge(MUTATION, call.throttle_ms, 0)]
        if call.api_key == _PRODUCE:
            charges.append(await self._record(PRODUCE, call, size))
        elif call.api_key == _FETCH and encoded is not None:
            charges.append(await self._record(FETCH, call, wire.body_size(call, encoded) + 4))
        if encoded is not None:
            charges.append(await self._record(REQUEST, call, handler_ms))
        else:
            self._meters.record_exempt(handler_ms)
        return charges

    async def _record(self, kind: str, call: Call, amount: float) -> _Charge:
        charged = self._meters.charge(kind, call.user, call.client_id or "", amount)
        if not isinstance(charged, tuple):
            charged = await charged
        return _Charge(kind, charged.throttle_ms, amount)

    def _cost_ms(self, call: Call, size: int, encoded: bytes | None) -> float:
        """What `turnstile.request.cost` adds: of a Fetch by the size of its answer, else by that of the request."""
        if not self._costs:
            return 0.0
        name = wire.api_name(call.api_key)
        fixed_us, per_kib_us = self._costs.get(name) or self._costs.get("*") or (0.0, 0.0)
        moved = len(encoded or b"") if call.api_key == _FETCH else size
        return (fixed_us + per_kib_us * moved / 1024) / 1000

    def _tell(self, connection: Connection, call: Call, charge: _Charge) -> None:
        """Journals what a quota that somebody has recorded: also without a delay, so that its windows can be checked."""
        if not charge.throttle_ms and charge.kind in (REQUEST, MUTATION):
            return
        match = self._meters.match(charge.kind, call.user, call.client_id or "")
        if match.limit is None:
            return
        if charge.throttle_ms:
            self._counters.throttled(charge.kind, charge.throttle_ms)
        self._journal.add(
            "throttled",
            conn=connection.id,
            ip=connection.ip,
            port=connection.port,
            listener=connection.listener,
            user=call.user,
            client_id=call.client_id,
            api=wire.api_name(call.api_key),
            bytes_moved=int(charge.amount),
            throttle_ms=charge.throttle_ms,
            limit=charge.kind,
            limit_value=match.limit,
            version=self._view.version,
        )
