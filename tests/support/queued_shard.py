"""One shard with a request queue and real connections, under a clock that a test moves on."""

from __future__ import annotations

import socket
import struct
from types import SimpleNamespace
from typing import Any

from echoing import Echo

from broker.serve.connection import Connection
from broker.serve.muted import Muted
from broker.serve.request_memory import RequestMemory
from broker.serve.request_queue import RequestQueue
from broker.wire import wire
from shards.config.image import ClusterImage
from shards.loop.deferred import Deferred

PRODUCE, FETCH, HEARTBEAT = 0, 1, 12
HELD_BYTES = 200_000


def request(key: int, body: bytes) -> bytes:
    """A frame of an API, with its length."""
    frame = struct.pack(">hhi", key, 0, 7) + body
    return len(frame).to_bytes(4, "big") + frame


class QueuedShard(Echo):
    """One handler for 10 ms of a Produce, a queue of two. A request is answered with its body, `later...` when
    `laters[body]` is resolved, `bad` by the end of its connection. `served`: (body, when in ms)."""

    max_frame_bytes = 1 << 20

    def __init__(self, cost: str = "Produce=10ms", shards: int = 1, shard: int = 0, **settings: str) -> None:
        self.now_ns = 10**12
        super().__init__(clock_ns=lambda: self.now_ns)
        self.muted = Muted(self.timers)
        self.requests = RequestMemory(HELD_BYTES, lambda function: self.timers.after(0, function), lambda: self.now_ns)
        self.warned: list[dict[str, Any]] = []
        self.image, self._version = ClusterImage(), 0
        given = {"turnstile.request.cost": cost, "queued.max.requests": "2", "num.io.threads": "1", **settings}
        self.set(**{"turnstile.request.queue": "true", **given})
        context: Any = SimpleNamespace(
            image=self.image, poller=self.poller, timers=self.timers, shard=shard, shards=shards, log=self
        )
        self.queue = RequestQueue(context, self.muted, self.requests)
        self.queue.follow()
        self.answer = self.queue.around(self._serve)
        self.served: list[tuple[bytes, int]] = []
        self.bugs: list[Exception] = []
        self.began_ms = self.now_ms()
        self.is_hurried = False
        """Whether the time slice of timers is over after one step."""
        self._made: list[tuple[socket.socket, Connection]] = []

    def close(self) -> None:
        for client, connection in self._made:
            client.close()
            connection.close()
        self.poller.close()

    def now_ms(self) -> int:
        return self.now_ns // 1_000_000

    def set(self, **settings: str) -> None:
        self._version += 1
        self.image.apply(self._version, [("setting", f"/{name}", value) for name, value in settings.items()])

    def change(self, **settings: str) -> None:
        """As a live change."""
        self.set(**settings)
        self.queue.follow()
        self.answer = self.queue.around(self._serve)
        self.turn()

    def _serve(self, channel: Any, frame: bytes) -> Any:
        body = frame[8:]
        self.served.append((body, self.now_ms() - self.began_ms))
        if body.startswith(b"bad"):
            raise wire.BadFrame("bad")
        if body.startswith(b"bug"):
            raise ZeroDivisionError
        if body.startswith(b"later"):
            answer = self.laters[body] = Deferred()
            return answer
        if body.startswith(b"throttle"):
            channel.throttle = "produce", 10
        return None if body.startswith(b"acks0") else body

    def warning(self, event: str, **values: Any) -> None:
        self.warned.append(values)

    def bug(self, channel: Any, error: Exception) -> None:
        self.bugs.append(error)

    def open(self) -> tuple[socket.socket, Connection]:
        client, server = socket.socketpair()
        client.setblocking(False)
        connection = Connection(self, server.detach(), socket.AF_UNIX, len(self._made), "127.0.0.1", 1, pools=())  # type: ignore[arg-type]
        self._made.append((client, connection))
        return client, connection

    def turn(self) -> None:
        """Passes until nothing is ready and due any more."""
        while True:
            self._call_due()
            if not self.poller.run_pass() and not self.timers_due():
                return

    def lag(self, ms: float) -> None:
        """So much later timers run, several times before anything that is ready."""
        self.now_ns += int(ms * 1e6)
        for _ in range(3):
            self._call_due()

    def _call_due(self) -> None:
        self.poller.touch()
        self.poller.time_slice.begin(self.now_ns)
        if self.is_hurried:
            self.poller.time_slice.most_ns = 0
        self.timers.call_due()

    def timers_due(self) -> bool:
        return bool(self.timers._heap) and self.timers._heap[0][0] <= self.now_ns

    def wait(self, ms: float) -> None:
        """Step by step."""
        until_ns = self.now_ns + int(ms * 1e6)
        self.turn()
        while self.timers._heap and self.timers._heap[0][0] <= until_ns:
            self.now_ns = max(self.now_ns, self.timers._heap[0][0])
            self.turn()
        self.now_ns = until_ns
        self.turn()


def received(client: socket.socket) -> bytes:
    try:
        return client.recv(1 << 20)
    except BlockingIOError:
        return b""
