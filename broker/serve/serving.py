"""The server that the connections of one listener share: it answers their frames, and releases tokens when they end."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from copy import copy

from broker.metrics.outcomes import Outcomes
from broker.runtime.shard_context import ShardContext
from broker.serve.channel import SASL, Authenticator, Channel
from broker.serve.connection import Connection
from broker.serve.dispatch import Dispatcher
from broker.serve.muted import Muted
from broker.serve.proxied_connection import ProxiedConnection, Via
from broker.serve.request_memory import AnswerMemory, RequestMemory
from broker.wire.answer_parts import Encoded
from shards.limits.caps import OBSERVED
from shards.loop.deferred import MaybeDeferred
from shards.settings.addresses import IPV6_BITS


class Serving:
    """Opens connections, answers their frames, and gives their tokens back.

    `family`: of the listening socket. `max_frame_bytes`: the longest request. `authentication()` makes what a connection
    has to go through before anything is answered; None: nothing, and `logged_in_by` is None, too. `tls`: None for plain text.
    """

    def __init__(
        self,
        context: ShardContext,
        outcomes: Outcomes,
        family: int,
        dispatcher: Dispatcher,
        *,
        open_connections: dict[int, Connection],
        muted: Muted,
        requests: RequestMemory,
        answers: AnswerMemory,
        max_frame_bytes: int,
        authentication: Callable[[], Authenticator] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.listener = outcomes.listener
        self.authentication: Callable[[], Authenticator | None] = authentication or _nothing
        self.logged_in_by = None if authentication is None else SASL
        self.tls = tls
        self.max_frame_bytes = max_frame_bytes
        self.poller = context.poller
        self.timers = context.timers
        self.muted = muted
        self.requests = requests
        self.answers = answers
        self.answered: Callable[[int, int], None] = context.counters.request
        self.answer: Callable[[Channel, bytes], MaybeDeferred[Encoded | None]] = dispatcher.answer
        self.opened: Callable[[Connection], None] | None = None
        """Told of each connection, while a fault may end it."""
        self._outcomes = outcomes
        self._family = family
        self._image = context.image
        self._tokens = context.tokens
        self._cluster = context.cluster
        self._counters = context.counters
        self._open = open_connections
        self._log = context.log

    @property
    def counts_networks(self) -> bool:
        """True if IPv6 clients count as their network (turnstile.ipv6.prefix.length)."""
        return self._image.limits.ipv6_prefix < IPV6_BITS

    def answer_by(
        self,
        answer: Callable[[Channel, bytes], MaybeDeferred[Encoded | None]],
        opened: Callable[[Connection], None] | None,
    ) -> None:
        """Requests are answered by `answer` from here on; `opened` is told of each connection (None: of none)."""
        self.answer, self.opened = answer, opened

    def answering_by(self, answer: Callable[[Channel, bytes], MaybeDeferred[Encoded | None]]) -> Serving:
        """A copy of this server, whose requests are answered by `answer`."""
        other = copy(self)
        other.answer = answer
        return other

    def open(self, fd: int, number: int, ip: str, port: int, pools: tuple[str, ...]) -> None:
        """Makes a connection of an admitted descriptor, which holds a token of each of `pools`."""
        connection = self._open[number] = Connection(self, fd, self._family, number, ip, port, pools=pools)
        if self.opened is not None:
            self.opened(connection)

    def open_announced(self, fd: int, number: int, ip: str, port: int, pools: tuple[str, ...], via: Via) -> None:
        """As `open`, for a client that a proxy announced."""
        connection = self._open[number] = ProxiedConnection(
            self, fd, self._family, number, ip, port, pools=pools, via=via
        )
        if self.opened is not None:
            self.opened(connection)

    def malformed(self, channel: Channel, why: str) -> None:
        """A frame that is no request: counted, logged at most once a second; the connection ends."""
        self._counters.malformed()
        self._log.warning("malformed request", ip=channel.ip, listener=self.listener, why=why)

    def bug(self, channel: Channel, error: Exception) -> None:
        self._log.error("bug in answering a request", ip=channel.ip, client_id=channel.client_id, exc_info=error)

    def closed(self, channel: Channel, why: str) -> None:
        """A connection ended: journaled first, then its tokens are released (outcomes.py, journal_covers_token_use)."""
        del self._open[channel.id]
        open_ms = (self.poller.now_ns - channel.opened_ns) / 1e6
        self._outcomes.closed(
            channel.id,
            channel.ip,
            channel.port,
            why=why,
            user=channel.user,
            client_id=channel.client_id,
            bytes_moved=channel.bytes_moved,
            open_ms=open_ms,
        )
        self._tokens.release(channel.pools)
        if self._cluster.is_on:
            self._cluster.release()
        if self._cluster.is_observed and channel.pools[-1].startswith(OBSERVED):
            self._cluster.release_observed()


def _nothing() -> None:
    """The authentication of a listener that asks for none."""
