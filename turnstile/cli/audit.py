"""`turnstile audit`: the verdict over a journal, check by check."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from broker.runtime.printable import printable
from turnstile.cli.cluster_command import json_option
from turnstile.cli.output import VerdictUnknown
from turnstile.cli.spark_job import (
    SparkOptions,
    check_writable,
    failing_in_one_sentence,
    prepared_journal,
    spark_options,
    spark_session,
)

if TYPE_CHECKING:
    from turnstile.pipeline.audit.verdict import AuditResult


@click.command()
@click.argument("journal", type=click.Path(path_type=Path))
@click.option(
    "--html",
    "html_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the verdict as a page here.",
)
@json_option
@spark_options
@click.pass_context
def audit(ctx: click.Context, journal: Path, html_path: Path | None, as_json: bool, on: SparkOptions) -> None:
    """Prove from a JOURNAL (or a data directory) that no limit was exceeded.

    Exit code 0: held. 1: exceeded, or connections refused without cause, with the first instants and connections. 2:
    unknown, because events or the configuration are missing, or the audit could not be done.

    A journal of some million events is read here; a larger one, or any with --master or --conf, by Spark.
    """
    check_writable(html_path, VerdictUnknown)
    _say("reading")
    with failing_in_one_sentence(VerdictUnknown), prepared_journal(journal) as (folders, until_ns):
        from turnstile.pipeline.audit.audit import audit as run
        from turnstile.pipeline.audit.verdict import EXIT_CODE
        from turnstile.pipeline.events.journal import here

        small = here(folders, until_ns=until_ns) if on.master is None and not on.conf else None
        if small is not None:
            result = run(small, _say)
        else:
            from turnstile.pipeline.events.journal_events import read

            with spark_session(on, folders, "audit") as spark:
                result = run(read(spark, folders, until_ns=until_ns).journal(), _say)
        if html_path is not None:
            from turnstile.pipeline.audit.audit_page import page

            html_path.write_text(page(result, name=str(journal)), encoding="utf-8")
    if as_json:
        click.echo(json.dumps(result.as_json()))
    else:
        _print_audit(result)
    ctx.exit(EXIT_CODE[result.verdict])


def _say(name: str) -> None:
    """A line of progress on stderr, when that is a terminal."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[2K{name} ...", err=True)


def _print_audit(result: AuditResult) -> None:
    colour = {"held": "green", "exceeded": "red", "not justified": "red"}
    for check in result.checks:
        word = click.style(f"{check.verdict:13}", fg=colour.get(check.verdict, "yellow"))
        click.echo(f"{word} {check.name:21} {printable(check.detail)}")
        for each in check.evidence[:10] if check.verdict in ("exceeded", "not justified") else ():
            click.echo(" " * 36 + ", ".join(f"{name} {printable(_plain(value))}" for name, value in each.items()))
    verdict = click.style(result.verdict, fg=colour.get(result.verdict, "yellow"), bold=True)
    click.echo(f"\n{verdict}: {result.events:,} events")


def _plain(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
