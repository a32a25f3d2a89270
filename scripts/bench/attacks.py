"""What small requests, slow readers and leavers cost a shard and its other clients.

    python scripts/bench/attacks.py [--only NAME]...

Each attack has a cluster of its own. Beside it a well-behaved client asks ApiVersions on eight connections, so on every
shard. Printed: the most memory that a shard had (goal: 300 MB) and the 99th percentile of the other client's answers
(goal: 100 ms). A goal that is missed is exit code 1.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from uuid import UUID

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from broker.protocol import apis, wire  # noqa: E402 - importable only from here on
from broker.protocol.primitives import uvarint  # noqa: E402
from broker.serve.call import Call  # noqa: E402
from scripts.bench import machine, table  # noqa: E402

MOST_MB, MOST_MS = 300, 100
EVERY_MS = 5
_KEYS = {api.name: key for key, api in apis.APIS.items()}
_TAGS_VERSION = 12


@dataclass(frozen=True)
class Attack:
    """`run(port)` attacks for some seconds; `options` of `turnstile up`."""

    name: str
    run: Callable[[int], None]
    options: tuple[str, ...] = ()


def frame(api: str, version: int, fields: Callable[[Any], dict[str, Any]]) -> bytes:
    """A whole request; `fields(types)` makes its fields from the classes of that version."""
    types = wire.request_types(_KEYS[api], version)
    return wire.encode_request(Call(_KEYS[api], version, 7), types.top(**fields(types)), "attacker")


def ask(port: int, *frames: bytes, answers: bool = True, patience_s: float = 60.0) -> None:
    """Sends requests on one connection and reads as many answers; a broker that closes it is as good."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=patience_s) as sock:
        for each in frames:
            sock.sendall(each)
            if answers:
                _read(sock)


def repeated_resources(port: int) -> None:
    """DescribeConfigs of one resource, thousands of times in 50 KB."""

    def fields(types: Any) -> dict[str, Any]:
        one = types.DescribeConfigsResource(resource_type=4, resource_name="0", configuration_keys=None)
        return {"resources": (one,) * 8000, "include_synonyms": True, "include_documentation": True}

    ask(port, *[frame("describe_configs", 4, fields)] * 3)


def metadata_by_id(port: int) -> None:
    def fields(types: Any) -> dict[str, Any]:
        one = types.MetadataRequestTopic(topic_id=UUID(int=7), name=None)
        return {
            "topics": (one,) * 50_000, "allow_auto_topic_creation": False, "include_topic_authorized_operations": False
        }  # fmt: skip

    ask(port, *[frame("metadata", 12, fields)] * 50)


def metadata_of_partitions(port: int) -> None:
    """Topics of 10,000 partitions, ten of them, and forty clients that ask for all at once."""
    for number in range(10):
        ask(port, frame("create_topics", 7, lambda types, number=number: {
            "topics": (types.CreatableTopic(
                name=f"large-{number}", num_partitions=10_000, replication_factor=1, assignments=(), configs=()
            ),),
            "timeout": timedelta(seconds=30), "validate_only": False,
        }))  # fmt: skip
    request = frame("metadata", 12, lambda types: {
        "topics": None, "allow_auto_topic_creation": False, "include_topic_authorized_operations": False
    })  # fmt: skip
    clients = [threading.Thread(target=ask, args=(port, request)) for _ in range(40)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()


def null_batches(port: int) -> None:
    """Produce without a record for a million partitions: 8 MB."""

    def fields(types: Any) -> dict[str, Any]:
        one = types.PartitionProduceData(index=0, records=None)
        topic = types.TopicProduceData(name="t", partition_data=(one,) * 1_000_000)
        return {"transactional_id": None, "acks": 1, "timeout": timedelta(seconds=1), "topic_data": (topic,)}

    ask(port, frame("produce", 9, fields))


def fetch_of_many(port: int) -> None:
    """Fetch of the same partition, 8 MB of it."""
    ask(port, *[frame("fetch", 12, lambda types: _fetch(types, partitions=240_000, wait_ms=0))] * 2)


def delete_groups(port: int) -> None:
    names = tuple(f"group-{number}" for number in range(200_000))
    ask(port, frame("delete_groups", 2, lambda types: {"groups_names": names}))


def tags(port: int) -> None:
    """A header with 40 MB of tagged fields."""
    body = b"".join(uvarint(number) + b"\x04abcd" for number in range(1, 5_000_000))
    head = struct.pack(">hhih", 3, _TAGS_VERSION, 7, 1) + b"x" + uvarint(4_999_999) + body
    request = head + b"\x01\x00\x00\x00"
    ask(port, struct.pack(">i", len(request)) + request)


def unread_fetches(port: int) -> None:
    """Twenty clients that ask for 50 MB each and read nothing."""
    _fill(port, megabytes=40)
    request = frame("fetch", 12, lambda types: _fetch(types, partitions=1, wait_ms=100))
    _held(port, [request] * 20, 8.0)


def unfinished_frames(port: int) -> None:
    """Fifteen frames of 99 MiB that lack their last byte."""
    size = 99 << 20
    _held(port, [struct.pack(">i", size) + bytes(size - 1)] * 15, 5.0)


def salt(port: int) -> None:
    def fields(types: Any) -> dict[str, Any]:
        one = types.ScramCredentialUpsertion(
            name="alice", mechanism=1, iterations=4096, salt=bytes(80_000_000), salted_password=b"x" * 32
        )
        return {"deletions": (), "upsertions": (one,)}

    ask(port, frame("alter_user_scram_credentials", 0, fields))


def abandoned_polls(port: int) -> None:
    """Sixteen thousand clients that ask for what is not there yet, wait up to a minute, and leave at once."""
    request = frame("fetch", 12, lambda types: _fetch(types, partitions=1, wait_ms=60_000))
    for _ in range(16_000):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
            sock.sendall(request)
    time.sleep(3)


def client_ids(port: int) -> None:
    """Two hundred thousand client ids under a quota for each."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        for first in range(0, 200_000, 100):
            sock.sendall(b"".join(_api_versions(f"client-{number}") for number in range(first, first + 100)))
            for _ in range(100):
                _read(sock)


ATTACKS = (
    Attack("DescribeConfigs of 8,000 times one resource, 3 times", repeated_resources),
    Attack("Metadata of 50,000 ids, 50 times", metadata_by_id),
    Attack("Metadata of 100,000 partitions, 40 clients at once", metadata_of_partitions),
    Attack("Produce of 1,000,000 null batches", null_batches, ("--topic", "t:1")),
    Attack("Fetch of 240,000 times one partition, twice", fetch_of_many, ("--topic", "t:1")),
    Attack("DeleteGroups of 200,000", delete_groups),
    Attack("40 MB of tagged fields", tags),
    Attack("20 fetches of 50 MB, unread", unread_fetches, ("--topic", "t:1")),
    Attack("15 frames of 99 MiB, unfinished", unfinished_frames),
    Attack("a SCRAM salt of 80 MB", salt),
    Attack("16,000 abandoned long polls", abandoned_polls, ("--topic", "t:1")),
    Attack("200,000 client ids under a quota", client_ids),
)


def measure(attack: Attack) -> tuple[float, float]:
    """(MB that a shard had at most, milliseconds within which 99 of 100 answers to the other client came)."""
    with machine.turnstile(*attack.options) as server:
        if attack.run is client_ids:
            machine.put_quota(server, {"client-id": "<default>"}, {"request_percentage": 10_000.0})
        parent, child = multiprocessing.Pipe()
        other = multiprocessing.Process(target=_bystander, args=(server.port, child))
        other.start()
        parent.recv()
        peak, ends = [0.0], threading.Event()
        watch = threading.Thread(target=_watch, args=(server.pid, peak, ends))
        watch.start()
        attack.run(server.port)
        time.sleep(1)
        ends.set()
        watch.join()
        parent.send(None)
        p99_ms = parent.recv()
        other.join()
        return peak[0], p99_ms


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="WORD", help="attacks whose names have this word")
    asked = parser.parse_args()
    rows, missed = [], False
    for attack in ATTACKS:
        if asked.only and not any(word.lower() in attack.name.lower() for word in asked.only):
            continue
        print(f"measuring {attack.name} ...", file=sys.stderr, flush=True)
        peak_mb, p99_ms = measure(attack)
        met = peak_mb <= MOST_MB and p99_ms <= MOST_MS
        missed |= not met
        rows.append((attack.name, f"{peak_mb:.0f} MB", f"{p99_ms:.1f} ms", "met" if met else "missed"))
    table.show_plain("Attacks", ("attack", "a shard's memory at most", "others' p99", ""), rows)
    return 1 if missed else 0


def _fetch(types: Any, *, partitions: int, wait_ms: int) -> dict[str, Any]:
    one = types.FetchPartition(
        partition=0, current_leader_epoch=-1, fetch_offset=0, last_fetched_epoch=-1, log_start_offset=-1,
        partition_max_bytes=50 << 20,
    )  # fmt: skip
    return {
        "cluster_id": None, "replica_id": -1, "max_wait": timedelta(milliseconds=wait_ms), "min_bytes": 1,
        "max_bytes": 50 << 20, "isolation_level": 0, "session_id": 0, "session_epoch": -1,
        "topics": (types.FetchTopic(topic="t", partitions=(one,) * partitions),), "forgotten_topics_data": (),
        "rack_id": "",
    }  # fmt: skip


def _fill(port: int, *, megabytes: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
    for _ in range(megabytes * 2):
        producer.produce("t", bytes(500_000))
        producer.poll(0.01)
    producer.flush(60)


def _held(port: int, requests: list[bytes], seconds: float) -> None:
    """Sends each on a connection of its own, reads nothing, and holds them for so long."""
    with contextlib.ExitStack() as stack:
        for request in requests:
            with contextlib.suppress(OSError):
                sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
                sock.sendall(request)
        time.sleep(seconds)


def _api_versions(client_id: str) -> bytes:
    body = struct.pack(">hhih", 18, 0, 7, len(client_id)) + client_id.encode()
    return struct.pack(">i", len(body)) + body


def _read(sock: socket.socket) -> None:
    """One answer, thrown away. Raises OSError when the broker closes instead."""
    left = 4
    head = b""
    while len(head) < 4:
        piece = sock.recv(4 - len(head))
        if not piece:
            raise ConnectionError("closed")
        head += piece
    left = int.from_bytes(head, "big")
    while left:
        piece = sock.recv(min(left, 1 << 20))
        if not piece:
            raise ConnectionError("closed")
        left -= len(piece)


def _bystander(port: int, pipe: Connection) -> None:
    """Asks on eight connections in turn until told to end; says the 99th percentile in milliseconds.

    A client that asks every EVERY_MS would have asked again and again during a long wait: these waits count, too.
    """
    socks = [socket.create_connection(("127.0.0.1", port), timeout=120) for _ in range(8)]
    took: list[float] = []
    started = False
    while True:
        for place in range(len(socks)):
            began = time.perf_counter()
            while not _answered(socks[place]):  # its shard was ended: the next one answers
                socks[place].close()
                socks[place] = socket.create_connection(("127.0.0.1", port), timeout=120)
            waited_ms = (time.perf_counter() - began) * 1000
            took.append(waited_ms)
            while (waited_ms := waited_ms - EVERY_MS) > 0:
                took.append(waited_ms)
        if not started:
            pipe.send(None)
            took, started = [0.0], True
        if pipe.poll(EVERY_MS / 1000):
            break
    pipe.send(sorted(took)[int(len(took) * 0.99)])


def _answered(sock: socket.socket) -> bool:
    """Asks ApiVersions; whether the answer came."""
    try:
        sock.sendall(machine.API_VERSIONS)
        _read(sock)
    except OSError:
        return False
    return True


def _watch(pid: int, peak: list[float], ends: threading.Event) -> None:
    """The most that any process of the cluster has resident, in MB."""
    while not ends.wait(0.02):
        for each in machine.tree(pid):
            with contextlib.suppress(OSError, IndexError, ValueError):
                resident = int(Path(f"/proc/{each}/statm").read_text().split()[1]) * 4096
                peak[0] = max(peak[0], resident / 1e6)


if __name__ == "__main__":
    sys.exit(main())
