"""From one frame to its answer: finds the handler, calls it, encodes its response.

Most connections begin with the same few ApiVersions requests, byte for byte but for the correlation id. A request that
was parsed once is recognised when it comes again, and its answer is patched instead of made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial

import trio

from broker.protocol import wire
from broker.protocol.codec import Message
from broker.serve.call import Answer, Call, Handler, Route
from broker.serve.channel import Channel
from broker.serve.request_memory import AnswerMemory
from broker.serve.throttling import Throttling
from shards.mesh.deferred import Deferred, MaybeDeferred, then
from shards.mesh.turns import Turns

_FETCH = 1
_PRODUCE = (0).to_bytes(2, "big")
_API_VERSIONS = wire.API_VERSIONS.to_bytes(2, "big")
_MAX_RECOGNISED = 1024
_LONG = 100  # items of a response that may have many parts each
_MAX_RECOGNISED_BYTES = 256


class Dispatcher:
    """Answers frames with the functions of `routes`; `versions(version, correlation id)` answers ApiVersions.

    A request with more than wire.LARGE_ITEMS array items is read, answered and encoded in `turns`; one with more than
    `most_items` closes its connection.
    """

    def __init__(
        self,
        routes: Iterable[Route],
        versions: Callable[[int, int], bytes],
        throttling: Throttling,
        turns: Turns,
        answers: AnswerMemory,
        *,
        most_items: int,
    ) -> None:
        self._turns = turns
        self._most_items = most_items
        self._routes = {route.api_key: route for route in routes}
        self._versions = versions
        self._throttling = throttling
        self._answers = answers
        self._recognised: dict[bytes, tuple[int, str | None]] = {}

    def answer(self, channel: Channel, frame: bytes) -> MaybeDeferred[bytes | None]:
        """The response as it goes out, or None if there is none (Produce with acks=0); now or later.

        Raises wire.BadFrame, for which the connection is to be closed.
        """
        authentication = channel.authentication
        if authentication is not None and (authentication.bare or frame[:2] != _API_VERSIONS):
            return authentication.answer(channel, frame)
        throttling = self._throttling
        if frame[:2] == _API_VERSIONS and (authentication is not None or not self._counts(frame)):
            return self._answer_api_versions(channel, frame)
        began_ns = time.perf_counter_ns() if throttling.active else 0
        api_key, version, correlation_id, client_id, at = wire.parse_header(frame)
        route = self._routes.get(api_key)
        if route is None or not route.min_version <= version <= route.max_version:
            raise wire.UnsupportedVersion(api_key, version, correlation_id)
        channel.client_id = client_id
        call = Call(
            api_key,
            version,
            correlation_id,
            client_id,
            user=channel.user,
            listener=channel.listener,
            ip=channel.ip,
            port=channel.port,
        )
        if api_key == _FETCH:
            call.most_bytes = self._answers.most_bytes(throttling.most_bytes(call) if throttling.active else None)
        response: Answer
        try:
            request = wire.parse_body(frame, at, api_key, version)
        except wire.TooManyItems:
            response = self._turns.spawn(self._serve_large(route.function, call, frame, at), cancellable=True)
        else:
            response = route.function(request, call)
        if throttling.active:
            if isinstance(response, Deferred):
                response = response.then(partial(self._encode_large, call))
            return throttling.settle(channel, call, len(frame), response, began_ns)
        if isinstance(response, Deferred):
            return response.then(partial(self._encode_there, call))
        return _encode(call, response)

    async def _serve_large(self, handler: Handler, call: Call, frame: bytes, at: int) -> Message | None:
        """The response to a request that takes too long to be read or answered in one piece."""
        async with self._turns.turn():
            request = wire.parse_body(frame, at, call.api_key, call.api_version, self._most_items)
        async with self._turns.turn():
            response = handler(request, call)
        there = await _cancellable(response) if isinstance(response, Deferred) else response
        if there is not None:
            call.encoded = await self._turns.aside(wire.encode_response, call, there)
        return there

    def _encode_there(self, call: Call, response: Message | None) -> MaybeDeferred[bytes | None]:
        """A response that came later, encoded: at once, or aside if that may take long."""
        return then(self._encode_large(call, response), partial(_encode, call))

    def _encode_large(self, call: Call, response: Message | None) -> MaybeDeferred[Message | None]:
        """The response, once it is encoded if that may take long."""
        if response is None or call.encoded is not None or not _is_large(response):
            return response
        return self._turns.spawn(self._encode_aside(call, response))

    async def _encode_aside(self, call: Call, response: Message) -> Message | None:
        call.encoded = await self._turns.aside(wire.encode_response, call, response)
        return response

    def follows(self, frame: bytes) -> bool:
        """Whether a request may be served while earlier requests of which this is true wait for their answers. Produce may:
        batches of one partition reach its home in order, and are answered in order. Not where a quota may mute the channel."""
        return frame[:2] == _PRODUCE and not self._throttling.active

    def _counts(self, frame: bytes) -> bool:
        """Whether an ApiVersions request counts against a quota: of request time, and if its version is known at all."""
        route = self._routes[wire.API_VERSIONS]
        version = int.from_bytes(frame[2:4], "big", signed=True)
        return self._throttling.timed and route.min_version <= version <= route.max_version

    def _answer_api_versions(self, channel: Channel, frame: bytes) -> bytes:
        known = self._recognised.get(frame[2:4] + frame[8:])
        if known is None:
            return self._answer_new_api_versions(channel, frame)
        version, channel.client_id = known
        return self._versions(version, int.from_bytes(frame[4:8], "big", signed=True))

    def _answer_new_api_versions(self, channel: Channel, frame: bytes) -> bytes:
        """A request that was not seen before: parsed and checked, and remembered if it is valid."""
        try:
            api_key, version, correlation_id, client_id, at = wire.parse_header(frame)
        except wire.UnsupportedVersion as fault:
            return self._versions(fault.api_version, fault.correlation_id)
        request = wire.parse_body(frame, at, api_key, version)
        channel.client_id = client_id
        call = Call(api_key, version, correlation_id, client_id)
        response = self._routes[api_key].function(request, call)
        assert isinstance(response, Message)
        encoded = wire.encode_response(call, response)
        if encoded[8:10] != b"\0\0":  # the error code comes first
            return encoded
        if len(frame) <= _MAX_RECOGNISED_BYTES and len(self._recognised) < _MAX_RECOGNISED:
            self._recognised[frame[2:4] + frame[8:]] = (version, client_id)
        return self._versions(version, correlation_id)


def _encode(call: Call, response: Message | None) -> bytes | None:
    if response is None or call.encoded is not None:
        return call.encoded
    return wire.encode_response(call, response)


def _is_large(response: Message) -> bool:
    """Whether one of its arrays is long."""
    return any(
        len(value) > _LONG for name in response.field_names if type(value := getattr(response, name)) in (tuple, list)
    )


async def _cancellable(answer: Deferred[Message] | Deferred[Message | None]) -> Message | None:
    """Awaits an answer, and cancels it if the task is cancelled."""
    try:
        return await answer
    except trio.Cancelled:
        answer.cancel()
        raise
