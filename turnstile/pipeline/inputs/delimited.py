"""CSV and Parquet with a column mapping: `ip=src_ip,opened_at=start,closed_at=end` or `duration_s=seconds`.

Times may be timestamps, ISO 8601 text, or a number since the epoch, in seconds (with decimals), ms, us or ns. What isn't
mapped is taken under its own name.
"""

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from turnstile.pipeline.errors import PipelineError
from turnstile.pipeline.inputs.connections import COLUMNS, conclude, file_places, later, micros, only_port
from turnstile.pipeline.inputs.entities import IP, EntityType

DURATIONS = {"duration_s": 1, "duration_ms": 1000}
NAMES = (*COLUMNS, *DURATIONS, "server_port")
"""And `user`, of a log that is read by users."""
NAMED, LONGEST_NAME = 20, 40
"""The most columns of a file that a sentence names, and the most characters of each."""


def parse(
    tables: Sequence[DataFrame], columns: Mapping[str, str], *, port: int | None = None, by: EntityType = IP
) -> DataFrame:
    """Tables of files (any columns) -> connections with `raw`, `bad` and `block`. Raises PipelineError for a bad mapping."""
    return reduce(DataFrame.unionByName, (_parse(rows, columns, port, by) for rows in tables))


def _parse(rows: DataFrame, columns: Mapping[str, str], port: int | None, by: EntityType) -> DataFrame:
    names = tuple(dict.fromkeys((by.name, *NAMES)))
    unknown = [name for name in columns if name not in names]
    if unknown:
        raise PipelineError(f"--columns maps to {unknown[0]!r}; it can be one of {', '.join(names)}.")
    for name, column in columns.items():
        if column not in rows.columns:
            raise PipelineError(f"There is no column {column!r} for {name}; there are: {_listed(rows.columns)}.")
    given = {name: columns.get(name, name) for name in names if columns.get(name, name) in rows.columns}
    for name in (by.name, "opened_at"):
        if name not in given:
            raise PipelineError(
                f"No column gives {name}; say which does with --columns {name}=..., out of: {_listed(rows.columns)}."
            )

    if port is not None and "server_port" not in given:
        raise PipelineError("--port needs to know which column has the server's port: --columns server_port=...")

    def field(name: str, kind: str) -> Column:
        return F.col(f"`{given[name]}`").cast("string").try_cast(kind) if name in given else F.lit(None).cast(kind)

    opened_at = _time(rows, given["opened_at"])
    closed_at = _time(rows, given["closed_at"]) if "closed_at" in given else F.lit(None).cast("timestamp")
    for name, per_s in DURATIONS.items():
        if name in given:
            seconds = (F.col(f"`{given[name]}`").cast("string").try_cast("decimal(20,6)") / per_s).cast("string")
            closed_at = F.coalesce(closed_at, later(opened_at, seconds))
    bad = F.lit(None).cast("string")
    if "closed_at" in given:
        text = F.trim(F.col(f"`{given['closed_at']}`").cast("string"))
        bad = F.when(closed_at.isNull() & (text != ""), "the time of closing can't be read")
    raw = F.to_json(F.struct(*(F.col(f"`{name}`") for name in rows.columns)))
    parsed = rows.select(
        field(by.name, "string").alias("ip"),
        field("port", "int").alias("port"),
        opened_at.alias("opened_at"),
        closed_at.alias("closed_at"),
        field("listener", "string").alias("listener"),
        field("bytes", "long").alias("bytes"),
        field("server_port", "int").alias("server_port"),
        *file_places(), raw.alias("raw"), bad.alias("bad"),
    )  # fmt: skip
    return conclude(only_port(parsed, port), by)


def _listed(names: Sequence[str]) -> str:
    """The first NAMED of them, each not longer than a column's name is."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(name[:LONGEST_NAME] for name in names[:NAMED]) + more


def _time(rows: DataFrame, name: str) -> Column:
    """A column of times in any of the spellings above."""
    column = F.col(f"`{name}`")
    if rows.schema[name].dataType.typeName().startswith("timestamp"):
        return column.cast("timestamp")
    text = column.cast("string")
    return F.coalesce(micros(text), text.try_cast("timestamp"))
