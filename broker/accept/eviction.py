"""Connections of the inter-broker listener beyond `max.connections`: for each, the connection idle longest is closed.

Such a connection takes its token of the broker's pool in any case, and the shard tells the pool's home. Once all idle
tokens are reclaimed, the home knows whether more connections are open than the cap allows; then it asks every shard for
its idlest connection on another listener, and has the idlest of all closed. Source: KIP-402;
SocketServer.ConnectionQuotas.maxConnectionsExceeded.

one_eviction_per_forced_connection  At most one connection is closed for each that was forced in, and none while the pool is
    within its cap.
lowering_closes_nothing  If the cap is lowered after a connection was forced in, the cap that its shard knew then still counts
    (`allowed`): so a lowered cap by itself closes nothing. The home may judge much later, as the cached tokens of a stopped
    shard come home only when it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from broker.runtime.shard_context import ShardContext
from broker.serve.connection import Connection
from shards.ownership import home_of
from shards.settings.errors import TurnstileError

POOL: Final = "broker"
NAME: Final = "make_room"
"""The first field of the message to the home, and the prefix of the names of the calls that follow: make_room_idlest,
make_room_close."""
_TRIES = 3


class IdleConnection(NamedTuple):
    """A connection that may be closed for another; of two, the lesser goes first: busy ones last."""

    is_busy: bool
    last_used_ns: int
    id: int


class Eviction:
    """One shard's part in evictions, as holder and as home of the broker's pool."""

    def __init__(self, context: ShardContext, connections: Mapping[int, Connection]) -> None:
        self._protected: str | None = None
        self._me: Final = context.shard
        self._shards: Final = context.shards
        self._home: Final = home_of(POOL, context.shards)
        self._tokens = context.tokens
        self._poller = context.poller
        self._send = context.send
        self._request = context.request
        self._start_soon = context.start_soon
        self._connections = connections
        self._forced = 0  # in this pass, not yet told
        self._due = 0  # at the home: forced connections for which none was closed yet
        self._allowed = 0  # the highest cap by which one of these was forced; at other shards, of those not yet told
        self._working = False

    def protect(self, listener: str | None) -> None:
        """No connection of this listener, the inter-broker one, is closed for another; None: there is no other listener."""
        self._protected = listener

    @property
    def protected(self) -> str | None:
        """The listener whose connections are forced in."""
        return self._protected

    def serve_on(self, serve: Callable[[str, Callable[..., object]], None]) -> None:
        serve(f"{NAME}_idlest", lambda peer: self.idlest())
        serve(f"{NAME}_close", lambda peer, number, last_used_ns: self.close(number, last_used_ns))

    def force(self) -> None:
        """A connection of the protected listener takes its token of the broker's pool beyond the cap."""
        self._tokens.force(POOL)
        self._forced += 1
        self._allowed = max(self._allowed, self._tokens.cap_of(POOL) or 0)

    def flush(self) -> None:
        """Tells the home of forced connections. To be called after the tokens' flush: on the same link, the home knows of their
        tokens first."""
        if self._forced:
            forced, self._forced = self._forced, 0
            if self._home == self._me:
                self.count(forced, self._allowed)
            else:
                allowed, self._allowed = self._allowed, 0
                self._send(self._home, (NAME, forced, allowed))
        if self._due and not self._working:
            excess = self._tokens.excess(POOL, self._allowed)
            if excess is not None:
                due, self._due = min(self._due, excess), 0
                allowed, self._allowed = self._allowed, 0
                if due:
                    self._working = True
                    self._start_soon(self._make_room, due, allowed)

    def count(self, forced: int, allowed: int) -> None:
        """Called at the home: counts connections that a shard forced in; `allowed`: the cap as that shard has it."""
        self._due += forced
        self._allowed = max(self._allowed, allowed)

    async def _make_room(self, connections: int, allowed: int) -> None:
        try:
            for _ in range(connections):
                for _ in range(_TRIES):
                    if await self._close_idlest():
                        break
                    if self._tokens.excess(POOL, allowed) == 0:
                        return  # the one that was found has left by itself
        finally:
            self._working = False
            self._poller.touch()  # for connections that were forced in meanwhile

    async def _close_idlest(self) -> bool:
        """True if one was closed, or if there is none to close. False if the one that was found has left or was used since, or if
        its shard did not answer."""
        found = []
        for shard in range(self._shards):
            try:
                idlest = self.idlest() if shard == self._me else await self._ask_for_idlest(shard)
            except TurnstileError:
                continue
            if idlest is not None:
                found.append((idlest, shard))
        if not found:
            return True
        idlest, shard = min(found)
        if shard == self._me:
            return self.close(idlest.id, idlest.last_used_ns)
        try:
            return bool(await self._request(shard, f"{NAME}_close", idlest.id, idlest.last_used_ns))
        except TurnstileError:
            return False

    async def _ask_for_idlest(self, shard: int) -> IdleConnection | None:
        answer = await self._request(shard, f"{NAME}_idlest")
        return None if answer is None else IdleConnection(*answer)

    def idlest(self) -> IdleConnection | None:
        """The connection here that may go first."""
        return min(
            (
                IdleConnection(each.busy, each.last_used_ns, each.id)
                for each in self._connections.values()
                if each.listener != self._protected
            ),
            default=None,
        )

    def close(self, number: int, last_used_ns: int) -> bool:
        """Closes a connection, unless it is gone or was used since."""
        connection = self._connections.get(number)
        if connection is None or connection.last_used_ns != last_used_ns:
            return False
        self._poller.touch()
        connection.close("max_connections")
        return True
