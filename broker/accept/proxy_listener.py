"""A listening socket behind proxies: a connection of a trusted peer arrives when its PROXY header is whole.

Until then it is a descriptor, an entry and a timer here: it holds no token of any pool, is recorded in no rate, and keeps no
other connection waiting. A peer that is not trusted is a client, and arrives at once.

Invariants
    headers_are_awaited_briefly  A header is whole within WITHIN_MS of accept(2), or its connection is ended.
    waiting_is_bounded  At most `most` connections wait for their header. For one more, and where descriptors run out, the
        connection that waits longest is ended; a proxy sends its header at once, so its connections do not wait that long.
        Connections that wait count against the descriptors of the shard, beside all caps.
    paused_listeners_announce_nothing  While the listener is paused, connections whose header is whole wait, as in a backlog;
        then they arrive in the order in which their headers came.
    headers_end_once  Each connection of a trusted peer is handed on with its header, or ends without one, exactly once.
"""

from __future__ import annotations

import os
import socket
from _socket import socket as RawSocket
from collections import deque
from collections.abc import Callable
from functools import partial
from socket import MSG_DONTWAIT, MSG_PEEK
from typing import Final

from broker.accept.endpoint_ids import endpoint_id
from broker.accept.listener import Listener
from broker.accept.proxied_admission import ProxiedAdmission
from broker.accept.proxy_header import HeaderParser, ProxyFault
from broker.runtime.shard_context import ShardContext
from broker.serve.proxied_connection import Via
from shards.config.advertised import Address
from shards.config.proxy_option import ProxyOption
from shards.loop.poller import EPOLLERR, EPOLLET, EPOLLHUP, EPOLLIN, EPOLLRDHUP, ROUND_NS
from shards.loop.timers import Timer
from shards.settings.addresses import normalise_ip

WITHIN_MS: Final = 3000
"""The least that the specification asks for: it covers a TCP retransmission."""
MOST_WAITING: Final = 1024
_READ_BYTES = 2048
_WAITING = EPOLLIN | EPOLLRDHUP | EPOLLET
_HUNG_UP = EPOLLRDHUP | EPOLLHUP | EPOLLERR


class AwaitedHeader:
    """A connection of a trusted peer until its header is whole; the watcher of its descriptor. `at_ns`: when it was accepted."""

    __slots__ = ("_ended", "_sock", "at_ns", "fd", "ip", "parser", "port")

    def __init__(
        self, sock: RawSocket, ip: str, port: int, *, at_ns: int, ended: Callable[[AwaitedHeader], None]
    ) -> None:
        """`ended(self)` is called by `ready` when the header is whole, or there is none."""
        self._sock = sock
        self._ended = ended
        self.fd = sock.fileno()
        self.ip = ip
        self.port = port
        self.at_ns = at_ns
        self.parser = HeaderParser()

    def __str__(self) -> str:
        return f"a connection of {self.ip} that waits for its PROXY header"

    def ready(self, events: int) -> None:
        """Called by the poller: bytes have come, or the end of the stream."""
        self.read()
        parser = self.parser
        if parser.header is None and events & _HUNG_UP:
            parser.end()
        if parser.has_ended:
            self._ended(self)

    def read(self) -> None:
        """Takes what there is of the header off the socket, and nothing behind it (bytes_behind_stay)."""
        parser, sock = self.parser, self._sock
        while not parser.has_ended:
            try:
                data = sock.recv(_READ_BYTES, MSG_PEEK | MSG_DONTWAIT)
                taken = parser.feed(data)
                if taken:
                    sock.recv(taken, MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                parser.end(ProxyFault.ABORT)
                return
            if not data:
                parser.end()
            elif taken < _READ_BYTES:
                return  # all bytes were read, or there are too few to tell the versions apart

    def release(self) -> int:
        """The descriptor, which is the caller's now."""
        return self._sock.detach()


class ProxyListener(Listener):
    """The listening socket of one listener; `most`: connections that wait for their header at a time."""

    def __init__(
        self,
        sock: socket.socket,
        context: ShardContext,
        admission: ProxiedAdmission,
        option: ProxyOption,
        *,
        most: int,
        fd_ceiling: int,
    ) -> None:
        super().__init__(sock, context.poller, self._accepted, admission.no_descriptor)
        self._timers = context.timers
        self._counters = context.counters
        self._admission = admission
        self._option = option
        self._most = most
        self._fd_ceiling = fd_ceiling
        self._awaited: dict[AwaitedHeader, Timer] = {}  # the one that waits longest first
        self._whole: deque[AwaitedHeader] = deque()  # arrive when the listener accepts again

    @property
    def waiting(self) -> int:
        """The number of connections that wait for their header."""
        return len(self._awaited)

    def ready(self, events: int) -> None:
        """Called by the poller: connections have come, or the listener accepts again after a pause
        (paused_listeners_announce_nothing)."""
        until_ns = self._poller.clock_ns() + ROUND_NS
        while self._whole:
            self._arrive(self._whole.popleft())
            if not self._accepting:
                return
            if self._poller.clock_ns() > until_ns:
                self._poller.again(self._sock.fileno())
                return
        super().ready(events)

    def close(self) -> None:
        """Also ends the connections that have not arrived yet, as those in the backlog end."""
        super().close()
        for awaited in [*self._awaited, *self._whole]:
            self._leave(awaited)
            os.close(awaited.release())
        self._whole.clear()

    def _update_watch(self) -> None:
        super()._update_watch()
        if self._accepting and self._whole:
            self._poller.again(self._sock.fileno())

    # Headers

    def _accepted(self, fd: int, ip: str, port: int) -> None:
        if ":" in ip:
            ip = normalise_ip(ip)
        if not self._option.trusts(ip):
            self._admission.arrived(fd, ip, port)
            return
        if len(self._awaited) >= self._most or fd >= self._fd_ceiling:
            self._make_room()
        sock = RawSocket(self.family, socket.SOCK_STREAM, 0, fd)
        awaited = AwaitedHeader(sock, ip, port, at_ns=self._poller.now_ns, ended=self._ended)
        awaited.read()  # a proxy sends it with the first segment behind the handshake
        if awaited.parser.has_ended:
            self._ended(awaited)
            return
        self._awaited[awaited] = self._timers.after(WITHIN_MS, partial(self._out_of_time, awaited))
        self._poller.watch(fd, awaited, _WAITING)

    def _make_room(self) -> None:
        """Ends the connection that waits longest, if there is one (waiting_is_bounded)."""
        for oldest in self._awaited:
            self._out_of_time(oldest)
            return

    def _out_of_time(self, awaited: AwaitedHeader) -> None:
        awaited.parser.end(ProxyFault.TIMEOUT)
        self._ended(awaited)

    def _leave(self, awaited: AwaitedHeader) -> None:
        """The connection no longer waits for its header, if it did."""
        timer = self._awaited.pop(awaited, None)
        if timer is not None:
            self._timers.cancel(timer)
            self._poller.unwatch(awaited.fd)

    def _ended(self, awaited: AwaitedHeader) -> None:
        """The header of a connection is whole, or there is none (headers_end_once)."""
        self._leave(awaited)
        parser = awaited.parser
        if parser.fault is None or (
            parser.fault is ProxyFault.NOT_HDR and not parser.taken and not self._option.required
        ):
            if self._accepting and not self._whole:
                self._arrive(awaited)
            else:
                self._whole.append(awaited)
            return
        waited_ms = (self._poller.now_ns - awaited.at_ns) / 1e6
        self._admission.without_header(awaited.release(), awaited.ip, awaited.port, parser.fault, waited_ms)

    def _arrive(self, awaited: AwaitedHeader) -> None:
        """Hands a connection on as the client that was announced; as its peer where none was."""
        header = awaited.parser.header
        fd = awaited.release()
        self._counters.add("proxy_none" if header is None else f"proxy_v{header.version}", 1)
        if header is None or header.source is None or header.destination is None:
            self._admission.arrived(fd, awaited.ip, awaited.port)
            return
        reached = Address(normalise_ip(header.destination.host), header.destination.port)
        self._admission.announced(
            fd,
            header.source.host,
            header.source.port,
            Via(awaited.ip, endpoint_id(header.tlvs), reached, header.source.host),
        )
