"""Zeek's conn.log, HAProxy's TCP log and CSV, as Arrow tables of this process."""

import gzip
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from csv import reader
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
import pyarrow.compute
import pyarrow.csv

from turnstile.pipeline.inputs.entities import EntityType
from turnstile.pipeline.inputs.plain import (
    Column,
    Unplain,
    concluded,
    later,
    micros_of,
    millionths_of,
    nothing,
    text_of,
    whole_of,
)
from turnstile.pipeline.inputs.plain_tables import mapped, wanted

_ZEEK = ("ts", "id.orig_h", "id.orig_p", "id.resp_p", "proto", "duration")
_FIELDS = b"#fields"
_NONE = ["-", "(empty)", ""]
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_TIME = r"\[(\d\d)/(\w{3})/(\d{4}):(\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?\]"
_HAPROXY = re.compile(rf"(?:^|\s)(\S+):(\d+) {_TIME} (\S+?)~? \S+ -?\d+/-?\d+/\+?(-?\d+) \+?\d+ ", re.ASCII)


def zeek(
    files: Sequence[Path], columns: Mapping[str, str], port: int | None, by: EntityType
) -> Iterator[pyarrow.Table]:
    """ARRIVALS of each file. Raises Unplain."""
    header = None
    for file in files:
        content = _content(file)
        if not content.strip():
            continue
        if content.lstrip().startswith(b"{"):
            if header is not None:
                raise Unplain
            yield _of_zeek(*_objects(content), port)
            continue
        names, rest = _header(content)
        if header not in (None, names):
            raise Unplain
        header = names
        yield _of_zeek(*_cells(rest, names), port)


def csv(files: Sequence[Path], columns: Mapping[str, str], port: int | None, by: EntityType) -> Iterator[pyarrow.Table]:
    """ARRIVALS of each file. Raises Unplain."""
    for file in files:
        content = _content(file)
        if not content.isascii() or b"\\" in content or b"\r" in content.replace(b"\r\n", b""):
            raise Unplain
        quotes = content.count(b'"')
        if quotes and quotes != sum(map(content.count, (b',"', b'\n"', b'",', b'"\n', b'"\r\n'))) + content.startswith(
            b'"'
        ):
            raise Unplain  # a line end inside a cell, or the last line has none
        names = next(reader([content[: content.find(b"\n") + 1].decode().rstrip("\r\n")]))
        options = pyarrow.csv.ParseOptions(quote_char='"' if quotes else False, double_quote=False)
        yield mapped(
            _table(content, wanted(names, columns, by), options, skip=1, names=names, none=[""]), columns, port, by
        )


def haproxy(
    files: Sequence[Path], columns: Mapping[str, str], port: int | None, by: EntityType
) -> Iterator[pyarrow.Table]:
    """ARRIVALS of each file. Raises Unplain."""
    if port is not None:
        raise Unplain
    for file in files:
        rows: list[tuple[Any, ...]] = []
        for line in _content(file).decode().split("\n"):
            if not line.strip(" \r"):
                continue
            found = _HAPROXY.search(line)
            if found is None:
                rows.append((None, None, None, None, None, "not a line of HAProxy's TCP log"))
                continue
            ip, number, day, month, year, clock, fraction, listener, lasted_ms = found.groups()
            opened_us = _second(day, month, year, clock) * 1_000_000 + int((fraction or "0").ljust(6, "0"))
            rows.append((ip, int(number), opened_us, opened_us + max(int(lasted_ms), 0) * 1000, listener, None))
        kinds = [pyarrow.string(), *[pyarrow.int64()] * 3, pyarrow.string(), pyarrow.string()]
        ip, number, opened, closed, listener, bad = (
            pyarrow.chunked_array([pyarrow.array(each, kind)])
            for each, kind in zip(zip(*rows, strict=True), kinds, strict=True)
        )
        yield concluded(ip, opened, closed, bad, listener=listener, port=number)


@lru_cache(100_000)
def _second(day: str, month: str, year: str, clock: str) -> int:
    """Epoch seconds. Raises Unplain for what is no time."""
    try:
        hour, minute, second = map(int, clock.split(":"))
        nth, rest = divmod(_MONTHS.index(month), 3)
        if rest:
            raise Unplain
        return int(datetime(int(year), nth + 1, int(day), hour, minute, second, tzinfo=UTC).timestamp())
    except ValueError:
        raise Unplain from None


def _content(file: Path) -> bytes:
    content = file.read_bytes()
    return gzip.decompress(content) if file.suffix == ".gz" else content


class _Headed(NamedTuple):
    """The fields, and what follows the lines that begin with # at the top."""

    names: list[str]
    rest: bytes


def _header(content: bytes) -> _Headed:
    """Raises Unplain without fields."""
    names, place = None, 0
    while content[place : place + 1] == b"#":
        end = content.find(b"\n", place) + 1 or len(content)
        if content.startswith(_FIELDS, place):
            if names is not None:
                raise Unplain
            names = content[place:end].decode().rstrip("\r\n").split("\t")[1:]
        place = end
    if (
        names is None
        or b"\r" in content
        or any(name not in names for name in _ZEEK[:2])
        or len(set(names)) < len(names)
    ):
        raise Unplain
    return _Headed(names, content[place:])


class _ZeekFields(NamedTuple):
    """Fields of _ZEEK as text, and why other lines are put aside, with how many."""

    table: pyarrow.Table
    wrong: dict[str, int]


def _cells(content: bytes, names: Sequence[str]) -> _ZeekFields:
    """The fields of lines with tabs."""
    wrong: dict[str, int] = {}

    def other(row: pyarrow.csv.InvalidRow) -> str:
        if row.text is None or row.text.startswith(("#fields", "{", " ")) or not row.text.strip():
            return "error"
        if not row.text.startswith("#"):
            reason = f"{row.actual_columns} fields instead of {len(names)}"
            wrong[reason] = wrong.get(reason, 0) + 1
        return "skip"

    options = pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False, invalid_row_handler=other)
    if not content.strip():
        raise Unplain
    read = _table(content, [name for name in _ZEEK if name in names], options, skip=0, names=names, none=_NONE)
    if b"\n#fields" in content:
        raise Unplain
    return _ZeekFields(read, wrong)


def _table(
    content: bytes, included: Sequence[str], options: pyarrow.csv.ParseOptions, *,
    skip: int, names: Sequence[str], none: list[str],
) -> pyarrow.Table:  # fmt: skip
    convert = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(included, pyarrow.string()), include_columns=list(included), null_values=none,
        strings_can_be_null=True, check_utf8=True,
    )  # fmt: skip
    # One thread: a handler of other rows is asked in their order then.
    reading = pyarrow.csv.ReadOptions(use_threads=False, column_names=list(names), skip_rows=skip, block_size=16 << 20)
    return pyarrow.csv.read_csv(io.BytesIO(content), reading, options, convert)


def _objects(content: bytes) -> _ZeekFields:
    """The fields of JSON lines."""
    columns: dict[str, list[Any]] = {name: [] for name in _ZEEK}
    wrong: dict[str, int] = {}
    for line in content.decode().split("\n"):
        text = line.strip(" \r")
        if not text:
            continue
        if text.startswith("#"):
            raise Unplain
        try:
            row = json.loads(text, parse_float=str, parse_int=str)
        except ValueError:
            wrong["not a JSON object"] = wrong.get("not a JSON object", 0) + 1
            continue
        if not isinstance(row, dict):
            raise Unplain
        for name, values in columns.items():
            values.append(row.get(name))
    if any(not isinstance(value, str | None) for values in columns.values() for value in values):
        raise Unplain
    table = pyarrow.table({name: pyarrow.array(values, pyarrow.string()) for name, values in columns.items()})
    return _ZeekFields(table, wrong)


def _of_zeek(fields: pyarrow.Table, wrong: Mapping[str, int], port: int | None) -> pyarrow.Table:
    """ARRIVALS of _ZEEK's fields."""
    rows = fields.num_rows

    def field(name: str) -> Column:
        return text_of(fields[name]) if name in fields.schema.names else nothing(rows, pyarrow.string())

    opened_us = micros_of(field("ts"))
    lasted = later(opened_us, millionths_of(field("duration")))
    is_other = pyarrow.compute.not_equal(pyarrow.compute.ascii_lower(field("proto")), "tcp")
    bad = pyarrow.compute.if_else(pyarrow.compute.fill_null(is_other, False), "not TCP", None)
    made = concluded(
        field("id.orig_h"), opened_us, pyarrow.compute.coalesce(lasted, opened_us), bad,
        port=whole_of(field("id.orig_p")), server_port=whole_of(field("id.resp_p")), only_port=port,
    )  # fmt: skip
    reasons = [reason for reason, count in wrong.items() for _ in range(count)]
    aside = {name: pyarrow.nulls(len(reasons), made.schema.field(name).type) for name in made.schema.names}
    return pyarrow.concat_tables([made, pyarrow.table({**aside, "bad": pyarrow.array(reasons, pyarrow.string())})])
