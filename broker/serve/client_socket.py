"""The bytes of one connection: read into one buffer of the process, written at once or as the socket takes them.

bytes_leave_in_order  Bytes leave in the order in which they were given to `send`.
gathered_answers_leave_together  What is sent while answers are gathered leaves as one piece, when `send_gathered` is called
    or the socket closes: each write to a client costs a system call, and mostly wakes it.
records_go_by_sendfile  Records that stay in their files go from there to the socket (sendfile), by TLS in pieces: a client
    that is slow to read them takes no memory.
sends_fit_a_slice  However fast a client reads, what is sent to it at a time fits a time slice (poller.py,
    one_call_per_watcher_and_pass).
"""

from __future__ import annotations

import errno
import os
import struct
from _socket import socket as RawSocket
from socket import MSG_DONTWAIT, MSG_MORE, MSG_NOSIGNAL, SHUT_WR, SO_LINGER, SOL_SOCKET
from typing import Final

from broker.serve.channel import ChannelServer
from broker.serve.tls import TlsSocket
from broker.wire.answer_parts import AnswerParts, Encoded, FileSlice, Rest, joined
from shards.loop.poller import EPOLLET, EPOLLIN, EPOLLOUT, EPOLLRDHUP
from shards.loop.time_slice import TimeSlice

READ_SIZE: Final = 256 << 10
NOTHING: Final = -1
_SEND_FLAGS = MSG_DONTWAIT | MSG_NOSIGNAL
_READING = EPOLLIN | EPOLLRDHUP | EPOLLET
_WRITING = _READING | EPOLLOUT
_MOST_GATHERED = 32
_LONG_BYTES = 16 << 10
_AT_ONCE_BYTES = 1 << 20  # for one system call
_RESET = struct.pack("ii", 1, 0)  # of SO_LINGER: closing sends a reset

# The socket objects of descriptors, also of closed ones: making one costs a system call (getsockname), and the kernel gives the
# same few numbers over and over. By descriptor: a dictionary would take four times the memory for each.
_sockets: list[RawSocket | None] = []
_CLOSED: Final = RawSocket()
_CLOSED.close()

# One buffer for all reads of the process: what does not belong to a whole frame is copied out at once.
scratch: Final = memoryview(bytearray(READ_SIZE))


def _make_socket(family: int, fd: int) -> RawSocket:
    made = _sockets[fd] = RawSocket(family, 1, 0, fd)
    return made


class ClientSocket:
    """An accepted descriptor, watched by the poller; a Connection is one. `unsent`: what the socket did not take yet."""

    __slots__ = ("bytes_moved", "fd", "gathered", "serving", "sock", "unsent")

    closed: bool

    def __init__(self, serving: ChannelServer, fd: int, family: int) -> None:
        self.serving = serving
        self.sock: RawSocket | TlsSocket
        if serving.tls is not None:
            self.sock = TlsSocket(RawSocket(family, 1, 0, fd), serving.tls)
        else:
            if fd >= len(_sockets):
                _sockets.extend([None] * (fd + 1 - len(_sockets)))
            self.sock = _sockets[fd] or _make_socket(family, fd)
        self.fd = fd
        self.bytes_moved = 0
        self.gathered: list[Encoded] | None = None
        self.unsent: memoryview | AnswerParts | None = None
        serving.poller.watch(fd, self, self._idle_events())

    @property
    def _time_slice(self) -> TimeSlice:
        return self.serving.poller.time_slice

    @property
    def reached(self) -> str:
        """The local address, of an IPv4 client as IPv4; without the zone of a link-local one."""
        host: str = self.sock.getsockname()[0]
        return host.removeprefix("::ffff:").partition("%")[0]

    @property
    def reached_port(self) -> int | None:
        """The port of a proxy that the client reached; None: it reached the listener's own."""
        return None

    def ready(self, events: int) -> None:
        """The poller's callback."""
        raise NotImplementedError

    def close(self, why: str = "client") -> None:
        """Ends the connection."""
        raise NotImplementedError

    def _idle_events(self) -> int:
        """TLS may have bytes of its own to write, of which the connection knows nothing."""
        return _READING if self.serving.tls is None else _WRITING

    def receive(self) -> int:
        """The number of bytes in `scratch` now; 0 at the end of the stream, NOTHING if there are none yet."""
        try:
            size = self.sock.recv_into(scratch, 0, MSG_DONTWAIT)
        except BlockingIOError:
            return NOTHING
        except OSError:
            return 0
        self.bytes_moved += size
        return size

    def tls_is_empty(self) -> bool:
        """True if the last read has left nothing: what comes next makes the socket ready."""
        return isinstance(self.sock, TlsSocket) and self.sock.is_empty

    def send(self, data: Encoded) -> None:
        """Writes `data`; what the socket does not take now goes out as it becomes writable."""
        self.bytes_moved += len(data)
        if self.gathered is None:
            self._send(data)
            return
        self.gathered.append(data)
        if len(data) >= _LONG_BYTES or len(self.gathered) >= _MOST_GATHERED:
            self.send_gathered()
            self.gathered = []

    def send_gathered(self) -> None:
        """Writes what was sent since `gathered` became a list, and gathers no more (gathered_answers_leave_together)."""
        gathered, self.gathered = self.gathered, None
        if gathered:
            self._send(gathered[0] if len(gathered) == 1 else joined(gathered))

    def _send(self, data: Encoded) -> None:
        if isinstance(data, AnswerParts):
            self._send_parts(data)
            return
        try:
            sent = self.sock.send(_first(data), _SEND_FLAGS)
        except OSError as fault:
            sent = self._not_sent(fault)
        if sent < len(data) and not self.closed:
            self._keep(memoryview(data)[sent:])
            if not self.closed:
                self.serving.poller.change(self.fd, _WRITING)  # tells also that it is writable now

    def _send_parts(self, answer: AnswerParts) -> None:
        if self.closed:
            return  # the descriptor may be another connection's
        if self.serving.tls is None:
            os.set_blocking(self.fd, False)  # sendfile has no flag for it
        if not self._sent_parts(answer) and not self.closed:
            self.serving.poller.change(self.fd, _WRITING)

    def _sent_parts(self, answer: AnswerParts) -> bool:
        """Sends what the socket takes of an answer in this time slice; whether that was all of it. The rest is in `unsent`."""
        parts = answer.parts
        time_slice = self._time_slice
        try:
            while parts and self._sent_part(parts[0], _SEND_FLAGS if len(parts) == 1 else _SEND_FLAGS | MSG_MORE):
                parts.popleft()
                if time_slice.over:
                    break
        except OSError as fault:
            self._not_sent(fault)
        if parts and not self.closed:
            self.unsent = answer
            self.serving.answers.waits(self, answer.memory_bytes)
            if time_slice.over and not self.closed:
                self.serving.poller.again(self.fd)
        return not parts

    def _sent_part(self, part: FileSlice | Rest, flags: int) -> bool:
        """True if that was all of it. Raises OSError."""
        if self.serving.tls is not None:
            self.sock.send(b"", flags)  # bytes that TLS has encrypted before go out first, or it raises BlockingIOError
        while part:
            asked = min(len(part), _AT_ONCE_BYTES)
            sent = self._send_piece(part, asked, flags)
            if self._time_slice.spend(sent) or sent < asked:
                break
        return not part

    def _send_piece(self, part: FileSlice | Rest, size: int, flags: int) -> int:
        """Sends the next `size` bytes of a part; returns how many the socket took. Raises OSError."""
        if isinstance(part, FileSlice) and self.serving.tls is None:
            return part.send_to(self.fd, size)
        sent = self.sock.send(part.left[:size] if isinstance(part, Rest) else part.chunk(size), flags)
        part.skip(sent)
        return sent

    def _keep(self, rest: memoryview) -> None:
        """Keeps the rest of an answer that is half sent, and no more than that."""
        self.unsent = rest if 2 * len(rest) > memoryview(rest.obj).nbytes else memoryview(bytes(rest))
        self.serving.answers.waits(self, len(rest))

    def send_unsent(self) -> bool:
        """The socket is writable: whether everything is out now."""
        unsent = self.unsent
        assert unsent is not None
        if isinstance(unsent, AnswerParts):
            if not self._sent_parts(unsent) or self.closed:
                return False
        elif not self._sent_rest(unsent):
            return False
        self.unsent = None
        self.serving.answers.waits(self, 0)
        self.serving.poller.change(self.fd, self._idle_events())
        return True

    def _sent_rest(self, unsent: memoryview) -> bool:
        try:
            sent = self.sock.send(_first(unsent), _SEND_FLAGS)
        except OSError as fault:
            sent = self._not_sent(fault)
        if sent < len(unsent) and not self.closed:
            self._keep(unsent[sent:])
            if sent == _AT_ONCE_BYTES and not self.closed:
                self.serving.poller.again(self.fd)
        return sent == len(unsent)

    def let_tls_write(self) -> None:
        """The socket became readable or writable: TLS may have waited for either."""
        try:
            self.sock.send(b"", _SEND_FLAGS)
        except OSError as fault:
            self._not_sent(fault)

    def _not_sent(self, fault: OSError) -> int:
        """Nothing was sent, for now or, when the client is gone, for ever."""
        if not isinstance(fault, BlockingIOError) and fault.errno != errno.EINTR:
            self.close()
        return 0

    def shut(self) -> bool:
        """Says to the client that nothing more comes; False if it is gone."""
        try:
            self.sock.shutdown(SHUT_WR)
        except OSError:
            return False
        return True

    def reset_when_closed(self) -> None:
        """Closing it sends a reset, and drops what the client has not read."""
        self.sock.setsockopt(SOL_SOCKET, SO_LINGER, _RESET)

    def close_socket(self) -> None:
        """The descriptor is free, and what was not sent is dropped."""
        if self.serving.tls is not None:
            self.sock.close()
        else:
            self.sock = _CLOSED  # the next connection with this descriptor has its socket object
            os.close(self.fd)
        if self.unsent is not None:
            self.serving.answers.waits(self, 0)
            self.unsent = None


def _first(data: bytes | memoryview) -> bytes | memoryview:
    """The part of `data` that is sent at once (sends_fit_a_slice)."""
    return data if len(data) <= _AT_ONCE_BYTES else memoryview(data)[:_AT_ONCE_BYTES]
