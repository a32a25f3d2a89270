"""Sending and reading at the same time, as a client does that pipelines: otherwise both sides might wait for each other."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator

_PIECE = 1 << 20


def answers(sock: socket.socket, data: bytes, *, within_s: float, leaves: bool = False) -> Iterator[bytes]:
    """Each answer without its length, while `data` is being sent and afterwards, until the connection ends.

    `leaves`: the client closes its side when all is sent. Raises TimeoutError when nothing moves for so long.
    """
    sock.setblocking(False)
    left, received = memoryview(data), bytearray()
    while True:
        _, writable, _ = moves = select.select([sock], [sock] if left else [], [], within_s)
        if not any(moves):
            raise TimeoutError
        try:
            if writable:
                left = left[sock.send(left) :]
                if leaves and not left:
                    sock.shutdown(socket.SHUT_WR)
            piece = sock.recv(_PIECE)
        except BlockingIOError:
            continue
        except ConnectionError:
            return
        if not piece:
            return
        received += piece
        while len(received) >= 4 and len(received) >= 4 + (size := int.from_bytes(received[:4], "big")):
            answer = bytes(received[4 : 4 + size])
            del received[: 4 + size]
            yield answer
