"""`turnstile verdict`: judges how a client behaves when it is throttled and refused, as a report card."""

from __future__ import annotations

import shutil
import sys
import time
from ipaddress import ip_address
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import click

from broker.runtime.printable import printable
from turnstile.admin_client import AdminError
from turnstile.cli.cluster_command import admin_option, sentence, token_option
from turnstile.cli.endings import undone
from turnstile.cli.output import STDERR, STDOUT, VerdictUnknown, discard, show_json
from turnstile.settings import as_entity

if TYPE_CHECKING:
    from turnstile.cluster import Cluster
    from turnstile.verdict.run import Verdict

_ANY_PORT = "127.0.0.1:0"
_READER = "READER"
"""The listener at which the records are read back."""
_LONGEST_S = 600
_UNWRITTEN = 2
"""Exit code where the page could not be written, whatever the verdict: as where there is none."""


def _checks(context: click.Context, parameter: click.Parameter, given: str | None) -> list[str]:
    from turnstile.verdict.judge import CHECKS

    chosen = [word.strip() for word in given.split(",")] if given is not None else list(CHECKS)
    unknown = [word for word in chosen if word not in CHECKS]
    if unknown:
        raise click.BadParameter(f"{unknown[0]!r} is not a check; the checks are {', '.join(CHECKS)}")
    return chosen


def _target(context: click.Context, parameter: click.Parameter, given: str | None) -> dict[str, str] | None:
    if given is None:
        return None
    kind, _, name = given.partition("=")
    if kind not in ("client-id", "ip") or not name:
        raise click.BadParameter(f"{given!r} is not client-id=NAME or ip=ADDRESS")
    if kind == "ip":
        try:
            return {kind: str(ip_address(name))}
        except ValueError:
            raise click.BadParameter(f"{name!r} is not an address, such as 10.0.0.1") from None
    return {kind.replace("-", "_"): str(as_entity(given)[kind])}


def _topics(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for text in given:
        name, colon, partitions = text.partition(":")
        if not name or (colon and not partitions.isdecimal()):
            raise click.BadParameter(f"{text!r} is not a topic, such as orders or orders:6")
        found[name] = int(partitions or 1)
    return found


def _users(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in given:
        name, _, password = text.partition("=")
        if not name or not password:
            raise click.BadParameter(f"{text!r} is not NAME=PASSWORD")
        found[name] = password
    return found


def _finite(context: click.Context, parameter: click.Parameter, given: float | None) -> float | None:
    """No number is neither below a range nor above it."""
    if given is not None and isnan(given):
        raise click.BadParameter("nan is not a number of seconds")
    return given


def _page_file(context: click.Context, parameter: click.Parameter, given: Path | None) -> Path | None:
    """A file that can be written, which is better known before the course than after it."""
    if given is not None:
        try:
            was_there = given.exists()
            given.open("a").close()
            if not was_there:
                given.unlink()
        except OSError as fault:
            raise click.BadParameter(f"{given} can't be written: {fault.strerror}") from None
    return given


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option("--checks", callback=_checks, metavar="NAME,...", help="Run only these checks.  [default: all]")
@click.option("--attach", callback=_target, metavar="client-id=NAME|ip=ADDRESS",
              help="Judge a client of the running cluster at --admin instead of a command. Other clients notice no more than "
              "changes of the configuration.")  # fmt: skip
@click.option(
    "--topic", "topics", multiple=True, callback=_topics, help="A topic to create in the cluster, such as orders:6."
)
@click.option("--user", "users", multiple=True, callback=_users, metavar="NAME=PASSWORD",
              help="A user of the cluster. Clients then have to log in, by PLAIN or SCRAM.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The seed of the order of refusals.")
@click.option("--copies", type=click.IntRange(1, 50), default=5, show_default=True,
              help="The number of copies of the command for the check herd; 1: no herd.")  # fmt: skip
@click.option("--request-timeout", type=click.FloatRange(0.1, _LONGEST_S), callback=_finite, metavar="SECONDS",
              help="The client's request timeout. The course then also throttles for longer than that.")  # fmt: skip
@click.option(
    "--quick", is_flag=True, help="A course of less than a minute, for clients that retry within milliseconds."
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_page_file,
    metavar="FILE",
    help="Also write an HTML page with a timeline for each check.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@admin_option
@token_option
def verdict(command: tuple[str, ...], checks: list[str], attach: dict[str, str] | None, topics: dict[str, int],
            users: dict[str, str], seed: int, copies: int, request_timeout: float | None, quick: bool, html: Path | None,
            as_json: bool, admin: str, token: str | None) -> None:  # fmt: skip
    """Judge how a client behaves when it is throttled and refused.

    Starts a cluster and runs COMMAND against it, which finds the cluster by {bootstrap} in its words or by $TURNSTILE_BOOTSTRAP.
    The course: throttling, several kinds of refusal, a killed shard, copies refused at one instant, SIGTERM. The verdict rests
    on what the broker saw.

    \b
    turnstile verdict -- python my_producer.py {bootstrap}
    turnstile verdict --checks kip219,backoff --html verdict.html -- java -jar my-consumer.jar
    turnstile verdict --attach client-id=orders

    Exit code 1: a check failed. 2: no check could be judged, or the page could not be written. Else 0.
    """
    from turnstile.admin_client import AdminClient
    from turnstile.cluster import ClusterError
    from turnstile.verdict.judged import CannotJudge
    from turnstile.verdict.run import VerdictOptions, run
    from turnstile.verdict.running import RunningCluster
    from turnstile.verdict.times import Times

    if bool(command) == (attach is not None):
        raise click.UsageError("give a command after --, or --attach")
    times = Times(copies=copies, request_timeout_s=request_timeout)
    say = (lambda line: None) if as_json else _say
    options: VerdictOptions = {"times": times.quick() if quick else times, "checks": checks, "seed": seed, "say": say}
    try:
        with undone():
            if attach is not None:
                running = RunningCluster(AdminClient(admin, token))
                found = run(running, running.journal, None, target=attach, **options)
            else:
                with _private(command[0], topics, users) as cluster:
                    read_at = cluster.bootstrap_of(_READER) if users else None
                    found = run(cluster, cluster.data_dir / "journal", command, read_at=read_at, **options)
    except AdminError as fault:
        raise VerdictUnknown(sentence(fault, admin) if attach else f"the cluster has ended: {fault}") from None
    except (CannotJudge, ClusterError, OSError) as fault:
        raise VerdictUnknown(str(fault)) from None
    try:
        show_json(found.as_json()) if as_json else _show(found)
    except BrokenPipeError:
        discard(STDOUT)
    sys.exit(found.exit_code if html is None or _is_written(found, html) else _UNWRITTEN)


def _is_written(found: Verdict, html: Path) -> bool:
    """The page, which the verdict does not wait for; where it can't be written, that is said."""
    from turnstile.verdict.page import page

    try:
        html.write_bytes(page(found).encode("utf-8", "replace"))  # a command need not be UTF-8
    except OSError as fault:
        click.echo(f"{html} can't be written: {fault.strerror}", err=True)
        return False
    return True


def _private(program: str, topics: dict[str, int], users: dict[str, str]) -> Cluster:
    """A cluster to judge a program by. With `users`, clients have to log in at its first listener."""
    from turnstile.cluster import Cluster
    from turnstile.verdict.judged import CannotJudge
    from turnstile.verdict.run import PRIVATE

    if shutil.which(program) is None:
        raise CannotJudge(f"{program} is not a command that can be run")
    listeners = [f"CLIENTS={_ANY_PORT},sasl", f"{_READER}={_ANY_PORT}"] if users else []
    return Cluster(topics=topics, users=users, listeners=listeners, shards=2, limits=PRIVATE)


def _say(sentence: str) -> None:
    """Progress, for a person who waits."""
    try:
        click.echo(f"  {time.strftime('%H:%M:%S')}  {sentence}", err=True)
    except BrokenPipeError:
        discard(STDERR)


def _show(found: Verdict) -> None:
    from turnstile.verdict.card import COLOURS, lines, summary

    for word, first, below in lines(found):
        click.echo(click.style(f"{word:>8}", fg=COLOURS[word], bold=True) + f"  {first}")
        click.echo(printable(below, newlines=True))
    click.echo(summary(found))
