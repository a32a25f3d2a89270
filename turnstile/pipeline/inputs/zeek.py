"""Zeek conn.log, as TSV with its #fields header or as JSON lines (docs.zeek.org, conn.log).

A connection without a duration (a single packet) counts as closed when it was opened. Rows that aren't TCP are put aside.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from turnstile.pipeline.errors import PipelineError
from turnstile.pipeline.inputs.connections import conclude, later, micros, only_port

_FIELDS = ("ts", "id.orig_h", "id.orig_p", "id.resp_p", "proto", "duration", "orig_bytes", "resp_bytes")
_NEEDED = ("ts", "id.orig_h")


def parse(lines: DataFrame, *, port: int | None = None) -> DataFrame:
    """`lines` (value, source) -> connections with `raw` and `bad`. Raises PipelineError when it is no Zeek log."""
    headers = lines.where(F.col("value").startswith("#fields")).select("source", "value").distinct().collect()
    body = lines.where(~F.col("value").startswith("#") & (F.trim("value") != ""))
    if not headers:
        first = body.limit(1).collect()
        if first and not first[0]["value"].lstrip().startswith("{"):
            raise PipelineError(
                f"{first[0]['source']} is not a Zeek conn.log: it has no #fields header and its lines are not JSON."
            )
        return _connections(_from_json(body), port)
    by_header: dict[str, list[str]] = {}
    for row in headers:
        by_header.setdefault(row["value"], []).append(row["source"])
    frames = [
        _from_tsv(body.where(F.col("source").isin(sources)) if len(by_header) > 1 else body, header)
        for header, sources in by_header.items()
    ]
    parsed = frames[0]
    for frame in frames[1:]:
        parsed = parsed.unionByName(frame)
    return _connections(parsed, port)


def _from_tsv(body: DataFrame, header: str) -> DataFrame:
    names = header.split("\t")[1:]
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise PipelineError(f"The Zeek log has no field {' and no field '.join(missing)}: is it a conn.log?")
    cells = F.split("value", "\t")
    wrong = F.when(
        F.size(cells) != len(names), F.concat(F.size(cells).cast("string"), F.lit(f" fields instead of {len(names)}"))
    )

    def field(name: str) -> Column:
        if name not in names:
            return F.lit(None).cast("string").alias(name)
        cell = F.get(cells, names.index(name))
        return F.when(~cell.isin("-", "(empty)", ""), cell).alias(name)

    return body.select(*(field(name) for name in _FIELDS), "source", F.col("value").alias("raw"), wrong.alias("bad"))


def _from_json(body: DataFrame) -> DataFrame:
    schema = ", ".join(f"`{name}` string" for name in _FIELDS)
    row = F.from_json("value", schema)
    return body.select(
        *(row.getField(name).alias(name) for name in _FIELDS),
        "source",
        F.col("value").alias("raw"),
        F.when(row.isNull() | ~F.rtrim("value").endswith("}"), "not a JSON object").alias("bad"),
    )


def _connections(fields: DataFrame, port: int | None) -> DataFrame:
    def field(name: str) -> Column:
        return F.col(f"`{name}`")

    opened_at = F.coalesce(micros(field("ts")), field("ts").try_cast("timestamp"))
    is_timed = opened_at.isNotNull() & field("duration").isNotNull()
    bad = (
        F.when(F.col("bad").isNotNull(), F.col("bad"))
        .when(F.lower(field("proto")) != "tcp", "not TCP")
        .when(is_timed & later(opened_at, field("duration")).isNull(), "the duration is no number")
    )
    sent, received = (F.coalesce(field(name).try_cast("long"), F.lit(0)) for name in ("orig_bytes", "resp_bytes"))
    parsed = fields.select(
        field("id.orig_h").alias("ip"),
        field("id.orig_p").try_cast("int").alias("port"),
        opened_at.alias("opened_at"),
        F.coalesce(later(opened_at, field("duration")), opened_at).alias("closed_at"),
        F.lit(None).cast("string").alias("listener"),
        (sent + received).alias("bytes"),
        "source", "raw", bad.alias("bad"), field("id.resp_p").try_cast("int").alias("server_port"),
    )  # fmt: skip
    return conclude(only_port(parsed, port))
