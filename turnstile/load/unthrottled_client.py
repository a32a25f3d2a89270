"""A Kafka client that ignores throttle times, as no library does: it goes on sending.

Produce 7, CreateTopics 6, SASL PLAIN. Blocking, one request at a time, one connection at a time.
"""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

from crc32c import crc32c

TIMEOUT_S = 5.0


class UnthrottledClient:
    """A connection that is made anew when it is needed; `made` counts them."""

    def __init__(self, bootstrap: str, client_id: str, user: str = "", password: str = "") -> None:
        host, _, port = bootstrap.split(",")[0].rpartition(":")
        self._address = (host.strip("[]"), int(port))
        self._client_id = client_id
        self._user, self._password = user, password
        self._sock: socket.socket | None = None
        self.made = 0

    def ask(self, api_key: int, version: int, body: bytes, *, flexible: bool = False) -> bytes:
        """The response behind its correlation id. Raises OSError."""
        if self._sock is None:
            self.connect()
        return self._ask(api_key, version, body, flexible)

    def connect(self) -> None:
        """Drops the connection there is, and makes another one."""
        self.close()
        self.made += 1
        self._sock = socket.create_connection(self._address, timeout=TIMEOUT_S)
        if self._user:
            token = f"\0{self._user}\0{self._password}".encode()
            self._ask(17, 1, _string("PLAIN"))
            answer = self._ask(36, 0, struct.pack(">i", len(token)) + token)
            if answer[:2] != b"\0\0":
                raise ConnectionRefusedError(f"{self._user} may not log in")

    def close(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def _ask(self, api_key: int, version: int, body: bytes, flexible: bool = False) -> bytes:
        assert self._sock is not None
        header = struct.pack(">hhi", api_key, version, 1) + _string(self._client_id) + (b"\0" if flexible else b"")
        try:
            self._sock.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
            answer = self._exactly(int.from_bytes(self._exactly(4), "big"))
        except OSError:
            self.close()
            raise
        return answer[5 if flexible else 4 :]

    def _exactly(self, size: int) -> bytes:
        assert self._sock is not None
        data = bytearray()
        while len(data) < size:
            more = self._sock.recv(size - len(data))
            if not more:
                raise ConnectionResetError("closed by the broker")
            data += more
        return bytes(data)


class UnthrottledAnswer(NamedTuple):
    """The error code of an answer and its throttle time in milliseconds."""

    error_code: int
    throttle_ms: int


def produce(client: UnthrottledClient, topic: str, partition: int, batch: bytes) -> UnthrottledAnswer:
    """(error code, throttle in ms) of one batch."""
    body = (
        struct.pack(">hhii", -1, 1, 30_000, 1) + _string(topic) + struct.pack(">iii", 1, partition, len(batch)) + batch
    )
    answer = client.ask(0, 7, body)
    at = 4 + 2 + int.from_bytes(answer[4:6], "big") + 4 + 4
    return UnthrottledAnswer(int.from_bytes(answer[at : at + 2], "big"), int.from_bytes(answer[-4:], "big"))


def create_topic(client: UnthrottledClient, name: str, partitions: int) -> UnthrottledAnswer:
    """(error code, throttle in ms); with THROTTLING_QUOTA_EXCEEDED (89) there is no topic."""
    body = bytes([2, len(name) + 1]) + name.encode() + struct.pack(">ih", partitions, -1) + b"\1\1\0"
    answer = client.ask(19, 6, body + struct.pack(">i?", 30_000, False) + b"\0", flexible=True)
    at = 4 + 1 + 1 + len(name)
    return UnthrottledAnswer(int.from_bytes(answer[at : at + 2], "big"), int.from_bytes(answer[:4], "big"))


def one_record(size: int) -> bytes:
    """A record batch of one record with a value of so many bytes."""
    value = b"x" * size
    inner = b"\0\0\0" + _varint(-1) + _varint(len(value)) + value + _varint(0)
    record = _varint(len(inner)) + inner
    checked = struct.pack(">hiqqqhii", 0, 0, 0, 0, -1, -1, -1, 1) + record
    return struct.pack(">qiibI", 0, 9 + len(checked), -1, 2, crc32c(checked)) + checked


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 127:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
