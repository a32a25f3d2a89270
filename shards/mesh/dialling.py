"""Connecting to a process of the cluster, whatever there is too little of."""

from __future__ import annotations

import errno
import socket

import trio

SHORT = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""There may be too few descriptors, or too little memory, for a while: it is tried again, and ends no process."""
_RETRY_S = 0.1
_FULL_S = 0.005


async def connected(path: str) -> socket.socket:
    """Connects to a listening socket which is always there; its backlog may be full for a moment while its owner restarts."""
    while True:
        try:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError as fault:
            if fault.errno not in SHORT:
                raise
            await trio.sleep(_RETRY_S)
            continue
        sock.setblocking(False)
        while True:
            try:
                sock.connect(path)
                return sock
            except BlockingIOError:
                await trio.sleep(_FULL_S)
