"""The parts of a journal: which there are, and which can't be read, and why."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow
import pyarrow.parquet

from broker.journal.schema import COLUMNS
from turnstile.pipeline.errors import NoInput

PART = ".parquet"


class Unreadable(NamedTuple):
    """A part that can't be read: why, and whose events it had, if its name says so."""

    sentence: str
    broker: int | None


class Span(NamedTuple):
    """Some rows of a part: their number, and their least and greatest `mono_ns`."""

    rows: int
    low: int
    high: int


class Parts(NamedTuple):
    """Places of the parts that are whole, how many events they have, and when, and the parts that aren't."""

    whole: list[str]
    events: int
    unreadable: list[Unreadable]
    spans: list[Span]


class Footer(NamedTuple):
    """The footer of a Parquet file. `spans`: of its row groups, those that say so."""

    rows: int
    columns: frozenset[str]
    spans: Sequence[Span] = ()


def parts_in(folders: Sequence[Path]) -> Parts:
    """The parts of a journal; of those of one name, the first folder's. Raises NoInput when there is no such folder."""
    found: dict[str, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            raise NoInput(f"{folder} is not a folder.")
        for path in sorted(folder.glob(f"*{PART}")):
            found.setdefault(path.name, path)
    return looked_at(map(str, found.values()), _footer)


def looked_at(places: Iterable[str], footer: Callable[[str], Footer | None]) -> Parts:
    """Parts by their footers; None is that of a file that is not whole."""
    whole, events, unreadable = [], 0, []
    spans: list[Span] = []
    for place in places:
        end = footer(place)
        if why := _fault(end):
            unreadable.append(Unreadable(f"{place} {why}; its events are missing.", broker_of(place)))
        else:
            assert end is not None  # that would be a fault
            whole.append(place)
            events += end.rows
            spans += end.spans
    return Parts(whole, events, sorted(unreadable), spans)


def name_of(place: str) -> str:
    """The last part of a path or URI."""
    return place.rpartition("/")[2]


def broker_of(place: str) -> int | None:
    """b0-s1-e000004-000000012345.parquet -> 0; the coordinator's begins with b-1."""
    name = re.match(r"b(-?\d+)-s-?\d+-e\d+-\d+\.", name_of(place))
    return int(name[1]) if name is not None else None


def _footer(place: str) -> Footer | None:
    try:
        with pyarrow.parquet.ParquetFile(place) as file:
            groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
            return Footer(file.metadata.num_rows, frozenset(file.schema_arrow.names), [*_spans(groups)])
    except (OSError, pyarrow.ArrowException):
        return None


def _spans(groups: Iterable[pyarrow.parquet.RowGroupMetaData]) -> Iterator[Span]:
    for group in groups:
        for number in range(group.num_columns):
            column = group.column(number)
            said = column.statistics if column.path_in_schema == "mono_ns" else None
            if said is not None and said.has_min_max:
                yield Span(group.num_rows, said.min, said.max)


def _fault(end: Footer | None) -> str:
    """The faults of a part; none when it is whole."""
    if end is None:
        return "is not a whole Parquet file"
    missing = [column.name for column in COLUMNS if column.name not in end.columns]
    if len(missing) == len(COLUMNS):
        return "is not a part of a journal"
    return f"has no column {missing[0]}" if missing else ""
