"""A client that pipelines: writes requests as fast as its sockets take them, and reads what comes."""

from __future__ import annotations

import contextlib
import multiprocessing
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_WRITE_BYTES = 64 << 10


def flood(
    address: tuple[str, int],
    frame: bytes,
    *,
    connections: int = 1,
    tls: bool = False,
    goes_on: Callable[[], bool],
    read: bool = True,
) -> None:
    """Sends `frame` over and over on each connection while `goes_on()`; one that is closed is opened again.

    `read`: whether it reads the answers.
    """
    open_now: dict[int, _Flooded] = {}
    while goes_on():
        while len(open_now) < connections:
            try:
                each = _Flooded(address, frame, tls)
            except OSError:
                time.sleep(0.05)
                break
            open_now[each.sock.fileno()] = each
        polled = select.poll()
        for fd in open_now:
            polled.register(fd, select.POLLOUT | (select.POLLIN if read else 0))
        for fd, events in polled.poll(100):
            if not open_now[fd].moved(events):
                open_now.pop(fd).sock.close()
    for each in open_now.values():
        each.sock.close()


class _Flooded:
    """One connection: what of the next piece is written."""

    def __init__(self, address: tuple[str, int], frame: bytes, tls: bool) -> None:
        self.sock = socket.create_connection(address, timeout=10)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.sock = context.wrap_socket(self.sock)
        self.sock.setblocking(False)
        self._piece = memoryview(frame * max(_WRITE_BYTES // len(frame), 1))
        self._at = 0

    def moved(self, events: int) -> bool:
        """Reads and writes what the socket is ready for; whether it is still open."""
        blocked = BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError
        try:
            if events & ~select.POLLOUT:
                with contextlib.suppress(*blocked):
                    if not self.sock.recv(1 << 20):
                        return False
            if events & select.POLLOUT:
                with contextlib.suppress(*blocked):
                    self._at += self.sock.send(self._piece[self._at :])
                    self._at %= len(self._piece)
        except OSError:
            return False
        return True


@contextmanager
def flooding(
    address: tuple[str, int], frame: bytes, *, connections: int = 1, tls: bool = False, read: bool = True
) -> Iterator[None]:
    """`flood` in a process of its own, until the block ends."""
    ended = multiprocessing.get_context("fork").Event()

    def run() -> None:
        flood(address, frame, connections=connections, tls=tls, read=read, goes_on=lambda: not ended.is_set())

    process = multiprocessing.get_context("fork").Process(target=run, daemon=True)
    process.start()
    try:
        yield
    finally:
        ended.set()
        process.join(10)
        if process.exitcode is None:
            process.kill()
            process.join()
