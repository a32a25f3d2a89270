"""The parts of a journal: which there are, and which can't be read, and why."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow
import pyarrow.parquet

from broker.journal.schema import COLUMNS
from turnstile.pipeline.errors import PipelineError


class Unreadable(NamedTuple):
    """A part that can't be read: why, and whose events it had, if its name says so."""

    sentence: str
    broker: int | None


class Parts(NamedTuple):
    """Paths of the parts that are whole, how many events they have, and the parts that aren't."""

    whole: list[Path]
    events: int
    unreadable: list[Unreadable]


def parts_in(folders: Sequence[Path]) -> Parts:
    """The parts of a journal; of those of one name, the first folder's. Raises PipelineError when there is no such folder."""
    found: dict[str, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            raise PipelineError(f"{folder} is not a folder.")
        for path in sorted(folder.glob("*.parquet")):
            found.setdefault(path.name, path)
    whole, events, unreadable = [], 0, []
    for path in found.values():
        rows, why = _looked_at(path)
        if why:
            unreadable.append(Unreadable(f"{path} {why}; its events are missing.", broker_of(path)))
        else:
            whole.append(path)
            events += rows
    return Parts(whole, events, sorted(unreadable))


def broker_of(path: Path) -> int | None:
    """b0-s1-e000004-000000012345.parquet -> 0; the coordinator's begins with b-1."""
    name = re.match(r"b(-?\d+)-s-?\d+-e\d+-\d+\.", path.name)
    return int(name[1]) if name is not None else None


def _looked_at(path: Path) -> tuple[int, str]:
    """How many events a part has, and what is wrong with it, by its footer."""
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            names, rows = set(file.schema_arrow.names), file.metadata.num_rows
    except (OSError, pyarrow.ArrowException):
        return 0, "is not a whole Parquet file"
    missing = [column.name for column in COLUMNS if column.name not in names]
    if len(missing) == len(COLUMNS):
        return 0, "is no part of a journal"
    return rows, f"has no column {missing[0]}" if missing else ""
