"""The SASL session of one connection (KIP-368): it lasts for `connections.max.reauth.ms`, at most until the delegation token ends
by which it was begun, and is prolonged by proving again.

A connection whose session ends has a server of its own, a copy of its listener's that looks at the time before each
request; other connections pay nothing for it.

ended_sessions_close  Once its session is over a connection is closed by its next request, unanswered, but for a
    SaslHandshake, which begins to prove again. A request that waits for its answer then is answered.
reauthentication_once_a_second  A client begins to prove again at most once a second; a SaslHandshake before that is one of
    a wrong time.

Sources: SocketServer.Processor.processCompletedReceives, KafkaChannel.maybeBeginServerReauthentication.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.metrics.shard_counters import ShardCounters
from broker.serve.channel import Authenticator, Channel
from broker.wire.answer_parts import Encoded
from shards.loop.deferred import MaybeDeferred

_HANDSHAKE = (17).to_bytes(2, "big")
_LEAST_INTERVAL_NS = 1_000_000_000
EXPIRED = "expired"
"""The reason for which a connection is closed (ended_sessions_close)."""


class SaslSession:
    """The session of a connection that has just logged in. `prove_again()` makes the Authenticator of its next login."""

    def __init__(self, channel: Channel, counters: ShardCounters, prove_again: Callable[[], Authenticator]) -> None:
        self._counters = counters
        self._prove_again = prove_again
        self._listener = listener = channel.serving
        self._expires_ns: int | None = 0
        self._began_ns = 0
        self._has_begun = False
        channel.serving = listener.answering_by(self.answer)

    def prolong(self, now_ns: int, lifetime_ms: int | None) -> None:
        """The client has proven who it is, for the first time or again. 0: the session is over; None: it never ends."""
        if self._has_begun:
            self._counters.add("reauthentications", 1)
        self._expires_ns = now_ns + lifetime_ms * 1_000_000 if lifetime_ms else lifetime_ms

    def answer(self, channel: Channel, frame: bytes) -> MaybeDeferred[Encoded | None]:
        """Answers as the listener's server does (ended_sessions_close, reauthentication_once_a_second)."""
        if channel.authentication is None and self._expires_ns is not None:
            now_ns = channel.serving.poller.now_ns
            if frame[:2] == _HANDSHAKE and (not self._has_begun or now_ns - self._began_ns >= _LEAST_INTERVAL_NS):
                self._has_begun, self._began_ns = True, now_ns
                channel.authentication = self._prove_again()
            elif now_ns > self._expires_ns:
                self._counters.add("sessions_expired", 1)
                channel.close(EXPIRED)
                return None
        return self._listener.answer(channel, frame)
