"""Redpanda's limits on the path of a request: charges it, tells the delay, and holds the next one. They are those of a broker as a
whole, and those of its clients where client quotas hold by Redpanda's semantics.

A request of a controlled API (`kafka_throughput_controlled_api_keys`) is charged to the broker's throughput when it arrives, its
answer when it is made. A Produce is charged to its client's bucket when it arrives. A Fetch is told what its client owes by then,
and its answer is charged when it is made. The request is told the longest of these delays, `max_kafka_throttle_delay_ms` at most.
It is served all the same, and a Fetch keeps its records. The connection's next controlled request, Produce or Fetch is held until
the delay of its own kind is over.

held_at_the_next    a client that waits is never held; of one that doesn't, one request waits, and nothing else is read
charged_on_arrival  a request that is held is charged before it is held, when it arrives; its own delay begins then
in_order            a connection takes up no further request while one is held, so answers leave in the order of the requests
left_is_dropped     a held request whose client has left is not served; one whose charge is under way is, as it may be a Produce
                    without an acknowledgement

Client quotas count for exempt clients and beside the limits of a broker as ever. Source: connection_context, snc_quota_manager,
quota_manager (Redpanda 24.3).
"""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from broker.runtime.shard_context import ShardContext
from broker.serve.channel import Channel
from broker.serve.redpanda_quotas import RedpandaQuotas
from broker.wire import apis, wire
from broker.wire.answer_parts import Encoded
from shards.limits.client_quota_managers import FETCH, PRODUCE
from shards.limits.node_throughput import NODE_IN, NODE_OUT, NodeDelays
from shards.loop.deferred import Deferred, MaybeDeferred, then
from shards.quotas.shared_throughput import SharedThroughput
from shards.settings.throughput_groups import ThroughputGroups, is_exempt

_MOST_KNOWN: Final = 1000
_QUOTAS: Final = {b"\0\0": PRODUCE, b"\0\1": FETCH}
_NO_DELAYS: Final = NodeDelays(0, 0)
Make = Callable[[Channel, bytes, int], MaybeDeferred[Encoded | None]]
"""(channel, frame, throttle time to tell in ms) -> the answer."""


class _Request(NamedTuple):
    """`of_node`: it counts for the broker's throughput; `quota`: the kind of client quota that it counts against, or none."""

    channel: Channel
    frame: bytes
    client_id: str | None
    arrived_ms: int
    make: Make
    of_node: bool
    quota: str | None


class _Delays(NamedTuple):
    node: NodeDelays
    quota_ms: int


class ThroughputLimit:
    """The limits as one shard keeps them. `controlled`: first two bytes of the requests that they hold for; none while there is no
    limit."""

    def __init__(self, shared: SharedThroughput, quotas: RedpandaQuotas, context: ShardContext) -> None:
        self.controlled: frozenset[bytes] = frozenset()
        self._of_node: frozenset[bytes] = frozenset()
        self._shared = shared
        self._quotas = quotas
        self._image = context.image
        self._journal = context.journal
        self._counters = context.counters
        self._poller = context.poller
        self._timers = context.timers
        self._groups: ThroughputGroups = ()
        self._most_ms = 0
        self._exempt: dict[str | None, bool] = {}  # by client id, as was found

    def follow(self) -> None:
        """Reads the settings again, of which the image has another version. The quotas have read theirs."""
        get = self._image.get
        rates = get(NODE_IN), get(NODE_OUT)
        self._shared.set_rates(*rates)
        self._most_ms = get("max_kafka_throttle_delay_ms")
        self._groups = get("kafka_throughput_control")
        self._exempt.clear()
        names = set(get("kafka_throughput_controlled_api_keys")) if rates != (None, None) else ()
        self._of_node = frozenset(key.to_bytes(2, "big") for key, api in apis.APIS.items() if api.name.lower() in names)
        self.controlled = self._of_node | {api for api, kind in _QUOTAS.items() if self._quotas.in_use(kind)}

    def take_up(self, channel: Channel, frame: bytes, make: Make) -> MaybeDeferred[Encoded | None]:
        """The answer that `make` makes of a controlled request, once it is charged and no longer held."""
        try:
            client_id = wire.parse_header(frame)[3]
        except wire.UnsupportedVersion:
            return make(channel, frame, 0)
        of_node = frame[:2] in self._of_node and not self._is_exempt(client_id)
        quota = _QUOTAS.get(frame[:2])
        if quota is not None and not self._quotas.in_use(quota):
            quota = None
        if not of_node and quota is None:
            return make(channel, frame, 0)
        request = _Request(channel, frame, client_id, self._now_ms(), make, of_node, quota)
        charged = self._charge(request)
        if not isinstance(charged, Deferred):
            return self._charged(request, charged)
        answer: Deferred[Encoded | None] = Deferred()
        charged.add_callback(partial(self._charged_there, request, answer))
        return answer

    def _charge(self, request: _Request) -> MaybeDeferred[_Delays]:
        size = len(request.frame) + 4
        node = self._shared.charge(size, 0) if request.of_node else _NO_DELAYS
        if request.quota is None:
            return then(node, lambda delays: _Delays(delays, 0))
        amount = size if request.quota == PRODUCE else 0
        of_client = self._quotas.charge(request.quota, request.channel.user, request.client_id, amount)
        return then(node, lambda delays: then(of_client, lambda quota_ms: _Delays(delays, quota_ms)))

    def _charged_there(self, request: _Request, answer: Deferred[Encoded | None], charged: Deferred[_Delays]) -> None:
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

    def _charged(self, request: _Request, delays: _Delays) -> MaybeDeferred[Encoded | None]:
        """Holds the request for what the one before it was told, and has the next one held for its own delay."""
        node_ms = min(self._most_ms, max(delays.node))
        throttle_ms = max(node_ms, delays.quota_ms)
        hold_ms = _hold_next(request, node_ms, delays.quota_ms) - self._now_ms()
        self._record_delays(request, delays, node_ms)
        if hold_ms <= 0:
            return self._serve(request, throttle_ms)
        held: Deferred[None] = Deferred()
        timer = self._timers.after(hold_ms, partial(held.resolve, None))
        held.ends_by(partial(self._timers.cancel, timer))
        return held.then(lambda _: self._serve(request, throttle_ms))

    def _serve(self, request: _Request, throttle_ms: int) -> MaybeDeferred[Encoded | None]:
        answer = request.make(request.channel, request.frame, throttle_ms)
        return then(answer, partial(self._sent, request))

    def _sent(self, request: _Request, answer: Encoded | None) -> Encoded | None:
        if answer is not None:
            if request.of_node:
                self._shared.charge(0, len(answer))
            if request.quota == FETCH:
                self._quotas.charge(FETCH, request.channel.user, request.client_id, len(answer))
        return answer

    def _record_delays(self, request: _Request, delays: _Delays, node_ms: int) -> None:
        channel, size = request.channel, len(request.frame) + 4
        api_key = int.from_bytes(request.frame[:2])
        if request.quota is not None:
            self._quotas.record_delay(
                channel, request.client_id, kind=request.quota, api_key=api_key, amount=size, ms=delays.quota_ms
            )
        if not node_ms:
            return
        limit = NODE_IN if delays.node.in_ms >= delays.node.out_ms else NODE_OUT
        self._counters.throttled(limit, node_ms)
        self._journal.throttled(
            channel.id, channel.ip, channel.port, channel.listener, user=channel.user, client_id=request.client_id,
            api=apis.api_name(api_key), amount=size, throttle_ms=node_ms,
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


def _hold_next(request: _Request, node_ms: int, quota_ms: int) -> int:
    """The time until which this request is held; the next ones of its kinds are held for its own delays."""
    channel, arrived_ms, held_until_ms = request.channel, request.arrived_ms, 0
    if request.of_node:
        held_until_ms, channel.throttled_until_ms = channel.throttled_until_ms, arrived_ms + node_ms
    if request.quota == PRODUCE:
        held_until_ms = max(held_until_ms, channel.produce_throttled_until_ms)
        channel.produce_throttled_until_ms = arrived_ms + quota_ms
    elif request.quota == FETCH:
        held_until_ms = max(held_until_ms, channel.fetch_throttled_until_ms)
        channel.fetch_throttled_until_ms = arrived_ms + quota_ms
    return held_until_ms
