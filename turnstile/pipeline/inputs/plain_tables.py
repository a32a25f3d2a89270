"""CSV and Parquet with a column mapping (delimited.py), as Arrow tables of this process."""

from collections.abc import Mapping, Sequence

import pyarrow
import pyarrow.compute

from turnstile.pipeline.inputs.entities import EntityType
from turnstile.pipeline.inputs.plain import (
    Column,
    Unplain,
    concluded,
    micros_of,
    millionths_of,
    nothing,
    text_of,
    whole_of,
)

NEEDED = ("port", "opened_at", "closed_at", "listener", "duration_s", "duration_ms", "server_port")
_MAPPED = ("ip", *NEEDED, "bytes", "source")


def wanted(names: Sequence[str], columns: Mapping[str, str], by: EntityType) -> list[str]:
    """The columns of a table that are read. Raises Unplain where the mapping does not fit them."""
    given = {name: columns.get(name, name) for name in (by.name, *NEEDED)}
    is_fitting = all(name in (by.name, *_MAPPED) and column in names for name, column in columns.items())
    if not is_fitting or given[by.name] not in names or given["opened_at"] not in names or len(set(names)) < len(names):
        raise Unplain
    return list(dict.fromkeys(column for column in given.values() if column in names))


def mapped(table: pyarrow.Table, columns: Mapping[str, str], port: int | None, by: EntityType) -> pyarrow.Table:
    """ARRIVALS of a table. Raises Unplain."""
    needed = (by.name, *NEEDED)
    given = {name: columns.get(name, name) for name in needed if columns.get(name, name) in table.schema.names}

    def whole(name: str) -> Column | None:
        return whole_of(table[given[name]]) if name in given else None

    rows = table.num_rows
    opened_us = micros_of(table[given["opened_at"]])
    closed_us = micros_of(table[given["closed_at"]]) if "closed_at" in given else nothing(rows, pyarrow.int64())
    for name, per_s in (("duration_s", 1), ("duration_ms", 1000)):
        if name in given:
            lasted = millionths_of(table[given[name]])
            lasted_us = pyarrow.compute.divide(lasted, per_s)
            is_whole = pyarrow.compute.equal(pyarrow.compute.multiply(lasted_us, per_s), lasted)
            if pyarrow.compute.all(is_whole).as_py() is False:
                raise Unplain  # parts of a microsecond, which are rounded
            closed_us = pyarrow.compute.coalesce(closed_us, pyarrow.compute.add(opened_us, lasted_us))
    return concluded(
        text_of(table[given[by.name]]), opened_us, closed_us, nothing(rows, pyarrow.string()), port=whole("port"),
        listener=text_of(table[given["listener"]]) if "listener" in given else None,
        server_port=whole("server_port"), only_port=port, by=by,
    )  # fmt: skip
