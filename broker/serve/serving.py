"""What the connections of one listener share: where requests are answered, and who is told when a connection ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.journal.writer import JournalWriter
from broker.serve.channel import Authenticator, Channel
from broker.serve.connection import Connection
from broker.serve.dispatch import Dispatcher
from broker.serve.muted import Muted
from broker.shard_counters import ShardCounters
from broker.timers import Timers
from shards.mesh.deferred import MaybeDeferred
from shards.mesh.poller import Poller
from shards.tokens.tokens import Tokens

if TYPE_CHECKING:
    import ssl

    from broker.logger import RateLimitedLogger


class Serving:
    """Opens connections, answers their frames, and gives their tokens back."""

    def __init__(
        self,
        listener: str,
        family: int,
        dispatcher: Dispatcher,
        tokens: Tokens,
        poller: Poller,
        journal: JournalWriter,
        counters: ShardCounters,
        open_connections: dict[int, Connection],
        timers: Timers,
        muted: Muted,
        log: RateLimitedLogger,
        *,
        max_frame_bytes: int,
        authentication: Callable[[], Authenticator | None] = lambda: None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`authentication()` makes what a connection has to go through before anything is answered; `tls`: how to talk."""
        self.authentication = authentication
        self.tls = tls
        self.listener = listener
        self.poller = poller
        self.max_frame_bytes = max_frame_bytes
        self.timers = timers
        self.muted = muted
        self.answered: Callable[[int, int], None] = counters.request
        self.follows: Callable[[bytes], bool] = dispatcher.follows
        self._family = family
        self._dispatcher = dispatcher
        self._tokens = tokens
        self._journal = journal
        self._counters = counters
        self._open = open_connections
        self._log = log

    def admit(
        self, fd: int, number: int, ip: str, port: int, pools: tuple[str, ...], version: int, held_ms: float
    ) -> None:
        """Makes a connection of an admitted descriptor, which holds a token of each of `pools`."""
        self._journal.admitted(number, ip, port, self.listener, version, held_ms)
        self._counters.admitted(self.listener)
        self._open[number] = Connection(self, fd, self._family, number, ip, port, pools)

    def answer(self, channel: Channel, frame: bytes) -> MaybeDeferred[bytes | None]:
        return self._dispatcher.answer(channel, frame)

    def malformed(self, channel: Channel, why: str) -> None:
        """A frame that is no request of ours: counted, logged at most once a second; the connection ends."""
        self._counters.malformed()
        self._log.warning("malformed request", ip=channel.ip, listener=self.listener, why=why)

    def bug(self, channel: Channel, error: Exception) -> None:
        self._log.error("bug in answering a request", ip=channel.ip, client_id=channel.client_id, exc_info=error)

    def closed(self, channel: Channel, why: str) -> None:
        """A connection ended: journaled first, then its tokens are free."""
        del self._open[channel.id]
        open_ms = (self.poller.now_ns - channel.opened_ns) / 1e6
        self._journal.closed(
            channel.id,
            channel.ip,
            channel.port,
            self.listener,
            why,
            channel.user,
            channel.client_id,
            channel.bytes_moved,
            open_ms,
        )
        self._counters.closed(self.listener)
        self._tokens.release(channel.pools)
