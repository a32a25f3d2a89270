"""`turnstile followed`: the counts of `turnstile report --follow` so far."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import click

from turnstile.cli.cluster_command import json_option
from turnstile.cli.output import show_table
from turnstile.cli.spark_job import SparkOptions, failing_in_one_sentence, spark_options, spark_session

_KEYS = ("minute", "ip", "kind", "reason")


@click.command()
@click.argument("out")
@click.option(
    "--by",
    type=click.Choice(_KEYS),
    multiple=True,
    help="Sum the counts by this. May be given again.  [default: all four]",
)
@click.option("--since", type=click.DateTime(["%Y-%m-%dT%H:%M", "%Y-%m-%d"]), help="Only from this minute on, in UTC.")
@click.option("--top", type=click.IntRange(1), default=50, show_default=True, help="The most rows to show.")
@json_option
@spark_options
def followed(out: str, by: tuple[str, ...], since: datetime | None, top: int, as_json: bool, on: SparkOptions) -> None:
    """Show the counts that `turnstile report --follow --out OUT` has written, also while it runs. OUT is a path or a URI.

    The newest minutes come first; without minutes, the rows with most events. Exit code 0: done. 1: the counts could not be
    read. 2: wrong usage, or there are no counts.
    """
    keys = [name for name in _KEYS if name in by] or list(_KEYS)
    with failing_in_one_sentence():
        from turnstile.pipeline.counts import Counts, summed
        from turnstile.pipeline.paths_and_uris import as_spark_has_it

        with spark_session(on, [out], "followed") as spark:
            from pyspark.sql import functions as F

            counted = Counts(spark, as_spark_has_it(out)).read()
            if since is not None:
                counted = counted.where(F.col("minute") >= F.lit(since.replace(tzinfo=UTC)))
            rows = summed(counted, keys)
            newest = [F.desc("minute")] if "minute" in keys else []
            first = rows.orderBy(*newest, F.desc("events"), *keys).limit(top)
            if newest:
                # Spark would give Python the time in the machine's zone.
                first = first.withColumn("minute", F.unix_seconds("minute"))
            shown = [row.asDict() for row in first.collect()]
            of = len(shown) if len(shown) < top else rows.count()
    for row in shown if newest else ():
        row["minute"] = datetime.fromtimestamp(row["minute"], UTC)
    if as_json:
        click.echo(json.dumps({"rows": shown, "of": of}, default=datetime.isoformat))
        return
    head = (*keys, "events", "throttled for")
    show_table([head, *(tuple(_cell(row, name) for name in (*keys, "events", "throttle_ms")) for row in shown)])
    if of > len(shown):
        click.echo(f"the first {len(shown)} of {of:,} rows; --top shows more", err=True)


def _cell(row: dict[str, Any], name: str) -> str:
    if name == "minute":
        return f"{row[name]:%Y-%m-%d %H:%M}"
    if name == "throttle_ms":
        return f"{row[name] / 1000:,.1f} s"
    return f"{row[name]:,}" if name == "events" else str(row[name])
