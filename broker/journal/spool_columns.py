"""A spool segment's bytes -> columns. Whole columns at a time with numpy; no Python per event.

Needs numpy and pyarrow, so the processes that write the journal never import it.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy
import numpy.typing
import pyarrow

from broker.journal import spool
from broker.journal.schema import COLUMNS, KINDS, STRING_COLUMNS

ROW = spool.ROW
Array = numpy.typing.NDArray[Any]

ARROW_TYPES = {
    "timestamp": pyarrow.timestamp("us", tz="UTC"),
    "long": pyarrow.int64(),
    "int": pyarrow.int32(),
    "double": pyarrow.float64(),
    "string": pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
}
SCHEMA = pyarrow.schema([(column.name, ARROW_TYPES[column.type]) for column in COLUMNS])

_EVENT = numpy.dtype(
    [("kind", "u1"), ("flags", "u1"), ("port", "<u2")]
    + [(name, "<u2") for name in STRING_COLUMNS]
    + [
        ("throttle_ms", "<i4"),
        ("mono_ns", "<i8"),
        ("conn", "<i8"),
        ("bytes", "<i8"),
        ("limit_value", "<f8"),
        ("held_ms", "<f4"),
        ("version", "<u4"),
    ]
)
assert _EVENT.itemsize == ROW


def read_segment(path: Path) -> pyarrow.Table:
    """The events of a spool segment, a torn tail cut off. Raises spool.NotASpool, OSError."""
    return decode(path.read_bytes(), path.name)


def decode(data: bytes, name: str) -> pyarrow.Table:
    """A table of SCHEMA from a segment's bytes. Raises spool.NotASpool for bytes that are no segment."""
    header = spool.parse_header(data, name)
    rows = numpy.frombuffer(data, dtype=_EVENT, count=len(data) // ROW)[1:]
    return _table(header, *_split(rows, data))


class _Split(NamedTuple):
    """Events apart from definitions: the event rows, and the string of each id."""

    events: Array
    strings: list[str | None]


def _split(rows: Array, data: bytes) -> _Split:
    """See _Split.

    Bytes of a long definition may look like anything, so definitions are walked in order and their rows masked out
    before the other rows are looked at. They are few: one per distinct string and segment.
    """
    is_event = numpy.ones(len(rows), dtype=bool)
    strings: list[str | None] = [None]
    whole = len(rows)
    after = 0
    for found in numpy.flatnonzero(rows["kind"] == spool.DEFINE_KIND):
        index = int(found)
        if index < after:
            continue  # inside the definition before it
        start = (index + 1) * ROW
        _, number, length, inline = spool.DEFINE.unpack_from(data, start)
        further = -(-max(0, length - spool.INLINE) // ROW)
        after = index + 1 + further
        if after > len(rows):
            whole = index  # cut while it was being written
            break
        tail = data[start + ROW : start + ROW + max(0, length - spool.INLINE)]
        is_event[index:after] = False
        strings.extend([None] * (number + 1 - len(strings)))
        strings[number] = (inline[:length] + tail).decode("utf-8", "replace")
    is_event[whole:] = False
    unknown = numpy.flatnonzero(is_event & ((rows["kind"] == 0) | (rows["kind"] > len(KINDS))))
    if len(unknown):
        is_event[unknown[0] :] = False
    return _Split(rows[is_event], strings)


def _table(header: spool.Header, events: Array, strings: list[str | None]) -> pyarrow.Table:
    """Columns in SCHEMA's order."""
    count = len(events)
    flags = events["flags"]
    mono = events["mono_ns"].astype("i8")
    first = header.first_seq
    columns: dict[str, pyarrow.Array] = {
        "ts": _array((mono + header.wall_offset_ns) // 1000, ARROW_TYPES["timestamp"]),
        "mono_ns": _array(mono),
        "seq": _array(numpy.arange(first, first + count, dtype="i8")),
        "broker": _array(numpy.full(count, header.broker, dtype="i4")),
        "shard": _array(numpy.full(count, header.shard, dtype="i4")),
        "epoch": _array(numpy.full(count, header.epoch, dtype="i8")),
        "kind": _dictionary(events["kind"], [None, *KINDS]),
        "bytes": _number(events["bytes"], flags & spool.FLAG_BYTES == 0, "i8"),
        "throttle_ms": _number(events["throttle_ms"], flags & spool.FLAG_THROTTLE == 0, "i4"),
        "held_ms": _number(events["held_ms"], flags & spool.FLAG_HELD == 0, "f8"),
        "limit_value": _number(events["limit_value"], flags & spool.FLAG_LIMIT_VALUE == 0, "f8"),
    }
    for name, kind in (("conn", "i8"), ("port", "i4"), ("version", "i8")):
        columns[name] = _number(events[name], events[name] == 0, kind)
    for name in STRING_COLUMNS:
        columns[name] = _dictionary(events[name], strings)
    return pyarrow.Table.from_arrays([columns[column.name] for column in COLUMNS], schema=SCHEMA)


def _number(values: Array, is_null: Array, kind: str) -> pyarrow.Array:
    return _array(values.astype(kind), is_null=is_null)


def _array(
    values: Array, kind: pyarrow.DataType | None = None, *, is_null: numpy.typing.NDArray[numpy.bool_] | None = None
) -> pyarrow.Array:
    """As pyarrow.array(), which imports pandas to see whether it was given a pandas object: that is half the time in which a small
    journal becomes parts, and so of the end of a cluster."""
    validity = None if is_null is None else pyarrow.py_buffer(numpy.packbits(~is_null, bitorder="little"))
    kind = kind or pyarrow.from_numpy_dtype(values.dtype)
    return pyarrow.Array.from_buffers(kind, len(values), [validity, pyarrow.py_buffer(values)])


def _words(strings: list[str]) -> pyarrow.Array:
    words = [string.encode() for string in strings]
    ends = numpy.cumsum([0, *map(len, words)], dtype="i4")
    return pyarrow.StringArray.from_buffers(len(words), pyarrow.py_buffer(ends), pyarrow.py_buffer(b"".join(words)))


def _dictionary(ids: Array, strings: list[str | None]) -> pyarrow.Array:
    """Ids into `strings` as a dictionary array that holds only the strings in use; id 0 is null."""
    used = numpy.flatnonzero(numpy.bincount(ids, minlength=1))
    present = [(number, strings[number]) for number in used.tolist() if number < len(strings)]
    kept = [(number, string) for number, string in present if string is not None]
    codes = numpy.full(int(used[-1]) + 1 if len(used) else 1, -1, dtype="i4")
    codes[[number for number, _ in kept]] = numpy.arange(len(kept), dtype="i4")
    names = _words([string for _, string in kept])
    if not kept:
        return pyarrow.nulls(len(ids), ARROW_TYPES["string"])
    indices = codes[ids]
    return pyarrow.DictionaryArray.from_arrays(_array(indices, is_null=indices < 0), names)
