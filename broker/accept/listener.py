"""A listening socket: accepts in batches, and stops accepting while its admission has to wait.

Waiting for readability and then accepting until nothing is left takes half the time of one wake-up per connection.
The socket is shared with the supervisor, so a connection that arrives while this shard does not accept waits in the backlog. So
does one while accepted connections keep the shard busy: to accept more would hold up everything else.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable

from shards.loop.poller import EPOLLIN, ROUND_NS, Poller

# Connections accepted at a time: _MOST_ACCEPTS at first, half as many after each pass that took longer than _SLOW_NS, never fewer
# than _LEAST_ACCEPTS. A call ends after ROUND_NS, which is more than a time slice: what comes in one pass shares its borrows and
# its writes.
_MOST_ACCEPTS, _LEAST_ACCEPTS = 256, 4
_MORE_ACCEPTS = 8
_SLOW_NS = 20_000_000
# The kernel doubles it. With as much as it would give (4 MiB) a whole Fetch leaves at once, and it is the client's process that
# moves most of it from queue to queue: a consumer on the same machine reads a tenth less per second.
_SEND_BUFFER = 512 << 10

# accept(2) also reports what had gone wrong with the connection it would have returned.
_OF_ONE_CONNECTION = {
    errno.ECONNABORTED, errno.EPERM, errno.EPROTO, errno.ENOPROTOOPT, errno.ENETDOWN, errno.ENETUNREACH,
    errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENONET, errno.EOPNOTSUPP,
}  # fmt: skip

Arrived = Callable[[int, str, int], None]
"""Takes over a fresh descriptor, with its peer's address and port."""


class Listener:
    """Calls `arrived(fd, ip, port)` for each connection, and `no_descriptor()` for each that found no descriptor left."""

    def __init__(
        self, sock: socket.socket, poller: Poller, arrived: Arrived, no_descriptor: Callable[[str, int], None]
    ) -> None:
        sock.setblocking(False)
        # Accepted sockets inherit these.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        self.family = sock.family
        self._sock = sock
        self._accept = sock._accept  # type: ignore[attr-defined]  # the descriptor alone: no object for what is refused
        self._poller = poller
        self._arrived = arrived
        self._no_descriptor = no_descriptor
        self._spare: int | None = _open_spare()
        self._accepts = _MOST_ACCEPTS
        self._accepting = False
        self._wanted = False
        self._exhausted = False

    def __str__(self) -> str:
        return f"accepting on {self._sock.getsockname()}"

    def start(self) -> None:
        """Accepts, or accepts again."""
        self._wanted = True
        self._update_watch()

    def pause(self) -> None:
        """Leaves new connections in the kernel's backlog until `start`."""
        self._wanted = False
        self._update_watch()

    def close(self) -> None:
        """Accepts no more. The socket stays open in the supervisor."""
        self.pause()
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    def _update_watch(self) -> None:
        """Watches the socket while connections are wanted and descriptors are left."""
        accepting = self._wanted and not self._exhausted
        if accepting and not self._accepting:
            self._poller.watch(self._sock.fileno(), self, EPOLLIN, herald=True)
        elif self._accepting and not accepting:
            self._poller.unwatch(self._sock.fileno())
        self._accepting = accepting

    def ready(self, events: int) -> None:
        """The poller's: connections have arrived."""
        accept, arrived = self._accept, self._arrived
        if self._poller.round_ns > _SLOW_NS:
            self._accepts = max(self._accepts // 2, _LEAST_ACCEPTS)
        elif self._accepts < _MOST_ACCEPTS:
            self._accepts += _MORE_ACCEPTS
        clock_ns = self._poller.clock_ns
        until_ns = clock_ns() + ROUND_NS
        for _ in range(self._accepts):
            try:
                fd, address = accept()
            except BlockingIOError:
                return
            except OSError as fault:
                if fault.errno in (errno.EMFILE, errno.ENFILE):
                    self._refuse_without_descriptor()
                elif fault.errno in (errno.ENOBUFS, errno.ENOMEM):
                    return
                elif fault.errno not in _OF_ONE_CONNECTION:
                    raise
            else:
                arrived(fd, address[0], address[1])
            if not self._accepting or clock_ns() > until_ns:
                return

    def _refuse_without_descriptor(self) -> None:
        """Out of descriptors: spends the spare one on closing the connection, which would otherwise be reported for ever."""
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
            try:
                fd, address = self._accept()
            except OSError:
                pass
            else:
                self._no_descriptor(address[0], address[1])
                os.close(fd)
        try:
            self._spare = _open_spare()
        except OSError:
            # Not even that one: the whole machine is out of descriptors.
            self._exhausted = True
            self._update_watch()

    def resume_after_exhaustion(self) -> None:
        """Accepts again after the machine ran out of descriptors; to be called a few times a second."""
        if self._exhausted:
            self._exhausted = False
            self._update_watch()


def _open_spare() -> int:
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
