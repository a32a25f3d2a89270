"""The journal as a DataFrame: which parts can be read, their schema, and connections paired from their events."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from broker.journal.schema import COLUMNS
from turnstile.pipeline.errors import PipelineError

SCHEMA = ", ".join(f"{column.name} {column.type}" for column in COLUMNS)
INCARNATION = ("broker", "shard", "epoch")
_MAGIC = b"PAR1"


class Unreadable(NamedTuple):
    """A part that can't be read: why, and whose events it had, if its name says so."""

    sentence: str
    broker: int | None


class JournalEvents(NamedTuple):
    """A journal as read: its events, and each part that can't be."""

    events: DataFrame
    unreadable: list[Unreadable]


def read(
    spark: SparkSession, folders: Sequence[str | Path], *, until_ns: int | None = None, may_be_empty: bool = False
) -> JournalEvents:
    """Events of the parts in `folders` (of parts of one name, the first folder's), up to `until_ns` of mono_ns.

    Raises PipelineError when there is no such folder, or nothing in it that can be read.
    """
    remote = [str(folder) for folder in folders if "://" in str(folder)]
    if remote:
        events = spark.read.schema(SCHEMA).parquet(*remote)
        return JournalEvents(_until(events, until_ns), [])
    parts, unreadable = _parts([Path(folder) for folder in folders])
    if not parts and not may_be_empty:
        why = unreadable[0].sentence if unreadable else f"{folders[0]} has no journal in it (no .parquet parts)."
        raise PipelineError(why)
    events = spark.read.schema(SCHEMA).parquet(*parts) if parts else spark.createDataFrame([], SCHEMA)
    return JournalEvents(_until(events, until_ns), unreadable)


def _parts(folders: Sequence[Path]) -> tuple[list[str], list[Unreadable]]:
    """Paths of the parts that are whole, and the others."""
    found: dict[str, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            raise PipelineError(f"{folder} is not a folder.")
        for path in sorted(folder.glob("*.parquet")):
            found.setdefault(path.name, path)
    broken = {path for path in found.values() if not _is_whole(path)}
    unreadable = [
        Unreadable(f"{path} is not a whole Parquet file; its events are missing.", _broker_of(path))
        for path in sorted(broken)
    ]
    return [str(path) for path in found.values() if path not in broken], unreadable


def _broker_of(path: Path) -> int | None:
    """b0-s1-e000004-000000012345.parquet -> 0; the coordinator's begins with b-1."""
    name = re.match(r"b(-?\d+)-s-?\d+-e\d+-\d+\.", path.name)
    return int(name[1]) if name is not None else None


def _is_whole(path: Path) -> bool:
    """Whether a Parquet file begins and ends as one: a cheap look that finds what was cut off."""
    try:
        with path.open("rb") as file:
            head = file.read(4)
            file.seek(-4, 2)
            return head == _MAGIC and file.read(4) == _MAGIC
    except OSError:
        return False


def _until(events: DataFrame, until_ns: int | None) -> DataFrame:
    return events if until_ns is None else events.where(F.col("mono_ns") <= until_ns)


def pairs(events: DataFrame) -> DataFrame:
    """One row per connection that was admitted or closed.

    INCARNATION, conn, ip, listener, port, version, admitted_ns, closed_ns (null: not seen), admitted_at, closed_at, bytes,
    admissions, closes (how many events of each there are; 1 and at most 1 in a sound journal). A close that names another
    address, listener or port than the admission is a row of its own: one that was never admitted.
    """
    is_admitted, is_closed = F.col("kind") == "admitted", F.col("kind") == "closed"
    of_connections = events.where(is_admitted | is_closed)
    # Strings are keys, for an aggregate with strings among its values has to sort every row.
    return of_connections.groupBy(*INCARNATION, "conn", "ip", "listener", "port").agg(
        F.max("version").alias("version"),
        F.min(F.when(is_admitted, F.col("mono_ns"))).alias("admitted_ns"),
        F.max(F.when(is_closed, F.col("mono_ns"))).alias("closed_ns"),
        F.min(F.when(is_admitted, F.col("ts"))).alias("admitted_at"),
        F.max(F.when(is_closed, F.col("ts"))).alias("closed_at"),
        F.max("bytes").alias("bytes"),
        F.count_if(is_admitted).alias("admissions"),
        F.count_if(is_closed).alias("closes"),
    )
