"""`turnstile report`: a journal as one HTML page, or followed as it grows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from turnstile.cli.cluster_command import json_option
from turnstile.cli.spark_job import (
    SparkOptions,
    check_writable,
    failing_in_one_sentence,
    journal_folder,
    prepared_journal,
    spark_options,
    spark_session,
    write_files,
    write_page,
)
from turnstile.pipeline.paths_and_uris import is_uri
from turnstile.pipeline.progress import shown, step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from turnstile.pipeline.events.journal import Journal
    from turnstile.pipeline.report.report import Built


@click.command()
@click.argument("journal")
@click.option("--html", default="report.html", show_default=True, help="The path or URI of the report.")
@click.option("--out", help="Also write the tables of the report to this folder, a path or a URI.")
@click.option(
    "--out-format",
    type=click.Choice(["parquet", "csv"]),
    default="parquet",
    show_default=True,
    help="The format of --out.",
)
@click.option(
    "--follow", is_flag=True, help="Count events per minute and IP as the journal grows, and write the counts to --out."
)
@click.option("--checkpoint", help="The checkpoint of --follow, a path or a URI.  [default: in --out]")
@click.option("--once", is_flag=True, help="With --follow: count what the journal has now, and end.")
@json_option
@spark_options
def report(
    journal: str, html: str, out: str | None, out_format: str, follow: bool, checkpoint: str | None, once: bool,
    as_json: bool, on: SparkOptions,
) -> None:  # fmt: skip
    """Write which clients were refused, when and why, from a JOURNAL, as one HTML file with charts.

    JOURNAL is a path or a URI, of the journal or of a data directory. Exit code 0: done. 1: the report failed. 2: wrong
    usage, or there is no such journal.

    A journal of up to some million events is read in this process. Spark reads a larger one, one at a URI, and any with
    --master or --conf.
    """
    if follow:
        if out is None:
            raise click.UsageError("--follow needs --out FOLDER for its counts.")
        _follow(journal, out, checkpoint, once, on)
        return
    check_writable(html)
    is_for_spark = on.is_asked_for or any(is_uri(place) for place in (journal, html, out or ""))
    with failing_in_one_sentence(), shown("report"), prepared_journal(journal) as prepared:
        from turnstile.cli.in_process_limit import events_on_this_machine
        from turnstile.pipeline.events.journal import here
        from turnstile.pipeline.report.report import REPORTED, build, in_files
        from turnstile.pipeline.report.report_page import page

        def finish(read: Journal, spark: SparkSession | None = None) -> Built:
            built = build(read, step)
            step("writing")
            if out is not None:
                write_files(in_files(built, out_format), out, spark)
            write_page(page(built, name=journal), html, spark)
            return built

        small = (
            None
            if is_for_spark
            else here(prepared.folders, at_most=events_on_this_machine(), until_ns=prepared.until_ns, columns=REPORTED)
        )
        if small is not None:
            built = finish(small)
        else:
            with spark_session(on, [journal], "report", in_python=True) as spark:
                from turnstile.pipeline.events.spark_events import read

                events = read(spark, [prepared.place], aside=prepared.aside, until_ns=prepared.until_ns)
                built = finish(events.journal(fetched=on.master is None, columns=REPORTED), spark)
    if as_json:
        click.echo(json.dumps({"html": html, "out": out, **built.summary}))
    else:
        refused_logins = built.summary["refused_logins"]
        logins = f", {refused_logins:,} logins refused" if refused_logins else ""
        click.echo(f"{html}: {built.summary['events']:,} events, {built.summary['refused']:,} refused{logins}")


def _follow(journal: str, out: str, checkpoint: str | None, once: bool, on: SparkOptions) -> None:
    with failing_in_one_sentence():
        from turnstile.pipeline.follow import follow

        with spark_session(on, [journal], "following") as spark:
            query = follow(spark, journal_folder(journal), out, checkpoint, once=once)
            click.echo(
                f"following {journal}; the counts are in {out}; Ctrl-C ends this, and the next run goes on from there",
                err=True,
            )
            try:
                query.awaitTermination()
            except KeyboardInterrupt:
                query.stop()
