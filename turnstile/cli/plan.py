"""`turnstile plan`: a connection log against candidate limits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from turnstile.cli.cluster_command import json_option
from turnstile.cli.output import CommandFailed
from turnstile.cli.param_type import ParamType
from turnstile.cli.plan_quotas import BY, FORMATS, Parsed, QuotaSpec, plan_quotas
from turnstile.cli.spark_job import (
    SparkOptions,
    check_writable,
    failing_in_one_sentence,
    journal_folder,
    prepared_journal,
    spark_options,
    spark_starting,
    write_page,
)
from turnstile.pipeline.inputs import formats
from turnstile.pipeline.paths_and_uris import is_uri
from turnstile.pipeline.progress import shown, step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from turnstile.pipeline.inputs.connection_logs import Input
    from turnstile.pipeline.inputs.small_log import SmallLog
    from turnstile.pipeline.plan.plan import LimitPlan


_ONE_LOG = "a log of {} does not say whether it has the connections to all brokers."


class _Numbers(ParamType[list[int]]):
    name = "N,N,..."

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        if isinstance(value, list):
            return value
        try:
            return [int(part) for part in str(value).split(",") if part.strip()]
        except ValueError:
            self.fail(f"{value!r} is not a list of whole numbers such as 5,10,20", param, ctx)


class _Mapping(ParamType[dict[str, str]]):
    name = "NAME=COLUMN,..."

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, str]:
        if isinstance(value, dict):
            return value
        pairs = [part.partition("=") for part in str(value).split(",")]
        if not all(name.strip() and column.strip() for name, _, column in pairs):
            self.fail(f"{value!r} is not of the form ip=src,opened_at=start", param, ctx)
        return {name.strip(): column.strip() for name, _, column in pairs}


class _Percent(ParamType[Fraction]):
    name = "N%"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Fraction:
        if isinstance(value, Fraction):
            return value
        number, is_percent, rest = str(value).partition("%")
        if not is_percent or rest.strip() or not number.strip().isdecimal():
            self.fail(f"{value!r} is not of the form 50%", param, ctx)
        return Fraction(int(number), 100)


class IncidentSpan(NamedTuple):
    """The beginning and the end of an incident, in UTC."""

    start: datetime
    end: datetime


class _Window(ParamType[IncidentSpan]):
    name = "START/END"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> IncidentSpan:
        if isinstance(value, IncidentSpan):
            return value
        try:
            start, end = (_utc(datetime.fromisoformat(part)) for part in str(value).split("/"))
        except ValueError:
            self.fail(f"{value!r} is not of the form 2026-01-05T10:00/2026-01-05T10:30 (UTC)", param, ctx)
        if start >= end:
            self.fail(f"{value!r} ends before it starts", param, ctx)
        return IncidentSpan(start, end)


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _or_journal(context: click.Context, parameter: click.Parameter, given: str | None) -> str:
    """The format that was given, else `journal` if all inputs are data directories. Raises MissingParameter."""
    inputs: Sequence[str] = context.params.get("inputs") or ()
    if given is None and (not inputs or any(journal_folder(each) == each for each in inputs)):
        raise click.MissingParameter(ctx=context, param=parameter)
    return given or "journal"


@click.command()
@click.option(
    "--input", "inputs", multiple=True, required=True, help="A log: a file, folder or glob. May be given again."
)
@click.option(
    "--format",
    "format",
    type=click.Choice(tuple(dict.fromkeys((*formats.FORMATS, *FORMATS)))),
    callback=_or_journal,
    help="The format of the log. A data directory of Turnstile is a journal.",
)
@click.option(
    "--quotas", is_flag=True, help="Plan client quotas: of bytes, request time and mutations, by user and client id."
)
@click.option(
    "--quota", "quota_candidates", type=QuotaSpec(), multiple=True,
    help="With --quotas: a candidate of one or more quotas, such as 'client-id=<default> producer_byte_rate=1000; client-id=app "
    "producer_byte_rate=5000'. May be given again.",
)  # fmt: skip
@click.option(
    "--by",
    type=click.Choice(("ip", *BY)),
    help="Count connections by ip or user.  [default: ip]  With --quotas: the kind of entity that gets a default quota.  "
    "[default: user if clients log in, else client-id]",
)
@click.option(
    "--columns",
    type=_Mapping(),
    default={},
    help="The columns of csv and parquet: ip=src,user=login,opened_at=start,closed_at=end,...",
)
@click.option("--port", type=int, help="Only connections to this server port (zeek, vpcflow).")
@click.option("--per-ip-cap", type=_Numbers(), default=[], help="Candidates for kafka_connections_max_per_ip.")
@click.option(
    "--ipv6-prefix", type=click.IntRange(1, 128), default=128, show_default=True,
    help="Count all IPv6 clients of a network with this prefix length as one address, like turnstile.ipv6.prefix.length.",
)  # fmt: skip
@click.option(
    "--per-user-cap",
    type=_Numbers(),
    default=[],
    help="With --by user: candidates for turnstile.max.connections.per.user.",
)
@click.option("--broker-cap", type=_Numbers(), default=[], help="Candidates for kafka_connections_max.")
@click.option("--ip-rate", type=_Numbers(), default=[], help="Candidates for connection_creation_rate of each IP.")
@click.option(
    "--user-rate", type=_Numbers(), default=[],
    help="With --by user: candidates for turnstile.max.connection.creation.rate.per.user.",
)  # fmt: skip
@click.option("--broker-rate", type=_Numbers(), default=[], help="Candidates for max.connection.creation.rate.")
@click.option(
    "--cluster-rate", type=_Numbers(), default=[],
    help="Candidates for turnstile.cluster.max.connection.creation.rate. Needs a journal, or --whole-cluster.",
)  # fmt: skip
@click.option(
    "--whole-cluster", is_flag=True,
    help="The log has the connections to all brokers of a cluster, as a journal has: recommend limits of the cluster, too.",
)  # fmt: skip
@click.option(
    "--overrides", default="", help="Overrides for all candidates: ip:count,network:count,... or user:count,..."
)
@click.option(
    "--at-most-refused",
    type=click.FloatRange(0, 1),
    default=0.001,
    show_default=True,
    help="The share of connections that a recommendation may refuse; with --quotas, of charges that it may throttle.",
)
@click.option(
    "--headroom", type=_Percent(), default="50%", show_default=True,
    help="The headroom that a recommendation adds to the use in this log.",
)  # fmt: skip
@click.option("--with-leaks", is_flag=True, help="Include clients that leak connections in the recommendation.")
@click.option("--compare", type=_Window(), help="An incident, START/END in UTC, to compare with the rest of the log.")
@click.option("--html", help="Also write an HTML page with charts to this path or URI.")
@json_option
@spark_options
def plan(
    inputs: tuple[str, ...], format: str, columns: dict[str, str], port: int | None, per_ip_cap: list[int],
    ipv6_prefix: int, per_user_cap: list[int], broker_cap: list[int], ip_rate: list[int], user_rate: list[int],
    broker_rate: list[int], cluster_rate: list[int], whole_cluster: bool, overrides: str, at_most_refused: float,
    headroom: Fraction, quotas: bool, quota_candidates: tuple[Parsed, ...], by: str | None, with_leaks: bool,
    compare: IncidentSpan | None, html: str | None, as_json: bool, on: SparkOptions,
) -> None:  # fmt: skip
    """Replay a log against candidate limits, and recommend the smallest limits that normal traffic needs, with headroom.

    A log of connections gives caps and rates. With --quotas, a log of requests gives client quotas.

    \b
    turnstile plan --input conn.log --format zeek --per-ip-cap 10,50,100
    turnstile plan --by user --input data --per-user-cap 5,20
    turnstile plan --quotas --input requests.log --format kafka-requests
    turnstile plan --quotas --input data --quota 'client-id=<default> producer_byte_rate=1000000'

    A log of requests is kafka-requests (Kafka's logger kafka.request.logger at DEBUG) or a journal (of clients that ran against
    Turnstile under any quota). Its charges are replayed one by one, as `turnstile replay` does.

    With --by user a connection counts from its login. That needs a journal, or a table (csv, parquet) with a column of users.

    Candidates are combined: --per-ip-cap 5,10 --broker-cap 100,200 makes four. A refused connection takes no place. At the same
    instant closes come before opens.

    A log of up to some million connections is read in this process. Spark reads a larger one, one at a URI, and any with
    --master or --conf.
    """
    of_entities: dict[str, dict[str, Any]] = {
        "ip": {
            "--per-ip-cap": per_ip_cap, "--ip-rate": ip_rate, "--broker-cap": broker_cap, "--broker-rate": broker_rate,
            "--ipv6-prefix": ipv6_prefix != 128, "--cluster-rate": cluster_rate, "--whole-cluster": whole_cluster,
        },
        "user": {"--per-user-cap": per_user_cap, "--user-rate": user_rate},
    }  # fmt: skip
    if quotas or quota_candidates or by not in (None, *of_entities) or format not in formats.FORMATS:
        _check_quota_options(quotas, format, by, {
            **of_entities["ip"], **of_entities["user"], "--overrides": overrides, "--port": port, "--columns": columns,
            "--compare": compare, "--with-leaks": with_leaks, "--master": on.master, "--conf": on.conf,
        })  # fmt: skip
        plan_quotas(
            inputs, format, quota_candidates, by=by, at_most_throttled=at_most_refused, headroom=headroom, html=html,
            as_json=as_json,
        )  # fmt: skip
        return
    counted_by = _counted_by(by, format, of_entities)
    check_writable(html)
    with failing_in_one_sentence(), _places(inputs, format) as places:
        from turnstile.pipeline.inputs.entities import USER, EntityType, Ips
        from turnstile.pipeline.inputs.small_log import read_small_log
        from turnstile.pipeline.plan import plan as planning
        from turnstile.pipeline.plan.candidates import grid
        from turnstile.pipeline.plan.plan_page import page

        entity: EntityType = USER if counted_by == "user" else Ips(ipv6_prefix)
        caps, rates = (per_user_cap, user_rate) if counted_by == "user" else (per_ip_cap, ip_rate)
        candidates = grid(caps, broker_cap, rates, broker_rate, overrides, entity)
        is_for_spark = on.is_asked_for or any(map(is_uri, (*inputs, html or "")))

        def finish(source: Input | SmallLog, spark: SparkSession | None = None) -> LimitPlan:
            found = planning.plan(
                source, candidates, at_most_refused=at_most_refused, headroom=headroom,
                incident=planning.LogPeriod(*compare) if compare else None, with_leaks=with_leaks, whole_cluster=whole_cluster,
                cluster_rates=cluster_rate,
            )  # fmt: skip
            if html is not None:
                write_page(page(found, of=", ".join(inputs)), html, spark)
            return found

        with shown("plan"):
            log = None if is_for_spark else read_small_log(places, format, columns=columns, port=port, by=entity)
            if log is not None:
                step("replaying")
                found = finish(log)
        if log is None:
            with spark_starting(on, inputs, "plan") as starting:
                from turnstile.pipeline.inputs.connection_logs import load

                source = load(starting.spark(), places, format, columns=columns, port=port, by=entity)
                found = finish(source, starting.spark())
    _show(found, html, as_json=as_json)


def _show(found: LimitPlan, html: str | None, *, as_json: bool) -> None:
    from turnstile.pipeline.plan.plan_text import printed

    if as_json:
        click.echo(json.dumps(found.as_json()))
        return
    click.echo(printed(found))
    click.echo(f"\n{html}: the same with pictures" if html else "\nWith pictures: --html plan.html")


def _counted_by(by: str | None, format: str, options: Mapping[str, Mapping[str, Any]]) -> str:
    """The type of entity that connections are counted by. `options`: of plans by each type. Raises UsageError if they do not go
    together."""
    counted_by = by or "ip"
    for other, of_type in options.items():
        if other != counted_by and (useless := [name for name, value in of_type.items() if value]):
            raise click.UsageError(f"{useless[0]} needs --by {other}.")
    of_ips = options["ip"]
    if of_ips["--cluster-rate"] and format != "journal" and not of_ips["--whole-cluster"]:
        raise click.UsageError(f"--cluster-rate needs --whole-cluster or a journal: {_ONE_LOG.format(format)}")
    if counted_by == "user" and format not in formats.WITH_USERS:
        with_users = ", ".join(formats.WITH_USERS)
        raise click.UsageError(f"A log in format {format} has no users: --by user needs {with_users}.")
    return counted_by


@contextmanager
def _places(inputs: Sequence[str], format: str) -> Iterator[Sequence[str]]:
    """The places of the logs: of a journal, those of all its events, as of a live cluster or in a data directory."""
    if format != "journal" or any(map(is_uri, inputs)):
        yield inputs
        return
    if len(inputs) > 1:
        raise CommandFailed("plan takes only one journal: two clusters use the same numbers for their connections.")
    with prepared_journal(inputs[0]) as prepared:
        yield [str(folder) for folder in prepared.folders]


def _check_quota_options(quotas: bool, format: str, by: str | None, given: dict[str, Any]) -> None:
    """Raises UsageError if the options do not make a plan of client quotas; `given`: those of plans of connections alone."""
    if not quotas:
        of_quotas = f"--quota, --by client-id and the formats {' and '.join(FORMATS[1:])}"
        raise click.UsageError(f"{of_quotas} need --quotas.")
    if by == "ip":
        raise click.UsageError(f"--quotas can't plan by ip, only by {' or '.join(BY)}.")
    if format not in FORMATS:
        raise click.UsageError(
            f"--quotas needs a log of requests, --format {' or '.join(FORMATS)}; a log in format {format} has connections."
        )
    if others := [name for name, value in given.items() if value]:
        raise click.UsageError(f"{others[0]} does not go with --quotas.")
