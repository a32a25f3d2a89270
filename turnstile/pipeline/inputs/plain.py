"""Usual forms of times and numbers in a log's columns, and why a row is put aside: whole columns at once, by Arrow.

Whatever is not of a usual form raises Unplain: Spark, which reads many more, decides what it is.
"""

from typing import Any

import numpy
import pyarrow
import pyarrow.compute

from turnstile.pipeline.inputs.entities import IP, EntityType

DEFAULT_LISTENER = "PLAINTEXT"
_INTEGER = r"^\d{1,18}$"
_DECIMAL = r"^\d{1,12}(\.\d{1,6})?$"
_ISO = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?"
ARRIVALS = pyarrow.schema(
    [("ip", pyarrow.string()), ("opened_us", pyarrow.int64()), ("closed_us", pyarrow.int64()),
     ("listener", pyarrow.string()), ("bad", pyarrow.string())]
)  # fmt: skip


class Unplain(Exception):
    """Something in a log is of a form that only Spark reads."""


Column = Any
"""A pyarrow.ChunkedArray."""


def micros_of(column: Column) -> Column:
    """A time as epoch microseconds: timestamps, numbers since the epoch (s, ms, us, ns, by their size), ISO 8601 text."""
    kind = column.type
    if pyarrow.types.is_timestamp(kind):
        return column.cast(pyarrow.timestamp("us", kind.tz)).cast(pyarrow.int64())
    if pyarrow.types.is_integer(kind):
        return _scaled(column.cast(pyarrow.int64()))
    text = text_of(column)
    if _all(text, _INTEGER):
        return _scaled(text.cast(pyarrow.int64()))
    if _all(text, _DECIMAL):
        millionths = millionths_of(text)
        is_seconds = pyarrow.compute.less(millionths, 100_000_000_000_000_000)
        return pyarrow.compute.if_else(is_seconds, millionths, pyarrow.compute.divide(millionths, 1000))
    for zone, tz in (("$", None), (r"(Z|[+-]\d\d:\d\d)$", "UTC")):
        if _all(text, _ISO + zone):
            return text.cast(pyarrow.timestamp("us", tz)).cast(pyarrow.int64())
    raise Unplain


def millionths_of(column: Column) -> Column:
    """A number with up to six decimals, a million times as much."""
    if pyarrow.types.is_integer(column.type):
        return pyarrow.compute.multiply_checked(column.cast(pyarrow.int64()), 1_000_000)
    text = text_of(column)
    if not _all(text, _DECIMAL):
        raise Unplain
    chunks = []
    for chunk in text.cast(pyarrow.decimal128(26, 6)).chunks:
        words = numpy.frombuffer(chunk.buffers()[1], "i8")[2 * chunk.offset : 2 * (chunk.offset + len(chunk))]
        chunks.append(pyarrow.array(words[::2], mask=~chunk.is_valid().to_numpy(zero_copy_only=False)))
    return pyarrow.chunked_array(chunks, pyarrow.int64())


def whole_of(column: Column) -> Column:
    """A whole number."""
    if pyarrow.types.is_integer(column.type):
        return column.cast(pyarrow.int64())
    text = text_of(column)
    if not _all(text, r"^\d{1,9}$"):
        raise Unplain
    return text.cast(pyarrow.int64())


def text_of(column: Column) -> Column:
    """Text, also where it is coded."""
    kind = column.type.value_type if pyarrow.types.is_dictionary(column.type) else column.type
    if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind) or pyarrow.types.is_null(kind)):
        raise Unplain
    return column.cast(pyarrow.string())


def nothing(rows: int, kind: pyarrow.DataType) -> Column:
    """A column without any value."""
    return pyarrow.chunked_array([pyarrow.nulls(rows, kind)])


def concluded(
    ip: Column, opened_us: Column, closed_us: Column, bad: Column, *, listener: Column | None = None,
    port: Column | None = None, server_port: Column | None = None, only_port: int | None = None, by: EntityType = IP,
) -> pyarrow.Table:  # fmt: skip
    """ARRIVALS, with the reasons that hold for every format, as `connections.conclude` has them. `ip`: the entity."""
    rows = len(ip)
    if only_port is not None:
        if server_port is None:
            raise Unplain
        is_other = pyarrow.compute.fill_null(pyarrow.compute.not_equal(server_port, only_port), True)
        bad = pyarrow.compute.coalesce(bad, pyarrow.compute.if_else(is_other, f"not to port {only_port}", None))
    given = port if port is not None else nothing(rows, pyarrow.int64())
    is_no_port = pyarrow.compute.or_(pyarrow.compute.less(given, 0), pyarrow.compute.greater(given, 65535))
    for reason, is_it in (
        (by.missing, ip.is_null()),
        ("no time of opening", opened_us.is_null()),
        ("closed before it was opened", pyarrow.compute.less(closed_us, opened_us)),
        ("the port is not from 0 to 65535", is_no_port),
    ):
        is_sure = pyarrow.compute.fill_null(is_it, False)
        bad = pyarrow.compute.coalesce(bad, pyarrow.compute.if_else(is_sure, reason, None))
    names = listener if listener is not None else nothing(rows, pyarrow.string())
    names = pyarrow.compute.fill_null(names, DEFAULT_LISTENER)
    columns = zip((ip, opened_us, closed_us, names, bad), ARRIVALS, strict=True)
    return pyarrow.Table.from_arrays([each.cast(field.type) for each, field in columns], schema=ARRIVALS)


def later(start_us: Column, lasted_us: Column) -> Column:
    """The time `lasted_us` after `start_us`; null where either is."""
    return pyarrow.compute.add(start_us, lasted_us)


def _all(text: Column, pattern: str) -> bool:
    """True if each that is there is of that form."""
    return pyarrow.compute.all(pyarrow.compute.match_substring_regex(text, pattern)).as_py() is not False


def _scaled(numbers: Column) -> Column:
    """Numbers since the epoch, as `connections.micros` reads them. Raises Unplain for one before it."""
    span = pyarrow.compute.min_max(numbers).as_py()
    if span["min"] is not None and span["min"] < 0:
        raise Unplain
    values = numbers.fill_null(0).to_numpy()
    bounds = (values < 100_000_000_000, values < 100_000_000_000_000, values < 100_000_000_000_000_000)
    scaled = numpy.select(bounds, (values * 1_000_000, values * 1000, values), values // 1000)
    return pyarrow.chunked_array([pyarrow.array(scaled, mask=numbers.is_null().to_numpy())])
