"""The messages between the hub and its drivers, and the frames they are sent in: four bytes of length, then JSON.

Driver to hub: Join; then Ready, Pong, Progress, Snapshot; at last Done or Failed. Hub to driver: Company, Ping, Go, End. The end
of the connection means to a driver what End does; to the hub it means that the driver is lost, if it has not said Done.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any, NamedTuple, get_args

LENGTH = 4
FIRST_BYTES = 1 << 24
"""The longest frame of a driver that has not joined: a Join has the addresses of its host."""
LONGEST_BYTES = 1 << 28


class Join(NamedTuple):
    """A driver is there. `usable`: addresses of its host that it may use; `chosen`: those that the kernel chooses there."""

    secret: str
    number: int
    host: str
    pid: int
    usable: list[str]
    chosen: list[str]


class Company(NamedTuple):
    """The usable addresses of all drivers, by number."""

    usable: list[list[str]]


class Ready(NamedTuple):
    """A driver knows its share and can start."""


class Ping(NamedTuple):
    """Asks a driver for its clocks."""


class Pong(NamedTuple):
    """A driver's monotonic clock and its time of day, in seconds."""

    monotonic_s: float
    wall_s: float


class Go(NamedTuple):
    """Start at this instant of the driver's monotonic clock."""

    start_s: float


class Progress(NamedTuple):
    """The progress of a driver, as workers.WorkerProgress has it."""

    counts: list[list[int]]
    open_now: int
    last_error: int
    settled: bool


class Snapshot(NamedTuple):
    """The tallies so far, one of each group: what is left of a driver that is lost."""

    dumped: list[Any]


class Done(NamedTuple):
    """A driver's result: one dumped Tally of each group, and by how much it started late."""

    dumped: list[Any]
    late_s: float


class Failed(NamedTuple):
    """A driver could not go on, and the sentence that says why."""

    sentence: str


class End(NamedTuple):
    """Close what is open, and report."""


Message = Join | Company | Ready | Ping | Pong | Go | Progress | Snapshot | Done | Failed | End
_KINDS = {kind.__name__: kind for kind in get_args(Message)}


class BadFrame(Exception):
    """The bytes are no frame of this protocol."""


def frame(message: Message) -> bytes:
    """A message as the bytes that are sent."""
    body = json.dumps([type(message).__name__, *message], separators=(",", ":")).encode()
    return len(body).to_bytes(LENGTH, "big") + body


class Incoming:
    """The messages in a stream of bytes."""

    def __init__(self, longest_bytes: int = LONGEST_BYTES) -> None:
        self.longest_bytes = longest_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that end with these bytes. Raises BadFrame."""
        self._buffer += data
        while len(self._buffer) >= LENGTH:
            size = int.from_bytes(self._buffer[:LENGTH], "big")
            if size > self.longest_bytes:
                raise BadFrame(f"a frame of {size:,} bytes")
            if len(self._buffer) < LENGTH + size:
                return
            body = bytes(self._buffer[LENGTH : LENGTH + size])
            del self._buffer[: LENGTH + size]
            yield _parsed(body)


def _parsed(body: bytes) -> Message:
    try:
        name, *fields = json.loads(body)
        message: Message = _KINDS[name](*fields)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BadFrame("a frame that is no message") from None
    return message


class Link:
    """A driver's end of the connection to the hub, which waits for what it receives."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._incoming = Incoming()
        self._arrived: list[Message] = []

    def fileno(self) -> int:
        """The descriptor, for epoll."""
        return self._sock.fileno()

    def send(self, message: Message) -> None:
        """Raises OSError when the hub is gone."""
        self._sock.sendall(frame(message))

    def receive(self) -> Message:
        """The next message; End when the hub is gone."""
        while not self._arrived:
            try:
                data = self._sock.recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                return End()
            self._arrived.extend(self._incoming.feed(data))
        return self._arrived.pop(0)

    def close(self) -> None:
        """The hub sees the end."""
        self._sock.close()
