"""Connections that a cap has refused, and that are told so before they end: the modes of `turnstile.refuse.mode` that answer.

    after-api-versions  ApiVersions is answered, and then the connection ends.
    sasl-error          ApiVersions and SaslHandshake are answered. The first SaslAuthenticate is answered as MSK does,
                        SASL_AUTHENTICATION_FAILED with the text `[<uuid>]: Too many connects`, after
                        `connection.failed.authentication.delay.ms`. A handshake of version 0 leaves no place for it.
    api-error           ApiVersions is answered, and the first other request with the error `turnstile.refuse.error`, in the
                        form of its API (broker/wire/error_answers.py).

Invariants
refused_are_no_connections  A refused connection has no token, and is in no list of open ones. No quota and no counter of
    requests has anything of it, and no fault acts on it.
refused_get_nothing_done  No request is served but ApiVersions and SaslHandshake, which change nothing.
refused_send_little  A frame, and the receive buffer, have MOST_BYTES at most.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from socket import SO_RCVBUF, SOL_SOCKET, socket
from typing import Any, Final, Protocol

from broker.metrics.outcomes import Refusal
from broker.serve.authentication import AUTHENTICATE
from broker.serve.call import Call
from broker.serve.channel import Authenticator, Channel, ChannelServer
from broker.serve.connection import Connection
from broker.serve.user_admission import too_many_connects
from broker.wire import apis, codes, wire
from broker.wire.answer_parts import Encoded
from broker.wire.error_answers import error_answer
from shards.config.image import ClusterImage
from shards.loop.deferred import Deferred, MaybeDeferred, then
from shards.loop.turns import Turns

AFTER_API_VERSIONS: Final = "after-api-versions"
SASL_ERROR: Final = "sasl-error"
API_ERROR: Final = "api-error"
MOST_BYTES: Final = 16 << 10
_AUTHENTICATE = AUTHENTICATE.to_bytes(2, "big")
_API_VERSIONS = apis.API_VERSIONS.to_bytes(2, "big")
_REFUSED: Final = "refused"


class AnswersFrames(Protocol):
    """The dispatcher, as a refused connection needs it: it answers ApiVersions, and asks the channel's `authentication` for
    all else."""

    def answer(self, channel: Channel, frame: bytes) -> MaybeDeferred[Encoded | None]: ...


class RefusedConnection(Connection):
    """The connection of a client that is refused; it ends with the answer that sets `parting`."""

    __slots__ = ()

    def _serve(self, frame: bytes) -> None:
        super()._serve(frame)
        if self.parting is not None and not self.busy and not self.closed:
            self.busy = True  # requests behind it are not served
            self.send_gathered()
            self._part(self.parting)


class RefusedServing:
    """The server of one listener's refused connections (channel.ChannelServer). `serving`: that of its admitted ones."""

    def __init__(
        self, serving: ChannelServer, dispatcher: AnswersFrames, image: ClusterImage, turns: Turns, family: int
    ) -> None:
        self.listener = serving.listener
        self.logged_in_by: str | None = None
        self.counts_networks = False  # answers do not depend on the client's address
        self.max_frame_bytes = MOST_BYTES
        self.tls = serving.tls
        self.poller = serving.poller
        self.timers = serving.timers
        self.muted = serving.muted
        self.requests = serving.requests
        self.answers = serving.answers
        self.authentication: Callable[[], Authenticator | None] = _set_by_open
        self.answer: Callable[[Channel, bytes], MaybeDeferred[Encoded | None]] = self._answer
        self.answered: Callable[[int, int], None] = _count_nothing
        self._serving = serving
        self._dispatcher = dispatcher
        self._image = image
        self._turns = turns
        self._family = family

    def open(self, fd: int, ip: str, port: int, mode: str, refusal: Refusal) -> RefusedConnection | None:
        """Takes over a descriptor. None, and the descriptor is still the caller's: `mode` has no answer on this listener, as
        `sasl-error` where clients do not log in."""
        answers = self._authenticator(mode, refusal)
        if answers is None:
            return None
        sock = socket(self._family, fileno=fd)
        sock.setsockopt(SOL_SOCKET, SO_RCVBUF, MOST_BYTES)
        sock.detach()
        connection = RefusedConnection(self, fd, self._family, 0, ip, port, pools=())
        connection.authentication = answers
        return connection

    def _authenticator(self, mode: str, refusal: Refusal) -> Authenticator | None:
        if mode == AFTER_API_VERSIONS:
            return _AfterApiVersions()
        if mode == API_ERROR:
            return _ApiError(self._image, self._turns, refusal)
        login = self._serving.authentication()
        return None if login is None else _SaslError(login, self._image)

    def _answer(self, channel: Channel, frame: bytes) -> MaybeDeferred[Encoded | None]:
        """Raises wire.BadFrame, for which the connection ends."""
        answer = self._dispatcher.answer(channel, frame)
        if frame[:2] == _API_VERSIONS and isinstance(channel.authentication, _AfterApiVersions):
            return then(answer, partial(_last, channel))
        return answer

    def answering_by(self, answer: Callable[[Channel, bytes], MaybeDeferred[Encoded | None]]) -> RefusedServing:
        """Nothing else answers a refused connection."""
        return self

    def malformed(self, channel: Channel, why: str) -> None:
        """A request that this mode does not answer; the connection ends."""

    def bug(self, channel: Channel, error: Exception) -> None:
        self._serving.bug(channel, error)

    def closed(self, channel: Channel, why: str) -> None:
        """Nothing: the connection was counted and journaled when it was refused."""


def _set_by_open() -> None:
    """The authentication of a connection that is being made."""


def _count_nothing(request_bytes: int, answer_bytes: int) -> None:
    """refused_are_no_connections"""


def _last(channel: Channel, answer: Encoded | None) -> Encoded | None:
    """The connection ends behind this answer."""
    channel.parting = _REFUSED
    return answer


class _AfterApiVersions:
    bare = False

    def answer(self, channel: Channel, frame: bytes) -> MaybeDeferred[Encoded | None]:
        raise wire.BadFrame("refused")


class _SaslError:
    """`login`: what the client would go through if it had been let in."""

    def __init__(self, login: Authenticator, image: ClusterImage) -> None:
        self._login = login
        self._image = image
        self.bare = False

    def answer(self, channel: Channel, frame: bytes) -> MaybeDeferred[Encoded | None]:
        """Raises wire.BadFrame for anything but SaslHandshake and SaslAuthenticate, and for a bare token."""
        if self.bare:
            raise wire.BadFrame("refused")
        if frame[:2] != _AUTHENTICATE:
            answer = self._login.answer(channel, frame)
            self.bare = self._login.bare
            return answer
        api_key, version, correlation_id, client_id, at = wire.parse_header(frame)
        wire.parse_body(frame, at, api_key, version)
        call: Call[Any] = Call(api_key, version, correlation_id, client_id)
        response = call.types.SaslAuthenticateResponse(
            error_code=codes.SASL_AUTHENTICATION_FAILED,
            error_message=too_many_connects(),
            auth_bytes=b"",
            session_lifetime=0,
        )
        return self._later(channel, wire.encode_response(call, response))

    def _later(self, channel: Channel, response: bytes) -> Deferred[Encoded | None]:
        later: Deferred[Encoded | None] = Deferred()
        timers = channel.serving.timers
        delay_ms = self._image.get("connection.failed.authentication.delay.ms")
        timer = timers.after(delay_ms, lambda: later.resolve(_last(channel, response)))
        later.ends_by(partial(timers.cancel, timer))
        return later


class _ApiError:
    bare = False

    def __init__(self, image: ClusterImage, turns: Turns, refusal: Refusal) -> None:
        self._image = image
        self._turns = turns
        self._refusal = refusal

    def answer(self, channel: Channel, frame: bytes) -> MaybeDeferred[Encoded | None]:
        """Raises wire.BadFrame for what is no request."""
        if frame[:4] in wire.COMPILED:
            return self._error(channel, frame)
        api_key, version, *_ = wire.parse_header(frame)
        return self._turns.spawn(self._compiled(channel, frame, api_key, version), cancellable=True)

    async def _compiled(self, channel: Channel, frame: bytes, api_key: int, version: int) -> Encoded | None:
        await self._turns.aside(wire.compile_api, api_key, version)
        return self._error(channel, frame)

    def _error(self, channel: Channel, frame: bytes) -> Encoded | None:
        api_key, version, correlation_id, client_id, at = wire.parse_header(frame)
        call: Call[Any] = Call(api_key, version, correlation_id, client_id)
        request = wire.parse_body(frame, at, api_key, version)
        code: int = getattr(codes, self._image.get("turnstile.refuse.error"))
        refusal = self._refusal
        why = f"Connection refused by {refusal.limit} = {refusal.value:g}"
        response = error_answer(call, request, code, why)
        return _last(channel, None if response is None else wire.encode_response(call, response))
