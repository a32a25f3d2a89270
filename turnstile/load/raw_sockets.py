"""Raw sockets as the engine needs them: connect without waiting, from a chosen source address.

The source takes its port only in connect (IP_BIND_ADDRESS_NO_PORT), where the whole four-tuple counts: one address
then has some 28,000 ports for each broker, not for all of them together.
"""

from __future__ import annotations

import errno
import socket
import struct
from typing import NamedTuple

Address = tuple[socket.AddressFamily, tuple[str, int]]

IP_BIND_ADDRESS_NO_PORT = 24  # Linux; the socket module has no name for it before 3.12
LINGER_0 = struct.pack("ii", 1, 0)
NO_WAIT = socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC


class DriverError(Exception):
    """The driver can't run as asked; the message is one sentence for the user."""


class PutOff(Exception):
    """This machine has nothing left to connect with just now; `files`: descriptors, else ports."""

    def __init__(self, *, files: bool) -> None:
        super().__init__("no file descriptor left" if files else "no source port left")
        self.files = files


class ConnectingSocket(NamedTuple):
    """A socket on its way to its target, and the errno of what already went wrong, 0 for nothing."""

    sock: socket.SocketType
    error: int


def connect(target: Address, source: str | None, *, rst: bool) -> ConnectingSocket:
    """A socket on its way to `target`.

    With `rst` its close will send a RST. Raises PutOff, and DriverError when `source` is none of this machine's.
    """
    try:
        sock = socket.SocketType(target[0], NO_WAIT)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise PutOff(files=True) from None
        raise
    if source is not None:
        try:
            sock.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
            sock.bind((source, 0))
        except OSError as error:
            sock.close()
            raise DriverError(f"Can't connect from {source}: {error.strerror or error}.") from None
    if rst:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_0)
    failed = sock.connect_ex(target[1])
    if failed == errno.EADDRNOTAVAIL:
        sock.close()
        raise PutOff(files=False)
    return ConnectingSocket(sock, 0 if failed == errno.EINPROGRESS else failed)
