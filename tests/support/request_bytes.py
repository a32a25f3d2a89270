"""Kafka requests byte by byte, for tests that drive sockets themselves: Produce 7, Fetch 4, CreateTopics 4 and 6."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from typing import NamedTuple

THROTTLING_QUOTA_EXCEEDED = 89


def string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def array(*items: bytes) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def request(api_key: int, version: int, client_id: str, body: bytes, *, flexible: bool = False) -> bytes:
    """A whole frame."""
    header = struct.pack(">hhi", api_key, version, 7) + string(client_id) + (b"\0" if flexible else b"")
    return struct.pack(">i", len(header) + len(body)) + header + body


def produce(client_id: str, topic: str, partition: int, batch: bytes, *, acks: int = 1) -> bytes:
    """Produce 7 of one batch."""
    return produce_each(client_id, topic, [partition], batch, acks=acks)


def produce_each(client_id: str, topic: str, partitions: Iterable[int], batch: bytes, *, acks: int = 1) -> bytes:
    """Produce 7 of the same batch for each partition."""
    data = (struct.pack(">ii", partition, len(batch)) + batch for partition in partitions)
    return request(0, 7, client_id, struct.pack(">hhi", -1, acks, 30_000) + array(string(topic) + array(*data)))


def fetch(client_id: str, topic: str, partition: int = 0, *, max_wait_ms: int = 0, max_bytes: int = 1 << 20) -> bytes:
    """Fetch 4 of one partition from its beginning; it waits for a byte."""
    asked = struct.pack(">iqi", partition, 0, max_bytes)
    body = struct.pack(">iiiib", -1, max_wait_ms, 1, max_bytes, 0) + array(string(topic) + array(asked))
    return request(1, 4, client_id, body)


class Produced(NamedTuple):
    error: int
    throttle_ms: int


def answer(sock: socket.socket) -> bytes:
    """The next response, without its length."""
    length = int.from_bytes(_exactly(sock, 4), "big")
    return _exactly(sock, length)


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise ConnectionResetError("the broker closed the connection")
        data += more
    return data


def produced(response: bytes) -> Produced:
    """Of Produce 7 with one partition."""
    at = 4 + 4  # correlation id, one topic
    at += 2 + int.from_bytes(response[at : at + 2], "big") + 4 + 4
    return Produced(int.from_bytes(response[at : at + 2], "big"), int.from_bytes(response[-4:], "big"))


class Created(NamedTuple):
    throttle_ms: int
    errors: dict[str, int]


def create_topics(client_id: str, topics: dict[str, int], *, strict: bool, validate_only: bool = False) -> bytes:
    """CreateTopics 6, the first to refuse, or 4, which throttles only: partitions of each topic."""
    if not strict:
        each = (string(name) + struct.pack(">ihii", count, 1, 0, 0) for name, count in topics.items())
        body = struct.pack(">i", len(topics)) + b"".join(each) + struct.pack(">i?", 30_000, validate_only)
        return request(19, 4, client_id, body)
    compact = (
        bytes([len(name) + 1]) + name.encode() + struct.pack(">ih", count, 1) + b"\1\1\0"
        for name, count in topics.items()
    )
    body = bytes([len(topics) + 1]) + b"".join(compact) + struct.pack(">i?", 30_000, validate_only) + b"\0"
    return request(19, 6, client_id, body, flexible=True)


def created(response: bytes, *, strict: bool) -> Created:
    """Of CreateTopics 6 or 4; the fields behind the error message are skipped by name."""
    reader = _Reader(response, 5 if strict else 4)
    throttle_ms, errors = reader.number(4), {}
    for _ in range(reader.number(1) - 1 if strict else reader.number(4)):
        name = reader.text(reader.number(1) - 1 if strict else reader.number(2))
        errors[name] = reader.number(2)
        length = reader.number(1) - 1 if strict else reader.number(2)
        reader.text(length if length not in (-1, 65535) else 0)
        if strict:
            reader.number(4), reader.number(2)  # partitions, replication factor
            for _ in range(reader.number(1) - 1):
                reader.text(reader.number(1) - 1)
                length = reader.number(1) - 1
                reader.text(max(length, 0))
                reader.number(4)  # read only, source, sensitive, tags
            reader.number(1)
    return Created(throttle_ms, errors)


class _Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def number(self, size: int) -> int:
        self._at += size
        return int.from_bytes(self._data[self._at - size : self._at], "big")

    def text(self, size: int) -> str:
        self._at += size
        return self._data[self._at - size : self._at].decode()
