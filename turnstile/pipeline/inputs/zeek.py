"""Zeek conn.log, as TSV with its #fields header or as JSON lines (docs.zeek.org, conn.log).

A connection without a duration (a single packet) counts as closed when it was opened. Rows that aren't TCP are put aside.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from turnstile.pipeline.errors import PipelineError
from turnstile.pipeline.inputs.connections import conclude, later, micros, only_port
from turnstile.pipeline.inputs.contents import ANOTHER_LAYOUT

_FIELDS = ("ts", "id.orig_h", "id.orig_p", "id.resp_p", "proto", "duration", "orig_bytes", "resp_bytes")
HEADER = "#fields"
FIRST_LINES = 20
_NEEDED = ("ts", "id.orig_h")


def parse(lines: DataFrame, *, port: int | None = None, thorough: bool = False) -> DataFrame:
    """`lines` (value, source, block) -> connections with `raw` and `bad`. Raises PipelineError when it is no Zeek log.

    The first lines say how all are read. A file may be several logs one after the other, and files may differ: a header with
    other fields is told as ANOTHER_LAYOUT, and `thorough`, for which all lines are looked at first, reads each row by the
    header before it.
    """
    body = lines.where(F.trim("value") != "")
    if thorough:
        return _connections(_thorough(body), port)
    first = body.limit(FIRST_LINES).collect()
    headers = [row["value"] for row in first if row["value"].startswith(HEADER)]
    if not headers and first and not first[0]["value"].lstrip().startswith("{"):
        raise PipelineError(
            f"{first[0]['source']} is not a Zeek conn.log: it has no #fields header and its lines are not JSON."
        )
    return _connections(_from_tsv(body, headers[0]) if headers else _from_json(body), port)


def _thorough(body: DataFrame) -> DataFrame:
    """Each row by the header before it in its file; where there is none, as JSON."""
    placed = body.withColumn("nth", F.monotonically_increasing_id())
    found = placed.where(F.col("value").startswith(HEADER)).select("source", "block", "nth", "value").collect()
    nothing = F.lit(False)
    is_under: dict[str, Column] = {}
    passed = F.lit(0)
    for row in sorted(found):  # headers of each file in order, so that a later one takes rows from all before it
        is_later = (F.col("block") > row["block"]) | ((F.col("block") == row["block"]) & (F.col("nth") >= row["nth"]))
        is_after = (F.col("source") == row["source"]) & is_later
        is_under = {header: rows & ~is_after for header, rows in is_under.items()}
        is_under[row["value"]] = is_under.get(row["value"], nothing) | is_after
        passed = passed + is_after.cast("int")
    rest = ~reduce(lambda one, other: one | other, is_under.values(), nothing)

    def under(rows: Column) -> DataFrame:
        """The rows under a header, in order: they come after what precedes the header."""
        return placed.where(rows).withColumn("block", F.col("block") + passed)

    frames = [_from_tsv(under(rows), header) for header, rows in is_under.items()]
    return reduce(DataFrame.unionByName, frames, _from_json(under(rest & ~F.col("value").startswith("#"))))


def _from_tsv(body: DataFrame, header: str) -> DataFrame:
    names = header.split("\t")[1:]
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise PipelineError(f"The Zeek log has no field {' and no field '.join(missing)}: is it a conn.log?")
    cells = F.split("value", "\t")
    is_other = F.col("value").startswith(HEADER) | F.ltrim("value").startswith("{")
    wrong = F.when(is_other, ANOTHER_LAYOUT).when(
        F.size(cells) != len(names), F.concat(F.size(cells).cast("string"), F.lit(f" fields instead of {len(names)}"))
    )

    def field(name: str) -> Column:
        if name not in names:
            return F.lit(None).cast("string").alias(name)
        cell = F.get(cells, names.index(name))
        return F.when(~cell.isin("-", "(empty)", ""), cell).alias(name)

    is_comment = F.col("value").startswith("#") & ~F.col("value").startswith(HEADER)
    rows = body.where((F.col("value") != header) & ~is_comment)
    return rows.select(
        *(field(name) for name in _FIELDS), "source", "block", F.col("value").alias("raw"), wrong.alias("bad")
    )


def _from_json(body: DataFrame) -> DataFrame:
    schema = ", ".join(f"`{name}` string" for name in _FIELDS)
    row = F.from_json("value", schema)
    return body.select(
        *(row.getField(name).alias(name) for name in _FIELDS),
        "source",
        "block",
        F.col("value").alias("raw"),
        F.when(F.col("value").startswith(HEADER), ANOTHER_LAYOUT)
        .when(row.isNull() | ~F.rtrim("value").endswith("}"), "not a JSON object")
        .alias("bad"),
    )


def _connections(fields: DataFrame, port: int | None) -> DataFrame:
    def field(name: str) -> Column:
        return F.col(f"`{name}`")

    opened_at = F.coalesce(micros(field("ts")), field("ts").try_cast("timestamp"))
    is_timed = opened_at.isNotNull() & field("duration").isNotNull()
    bad = (
        F.when(F.col("bad").isNotNull(), F.col("bad"))
        .when(F.lower(field("proto")) != "tcp", "not TCP")
        .when(is_timed & later(opened_at, field("duration")).isNull(), "the duration is not a number")
    )
    sent, received = (F.coalesce(field(name).try_cast("long"), F.lit(0)) for name in ("orig_bytes", "resp_bytes"))
    parsed = fields.select(
        field("id.orig_h").alias("ip"),
        field("id.orig_p").try_cast("int").alias("port"),
        opened_at.alias("opened_at"),
        F.coalesce(later(opened_at, field("duration")), opened_at).alias("closed_at"),
        F.lit(None).cast("string").alias("listener"),
        (sent + received).alias("bytes"),
        "source", "block", "raw", bad.alias("bad"), field("id.resp_p").try_cast("int").alias("server_port"),
    )  # fmt: skip
    return conclude(only_port(parsed, port))
