"""From one frame to its answer: finds the handler, calls it, encodes its response, or takes one that was made before."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import trio

from broker.serve.call import Answer, Call, Handler, Route
from broker.serve.channel import Channel
from broker.serve.prepared_answers import PreparedAnswers, ToldClient
from broker.serve.request_cost import FETCHES
from broker.serve.throttling import Throttling
from broker.serve.throughput_limit import ThroughputLimit
from broker.wire import apis, wire
from broker.wire.answer_parts import Encoded
from broker.wire.codec import Message
from shards.loop.deferred import Deferred, MaybeDeferred, then
from shards.loop.turns import Turns

_PRODUCE_KEY = 0
_API_VERSIONS = apis.API_VERSIONS.to_bytes(2, "big")
_SHORT = (0, 1)  # Produce and Fetch answer as many partitions as the request named, which was counted
_LONG = 100  # items of a response that may have many parts each


class Dispatcher:
    """Answers frames with the functions of `routes`; `unsupported(correlation id)` answers ApiVersions of a version that is
    not known.

    A request with more than wire.LARGE_ITEMS array items is read, answered and encoded in `turns`; one with more than
    `most_items` closes its connection.
    """

    def __init__(
        self,
        routes: Iterable[Route],
        unsupported: Callable[[int], bytes],
        throttling: Throttling,
        turns: Turns,
        prepared: PreparedAnswers,
        throughput: ThroughputLimit,
        *,
        most_items: int,
    ) -> None:
        self._turns = turns
        self._most_items = most_items
        self._routes = {route.api_key: route for route in routes}
        self._preparable = {route.api_key.to_bytes(2, "big") for route in self._routes.values() if route.prepared}
        self._unsupported = unsupported
        self._throttling = throttling
        self._prepared = prepared
        self._throughput = throughput

    def answer(self, channel: Channel, frame: bytes) -> MaybeDeferred[Encoded | None]:
        """The response as it goes out, or None if there is none (Produce with acks=0); now or later.

        Raises wire.BadFrame, for which the connection is to be closed.
        """
        api = frame[:2]
        authentication = channel.authentication
        if authentication is not None and (authentication.bare or api != _API_VERSIONS):
            return authentication.answer(channel, frame)
        if api in self._throughput.controlled:
            return self._throughput.take_up(channel, frame, self._make)
        if api not in self._preparable or (self._throttling.timed and authentication is None):
            return self._make(channel, frame)
        prepared = self._prepared.find(channel.listener, frame)
        if prepared is not None:
            answer, (channel.client_id, software) = prepared
            if software is not None:
                channel.software = software
            return answer
        made = self._make(channel, frame)
        if isinstance(made, bytes):
            asked = ToldClient(channel.client_id, channel.software if api == _API_VERSIONS else None)
            self._prepared.keep(channel.listener, frame, made, asked)
        return made

    def _make(self, channel: Channel, frame: bytes, node_throttle_ms: int = 0) -> MaybeDeferred[Encoded | None]:
        """The response of the API's handler, charged to the quotas of the client; it tells `node_throttle_ms` at least."""
        throttling = self._throttling
        charged = throttling.active and channel.authentication is None
        began_ns = time.perf_counter_ns() if charged else 0
        try:
            api_key, version, correlation_id, client_id, at = wire.parse_header(frame)
        except wire.UnsupportedVersion as fault:
            return self._unsupported_version(fault)
        route = self._routes.get(api_key)
        if route is None or not route.min_version <= version <= route.max_version:
            return self._unsupported_version(wire.UnsupportedVersion(api_key, version, correlation_id))
        if frame[:4] not in wire.COMPILED and api_key != _PRODUCE_KEY:
            return self._turns.spawn(
                self._make_compiled(channel, frame, api_key, version, node_throttle_ms), cancellable=True
            )
        channel.client_id = client_id
        call = Call(
            api_key,
            version,
            correlation_id,
            client_id,
            user=channel.user,
            listener=channel.listener,
            ip=channel.host,
            port=channel.port,
            channel=channel,
        )
        call.node_throttle_ms = node_throttle_ms
        if api_key in FETCHES and charged:
            call.most_bytes = throttling.most_bytes(call)
        response: Answer
        try:
            request = wire.parse_body(frame, at, api_key, version)
        except wire.TooManyItems:
            # A Produce is appended, as by Kafka, also when its client has left: it may want no acknowledgement.
            serving = self._serve_large(route.function, call, frame, at)
            response = self._turns.spawn(serving, cancellable=api_key != _PRODUCE_KEY)
        else:
            response = route.function(request, call)
        if charged:
            if isinstance(response, Deferred):
                response = response.then(partial(self._encode_large, call))
            return throttling.settle(channel, call, len(frame), response, began_ns)
        if isinstance(response, Deferred):
            return response.then(partial(self._answer_there, channel, call, len(frame)))
        return _encode(call, response)

    def _unsupported_version(self, fault: wire.UnsupportedVersion) -> bytes:
        """ApiVersions is answered with the versions of its own; raises for any other API."""
        if fault.api_key != apis.API_VERSIONS:
            raise fault
        return self._unsupported(fault.correlation_id)

    async def _make_compiled(
        self, channel: Channel, frame: bytes, api_key: int, version: int, node_throttle_ms: int
    ) -> Encoded | None:
        """The response to the first request of an API in a version. Not for Produce: without acknowledgement it is appended also
        when its client leaves at once, which would cancel this."""
        await self._turns.aside(wire.compile_api, api_key, version)
        made = self._make(channel, frame, node_throttle_ms)
        answer: Encoded | None = await _cancellable(made) if isinstance(made, Deferred) else made
        return answer

    async def _serve_large(self, handler: Handler, call: Call, frame: bytes, at: int) -> Message | None:
        """The response to a request that takes too long to be read or answered in one piece."""
        async with self._turns.turn():
            request = wire.parse_body(frame, at, call.api_key, call.api_version, self._most_items)
        async with self._turns.turn():
            response = handler(request, call)
        there: Message | None = await _cancellable(response) if isinstance(response, Deferred) else response
        if there is not None:
            call.encoded = await self._turns.aside(wire.encode_large_response, call, there, call.node_throttle_ms)
        return there

    def _answer_there(
        self, channel: Channel, call: Call, size: int, response: Message | None
    ) -> MaybeDeferred[Encoded | None]:
        """A response that came later, encoded; charged to a quota that was set while the request of `size` bytes waited, as by
        Kafka, which charges when it answers."""

        def answer(there: Message | None) -> MaybeDeferred[Encoded | None]:
            if self._throttling.active and channel.authentication is None:
                return self._throttling.settle(channel, call, size, there, time.perf_counter_ns())
            return _encode(call, there)

        return then(self._encode_large(call, response), answer)

    def _encode_large(self, call: Call, response: Message | None) -> MaybeDeferred[Message | None]:
        """The response, once it is encoded if that may take long."""
        if response is None or call.encoded is not None or call.api_key in _SHORT or not _is_large(response):
            return response
        return self._turns.spawn(self._encode_aside(call, response))

    async def _encode_aside(self, call: Call, response: Message) -> Message | None:
        call.encoded = await self._turns.aside(wire.encode_large_response, call, response, call.node_throttle_ms)
        return response


def _encode(call: Call, response: Message | None) -> Encoded | None:
    if response is None or call.encoded is not None:
        return call.encoded
    return wire.encode_answer(call, response, call.node_throttle_ms)


def _is_large(response: Message, depth: int = 2) -> bool:
    """True if one of its arrays is long, or one in an item of them, down to `depth`."""
    for name in response.field_names:
        items = getattr(response, name)
        if type(items) not in (tuple, list):
            continue
        if len(items) > _LONG:
            return True
        if depth > 1 and any(isinstance(each, Message) and _is_large(each, depth - 1) for each in items):
            return True
    return False


async def _cancellable(answer: Deferred[Any]) -> Any:
    """Awaits an answer, and cancels it if the task is cancelled."""
    try:
        return await answer
    except trio.Cancelled:
        answer.cancel()
        raise
