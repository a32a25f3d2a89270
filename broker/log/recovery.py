"""A log's segments and producers, as its files tell after whatever ended the last process.

Closed segments come from their sidecars. The last one is scanned whole, checksums and all, from the state of the
producers that was saved when it began; where that is missing the scan starts further back.
"""

import contextlib
import os
import struct
from typing import NamedTuple

import msgpack
from crc32c import crc32c

from broker.log.files import Files, replace
from broker.log.producers import Producers
from broker.log.records import Batch
from broker.log.segment import LogSegment


class Recovered(NamedTuple):
    segments: list[LogSegment]
    producers: Producers
    torn_bytes: int  # cut off


def recover(directory: str, files: Files) -> Recovered:
    """Reads the log in `directory`. Raises OSError."""
    bases = sorted(int(name[:-4]) for name in os.listdir(directory) if name.endswith(".log"))
    segments = [LogSegment(directory, base, files) for base in bases]
    producers, scan_from = Producers(), 0
    for index in range(len(segments) - 1, -1, -1):
        snapshot = load_snapshot(segments[index])
        if snapshot is not None:
            producers, scan_from = snapshot, index
            break

    def heed(batch: Batch) -> None:
        if batch.producer_id >= 0:
            producers.record(batch, batch.base_offset)

    torn_bytes = 0
    for index, segment in enumerate(segments):
        closed = index + 1 < len(segments)
        if not (closed and index < scan_from and segment.load_sidecar()):
            torn_bytes += segment.recover(heed if index >= scan_from else lambda batch: None)
        if closed and segment.next_offset != segments[index + 1].base_offset:
            torn_bytes += _give_up(segments, index + 1)
            break
    return Recovered(segments, producers, torn_bytes)


def _give_up(segments: list[LogSegment], start: int) -> int:
    """Deletes what lies behind damage in the middle: it can't be kept without a gap in the offsets."""
    lost = sum(os.stat(segment.path).st_size for segment in segments[start:])
    for segment in segments[start:]:
        segment.delete()
        delete_snapshot(segment)
    del segments[start:]
    return lost


def snapshot_path(segment: LogSegment) -> str:
    return segment.path.removesuffix("log") + "producers"


def save_snapshot(segment: LogSegment, producers: Producers) -> None:
    """Keeps what is known of the producers as `segment` begins. Raises OSError."""
    body = msgpack.packb(producers.dump())
    replace(snapshot_path(segment), struct.pack(">I", crc32c(body)) + body)


def load_snapshot(segment: LogSegment) -> Producers | None:
    """None if there is none, or a damaged one."""
    try:
        with open(snapshot_path(segment), "rb") as file:
            raw = file.read()
    except FileNotFoundError:
        return None
    if len(raw) < 4 or crc32c(raw[4:]) != int.from_bytes(raw[:4], "big"):
        return None
    return Producers.load(msgpack.unpackb(raw[4:]))


def delete_snapshot(segment: LogSegment) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(snapshot_path(segment))
