"""One unix socket to another process: framing, the queue of what waits to be written, and its bound.

A frame is a length (u32, big endian) and a msgpack array of everything that was queued during one pass of the loop.

Invariants
links_deliver_in_order  Messages arrive in the order in which they were queued, or the link is lost, which is told once.
frames_are_bounded  A frame has at most MAX_FRAME bytes, and ends with the message that brings it to FRAME_BYTES. A message
    that is too long for any frame is not sent, and `on_too_long` is told; the others are, and the link lives.
unwritten_bytes_are_bounded  What waits to be written is bounded. Beyond MAX_QUEUED bytes the link has no `room`: calls wait
    for it, and `on_room` is told when all is written. A `one_way` link, for which nothing can wait, is lost instead. So is
    any link beyond MAX_UNREAD: its other end does not read.
arrivals_take_slices  What arrives is handed over for a time slice, and the rest of it in the next passes; until then
    nothing more is read. A link has the messages of many clients, so its slice is as long as SLICES of theirs.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgpack

from shards.loop.poller import EPOLLIN, EPOLLOUT, Poller

MAX_FRAME = 256 << 20
FRAME_BYTES = 256 << 10
"""Unpacked in one piece (arrivals_take_slices)."""
SLICES = 4
MAX_QUEUED = 64 << 20
MAX_UNREAD = 1 << 30
_READ_SIZE = 256 << 10
_HEADER = 5  # bytes of the longest array header

# One buffer for all reads of the process; what is unpacked from it, and what is left of a frame, is copied out at once.
_scratch = memoryview(bytearray(_READ_SIZE))


Sent: TypeAlias = tuple[Any, ...]
"""A message that is to be packed: its kind, and what belongs to this (mesh.py)."""
Arrived: TypeAlias = list[Any]
"""A message at the other end, as msgpack unpacks it."""


class Link:
    """A connected socket; `on_message` gets each message, `on_lost` is called unless the link was closed by `close`.

    `room`: whether another call may be queued. `one_way`: the link carries the messages of tokens and rates; accepting waits for
    their answers, so the poller stays awake for them. `on_room`: see unwritten_bytes_are_bounded. `on_too_long`: see
    frames_are_bounded.
    """

    def __init__(
        self,
        sock: socket.socket,
        poller: Poller,
        on_message: Callable[[Arrived], None],
        on_lost: Callable[[], None],
        *,
        on_room: Callable[[], None] = lambda: None,
        on_too_long: Callable[[Sent], None] = lambda message: None,
    ) -> None:
        sock.setblocking(False)
        self.sock = sock
        self._poller = poller
        self._on_message = on_message
        self._on_lost = on_lost
        self._queued: list[Sent] = []
        self._unsent = bytearray()
        self._received = bytearray()
        self._arrived: list[Arrived] = []  # unpacked, and not handed over yet
        self._packer = msgpack.Packer(use_bin_type=True, autoreset=True)
        self.room = True
        self._on_room = on_room
        self._on_too_long = on_too_long
        self.one_way = False
        self.closed = False
        poller.watch(sock.fileno(), self, EPOLLIN)

    def __str__(self) -> str:
        return "a link to another process"

    def make_one_way(self) -> None:
        """The other end's hello said that this is its control link."""
        self.one_way = True

    def queue(self, message: Sent) -> None:
        self._queued.append(message)

    def flush(self) -> None:
        """Writes everything queued, as far as the socket takes it: as one frame, unless that would be too long
        (frames_are_bounded)."""
        if not self._queued or self.closed:
            return
        queued, self._queued = self._queued, []
        body = self._packer.pack(queued)
        if len(body) <= FRAME_BYTES:
            self._write(body)
        else:
            for body in self._split(queued):
                self._write(body)
        if len(self._unsent) > MAX_QUEUED and not self.closed:
            if self.one_way or len(self._unsent) > MAX_UNREAD:
                self.lose()
            else:
                self.room = False

    def _split(self, queued: list[Sent]) -> Iterator[bytes]:
        """The bodies of several frames (frames_are_bounded)."""
        packed: list[bytes] = []
        size = _HEADER
        for message in queued:
            each = self._packer.pack(message)
            if _HEADER + len(each) > MAX_FRAME:
                self._on_too_long(message)
                continue
            if packed and size + len(each) > MAX_FRAME:
                yield self._join(packed)
                packed, size = [], _HEADER
            packed.append(each)
            size += len(each)
            if size >= FRAME_BYTES:
                yield self._join(packed)
                packed, size = [], _HEADER
        if packed:
            yield self._join(packed)

    def _join(self, packed: list[bytes]) -> bytes:
        return b"".join((self._packer.pack_array_header(len(packed)), *packed))

    def _write(self, body: bytes) -> None:
        frame = len(body).to_bytes(4, "big") + body
        if self.one_way:
            self._poller.expect()
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

    def _send(self, data: bytes | bytearray) -> int:
        try:
            return self.sock.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self.lose()
            return 0

    def ready(self, events: int) -> None:
        """The poller's."""
        if events & EPOLLOUT and self._unsent:
            self._write_unsent()
        if self.closed:
            return
        if self.one_way:
            self._poller.expect()
        time_slice = self._poller.time_slice
        time_slice.open(SLICES)
        if self._arrived or self._received:
            self._go_on()
        if not time_slice.over and not self.closed:
            self._read()
        if time_slice.over and (self._arrived or self._received) and not self.closed:
            self._poller.again(self.sock.fileno())

    def _write_unsent(self) -> None:
        del self._unsent[: self._send(self._unsent)]
        if not self._unsent and not self.closed:
            self._poller.change(self.sock.fileno(), EPOLLIN)
            if not self.room:
                self.room = True
                self._on_room()

    def _go_on(self) -> None:
        """Hands over what had arrived before this pass."""
        arrived, self._arrived = self._arrived, []
        self._hand_over(arrived)
        received = self._received
        with memoryview(received) as image:
            at = self._deliver(image)
        del received[:at]

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
        """Hands over whole frames until the time slice is over (arrivals_take_slices); returns where the rest begins."""
        at = 0
        end = len(data)
        time_slice = self._poller.time_slice
        while end - at >= 4 and not self.closed and not time_slice.over:
            size = int.from_bytes(data[at : at + 4], "big")
            if size > MAX_FRAME:
                self.lose()
                break
            if end - at - 4 < size:
                break
            with data[at + 4 : at + 4 + size] as frame:
                messages = msgpack.unpackb(frame, raw=False, use_list=True, strict_map_key=False, max_bin_len=MAX_FRAME)
            at += 4 + size
            self._hand_over(messages)
        return at

    def _hand_over(self, messages: list[Arrived]) -> None:
        """The messages of a frame; what the time slice leaves waits in `_arrived`."""
        spend = self._poller.time_slice.spend
        for number, message in enumerate(messages, 1):
            self._on_message(message)
            if spend(0):
                self._arrived = messages[number:]
                return

    def lose(self) -> None:
        """Closes the link and calls `on_lost`."""
        if not self.closed:
            self.close()
            self._on_lost()
