"""Requests for the C client, as files of frames: ApiVersions, Metadata, and Produce and Fetch of many clients."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import NamedTemporaryFile
from typing import Any

from broker.serve.call import Call
from broker.wire import wire
from scripts.bench import machine
from tests.support import batches

METADATA = bytes.fromhex("000000140003000c00000002000562656e63680001000000")
"""Version 12, of no topics."""
API_VERSIONS = machine.API_VERSIONS
_PRODUCE, _FETCH = (0, 9), (1, 11)
_RECORDS, _RECORD_BYTES = 10, 100


@contextmanager
def file_of(*frames: bytes) -> Iterator[str]:
    """The path of a file of frames, for `client requests frames=...`."""
    with NamedTemporaryFile(prefix="turnstile-bench-") as file:
        file.write(b"".join(frames))
        file.flush()
        yield file.name


def produce_and_fetch(clients: int, topic: str, partitions: int) -> list[bytes]:
    """A Produce of a small batch and a Fetch of the partition's first batch for each client, which has an id of its own."""
    value = b"x" * _RECORD_BYTES
    batch = batches.batch(*[value] * _RECORDS, timestamps=[time.time_ns() // 1_000_000] * _RECORDS)
    frames = []
    for client in range(clients):
        at = topic, client % partitions
        frames += [_produce(f"client-{client}", *at, batch), _fetch(f"client-{client}", *at, len(batch))]
    return frames


def _produce(client_id: str, topic: str, partition: int, batch: bytes) -> bytes:
    types = wire.request_types(*_PRODUCE)
    data = types.TopicProduceData(
        name=topic, partition_data=[types.PartitionProduceData(index=partition, records=batch)]
    )
    request = types.ProduceRequest(transactional_id=None, acks=1, timeout=30_000, topic_data=[data])
    return _encoded(_PRODUCE, request, client_id)


def _fetch(client_id: str, topic: str, partition: int, most_bytes: int) -> bytes:
    types = wire.request_types(*_FETCH)
    wanted = types.FetchPartition(
        partition=partition,
        current_leader_epoch=-1,
        fetch_offset=0,
        log_start_offset=-1,
        partition_max_bytes=most_bytes,
    )
    request = types.FetchRequest(
        replica_id=-1,
        max_wait=100,
        min_bytes=1,
        max_bytes=most_bytes,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[types.FetchTopic(topic=topic, partitions=[wanted])],
        forgotten_topics_data=[],
        rack_id="",
    )
    return _encoded(_FETCH, request, client_id)


def _encoded(api: tuple[int, int], request: Any, client_id: str) -> bytes:
    return wire.encode_request(Call(*api), request, client_id)
