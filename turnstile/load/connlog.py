"""Connection logs as scenarios: Zeek's conn.log (TSV), or a CSV with opened_at, closed_at and ip; compressed by gzip or not.

A small file may hold any number of lines, so there is a bound to what is read: MOST connections, and MOST_BAD lines in a row
that are none.

Addresses of the log are mapped into the source range in the order in which they first open a connection, so the same
log and the same range always give the same connections; addresses wrap around where the range is the smaller one.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from array import array
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import NamedTuple, TextIO

from turnstile.load.sources import Sources
from turnstile.load.spec import ClientGroup, LoadScenario, RecordedConnection, SpecInvalid

LONGEST = 1 << 20
"""Characters of a line: far more than a log has."""
TOO_LONG = "(too long)\n"
MOST = 2_000_000
"""Connections of a log; so many take about half a gigabyte while they are sorted."""
MOST_BAD = 1_000_000
_GZIP = b"\x1f\x8b"
_ZEEK_FIELDS = ("ts", "id.orig_h", "duration")


def replay(path: Path, sources: Sources, *, speed: float = 1.0) -> LoadScenario:
    """A scenario that opens and holds connections as the log did, `speed` times as fast.

    A connection that the log has no end for is closed at once. Lines that can't be read are left out, and the title
    says how many. Raises SpecInvalid when the file is no such log, or has no connection in it.
    """
    if speed <= 0:
        raise SpecInvalid("speed must be more than 0.")
    rows, bad = _read(path)
    if not rows:
        raise SpecInvalid(f"{path} has no connections in it.")
    rows.sort()
    numbers: dict[str, int] = {}
    at_s, hold_s, address = array("d"), array("d"), array("L")
    for opened, held, ip in rows:
        at_s.append((opened - rows[0][0]) / speed)
        hold_s.append(held / speed)
        address.append(numbers.setdefault(ip, len(numbers)))
    title = f"{len(rows):,} connections of {len(numbers):,} addresses from {path.name}, {speed:g} times as fast"
    title += f", {bad:,} lines left out" if bad else ""
    title += f"; {len(numbers):,} addresses share {len(sources):,} sources" if len(numbers) > len(sources) else ""
    group = ClientGroup(
        name="log", clients=len(rows), sources=sources, recorded=RecordedConnection(at_s, hold_s, address)
    )
    return LoadScenario(name=path.name, title=title, groups=(group,))


class _LogRows(NamedTuple):
    """(opened, held, ip) per line, in seconds, and how many lines could not be read."""

    rows: list[tuple[float, float, str]]
    bad: int


def _read(path: Path) -> _LogRows:
    """Raises SpecInvalid for what is no such log."""
    rows, bad, good_at = [], 0, 0
    try:
        with _opened(path) as file:
            lines = _lines(file)
            first = next(lines, "")
            lines = chain([first], lines)
            for row in _zeek(lines, path) if first.startswith("#separator") else _csv(lines, path):
                if row is None or not all(map(isfinite, row[:2])):
                    bad += 1
                    if bad - good_at > MOST_BAD:
                        raise SpecInvalid(
                            f"{path} has {MOST_BAD:,} lines in a row without a connection: it is not such a log."
                        )
                else:
                    good_at = bad
                    rows.append(row)
                    if len(rows) > MOST:
                        raise SpecInvalid(
                            f"{path} has more than {MOST:,} connections, the most that are replayed: cut it."
                        )
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise SpecInvalid(f"{path} is cut off or damaged; decompress what there is of it and replay that.") from None
    except OSError as error:
        raise SpecInvalid(f"{path} can't be read: {error.strerror}.") from None
    return _LogRows(rows, bad)


def _opened(path: Path) -> TextIO:
    """The text of a file, of a compressed one decompressed as it is read. Raises OSError."""
    with open(path, "rb") as file:
        is_gzip = file.read(len(_GZIP)) == _GZIP
    if is_gzip:
        return gzip.open(path, "rt", newline="", encoding="utf-8", errors="replace")
    return open(path, newline="", encoding="utf-8", errors="replace")


def _lines(file: TextIO) -> Iterator[str]:
    """The lines of a file. One that is too long for a log is TOO_LONG instead, and never in memory as a whole."""
    while line := file.readline(LONGEST):
        if len(line) == LONGEST and not line.endswith("\n"):
            while (rest := file.readline(LONGEST)) and not rest.endswith("\n"):
                pass
            line = TOO_LONG
        yield line


def _zeek(lines: Iterator[str], path: Path) -> Iterator[tuple[float, float, str] | None]:
    columns: list[int] = []
    for line in lines:
        if line.startswith("#fields"):
            names = line.rstrip("\n").split("\t")[1:]
            if not set(_ZEEK_FIELDS) <= set(names):
                raise SpecInvalid(f"{path} is a Zeek log without {', '.join(_ZEEK_FIELDS)}: is it conn.log?")
            columns = [names.index(name) for name in _ZEEK_FIELDS]
        elif not line.startswith("#"):
            words = line.rstrip("\n").split("\t")
            try:
                ts, ip, duration = (words[column] for column in columns)
                yield float(ts), 0.0 if duration == "-" else float(duration), ip
            except (ValueError, IndexError):
                yield None


def _csv(lines: Iterator[str], path: Path) -> Iterator[tuple[float, float, str] | None]:
    reader = csv.DictReader(lines)
    try:
        names = set(reader.fieldnames or ())
    except csv.Error:
        names = set()
    if not {"opened_at", "closed_at", "ip"} <= names:
        raise SpecInvalid(f"{path} is neither a Zeek conn.log nor a CSV with opened_at, closed_at and ip.")
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:  # a field of more than 131,072 characters, as after a quote that nothing ends
            yield None
            continue
        try:
            opened = _seconds(row["opened_at"])
            closed = _seconds(row["closed_at"]) if row["closed_at"] else opened
            yield (opened, max(0.0, closed - opened), row["ip"]) if row["ip"] else None
        except (ValueError, TypeError):
            yield None


def _seconds(text: str) -> float:
    """Seconds since 1970, given as that or as an ISO time (UTC where it names no zone)."""
    try:
        return float(text)
    except ValueError:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
