"""`turnstile audit`: the verdict on a journal, check by check."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

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
    write_page,
)
from turnstile.pipeline.paths_and_uris import is_uri
from turnstile.pipeline.progress import shown, step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from turnstile.pipeline.audit.audit_result import AuditResult
    from turnstile.pipeline.events.journal import Journal


@click.command()
@click.argument("journal")
@click.option("--html", help="Also write the verdict as an HTML page to this path or URI.")
@json_option
@spark_options
@click.pass_context
def audit(ctx: click.Context, journal: str, html: str | None, as_json: bool, on: SparkOptions) -> None:
    """Prove from a JOURNAL that no limit was exceeded.

    JOURNAL is a path or a URI, of the journal or of a data directory. Exit code 0: all limits held. 1: a limit was exceeded, or
    a connection was refused without cause; the first cases are shown. 2: unknown, as events or the configuration are missing, or
    the audit could not be done.

    A journal of up to some million events is read in this process. Spark reads a larger one, one at a URI, and any with
    --master or --conf.
    """
    check_writable(html, VerdictUnknown)
    is_for_spark = on.is_asked_for or is_uri(journal) or is_uri(html or "")
    with failing_in_one_sentence(VerdictUnknown), shown("audit"), prepared_journal(journal) as prepared:
        from turnstile.cli.in_process_limit import events_on_this_machine
        from turnstile.pipeline.audit import audit_page
        from turnstile.pipeline.audit.audit import audit as run
        from turnstile.pipeline.audit.audit_result import EXIT_CODE
        from turnstile.pipeline.events.journal import here

        def finish(read: Journal, spark: SparkSession | None = None) -> AuditResult:
            result = run(read, step)
            if html is not None:
                write_page(audit_page.page(result, name=journal), html, spark)
            return result

        small = (
            None
            if is_for_spark
            else here(prepared.folders, at_most=events_on_this_machine(), until_ns=prepared.until_ns)
        )
        if small is not None:
            result = finish(small)
        else:
            with spark_session(on, [journal], "audit", in_python=True) as spark:
                from turnstile.pipeline.events.spark_events import read

                events = read(spark, [prepared.place], aside=prepared.aside, until_ns=prepared.until_ns)
                result = finish(events.journal(fetched=on.master is None), spark)
    if as_json:
        click.echo(json.dumps(result.as_json()))
    else:
        _print_audit(result)
    ctx.exit(EXIT_CODE[result.verdict])


def _print_audit(result: AuditResult) -> None:
    colour = {"held": "green", "exceeded": "red", "not justified": "red"}
    width = max((len(check.name) for check in result.checks), default=0)
    for check in result.checks:
        word = click.style(f"{check.verdict:13}", fg=colour.get(check.verdict, "yellow"))
        click.echo(f"{word} {check.name:{width}} {printable(check.detail)}")
        for each in check.evidence[:10] if check.verdict in ("exceeded", "not justified") else ():
            click.echo(
                " " * (15 + width) + ", ".join(f"{name} {printable(_plain(value))}" for name, value in each.items())
            )
    for name, values in result.limits.items():
        click.echo(f"{'limit':13} {printable(name)} {printable(' -> '.join(values))}")
    verdict = click.style(result.verdict, fg=colour.get(result.verdict, "yellow"), bold=True)
    click.echo(f"\n{verdict}: {result.facts}")


def _plain(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
