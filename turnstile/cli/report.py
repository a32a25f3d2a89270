"""`turnstile report`: a journal as one HTML page, or followed as it grows."""

from __future__ import annotations

import json
from pathlib import Path

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
)


@click.command()
@click.argument("journal", type=click.Path(path_type=Path))
@click.option(
    "--html",
    "html_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where the report goes.  [default: report.html]",
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Also write its tables here.")
@click.option(
    "--out-format", type=click.Choice(["parquet", "csv"]), default="parquet", show_default=True, help="Of --out."
)
@click.option(
    "--follow", is_flag=True, help="Keep counting per minute and IP as the journal grows; results go to --out."
)
@click.option(
    "--checkpoint", type=click.Path(path_type=Path, file_okay=False), help="Of --follow.  [default: in --out]"
)
@click.option("--once", is_flag=True, help="With --follow: take in what there is, and end.")
@json_option
@spark_options
def report(
    journal: Path, html_path: Path | None, out: Path | None, out_format: str, follow: bool, checkpoint: Path | None,
    once: bool, as_json: bool, on: SparkOptions,
) -> None:  # fmt: skip
    """Show who was refused, when and why, from a JOURNAL (or a data directory), as one HTML file with pictures."""
    if follow:
        if out is None:
            raise click.UsageError("--follow needs --out FOLDER for its results.")
        _follow(journal_folder(journal), out, checkpoint or out / "_checkpoint", once, on)
        return
    check_writable(html_path or Path("report.html"))
    with failing_in_one_sentence(), prepared_journal(journal) as (folders, until_ns):
        from turnstile.pipeline.events.journal_events import read
        from turnstile.pipeline.report.report_page import page
        from turnstile.pipeline.report.report_tables import build, write_tables

        with spark_session(on, folders, "report") as spark:
            built = build(read(spark, folders, until_ns=until_ns))
            target = html_path or Path("report.html")
            target.write_text(page(built, name=str(journal)), encoding="utf-8")
            if out is not None:
                write_tables(built, out, out_format)
    if as_json:
        click.echo(json.dumps({"html": str(target), "out": str(out) if out else None, **built.summary}))
    else:
        click.echo(f"{target}: {built.summary['events']:,} events, {built.summary['refused']:,} refused")


def _follow(folder: Path, out: Path, checkpoint: Path, once: bool, on: SparkOptions) -> None:
    with failing_in_one_sentence():
        from turnstile.pipeline.follow import follow

        with spark_session(on, [folder], "following") as spark:
            query = follow(spark, folder, out, checkpoint, once=once)
            click.echo(
                f"following {folder}; results in {out}; Ctrl-C ends it, the next run goes on from there", err=True
            )
            try:
                query.awaitTermination()
            except KeyboardInterrupt:
                query.stop()
