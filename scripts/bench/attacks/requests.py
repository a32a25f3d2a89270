"""The requests that attacks send, and the little that they read of answers."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from broker.serve.call import Call
from broker.wire import apis, wire

_KEYS = {api.name: key for key, api in apis.APIS.items()}


def frame(api: str, version: int, fields: Callable[[Any], dict[str, Any]]) -> bytes:
    """A whole request; `fields(types)` makes its fields from the classes of that version."""
    types = wire.request_types(_KEYS[api], version)
    return wire.encode_request(Call(_KEYS[api], version, 7), types.top(**fields(types)), "attacker")


def api_versions(client_id: str) -> bytes:
    """ApiVersions of version 0."""
    body = struct.pack(">hhih", 18, 0, 7, len(client_id)) + client_id.encode()
    return struct.pack(">i", len(body)) + body


def fetch(*, partitions: int, wait_ms: int, most_bytes: int = 50 << 20) -> bytes:
    """Fetch of the beginning of `t`, partition 0, that many times in one request."""

    def fields(types: Any) -> dict[str, Any]:
        one = types.FetchPartition(
            partition=0, current_leader_epoch=-1, fetch_offset=0, last_fetched_epoch=-1, log_start_offset=-1,
            partition_max_bytes=most_bytes,
        )  # fmt: skip
        return {
            "cluster_id": None, "replica_id": -1, "max_wait": timedelta(milliseconds=wait_ms), "min_bytes": 1,
            "max_bytes": most_bytes, "isolation_level": 0, "session_id": 0, "session_epoch": -1,
            "topics": (types.FetchTopic(topic="t", partitions=(one,) * partitions),), "forgotten_topics_data": (),
            "rack_id": "",
        }  # fmt: skip

    return frame("fetch", 12, fields)


def connect(port: int, *, timeout_s: float = 60.0) -> socket.socket:
    """A connection to the broker. Raises OSError."""
    return socket.create_connection(("127.0.0.1", port), timeout=timeout_s)


def ask(port: int, *frames: bytes) -> None:
    """Sends requests on one connection and reads as many answers; a broker that closes it is as good."""
    with contextlib.suppress(OSError), connect(port) as sock:
        for each in frames:
            sock.sendall(each)
            read_answer(sock)


def hold(port: int, requests: Sequence[bytes], seconds: float) -> None:
    """Sends each on a connection of its own, reads nothing, and holds them for so long."""
    with contextlib.ExitStack() as stack:
        for request in requests:
            with contextlib.suppress(OSError):
                sock = stack.enter_context(connect(port, timeout_s=10))
                sock.sendall(request)
        time.sleep(seconds)


def read_answer(sock: socket.socket) -> None:
    """One answer, thrown away. Raises OSError when the broker closes instead."""
    head = b""
    while len(head) < 4:
        head += _some(sock, 4 - len(head))
    left = int.from_bytes(head, "big")
    while left:
        left -= len(_some(sock, min(left, 1 << 20)))


def _some(sock: socket.socket, most: int) -> bytes:
    piece = sock.recv(most)
    if not piece:
        raise ConnectionError("closed")
    return piece


def fill(port: int, *, megabytes: int) -> None:
    """Records of half a megabyte in topic `t`, by librdkafka."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
    for _ in range(megabytes * 2):
        producer.produce("t", bytes(500_000))
        producer.poll(0.01)
    producer.flush(60)
