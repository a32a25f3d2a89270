"""`turnstile audit`, `report` and `plan`: arguments in, a Spark job, its answer out. Spark is only imported to run."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SMALL_BYTES = 64 << 20
_FORMATS = ("zeek", "vpcflow", "haproxy", "csv", "parquet", "journal")

_master = click.option(
    "--master", default="local[*]", show_default=True, help="Spark master: local[N], spark://, yarn, k8s://."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@click.argument("journal", type=click.Path(path_type=Path))
@_json
@_master
@click.pass_context
def audit(ctx: click.Context, journal: Path, as_json: bool, master: str) -> None:
    """Prove from a JOURNAL (or a data directory) that no limit was exceeded.

    Exit code 0: held. 1: exceeded, with the first instants and the connections involved. 3: unknown, because events or
    the configuration are missing.
    """
    with _failing_in_one_sentence(), _prepared(journal) as (folders, until_ns):
        from turnstile.pipeline.audit.audit import audit as run
        from turnstile.pipeline.audit.verdict import EXIT_CODE
        from turnstile.pipeline.events.journal_events import read

        with _spark(master, folders, "audit") as spark:
            result = run(read(spark, folders, until_ns=until_ns))
    if as_json:
        click.echo(json.dumps(result.as_json()))
    else:
        _print_audit(result)
    ctx.exit(EXIT_CODE[result.verdict])


def _print_audit(result: Any) -> None:
    colour = {"held": "green", "exceeded": "red", "unknown": "yellow"}
    for check in result.checks:
        click.echo(f"{click.style(f'{check.verdict:9}', fg=colour[check.verdict])} {check.name:19} {check.detail}")
        for each in check.evidence[:10] if check.verdict == "exceeded" else ():
            click.echo(" " * 30 + ", ".join(f"{name} {_plain(value)}" for name, value in each.items()))
    verdict = click.style(result.verdict, fg=colour[result.verdict], bold=True)
    click.echo(f"\n{verdict}: {result.events:,} events")


def _plain(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


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
@_json
@_master
def report(
    journal: Path, html_path: Path | None, out: Path | None, out_format: str, follow: bool, checkpoint: Path | None,
    once: bool, as_json: bool, master: str,
) -> None:  # fmt: skip
    """Show who was refused, when and why, from a JOURNAL (or a data directory), as one HTML file with pictures."""
    if follow:
        if out is None:
            raise click.UsageError("--follow needs --out FOLDER for its results.")
        _follow(_journal_folder(journal), out, checkpoint or out / "_checkpoint", once, master)
        return
    with _failing_in_one_sentence(), _prepared(journal) as (folders, until_ns):
        from turnstile.pipeline.events.journal_events import read
        from turnstile.pipeline.report.report_page import page
        from turnstile.pipeline.report.report_tables import build, write_tables

        with _spark(master, folders, "report") as spark:
            built = build(read(spark, folders, until_ns=until_ns))
            target = html_path or Path("report.html")
            target.write_text(page(built, name=str(journal)), encoding="utf-8")
            if out is not None:
                write_tables(built, out, out_format)
    if as_json:
        click.echo(json.dumps({"html": str(target), "out": str(out) if out else None, **built.summary}))
    else:
        click.echo(f"{target}: {built.summary['events']:,} events, {built.summary['refused']:,} refused")


def _follow(folder: Path, out: Path, checkpoint: Path, once: bool, master: str) -> None:
    with _failing_in_one_sentence():
        from turnstile.pipeline.follow import follow

        with _spark(master, [folder], "following", quiet=True) as spark:
            query = follow(spark, folder, out, checkpoint, once=once)
            click.echo(
                f"following {folder}; results in {out}; Ctrl-C ends it, the next run goes on from there", err=True
            )
            try:
                query.awaitTermination()
            except KeyboardInterrupt:
                query.stop()


class _Numbers(click.ParamType):
    name = "N,N,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        if isinstance(value, list):
            return value
        try:
            return [int(part) for part in str(value).split(",") if part.strip()]
        except ValueError:
            self.fail(f"{value!r} is not a list of whole numbers such as 5,10,20", param, ctx)


class _Mapping(click.ParamType):
    name = "NAME=COLUMN,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, str]:
        if isinstance(value, dict):
            return value
        pairs = [part.partition("=") for part in str(value).split(",")]
        if not all(name.strip() and column.strip() for name, _, column in pairs):
            self.fail(f"{value!r} is not of the form ip=src,opened_at=start", param, ctx)
        return {name.strip(): column.strip() for name, _, column in pairs}


class _Window(click.ParamType):
    name = "START/END"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[datetime, datetime]:
        if isinstance(value, tuple):
            return value
        try:
            start, end = (_utc(datetime.fromisoformat(part)) for part in str(value).split("/"))
        except ValueError:
            self.fail(f"{value!r} is not of the form 2026-01-05T10:00/2026-01-05T10:30 (UTC)", param, ctx)
        if start >= end:
            self.fail(f"{value!r} ends before it starts", param, ctx)
        return start, end


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@click.command()
@click.option(
    "--input", "inputs", multiple=True, required=True, help="A log: file, folder or glob. May be given again."
)
@click.option("--format", "format", type=click.Choice(_FORMATS), required=True, help="What the log is.")
@click.option(
    "--columns", type=_Mapping(), default={}, help="For csv and parquet: ip=src,opened_at=start,closed_at=end,..."
)
@click.option("--port", type=int, help="Only connections to this server port (zeek, vpcflow).")
@click.option("--per-ip-cap", type=_Numbers(), default=[], help="Candidates for kafka_connections_max_per_ip.")
@click.option("--broker-cap", type=_Numbers(), default=[], help="Candidates for kafka_connections_max.")
@click.option("--ip-rate", type=_Numbers(), default=[], help="Candidates for connection_creation_rate of each IP.")
@click.option("--broker-rate", type=_Numbers(), default=[], help="Candidates for max.connection.creation.rate.")
@click.option("--overrides", default="", help="ip:count,network:count,... with every candidate.")
@click.option(
    "--at-most-refused",
    type=click.FloatRange(0, 1),
    default=0.001,
    show_default=True,
    help="Share of connections a recommendation may refuse.",
)
@click.option("--compare", type=_Window(), help="An incident, START/END in UTC, to set beside the rest of the log.")
@click.option(
    "--html", "html_path", type=click.Path(path_type=Path, dir_okay=False), help="Also write a page with pictures."
)
@_json
@_master
def plan(
    inputs: tuple[str, ...], format: str, columns: dict[str, str], port: int | None, per_ip_cap: list[int],
    broker_cap: list[int], ip_rate: list[int], broker_rate: list[int], overrides: str, at_most_refused: float,
    compare: tuple[datetime, datetime] | None, html_path: Path | None, as_json: bool, master: str,
) -> None:  # fmt: skip
    """Replay a connection log against candidate limits, and recommend the smallest cap that normal traffic bears.

    Several candidates are combined: --per-ip-cap 5,10 --broker-cap 100,200 are four. A refused connection takes no
    place, and a close comes before an open at the same instant.
    """
    with _failing_in_one_sentence():
        from turnstile.pipeline.inputs.reading import load
        from turnstile.pipeline.plan.candidates import grid
        from turnstile.pipeline.plan.plan import LogPeriod
        from turnstile.pipeline.plan.plan import plan as run
        from turnstile.pipeline.plan.plan_page import page, printed

        candidates = grid(per_ip_cap, broker_cap, ip_rate, broker_rate, overrides)
        with _spark(master, [Path(each) for each in inputs], "plan") as spark:
            source = load(spark, inputs, format, columns=columns, port=port)
            incident = LogPeriod(*compare) if compare else None
            found = run(source, candidates, at_most_refused=at_most_refused, incident=incident)
            if html_path is not None:
                html_path.write_text(page(found, name=", ".join(inputs)), encoding="utf-8")
    click.echo(json.dumps(found.as_json()) if as_json else printed(found))


# ---- what they share


@contextmanager
def _failing_in_one_sentence() -> Iterator[None]:
    """What the user can act on is one sentence and exit code 1."""
    try:
        from turnstile.pipeline.errors import PipelineError
    except ImportError as error:
        raise click.ClickException(f"The pipeline's libraries are not installed: {error}.") from None
    try:
        yield
    except PipelineError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(str(error)) from None


@contextmanager
def _spark(master: str, inputs: list[Path], what: str, *, quiet: bool = False) -> Iterator[SparkSession]:
    from turnstile.pipeline.progress import shown
    from turnstile.pipeline.session import session

    small = master.startswith("local") and _size(inputs) < SMALL_BYTES
    with (
        session(master, app=f"turnstile {what}", small=small) as spark,
        shown(spark, what, enabled=False if quiet else None),
    ):
        yield spark


def _size(inputs: list[Path]) -> int:
    """Bytes of local inputs; a glob or an address elsewhere counts as large."""
    total = 0
    for path in inputs:
        if path.is_dir():
            total += sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        else:
            with suppress(OSError):
                total += path.stat().st_size
                continue
            total += SMALL_BYTES
    return total


def _journal_folder(path: Path) -> Path:
    """A data directory's journal, or the folder itself."""
    return path / "journal" if (path / "journal").is_dir() else path


@contextmanager
def _prepared(path: Path) -> Iterator[tuple[list[Path], int | None]]:
    """The folders to read a journal from, complete for every process up to the mono_ns that comes with them.

    What dead processes left is made parts; what live ones are writing is copied aside.
    """
    from broker.journal import converter, reader

    folder = _journal_folder(path)
    if not folder.is_dir():
        raise click.ClickException(f"There is no journal at {path}.")
    with suppress(OSError):  # a journal that can't be written to is read as it is
        converter.finish(folder)
    with tempfile.TemporaryDirectory(prefix="turnstile-") as aside:
        until_ns = reader.snapshot(folder, Path(aside))
        yield [folder, Path(aside)], until_ns
