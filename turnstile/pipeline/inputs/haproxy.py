"""HAProxy's TCP log (`option tcplog`), with or without a syslog prefix (docs.haproxy.org, 8.2.2).

    10.0.1.2:33313 [06/Feb/2009:12:12:51.443] fnt bck/srv1 0/0/5007 212 -- 0/0/0/0/3 0/0

The frontend is the listener. Its time is when the connection was accepted, in HAProxy's local time, read as UTC; the
third timer is its total duration in ms, which a `+` (logasap) makes a lower bound.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from turnstile.pipeline.inputs.connections import conclude

_LINE = r"(?:^|\s)(\S+):(\d+) \[(\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d(?:\.\d{1,6})?)\] (\S+?)~? \S+ -?\d+/-?\d+/\+?(-?\d+) \+?(\d+) "


def parse(lines: DataFrame, *, port: None = None) -> DataFrame:
    """`lines` (value, source, block) -> connections with `raw` and `bad`. The log has no server port to choose by."""
    part = [F.regexp_extract("value", _LINE, number) for number in range(7)]
    opened_at = F.try_to_timestamp(F.regexp_replace(part[3], r"\.\d+$", ""), F.lit("dd/MMM/yyyy:HH:mm:ss"))
    fraction = F.rpad(F.regexp_extract(part[3], r"\.(\d+)$", 1), 6, "0").try_cast("long")
    opened_us = F.unix_micros(opened_at) + F.coalesce(fraction, F.lit(0))
    lasted_us = F.greatest(part[5].try_cast("long"), F.lit(0)) * 1000
    parsed = lines.where(F.trim("value") != "").select(
        F.when(part[1] != "", part[1]).alias("ip"),
        part[2].try_cast("int").alias("port"),
        F.timestamp_micros(opened_us).alias("opened_at"),
        F.timestamp_micros(opened_us + lasted_us).alias("closed_at"),
        part[4].alias("listener"),
        part[6].try_cast("long").alias("bytes"),
        "source",
        "block",
        F.col("value").alias("raw"),
        F.when(part[0] == "", "not a line of HAProxy's TCP log").alias("bad"),
    )
    return conclude(parsed)
