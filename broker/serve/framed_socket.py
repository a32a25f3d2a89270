"""The frames of one connection: taken whole from the bytes that arrive, each given to `_serve`.

frames_take_what_arrived  A frame never takes more memory than has arrived of it, plus one read; longer than the limit, it
    closes the connection. While unfinished requests take too much, no more is read of a long one (request_memory.py).
"""

from __future__ import annotations

import struct

from broker.serve.channel import Authenticator
from broker.serve.client_socket import ClientSocket, scratch
from broker.serve.request_memory import SMALL_BYTES

# Before authentication: Kafka's sasl.server.max.receive.size.
MAX_UNKNOWN_BYTES = 512 << 10

_PROXY_HEADS = (b"PROX", b"\r\n\r\n")  # how both versions of the PROXY protocol begin

_length_at = struct.Struct(">i").unpack_from  # takes a third of the time of int.from_bytes and a slice


class FramedSocket(ClientSocket):
    """A socket whose bytes are frames; a Connection is one, and sets the attributes when it begins.

    `received`: what does not belong to a whole frame yet, or waits for its turn. `buffers`: an unfinished request of this
    connection is counted in serving.requests. `busy`: no further frame is taken.
    """

    __slots__ = ("authentication", "buffers", "busy", "received", "waits_for_memory")

    authentication: Authenticator | None
    buffers: bool
    busy: bool
    received: bytearray | None
    waits_for_memory: bool

    def _serve(self, frame: bytes) -> None:
        """Answers a frame."""
        raise NotImplementedError

    def _reject(self, why: str) -> None:
        """Closes the connection: what has arrived is no request."""
        raise NotImplementedError

    def read_on(self) -> None:
        """There is memory for more of the request that has begun to arrive."""
        raise NotImplementedError

    def _take(self, size: int) -> None:
        """Serves the frames in the first `size` bytes of the shared buffer, together with what was left before."""
        received = self.received
        if received is None:
            if 4 <= size <= self.serving.max_frame_bytes + 4 and _length_at(scratch)[0] == size - 4:
                self._serve(bytes(scratch[4:size]))
                return
            received = self.received = bytearray(scratch[:size])
        else:
            received += scratch[:size]
        self._serve_received()

    def _max_frame_bytes(self) -> int:
        """The longest frame: before authentication no longer than authentication needs."""
        most = self.serving.max_frame_bytes
        return most if self.authentication is None else min(most, MAX_UNKNOWN_BYTES)

    def _serve_received(self) -> None:
        """Serves whole frames that have arrived, while nothing keeps the connection from taking the next one
        (one_request_at_a_time, clients_get_slices)."""
        self.gathered = self.gathered or []
        spend = self._time_slice.spend
        while not self.busy and self.unsent is None and not self.closed:
            frame = self._next_frame()
            if frame is None:
                break
            self._serve(frame)
            if spend(len(frame)) and self.received is not None and not self.closed:
                self.serving.poller.again(self.fd)
                break
        self.send_gathered()

    def _next_frame(self) -> bytes | None:
        """Takes the next frame off what has arrived; None if it is not whole yet."""
        received = self.received
        if received is None or len(received) < 4:
            return None
        length = int.from_bytes(received[:4], "big", signed=True)
        if not 0 <= length <= self._max_frame_bytes():
            self._reject(_what_is_wrong(bytes(received[:4]), length))
            return None
        if len(received) < 4 + length:
            if length > SMALL_BYTES:
                self.buffers = True
                self.waits_for_memory = not self.serving.requests.grown(self, len(received), 4 + length)
            return None
        with memoryview(received) as image:
            frame = bytes(image[4 : 4 + length])
        if len(received) == 4 + length:
            self.received = None
        else:
            del received[: 4 + length]
        if self.buffers:
            self._forget_request()
        return frame

    def _forget_request(self) -> None:
        self.buffers = self.waits_for_memory = False
        self.serving.requests.finished(self)


def _what_is_wrong(head: bytes, length: int) -> str:
    """The reason for which a frame of that length is refused. If its first bytes begin a PROXY header, a sentence says so: there
    is a proxy in front of the listener, or a client that forges a header."""
    if head in _PROXY_HEADS:
        return "a PROXY header, which this listener does not take from this peer (proxy=, trusted=)"
    return "oversized" if length > 0 else "negative length"
