"""Authentication of a client on a listener with `sasl`: nothing else is answered before it.

SaslHandshake 0-1 (17), SaslAuthenticate 0-2 (36). After a handshake of version 0 the client sends bare SASL tokens without
Kafka headers (KIP-43), after version 1 inside SaslAuthenticate (KIP-152). A failed attempt is answered after
`connection.failed.authentication.delay.ms` and ends the connection (KIP-306). With `connections.max.reauth.ms` the client is
told how long its session lasts, and proves the same user by the same mechanism again (KIP-368, sasl_session.py). So is one that
proves a delegation token (KIP-48): it is the token's owner until the token ends; a token that is deleted lets no client in any
more, and ends no session. A client that has proven who it is may still be refused for its user's connections
(user_admission.py): it is answered as MSK answers, after the same delay; where the home of that limit does not answer, it is
closed unanswered, to try again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from broker.journal.schema import AFTER_LOGIN
from broker.metrics.outcomes import Refusal
from broker.metrics.shard_counters import ShardCounters
from broker.serve.call import Call, Route
from broker.serve.channel import SASL, TOKEN, Channel
from broker.serve.key_derivation import KeyDerivation
from broker.serve.sasl import AuthenticationFailed, KeyRequest, Mechanism, TokenLogin, Users, mechanism_of
from broker.serve.sasl_session import SaslSession
from broker.serve.user_admission import UserAdmission, too_many_connects
from broker.wire import apis, codes, wire
from broker.wire.answer_parts import Encoded
from broker.wire.codec import Message
from shards.config.image import ClusterImage
from shards.loop.deferred import Deferred, MaybeDeferred, then
from shards.loop.timers import Timers

if TYPE_CHECKING:
    from broker.wire.requests import SaslAuthenticateRequest, SaslHandshakeRequest
    from broker.wire.responses import SaslAuthenticateTypes, SaslHandshakeTypes

HANDSHAKE, AUTHENTICATE = 17, 36


def routes() -> list[Route]:
    """SaslHandshake and SaslAuthenticate of a connection that needs no authentication, or has it: ILLEGAL_SASL_STATE."""

    def handshake(request: SaslHandshakeRequest, call: Call[SaslHandshakeTypes]) -> Message:
        return call.types.SaslHandshakeResponse(error_code=codes.ILLEGAL_SASL_STATE, mechanisms=())

    def authenticate(request: SaslAuthenticateRequest, call: Call[SaslAuthenticateTypes]) -> Message:
        message = "SaslAuthenticate request received after successful authentication"
        return call.types.SaslAuthenticateResponse(
            error_code=codes.ILLEGAL_SASL_STATE, error_message=message, auth_bytes=b"", session_lifetime=0
        )

    return [Route.of(HANDSHAKE, handshake), Route.of(AUTHENTICATE, authenticate)]


@dataclass(slots=True, eq=False)
class Proven:
    """The identity that the client of a session has proven."""

    user: str
    mechanism: str
    session: SaslSession | None = None


class Authentication:
    """The authentication of one connection; `channel.authentication` is None once it has succeeded."""

    def __init__(
        self,
        image: ClusterImage,
        counters: ShardCounters,
        timers: Timers,
        users: Users,
        keys: KeyDerivation,
        admission: UserAdmission,
        proven: Proven | None = None,
    ) -> None:
        """`proven`: what the client has proven before, and has to prove again."""
        self._image = image
        self._counters = counters
        self._timers = timers
        self._users = users
        self._keys = keys
        self._admission = admission
        self._proven = proven
        self._mechanism: Mechanism | None = None
        self._mechanism_name = ""
        self._lifetime_ms = 0  # the lifetime of the session that was begun
        self.bare = False  # tokens come without Kafka headers

    def answer(self, channel: Channel, frame: bytes) -> MaybeDeferred[Encoded | None]:
        """The response to a frame of a client that is not authenticated. Raises wire.BadFrame, to end the connection."""
        if self.bare:
            return self._answer_bare(channel, frame)
        api_key, version, correlation_id, client_id, at = wire.parse_header(frame)
        channel.client_id = client_id
        call: Call[Any] = Call(api_key, version, correlation_id, client_id)
        if api_key == HANDSHAKE:
            return self._shake(call, wire.parse_body(frame, at, api_key, version))
        if api_key == AUTHENTICATE and self._mechanism is not None:
            return self._authenticate(channel, call, wire.parse_body(frame, at, api_key, version).auth_bytes)
        raise wire.BadFrame(f"{apis.api_name(api_key)} before authentication")

    def _shake(self, call: Call[SaslHandshakeTypes], request: SaslHandshakeRequest) -> bytes:
        enabled = self._image.get("sasl.enabled.mechanisms")
        error = codes.NONE
        if request.mechanism in enabled:
            self._mechanism = mechanism_of(request.mechanism, self._users)
            self._mechanism_name = request.mechanism
            self.bare = call.api_version == 0
        else:
            error = codes.UNSUPPORTED_SASL_MECHANISM
        return wire.encode_response(call, call.types.SaslHandshakeResponse(error_code=error, mechanisms=tuple(enabled)))

    def _authenticate(
        self, channel: Channel, call: Call[SaslAuthenticateTypes], token: bytes
    ) -> MaybeDeferred[Encoded | None]:
        def respond(error: int, message: str | None, answer: bytes) -> bytes:
            response = call.types.SaslAuthenticateResponse(
                error_code=error, error_message=message, auth_bytes=answer, session_lifetime=self._lifetime_ms
            )
            return wire.encode_response(call, response)

        return self._prove(
            channel,
            token,
            lambda answer: respond(codes.NONE, None, answer),
            lambda fault: respond(codes.SASL_AUTHENTICATION_FAILED, str(fault), b""),
        )

    def _answer_bare(self, channel: Channel, token: bytes) -> MaybeDeferred[Encoded | None]:
        return self._prove(channel, token, lambda answer: len(answer).to_bytes(4, "big") + answer, lambda fault: None)

    def _prove(
        self,
        channel: Channel,
        token: bytes,
        succeeded: Callable[[bytes], bytes],
        failed: Callable[[AuthenticationFailed], bytes | None],
    ) -> MaybeDeferred[Encoded | None]:
        """One token of the client's proof, and the response to it that `succeeded` or `failed` makes."""
        mechanism = self._mechanism
        assert mechanism is not None
        if self._proven is not None and self._mechanism_name != self._proven.mechanism:
            return self._fail(channel, None)  # as Kafka, which only logs the reason
        try:
            answer = mechanism.answer(token)
            if not isinstance(answer, KeyRequest):
                return self._name(channel, mechanism, partial(succeeded, answer), failed)
        except AuthenticationFailed as fault:
            return self._fail(channel, failed(fault))
        request = answer
        found = self._keys.derive(request)

        def derived(key: bytes) -> MaybeDeferred[Encoded | None]:
            try:
                answer = mechanism.derived(key)
                if isinstance(found, Deferred):  # else it is kept
                    self._keys.remember(request, key)
                return self._name(channel, mechanism, partial(succeeded, answer), failed)
            except AuthenticationFailed as fault:
                return self._fail(channel, failed(fault))

        return then(found, derived)

    def _name(
        self,
        channel: Channel,
        mechanism: Mechanism,
        succeeded: Callable[[], bytes],
        failed: Callable[[AuthenticationFailed], bytes | None],
    ) -> MaybeDeferred[Encoded | None]:
        """The response to a token that is right. If it was the last one, the user is known: raises AuthenticationFailed for another
        than it was, and asks for a token of its pool where it was not known (user_admission.py, one_token_of_a_user)."""
        user = mechanism.user
        if user is None:
            return succeeded()
        if self._proven is not None and user != self._proven.user:
            raise AuthenticationFailed(
                f"Cannot change principals during re-authentication from User.{self._proven.user}: User.{user}"
            )
        channel.user = user
        if self._proven is not None:
            self._log_in(channel, user, mechanism)
            return succeeded()

        def decided(refusal: Refusal | None) -> MaybeDeferred[Encoded | None]:
            if refusal is not None:
                return self._turn_away(channel, refusal, failed)
            self._log_in(channel, user, mechanism)
            return succeeded()

        return then(self._admission.admit(channel, user), decided)

    def _log_in(self, channel: Channel, user: str, mechanism: Mechanism) -> None:
        """Other requests are answered from here on."""
        channel.authentication = None
        lifetime_ms = self._session_ms(mechanism.token)
        self._lifetime_ms = lifetime_ms or 0
        if lifetime_ms is not None or self._proven is not None:
            self._prolong(channel, user, lifetime_ms)
            channel.serving.logged_in_by = SASL if mechanism.token is None else TOKEN

    def _session_ms(self, token: TokenLogin | None) -> int | None:
        """The length of a session; None: for ever. Source: SaslServerAuthenticator.ReauthInfo."""
        most_ms = self._image.get("connections.max.reauth.ms")
        if token is None:
            return most_ms if most_ms > 0 else None
        left_ms = max(token.expires_ms - time.time_ns() // 1_000_000, 0)
        return min(left_ms, most_ms) if most_ms > 0 else left_ms

    def _prolong(self, channel: Channel, user: str, lifetime_ms: int | None) -> None:
        """The session begins, or goes on."""
        if self._proven is None:
            parts = self._image, self._counters, self._timers, self._users, self._keys, self._admission
            proven = Proven(user, self._mechanism_name)
            proven.session = SaslSession(channel, self._counters, lambda: Authentication(*parts, proven))
        else:
            proven = self._proven
        assert proven.session is not None
        proven.session.prolong(channel.serving.poller.now_ns, lifetime_ms)

    def _fail(self, channel: Channel, response: bytes | None) -> Deferred[Encoded | None]:
        """KIP-306: a failed attempt is counted, and answered after the delay, so that guessing passwords costs time."""
        self._counters.add("auth_failures", 1)
        return self._end_later(channel, "unauthenticated", response)

    def _turn_away(
        self, channel: Channel, refusal: Refusal, failed: Callable[[AuthenticationFailed], bytes | None]
    ) -> Deferred[Encoded | None]:
        """The user has as many connections as it may have, or makes them too fast. Clients take an error of SaslAuthenticate for
        final: where that is not known, there is none."""
        known = refusal.reason in AFTER_LOGIN
        return self._end_later(
            channel, refusal.reason, failed(AuthenticationFailed(too_many_connects())) if known else None
        )

    def _end_later(self, channel: Channel, why: str, response: bytes | None) -> Deferred[Encoded | None]:
        """The connection ends with this answer, after `connection.failed.authentication.delay.ms`."""
        answer: Deferred[Encoded | None] = Deferred()

        def end() -> None:
            channel.parting = why
            answer.resolve(response)

        timer = self._timers.after(self._image.get("connection.failed.authentication.delay.ms"), end)
        answer.ends_by(partial(self._timers.cancel, timer))
        return answer
