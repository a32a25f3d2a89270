"""One connection of a storm, and the states it goes through.

CONNECTING  the handshake is not over     -> ASKED; CLOSED
ASKED       the request is on its way     -> READING at the answer's first byte: admitted; CLOSED: refused
            (with no probe: none is)      -> OPEN after the grace time: admitted; CLOSED: refused
            (with several: one is)        -> ASKED with the next at an answer's last byte; OPEN at that of the last: admitted;
                                             CLOSED: refused, also by an answer
READING     a part of the answer is here  -> OPEN with its last byte; CLOSED
OPEN        held                          -> CLOSED, by the driver or by the broker
"""

from __future__ import annotations

import socket

from turnstile.load.lanes import Lane

CONNECTING, ASKED, READING, OPEN, CLOSED = range(5)


class StormConnection:
    """One connection of one client."""

    __slots__ = ("answered", "client", "fd", "got", "greeting", "lane", "sock", "started_s", "state", "took_us")

    def __init__(
        self, lane: Lane, client: int, sock: socket.SocketType, started_s: float, greeting: bytes = b""
    ) -> None:
        """`greeting`: what is sent first."""
        self.lane = lane
        self.client = client
        self.sock = sock
        self.fd = sock.fileno()
        self.started_s = started_s
        self.greeting = greeting
        self.state = CONNECTING
        self.got = b""
        self.answered = 0
        """Requests of the probe; counted where there are several."""
        self.took_us = 0
        """The time from connect to the first byte of the answer, or to the end of the handshake where nothing is asked."""

    def whole_answer(self, data: bytes) -> bytes | None:
        """The answer without its length, once `data` is its end."""
        got = self.got + data if self.got else data
        if len(got) < 4 or len(got) < 4 + int.from_bytes(got[:4], "big"):
            self.got = got
            return None
        self.got = b""
        return got[4:]
