"""A log cleaned at once, and all that a client can read of a log."""

from typing import NamedTuple

from batches import read_zigzag
from crc32c import crc32c

from broker.storage import compression
from broker.storage.cleaning import Cleaning
from broker.storage.cleaning_filter import Steps
from broker.storage.log_to_clean import load_checkpoint, log_to_clean
from broker.storage.records import COMPRESSION, CONTROL, Batch, header_at
from broker.storage.shared_log import SharedLog

ALL = 1 << 20


class Read(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def finish(steps: Steps) -> None:
    for aside in steps:
        if aside is not None:
            aside()


def clean(log: SharedLog, now_ms: int, most_keys: int = 1 << 20) -> bool:
    """Whether there was something to do."""
    log.refresh()
    found = log_to_clean(log, load_checkpoint(log.directory, log.topic_id), now_ms)
    if found is None:
        return False
    finish(Cleaning(log, found, most_keys=most_keys, now_ms=now_ms).steps())
    return True


def batches_of(log: SharedLog, max_bytes: int = ALL) -> list[tuple[Batch, bytes]]:
    """What a reader from the start offset on gets, answer after answer; checksums hold, offsets rise."""
    log.refresh()
    found: list[tuple[Batch, bytes]] = []
    offset = log.start_offset
    while data := log.read(offset, max_bytes, True):
        at, before = 0, offset
        while at + 61 <= len(data):
            batch = header_at(data, at)
            if at + batch.size > len(data):
                break
            raw = data[at : at + batch.size]
            assert crc32c(raw[21:]) == batch.crc
            assert not found or batch.base_offset > found[-1][0].last_offset
            found.append((batch, raw))
            at, offset = at + batch.size, batch.last_offset + 1
        assert offset > before, "no progress"
    return found


def records_in(batch: Batch, raw: bytes) -> list[Read]:
    buffer, at = compression.records_of(raw, batch.attributes & COMPRESSION)
    data = bytes(buffer)
    found = []
    for _ in range(batch.record_count):
        length, at = read_zigzag(data, at)
        end = at + length
        timestamp, at = read_zigzag(data, at + 1)
        delta, at = read_zigzag(data, at)
        key, at = _sized(data, at)
        value, at = _sized(data, at)
        found.append(Read(batch.base_offset + delta, batch.base_timestamp + timestamp, key, value))
        at = end
    assert at == len(data)
    return found


def _sized(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = read_zigzag(data, at)
    return (None, at) if size < 0 else (data[at : at + size], at + size)


def read_all(log: SharedLog, max_bytes: int = ALL) -> list[Read]:
    """Every record from the start offset on, control records left out."""
    return [
        record
        for batch, raw in batches_of(log, max_bytes)
        if not batch.attributes & CONTROL
        for record in records_in(batch, raw)
        if record.offset >= log.start_offset
    ]
