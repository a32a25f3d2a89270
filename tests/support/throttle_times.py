"""Produce and Fetch of one connection, and the throttle times that they are told."""

from __future__ import annotations

import socket
from typing import NamedTuple

from batches import batch
from request_bytes import answer, fetch, produce, produced

SIZE = 60_000


class Read(NamedTuple):
    throttle_ms: int
    size: int


def write(sock: socket.socket, client_id: str = "app-1", size: int = SIZE) -> int:
    """The throttle time that a Produce of about `size` bytes is told."""
    sock.sendall(produce(client_id, "t", 0, batch(b"x" * size)))
    error, throttle_ms = produced(answer(sock))
    assert error == 0
    return throttle_ms


def read(sock: socket.socket, client_id: str = "app-1") -> Read:
    """Throttle time and bytes of a Fetch of SIZE bytes at most."""
    sock.sendall(fetch(client_id, "t", max_bytes=SIZE))
    told = answer(sock)
    return Read(int.from_bytes(told[4:8], "big"), len(told))
