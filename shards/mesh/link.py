"""One unix socket to another process: framing, the queue of what waits to be written, and its bound.

A frame is a length (u32, big endian) and a msgpack array of everything that was queued during one pass of the loop.

Invariants
K1  Messages arrive in the order in which they were queued, or the link is lost, which is told once.
K2  A frame ends with the message that brings it to FRAME_BYTES, so only a single message beyond MAX_FRAME could be too long.
K3  What waits to be written is bounded. Beyond MAX_QUEUED bytes there is no `room`, for which whoever can wait waits;
    a link on which nobody can (`one_way`) is lost. So is any beyond MAX_UNREAD: its other end does not read.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import trio

from shards.mesh.poller import EPOLLIN, EPOLLOUT, Poller

MAX_FRAME = 256 << 20
FRAME_BYTES = 16 << 20
MAX_QUEUED = 64 << 20
MAX_UNREAD = 1 << 30
_READ_SIZE = 256 << 10

# One buffer for all reads of the process; what is unpacked from it, and what is left of a frame, is copied out at once.
_scratch = memoryview(bytearray(_READ_SIZE))


class Link:
    """A connected socket; `on_message` gets each message, `on_lost` is called unless it was closed here."""

    def __init__(
        self, sock: socket.socket, poller: Poller, on_message: Callable[[list[Any]], None], on_lost: Callable[[], None]
    ) -> None:
        sock.setblocking(False)
        self.sock = sock
        self._poller = poller
        self._on_message = on_message
        self._on_lost = on_lost
        self._queued: list[tuple[Any, ...]] = []
        self._unsent = bytearray()
        self._received = bytearray()
        self._packer = msgpack.Packer(use_bin_type=True, autoreset=True)
        self.room = trio.Event()
        self.room.set()
        self.one_way = False
        self.closed = False
        poller.watch(sock.fileno(), self._ready, EPOLLIN)

    def queue(self, message: tuple[Any, ...]) -> None:
        self._queued.append(message)

    def flush(self) -> None:
        """Writes everything queued, as far as the socket takes it: as one frame, unless that would be too long (K2)."""
        if not self._queued or self.closed:
            return
        queued, self._queued = self._queued, []
        body = self._packer.pack(queued)
        if len(body) <= FRAME_BYTES or len(queued) == 1:
            self._write(body)
        else:
            for messages in self._split(queued):
                self._write(self._packer.pack(messages))
        if len(self._unsent) > MAX_QUEUED and not self.closed:
            if self.one_way or len(self._unsent) > MAX_UNREAD:
                self.lose()
            elif self.room.is_set():
                self.room = trio.Event()

    def _split(self, queued: list[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
        """The messages of each frame."""
        messages: list[tuple[Any, ...]] = []
        size = 0
        for message in queued:
            messages.append(message)
            size += len(self._packer.pack(message))
            if size >= FRAME_BYTES:
                yield messages
                messages, size = [], 0
        if messages:
            yield messages

    def _write(self, body: bytes) -> None:
        frame = len(body).to_bytes(4, "big") + body
        if self._unsent:
            self._unsent += frame
        else:
            sent = self._send(frame)
            if sent < len(frame) and not self.closed:
                self._unsent += memoryview(frame)[sent:]
                self._poller.change(self.sock.fileno(), EPOLLIN | EPOLLOUT)

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._poller.forget(self.sock.fileno())
        self.sock.close()
        self.room.set()

    def _send(self, data: bytes | bytearray) -> int:
        try:
            return self.sock.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self.lose()
            return 0

    def _ready(self, events: int) -> None:
        if events & EPOLLOUT and self._unsent:
            self._write_unsent()
        if not self.closed:
            self._read()

    def _write_unsent(self) -> None:
        del self._unsent[: self._send(self._unsent)]
        if not self._unsent and not self.closed:
            self._poller.change(self.sock.fileno(), EPOLLIN)
            self.room.set()

    def _read(self) -> None:
        try:
            size = self.sock.recv_into(_scratch)
        except BlockingIOError:
            return
        except OSError:
            size = 0
        if not size:
            self.lose()
            return
        received = self._received
        if received:
            received += _scratch[:size]
            with memoryview(received) as image:
                at = self._deliver(image)
            del received[:at]
        else:
            at = self._deliver(_scratch[:size])
            if at < size:
                received += _scratch[at:size]

    def _deliver(self, data: memoryview) -> int:
        """Hands over each whole frame; returns where the rest begins."""
        at = 0
        end = len(data)
        while end - at >= 4 and not self.closed:
            size = int.from_bytes(data[at : at + 4], "big")
            if size > MAX_FRAME:
                self.lose()
                break
            if end - at - 4 < size:
                break
            with data[at + 4 : at + 4 + size] as frame:
                messages = msgpack.unpackb(frame, raw=False, use_list=True, strict_map_key=False, max_bin_len=MAX_FRAME)
            at += 4 + size
            for message in messages:
                self._on_message(message)
        return at

    def lose(self) -> None:
        """Closes it, and tells whose it is."""
        if not self.closed:
            self.close()
            self._on_lost()
