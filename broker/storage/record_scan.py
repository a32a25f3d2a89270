"""Walks over the records of a batch: their structure, what their timestamps span, and which have no key.

A record is: length, attributes (one byte), timestamp delta, offset delta, key length, key, value length, value, number of
headers, and for each header key length, key, value length, value; all numbers are zigzag varints of 32 bits, but for the
timestamp delta of 64. A negative length of a key or value stands for null.
Source: https://kafka.apache.org/documentation/#record; DefaultRecord.readFrom.

One record costs some 400 ns in Python. Where many records in a row have the same lengths, they are checked column by column
instead (`_like`): the bytes at one place of all of them are one slice. A batch that is like an earlier one from its first
record to its last is checked faster still (uniform_records.py).
"""

from typing import NamedTuple

from broker.storage.uniform_records import (
    FIRST,
    ONE_BYTE_OFFSETS,
    SECOND,
    TWO_BYTE_OFFSETS,
    RecordLayout,
    UniformRecords,
)
from broker.wire.primitives import Buffer

_LEAST_RUN = 8
_NONE_ALIKE = (0, 0, 0)
_ODD = bytes(range(1, 256, 2))
_EVEN_LOW = bytes(range(128, 256, 2))  # first bytes, of two, of deltas that are not negative

_uniform = UniformRecords()


class MalformedRecords(ValueError):
    """The records contradict their lengths, their number or their order."""


class Summary(NamedTuple):
    """`earliest`, `latest`: timestamp deltas in ms. `without_key`: indexes of records. `exact`: all were looked at."""

    earliest: int
    latest: int
    without_key: list[range]
    exact: bool


_Layout = tuple[int, int, int, int, int, int, int, int]
"""The fields of a RecordLayout, which takes longer to make."""


def scan(buffer: Buffer, position: int, count: int, most: int) -> Summary:
    """Looks at `count` records from `position` to the end of the buffer, at most `most` of them one by one.

    Raises MalformedRecords.
    """
    uniform = _uniform.match(buffer, position, count) if count <= most else None
    if uniform is not None:
        earliest, latest, has_keys = uniform
        return Summary(earliest, latest, [] if has_keys else [range(count)], exact=True)
    return _walk(buffer, position, count, most)


def _walk(buffer: Buffer, position: int, count: int, most: int) -> Summary:
    records_at = position
    uniform: _Layout | None = None  # the layout of the first record, if it has no headers
    earliest, latest = 1 << 63, -(1 << 63)
    without_key: list[range] = []
    index, checked, alike = 0, min(count, most), True
    while index < checked:
        start = position
        try:
            layout, timestamp, has_key, has_headers = _record_at(buffer, start, index)
        except IndexError:
            raise MalformedRecords(f"Record {index} ends too early.") from None
        position = start + layout[-1]
        if not index and not has_headers:
            uniform = layout
        if timestamp < earliest:
            earliest = timestamp
        if timestamp > latest:
            latest = timestamp
        index += 1
        run = 0
        if alike and not has_headers and checked - index >= _LEAST_RUN:
            run, run_earliest, run_latest = _like(buffer, start, layout, index, checked - index)
            if run:
                earliest, latest = min(earliest, run_earliest), max(latest, run_latest)
                position += run * layout[-1]
            else:
                alike = False
        if not has_key:
            without_key.append(range(index - 1, index + run))
        index += run
    if index == count and position != len(buffer):
        raise MalformedRecords("There is more in the batch than its records.")
    if uniform is not None and index == count >= _LEAST_RUN:
        _uniform.learn(buffer, records_at, count, RecordLayout(*uniform))
    return Summary(earliest, latest, without_key, index == count)


def _record_at(buffer: Buffer, start: int, index: int) -> tuple[_Layout, int, bool, bool]:
    """(layout, timestamp delta, whether it has a key, headers) of record `index`. Raises MalformedRecords, IndexError.

    The one-byte varints, which most are, are read in place: calling `varint` for each would double the time.
    """
    length, at = varint(buffer, start)
    end = at + length
    if length < 0 or end > len(buffer):
        raise MalformedRecords(f"Record {index} is longer than its batch.")
    body_at = at - start
    at += 1
    timestamp = buffer[at]
    if timestamp < 128:
        timestamp, at = (timestamp >> 1) ^ -(timestamp & 1), at + 1
    else:
        timestamp, at = varint(buffer, at, 64)
    offset_at = at - start
    offset, at = varint(buffer, at)
    if offset != index:
        raise MalformedRecords(f"Record {index} has offset delta {offset}.")
    key_at = at - start
    key = buffer[at]
    if key < 128:
        key, at = (key >> 1) ^ -(key & 1), at + 1
    else:
        key, at = varint(buffer, at)
    key_end = at - start
    if key > 0:
        at += key
    value_at = at - start
    value, at = varint(buffer, at)
    value_end = at - start
    if value > 0:
        at += value
    headers_at = at - start
    headers = buffer[at]
    at += 1
    if headers:
        headers, at = varint(buffer, at - 1)
        at = _behind_headers(buffer, at, headers, end)
    if at != end:
        raise MalformedRecords(f"The lengths in record {index} contradict each other.")
    layout = (body_at, offset_at, key_at, key_end, value_at, value_end, headers_at, end - start)
    return layout, timestamp, key >= 0, headers != 0


def _behind_headers(buffer: Buffer, at: int, count: int, end: int) -> int:
    """The end of the headers of a record that ends at `end`."""
    if not 0 <= count <= end - at:
        raise MalformedRecords(f"A record can't have {count} headers.")
    for _ in range(count):
        key, at = varint(buffer, at)
        value, at = varint(buffer, at + max(key, 0))
        at += max(value, 0)
        if key < 0 or at > end:
            raise MalformedRecords("The lengths in a header contradict each other.")
    return at


def _like(buffer: Buffer, start: int, layout: _Layout, index: int, most: int) -> tuple[int, int, int]:
    """The number of records behind the one at `start` that have its layout, and their earliest and latest timestamp delta.

    0 if columns alone don't show that. `index`: the index of the first of them; `most`: how many records are left.
    """
    body_at, offset_at, key_at, key_end, value_at, value_end, headers_at, size = layout
    if offset_at - body_at > 3 or key_at - offset_at > 2:
        return _NONE_ALIKE
    first = start + size
    two_bytes = key_at - offset_at == 2
    count = min(most, (TWO_BYTE_OFFSETS if two_bytes else ONE_BYTE_OFFSETS) - index, (len(buffer) - first) // size)
    lengths = bytes(buffer[first : first + count * size : size])
    count -= len(lengths.lstrip(lengths[:1]))
    if count < _LEAST_RUN or lengths[0] != buffer[start]:
        return _NONE_ALIKE
    end = first + count * size
    if not isinstance(buffer, bytes):
        buffer = bytes(buffer[start:end])
        start, first, end = 0, size, len(buffer)
    same = [headers_at, *range(key_at, key_end), *range(value_at, value_end), *range(1, body_at)]
    for at in same:
        if buffer[first + at : end : size].count(buffer[start + at]) != count:
            return _NONE_ALIKE
    at = first + offset_at
    if buffer[at:end:size] != FIRST[index : index + count]:
        return _NONE_ALIKE
    if two_bytes and buffer[at + 1 : end : size] != SECOND[index : index + count]:
        return _NONE_ALIKE
    deltas = buffer[first + body_at + 1 : end : size]
    if offset_at - body_at == 2:
        if deltas.count(0) == count:
            return count, 0, 0
        if not deltas.isascii() or deltas.translate(None, _ODD) != deltas:  # an odd one is negative
            return _NONE_ALIKE
        return count, min(deltas) >> 1, max(deltas) >> 1
    high = buffer[first + body_at + 2 : end : size]
    if not high.isascii() or deltas.translate(None, _EVEN_LOW):
        return _NONE_ALIKE
    pairs = set(zip(high, deltas, strict=True))
    (h, low), (most_h, most_low) = min(pairs), max(pairs)
    return count, (h << 7 | low & 0x7F) >> 1, (most_h << 7 | most_low & 0x7F) >> 1


def varint(buffer: Buffer, at: int, bits: int = 32) -> tuple[int, int]:
    """A zigzag varint: (value, next offset). Raises IndexError at the end of the buffer, MalformedRecords over `bits`."""
    value = buffer[at]
    if value < 128:
        return (value >> 1) ^ -(value & 1), at + 1
    value = shift = 0
    while shift < bits:
        byte = buffer[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            if value >> bits:
                break
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    raise MalformedRecords(f"A number of a record has more than {bits} bits.")
