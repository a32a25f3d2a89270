"""AWS VPC flow logs, version 2, default format.

    version account-id interface-id srcaddr dstaddr srcport dstport protocol packets bytes start end action log-status

A record is what one 5-tuple did in one capture window, so a long connection is many records: those that follow each
other within GAP_S are joined. Times are whole seconds: connections that
begin in the same one are ordered by the client's address, then by its port.
Without a port, the side with the higher port is the client.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from turnstile.pipeline.inputs.connections import conclude, micros, only_port

FIELDS = (
    "version", "account", "interface", "srcaddr", "dstaddr", "srcport", "dstport", "protocol", "packets", "bytes",
    "start", "end", "action", "status",
)  # fmt: skip
GAP_S = 660
"""Capture windows are at most 10 minutes; a quiet window writes no record, a quiet connection may be two here."""


def parse(lines: DataFrame, *, port: int | None = None) -> DataFrame:
    """`lines` (value, source) -> connections with `raw` and `bad`."""
    cells = F.split(F.trim("value"), r"\s+")
    rows = lines.where((F.trim("value") != "") & ~F.lower("value").startswith("version "))
    records = rows.select(
        *(F.get(cells, place).alias(name) for place, name in enumerate(FIELDS)),
        "source",
        F.lit(0).cast("long").alias("rank"),
        F.col("value").alias("raw"),
        _fault(cells).alias("bad"),
    )
    good = records.where(F.col("bad").isNull())
    towards = F.col("dstport").try_cast("int")
    sided = (
        good.withColumn("bad", F.when(F.col("srcport").try_cast("int") <= towards, "from server to client"))
        if port is None
        else good
    )
    sided = only_port(sided.withColumn("server_port", towards), port)
    joined = _join(sided.where(F.col("bad").isNull()))
    aside = records.where(F.col("bad").isNotNull()).unionByName(
        sided.where(F.col("bad").isNotNull()).drop("server_port")
    )
    return conclude(joined).unionByName(conclude(aside.select(*_empty(), "source", "rank", "raw", "bad")))


def _fault(cells: Column) -> Column:
    def cell(name: str) -> Column:
        return F.get(cells, FIELDS.index(name))

    numbers = ("srcport", "dstport", "start", "end", "bytes")
    unreadable = F.lit(False)
    for name in numbers:
        unreadable = unreadable | cell(name).try_cast("long").isNull()
    return (
        F.when(F.size(cells) != len(FIELDS), F.concat(F.size(cells).cast("string"), F.lit(" fields instead of 14")))
        .when(cell("version") != "2", "not version 2")
        .when(cell("status") != "OK", F.concat(F.lit("log-status "), cell("status")))
        .when(cell("protocol") != "6", "not TCP")
        .when(cell("action") != "ACCEPT", "rejected by the network")
        .when(unreadable, "a port, time or size is not a number")
    )


def _join(records: DataFrame) -> DataFrame:
    """Records of one 5-tuple that follow each other -> one connection."""
    key = ("srcaddr", "srcport", "dstaddr", "dstport")
    in_order = Window.partitionBy(*key).orderBy("start_s", "end_s")
    timed = records.withColumns({"start_s": F.col("start").try_cast("long"), "end_s": F.col("end").try_cast("long")})
    until_now = F.max("end_s").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    is_new = F.coalesce((F.col("start_s") - until_now > GAP_S).cast("int"), F.lit(1))
    numbered = timed.withColumn("first", is_new).withColumn("nth", F.sum("first").over(in_order))
    whole = numbered.groupBy(*key, "nth").agg(
        F.min("start_s").alias("start_s"),
        F.max("end_s").alias("end_s"),
        F.sum(F.col("bytes").try_cast("long")).alias("bytes"),
        F.first("source").alias("source"),
        F.first("raw").alias("raw"),
    )
    return whole.select(
        F.col("srcaddr").alias("ip"),
        F.col("srcport").try_cast("int").alias("port"),
        micros(F.col("start_s").cast("string")).alias("opened_at"),
        micros(F.col("end_s").cast("string")).alias("closed_at"),
        F.lit(None).cast("string").alias("listener"),
        "bytes", "source", "raw", F.lit(None).cast("string").alias("bad"), F.col("srcport").try_cast("long").alias("rank"),
    )  # fmt: skip


def _empty() -> list[Column]:
    """COLUMNS without values, for rows that are only put aside."""
    kinds = {"ip": "string", "port": "int", "opened_at": "timestamp", "closed_at": "timestamp", "listener": "string"}
    return [F.lit(None).cast(kind).alias(name) for name, kind in {**kinds, "bytes": "long"}.items()]
