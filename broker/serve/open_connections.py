"""The open connections of one shard, by number: closed when idle for long, and all of them when the shard ends."""

from __future__ import annotations

from collections import Counter

import trio

from broker.serve.connection import Connection
from broker.serve.proxied_connection import ProxiedConnection
from shards.config.image import ClusterImage
from shards.loop.poller import Poller

_GRACE_S = 1.0
_SWEEP_S = 5.0
_TOP_PROXIES = 1000


class OpenConnections(dict[int, Connection]):
    """A connection enters when it is admitted (serving.py) and leaves when it closes."""

    def __init__(self, image: ClusterImage, poller: Poller) -> None:
        super().__init__()
        self._image = image
        self._poller = poller

    async def close_idle(self) -> None:
        """Closes connections that have asked nothing for `connections.max.idle.ms` (negative: never), until cancelled."""
        while True:
            idle_ms = self._image.get("connections.max.idle.ms")
            await trio.sleep(min(max(idle_ms / 2000, 0.1), _SWEEP_S) if idle_ms >= 0 else _SWEEP_S)
            if idle_ms < 0:
                continue
            self._poller.touch()
            before_ns = self._poller.now_ns - idle_ms * 1_000_000
            for connection in list(self.values()):
                if (
                    connection.last_used_ns < before_ns
                    and not connection.busy
                    and not self._poller.holds(connection.fd)
                ):
                    connection.close("idle")

    async def stop(self) -> None:
        """Closes every connection: at once where nothing is being answered, the others when that is done or after a moment."""
        with trio.move_on_after(_GRACE_S):
            while True:
                self._poller.touch()
                for connection in [each for each in self.values() if not each.busy or each.muted]:
                    connection.close("shutdown")
                if not self:
                    return
                await trio.sleep(0.01)
        self._poller.touch()
        self.close_all("shutdown")

    def close_all(self, why: str) -> None:
        """Closes every connection at once; `why` is the reason in the journal."""
        for connection in list(self.values()):
            connection.close(why)

    def describe_proxies(self) -> list[list[object]]:
        """[[proxy, endpoint or None, connections open]] of those that proxies announced, the most first."""
        ways = Counter(
            (each.via.proxy, each.via.endpoint) for each in self.values() if isinstance(each, ProxiedConnection)
        )
        return [[*way, count] for way, count in ways.most_common(_TOP_PROXIES)]
