"""The canonical `connections` frame that every input becomes, and what makes a row of it good.

One row is one client connection. `closed_at` null: open at the end of the log. Rows that can't be used are never dropped
silently: they stay in the same frame with the reason in `bad` and the original text in `raw`, until `split`.
"""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

CONNECTIONS = (
    "ip string, port int, opened_at timestamp, closed_at timestamp, listener string, bytes long, source string"
)
COLUMNS = ("ip", "port", "opened_at", "closed_at", "listener", "bytes", "source")
ARRIVALS = ("ip", "opened_us", "closed_us", "listener")
"""What a replay needs of each connection, times in epoch microseconds; closed_us null: open at the end of the log."""
DEFAULT_LISTENER = "PLAINTEXT"

_V4 = r"^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)$"
_V6 = r"^[0-9a-f:]*:[0-9a-f:]*(?:\d+\.\d+\.\d+\.\d+)?$"


class Reading(NamedTuple):
    """An input read: `connections` (CONNECTIONS) and `bad` (source, reason, raw)."""

    connections: DataFrame
    bad: DataFrame


def conclude(parsed: DataFrame) -> DataFrame:
    """Columns COLUMNS, raw and bad of a format's own parse; `bad` gains what holds for every format.

    `parsed` has COLUMNS, `raw` and `bad`. Of good rows `raw` isn't kept.
    """
    # Matched once, in a column of its own: nearly every address is IPv4, and the other patterns are tried for the rest.
    matched = parsed.withColumn("is_v4", F.coalesce(F.col("ip").rlike(_V4), F.lit(False)))
    is_v4 = F.col("is_v4")
    ip = F.when(is_v4, F.col("ip")).otherwise(folded(F.col("ip")))
    reason = (
        F.when(F.col("bad").isNotNull(), F.col("bad"))
        .when(F.col("ip").isNull(), "no client address")
        .when(~is_v4 & ~is_address(ip), "the client address is not an IP address")
        .when(F.col("opened_at").isNull(), "no time of opening")
        .when(F.col("closed_at") < F.col("opened_at"), "closed before it was opened")
        .when(~F.col("port").between(0, 65535), "the port is not from 0 to 65535")
    )
    listener = F.coalesce(F.col("listener"), F.lit(DEFAULT_LISTENER))
    return matched.select(
        ip.alias("ip"),
        "port",
        "opened_at",
        "closed_at",
        listener.alias("listener"),
        "bytes",
        "source",
        F.when(reason.isNotNull(), F.col("raw")).alias("raw"),
        reason.alias("bad"),
    )


def split(concluded: DataFrame) -> Reading:
    """Good rows and bad rows apart."""
    good = concluded.where(F.col("bad").isNull()).select(*COLUMNS)
    bad = concluded.where(F.col("bad").isNotNull()).select("source", F.col("bad").alias("reason"), "raw")
    return Reading(good, bad)


def arrivals(concluded: DataFrame) -> DataFrame:
    """ARRIVALS and `bad` of every row."""
    times = (F.unix_micros(F.col(f"{name}_at")).alias(f"{name}_us") for name in ("opened", "closed"))
    return concluded.select("ip", *times, "listener", "bad")


def only_port(parsed: DataFrame, port: int | None) -> DataFrame:
    """Put connections to other server ports aside; `parsed` has `server_port` and `bad`. None: keep all."""
    if port is None:
        return parsed
    other = F.when(F.col("server_port") != port, F.lit(f"not to port {port}"))
    return parsed.withColumn("bad", F.coalesce("bad", other))


def folded(ip: Column) -> Column:
    """An address in the spelling that limits are keyed by: lower case, v4-mapped IPv6 as IPv4, no zone."""
    plain = F.regexp_replace(F.lower(F.trim(ip)), r"%.*$", "")
    return F.regexp_replace(plain, r"^(?:0*:)*:?ffff:(\d+\.\d+\.\d+\.\d+)$", "$1")


def is_address(ip: Column) -> Column:
    """Whether it looks like an IPv4 or IPv6 address."""
    return ip.rlike(_V4) | ip.rlike(_V6)


def micros(seconds: Column) -> Column:
    """Epoch seconds as text with up to six decimals -> timestamp; null when it is no number."""
    return F.timestamp_micros((seconds.try_cast("decimal(20,6)") * 1_000_000).cast("long"))


def later(start: Column, seconds: Column) -> Column:
    """A timestamp that many (decimal, text) seconds after `start`; null when it is no number."""
    return F.timestamp_micros(F.unix_micros(start) + (seconds.try_cast("decimal(20,6)") * 1_000_000).cast("long"))
