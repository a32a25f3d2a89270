"""Record batches for tests: built as a client would, and read back without the code under test."""

import gzip
import struct
from collections.abc import Callable
from typing import NamedTuple

import cramjam
from crc32c import crc32c

COMPRESS: dict[int, Callable[[bytes], bytes]] = {
    1: gzip.compress,
    2: lambda data: bytes(cramjam.snappy.compress_raw(data)),
    3: lambda data: bytes(cramjam.lz4.compress(data)),
    4: lambda data: bytes(cramjam.zstd.compress(data)),
}
"""By the number of the codec in a batch's attributes."""


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes


def zigzag(value: int) -> bytes:
    """A varint as the protocol has it: small for small values of either sign."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def record(
    delta: int,
    key: bytes | None,
    value: bytes | None,
    timestamp_delta: int = 0,
    headers: tuple[tuple[bytes, bytes | None], ...] = (),
) -> bytes:
    body = b"\0" + zigzag(timestamp_delta) + zigzag(delta) + sized(key) + sized(value) + zigzag(len(headers))
    body += b"".join(sized(part) for header in headers for part in header)
    return zigzag(len(body)) + body


def sized(data: bytes | None) -> bytes:
    return zigzag(-1) if data is None else zigzag(len(data)) + data


def batch(
    *values: bytes,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    timestamps: list[int] | None = None,
    keys: list[bytes | None] | None = None,
    attributes: int = 0,
    magic: int = 2,
    count: int | None = None,
    payload: bytes | None = None,
) -> bytes:
    """A batch of `values`, compressed as `attributes` say; `payload` instead of their records, as it is."""
    values = values or (b"v",)
    keys = keys or [None] * len(values)
    timestamps = timestamps or [1_700_000_000_000] * len(values)
    base_timestamp = timestamps[0]
    records = b"".join(
        record(delta, key, value, timestamp - base_timestamp)
        for delta, (key, value, timestamp) in enumerate(zip(keys, values, timestamps, strict=True))
    )
    records = COMPRESS.get(attributes & 7, bytes)(records) if payload is None else payload
    count = len(values) if count is None else count
    checked = struct.pack(
        ">hiqqqhii", attributes, count - 1, base_timestamp, max(timestamps), producer_id, epoch, sequence, count
    )
    checked += records
    head = struct.pack(">qiibI", 0, 9 + len(checked), -1, magic, crc32c(checked))
    return head + checked


def read_zigzag(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at


def without_cut(data: bytes) -> bytes:
    """What a client reads of a Fetch: whole batches, up to one that is cut."""
    at = 0
    while at + 12 <= len(data) and (size := 12 + int.from_bytes(data[at + 8 : at + 12], "big")) <= len(data) - at:
        at += size
    return data[:at]


def records_of(data: bytes) -> list[Record]:
    """Every record of whole uncompressed batches."""
    found, at = [], 0
    while at < len(data):
        base_offset, length = struct.unpack_from(">qi", data, at)
        (base_timestamp,) = struct.unpack_from(">q", data, at + 27)
        (crc,) = struct.unpack_from(">I", data, at + 17)
        end = at + 12 + length
        assert end <= len(data), "a torn batch"
        assert crc == crc32c(data[at + 21 : end])
        at += 61
        while at < end:
            _, at = read_zigzag(data, at)
            timestamp, at = read_zigzag(data, at + 1)
            delta, at = read_zigzag(data, at)
            size, at = read_zigzag(data, at)
            key = None if size < 0 else data[at : at + size]
            at += max(size, 0)
            size, at = read_zigzag(data, at)
            value = data[at : at + max(size, 0)]
            _, at = read_zigzag(data, at + max(size, 0))
            found.append(Record(base_offset + delta, base_timestamp + timestamp, key, value))
    return found


def values_of(data: bytes) -> list[bytes]:
    return [each.value for each in records_of(data)]
