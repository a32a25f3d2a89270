"""Client quotas on the path of a request: charges it, reports the delay in its response, and then mutes the channel.

As Kafka does since KIP-219: the response leaves at once, in every version, with the delay in `throttle_time_ms`, and
the channel is not read for that long. Produce is charged its size, whatever follows. Fetch and ShareFetch are charged the
size of their answer; if that, or their request time, is throttled, they are answered without records, and their bytes are
taken back. Every request is charged its handler time: as measured, plus `turnstile.request.cost`. Produce without an
acknowledgement, and what Kafka's brokers send to each other, are exempt from that and counted as such. Mutations are charged
by their handlers. The longest delay counts; shards/limits/throttle_time.py has Kafka's formulas for it.

Sources: KafkaApis (handleProduceRequest, processFetchRequest), RequestHandlerHelper, ClientQuotaManager.throttle.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Any

from broker.journal.schema import CALLBACKS_QUOTA
from broker.journal.writer import JournalWriter
from broker.metrics.shard_counters import ShardCounters
from broker.serve.call import Answer, Call
from broker.serve.channel import Channel
from broker.serve.client_quotas import ClientQuotas
from broker.serve.request_cost import FETCHES, RequestCosts
from broker.wire import apis, wire
from broker.wire.answer_parts import Encoded
from broker.wire.codec import Message
from shards.config.image import ClusterImage
from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE, REQUEST
from shards.loop.deferred import Deferred, MaybeDeferred, gather, then
from shards.quotas.meters import KINDS
from shards.quotas.sharded_quotas import RecordedCharge

if TYPE_CHECKING:
    from broker.wire.responses import FetchTypes

_PRODUCE, _FETCH = 0, 1
_ADD_PARTITIONS_TO_TXN, _WRITE_TXN_MARKERS = 24, 27
_BETWEEN_BROKERS_SINCE = 4  # AddPartitionsToTxn


class Throttling:
    """`active`: a client quota is set or observed; else nothing is charged. `timed`: one of request time is."""

    def __init__(
        self, quotas: ClientQuotas, image: ClusterImage, journal: JournalWriter, counters: ShardCounters
    ) -> None:
        self.active = False
        self.timed = False
        self._quotas = quotas
        self._meters = quotas.meters
        self._rehearsal = quotas.rehearsal
        self._image = image
        self._journal = journal
        self._counters = counters
        self._costs = RequestCosts()

    def image_changed(self, kinds: Collection[str]) -> None:
        """The image has another version: quotas, or `turnstile.request.cost`, may have changed."""
        self._quotas.follow()
        self._read_image()

    def _read_image(self) -> None:
        self.active = self._rehearsal.is_on or any(map(self._meters.in_use, KINDS))
        self.timed = self._meters.in_use(REQUEST) or self._rehearsal.in_use(REQUEST)
        self._costs.read(self._image)

    def reset(self) -> None:
        """Forgets what clients have used of their quotas."""
        self._quotas.reset()
        self._read_image()

    def most_bytes(self, call: Call) -> float | None:
        """The most bytes that a Fetch may read: what fits its quota's window; None: it has no quota."""
        return self._meters.most_at_once(call.user, call.client_id or "")

    def settle(
        self, channel: Channel, call: Call, size: int, response: Answer, began_ns: int
    ) -> MaybeDeferred[Encoded | None]:
        """Charges a request of `size` bytes; returns its encoded response. `channel.throttle` is set if a quota throttles it.

        It comes later only if the handler's `response` does, or if a quota's home is another shard. Waiting is not handler
        time, as in Kafka, which counts the time of a request handler's thread.
        """
        spent_ns = time.perf_counter_ns() - began_ns
        if isinstance(response, Deferred):
            return response.then(lambda there: self._settle(channel, call, size, there, spent_ns))
        return self._settle(channel, call, size, response, spent_ns)

    def _settle(
        self, channel: Channel, call: Call, size: int, response: Message | None, spent_ns: int
    ) -> MaybeDeferred[Encoded | None]:
        began_ns = time.perf_counter_ns()
        encoded = call.encoded
        if encoded is None and response is not None:
            encoded = wire.encode_answer(call, response, call.node_throttle_ms)
        spent_ns += time.perf_counter_ns() - began_ns
        asked = self._charges(call, size, encoded, self._cost_ms(call, size, encoded) + spent_ns / 1e6)
        user, client_id, charge = call.user, call.client_id or "", self._meters.charge
        answers = [charge(kind, user, client_id, amount) for kind, amount in asked]
        recorded = gather(answers) if len(answers) != 1 else answers[0]
        if isinstance(recorded, Deferred):
            channel.must_finish = True
            return recorded.then(partial(self._charged, channel, call, response, encoded, asked))
        return self._charged(channel, call, response, encoded, asked, recorded)

    def _charged(
        self,
        channel: Channel,
        call: Call,
        response: Message | None,
        encoded: Encoded | None,
        asked: list[tuple[str, float]],
        recorded: RecordedCharge | list[RecordedCharge],
    ) -> MaybeDeferred[Encoded | None]:
        """Every quota that applies has answered. If the request quota throttles a Fetch that its own quota let pass, its bytes
        are taken back."""
        answers = [recorded] if isinstance(recorded, RecordedCharge) else recorded
        worst_kind, worst_ms = "", 0
        for (kind, amount), charged in zip(asked, answers, strict=True):
            self._note_delay(channel, call, kind, amount, charged)
            if charged.throttle_ms > worst_ms:
                worst_kind, worst_ms = kind, charged.throttle_ms
        if call.throttle_ms:
            self._note_delay(
                channel, call, MUTATION, call.mutations, RecordedCharge(True, call.throttle_ms, 0, call.stand_in)
            )
            if call.throttle_ms > worst_ms:
                worst_kind, worst_ms = MUTATION, call.throttle_ms
        if self._rehearsal.is_on:
            self._rehearsal.charge(call, asked, withheld=bool(worst_ms))
        if not worst_ms:
            return encoded
        channel.throttle = worst_kind, worst_ms
        for (kind, amount), answer in zip(asked, answers, strict=True):
            if kind == FETCH and not answer.throttle_ms:
                back = self._meters.charge(FETCH, call.user, call.client_id or "", -amount)
                channel.must_finish = isinstance(back, Deferred)
                return then(back, lambda _: self._throttled(call, response, worst_ms))
        return self._throttled(call, response, worst_ms)

    def _charges(self, call: Call, size: int, encoded: Encoded | None, handler_ms: float) -> list[tuple[str, float]]:
        """The charges of a request: (kind of quota, amount) for each quota that it counts against."""
        charges: list[tuple[str, float]] = []
        if call.api_key == _PRODUCE:
            charges.append((PRODUCE, size))
        elif call.api_key in FETCHES and encoded is not None:
            charges.append((FETCH, wire.body_size(call, encoded) + 4))
        if not self.timed:
            return charges
        if encoded is not None and not _is_exempt(call):
            charges.append((REQUEST, handler_ms))
        else:
            self._meters.record_exempt(handler_ms)
        return charges

    def _throttled(self, call: Call, response: Message | None, throttle_ms: int) -> bytes | None:
        """The response with the delay, for which the channel is then muted."""
        if call.withheld is not None:
            response = call.withheld()
        elif call.api_key == _FETCH:
            response = _nothing(call)
        return (
            None if response is None else wire.encode_response(call, response, max(throttle_ms, call.node_throttle_ms))
        )

    def _cost_ms(self, call: Call, size: int, encoded: Encoded | None) -> float:
        """The time that `turnstile.request.cost` adds."""
        cost = self._costs.get(call.api_key)
        return 0.0 if cost is None else (cost.request_us(size) + cost.answer_us(len(encoded or b""))) / 1000

    def _note_delay(self, channel: Channel, call: Call, kind: str, amount: float, charged: RecordedCharge) -> None:
        """Counts and journals a delay of the client. A charge without a delay is in the notes of its meter (quota_events.py)."""
        throttle_ms = charged.throttle_ms
        if not throttle_ms:
            return
        limit = self._meters.limit(kind, call.user, call.client_id or "")
        if limit is None:
            return
        self._counters.throttled(kind, throttle_ms)
        self._journal.throttled(
            channel.id, channel.ip, channel.port, channel.listener, user=call.user, client_id=call.client_id,
            api=apis.api_name(call.api_key), amount=int(amount), throttle_ms=throttle_ms,
            limit=CALLBACKS_QUOTA + kind if self._meters.is_by_callback else kind, limit_value=limit,
            version=self._image.version, at_ms=charged.at_ms, stand_in=charged.stand_in,
        )  # fmt: skip


def _nothing(call: Call[Any]) -> Message:
    types: FetchTypes = call.types
    return types.FetchResponse(error_code=0, session_id=0, responses=())


def _is_exempt(call: Call) -> bool:
    """True if Kafka answers this request without a throttle, as one of another broker (sendResponseExemptThrottle)."""
    batched = call.api_key == _ADD_PARTITIONS_TO_TXN and call.api_version >= _BETWEEN_BROKERS_SINCE
    return batched or call.api_key == _WRITE_TXN_MARKERS
