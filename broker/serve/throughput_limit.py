"""The throughput limits of a broker on the path of a request: charges it, tells the delay, and holds the next one.

As Redpanda does: a request of a controlled API (`kafka_throughput_controlled_api_keys`) is charged when it arrives, its answer
when it is made. The request is told the longer of both directions' delays, at most `max_kafka_throttle_delay_ms`; it is served all
the same, and a Fetch keeps its records. The connection's next controlled request is held until that delay is over.

held_at_the_next    a client that waits is never held; of one that doesn't, one request waits, and nothing else is read
charged_on_arrival  a request that is held is charged before; its own delay begins with its arrival
in_order            a connection takes up no further request while one is held, so answers leave in the order of the requests
left_is_dropped     a held request whose client has left is not served; one whose charge is under way is, as it may be a Produce
                    without an acknowledgement

Client quotas count for exempt clients and beside these limits as ever. Source: connection_context, snc_quota_manager (Redpanda
24.3).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from broker.runtime.shard_context import ShardContext
from broker.serve.channel import Channel
from broker.wire import apis, wire
from broker.wire.answer_parts import Encoded
from shards.limits.node_throughput import NODE_IN, NODE_OUT, NodeDelays
from shards.loop.deferred import Deferred, MaybeDeferred
from shards.quotas.shared_throughput import SharedThroughput
from shards.settings.throughput_groups import ThroughputGroups, is_exempt

_MOST_KNOWN: Final = 1000
Make = Callable[[Channel, bytes, int], MaybeDeferred[Encoded | None]]
"""(channel, frame, throttle time to tell in ms) -> the answer."""


class _Request(NamedTuple):
    channel: Channel
    frame: bytes
    client_id: str | None
    arrived_ms: int
    make: Make


class ThroughputLimit:
    """The limits as one shard keeps them. `controlled`: first two bytes of the requests that they hold for; none while there is no
    limit."""

    def __init__(self, shared: SharedThroughput, context: ShardContext) -> None:
        self.controlled: frozenset[bytes] = frozenset()
        self._shared = shared
        self._image = context.image
        self._journal = context.journal
        self._counters = context.counters
        self._poller = context.poller
        self._timers = context.timers
        self._groups: ThroughputGroups = ()
        self._most_ms = 0
        self._exempt: dict[str | None, bool] = {}  # by client id, as was found

    def image_changed(self) -> None:
        """The image has another version: the settings may have changed."""
        get = self._image.get
        rates = get(NODE_IN), get(NODE_OUT)
        self._shared.set_rates(*rates)
        self._most_ms = get("max_kafka_throttle_delay_ms")
        self._groups = get("kafka_throughput_control")
        self._exempt.clear()
        names = set(get("kafka_throughput_controlled_api_keys")) if rates != (None, None) else ()
        self.controlled = frozenset(
            key.to_bytes(2, "big") for key, api in apis.APIS.items() if api.name.lower() in names
        )

    def take_up(self, channel: Channel, frame: bytes, make: Make) -> MaybeDeferred[Encoded | None]:
        """The answer that `make` makes of a controlled request, once it is charged and no longer held."""
        try:
            client_id = wire.parse_header(frame)[3]
        except wire.UnsupportedVersion:
            return make(channel, frame, 0)
        if self._is_exempt(client_id):
            return make(channel, frame, 0)
        request = _Request(channel, frame, client_id, self._now_ms(), make)
        charged = self._shared.charge(len(frame) + 4, 0)
        if not isinstance(charged, Deferred):
            return self._charged(request, charged)
        answer: Deferred[Encoded | None] = Deferred()
        charged.add_callback(partial(self._charged_there, request, answer))
        return answer

    def _charged_there(
        self, request: _Request, answer: Deferred[Encoded | None], charged: Deferred[NodeDelays]
    ) -> None:
        """The home of the limits has answered; the client may have left meanwhile (left_is_dropped)."""
        try:
            served = self._charged(request, charged.result())
        except Exception as fault:  # of the request, as where it is served at once
            answer.fail(fault)
            return
        if not isinstance(served, Deferred):
            answer.resolve(served)
        elif request.channel.closed:
            served.cancel()
        else:
            answer.ends_by(served.cancel)
            served.add_callback(answer.follow)

    def _charged(self, request: _Request, delays: NodeDelays) -> MaybeDeferred[Encoded | None]:
        """Holds the request for what the one before it was told, and has the next one held for its own delay."""
        channel = request.channel
        throttle_ms = min(self._most_ms, max(delays))
        held_until_ms, channel.throttled_until_ms = channel.throttled_until_ms, request.arrived_ms + throttle_ms
        if throttle_ms:
            self._tell(request, delays, throttle_ms)
        hold_ms = held_until_ms - self._now_ms()
        if hold_ms <= 0:
            return self._serve(request, throttle_ms)
        held: Deferred[None] = Deferred()
        timer = self._timers.after(hold_ms, partial(held.resolve, None))
        held.ends_by(partial(self._timers.cancel, timer))
        return held.then(lambda _: self._serve(request, throttle_ms))

    def _serve(self, request: _Request, throttle_ms: int) -> MaybeDeferred[Encoded | None]:
        answer = request.make(request.channel, request.frame, throttle_ms)
        return answer.then(self._sent) if isinstance(answer, Deferred) else self._sent(answer)

    def _sent(self, answer: Encoded | None) -> Encoded | None:
        if answer is not None:
            self._shared.charge(0, len(answer))
        return answer

    def _tell(self, request: _Request, delays: NodeDelays, throttle_ms: int) -> None:
        channel = request.channel
        limit = NODE_IN if delays.in_ms >= delays.out_ms else NODE_OUT
        self._counters.throttled(limit, throttle_ms)
        self._journal.throttled(
            channel.id, channel.ip, channel.port, channel.listener, user=channel.user, client_id=request.client_id,
            api=apis.api_name(int.from_bytes(request.frame[:2])), amount=len(request.frame) + 4, throttle_ms=throttle_ms,
            limit=limit, limit_value=self._image.get(limit), version=self._image.version, at_ms=0,
        )  # fmt: skip

    def _is_exempt(self, client_id: str | None) -> bool:
        if not self._groups:
            return False
        exempt = self._exempt.get(client_id)
        if exempt is None:
            if len(self._exempt) >= _MOST_KNOWN:
                self._exempt.clear()
            exempt = self._exempt[client_id] = is_exempt(self._groups, client_id)
        return exempt

    def _now_ms(self) -> int:
        return self._poller.clock_ns() // 1_000_000
