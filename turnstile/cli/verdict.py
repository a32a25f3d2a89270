"""`turnstile verdict`: how a client lives with being throttled and refused, as a report card."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from broker.runtime.printable import printable
from turnstile.admin_client import AdminError
from turnstile.cli.cluster_command import admin_option, sentence, token_option
from turnstile.cli.output import VerdictUnknown, show_json
from turnstile.settings import as_entity


def _checks(context: click.Context, parameter: click.Parameter, given: str | None) -> list[str]:
    from turnstile.verdict.judge import CHECKS

    chosen = [word.strip() for word in given.split(",")] if given else list(CHECKS)
    unknown = [word for word in chosen if word not in CHECKS]
    if unknown:
        raise click.BadParameter(f"{unknown[0]} is no check; these are {', '.join(CHECKS)}")
    return chosen


def _target(context: click.Context, parameter: click.Parameter, given: str | None) -> dict[str, str] | None:
    if given is None:
        return None
    kind, _, name = given.partition("=")
    if kind not in ("client-id", "ip") or not name:
        raise click.BadParameter(f"{given!r} is not client-id=NAME or ip=ADDRESS")
    return {kind.replace("-", "_"): str(as_entity(given)[kind])}


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option("--checks", callback=_checks, metavar="NAME,...", help="Only these checks.  [default: all]")
@click.option("--attach", callback=_target, metavar="client-id=NAME|ip=ADDRESS",
              help="Judge a client of the running cluster at --admin instead of a command; others there are not disturbed by "
              "more than changes of configuration.")  # fmt: skip
@click.option("--topic", "topics", multiple=True, help="A topic of the private cluster, such as orders:6.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the order of the refusals.")
@click.option("--copies", type=click.IntRange(1, 50), default=5, show_default=True, help="Of the herd; 1: no herd.")
@click.option("--request-timeout", type=click.FloatRange(0.1), metavar="SECONDS",
              help="The client's request timeout: it is throttled for longer than that, too.")  # fmt: skip
@click.option("--quick", is_flag=True, help="A course of 20 seconds, for clients that try again within milliseconds.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A page with a timeline per check.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@admin_option
@token_option
def verdict(command: tuple[str, ...], checks: list[str], attach: dict[str, str] | None, topics: tuple[str, ...], seed: int,
            copies: int, request_timeout: float | None, quick: bool, html: Path | None, as_json: bool, admin: str,
            token: str | None) -> None:  # fmt: skip
    """Judge how a client lives with being throttled and refused.

    Runs COMMAND against a cluster of its own, which {bootstrap} in its words and $TURNSTILE_BOOTSTRAP name, and takes it
    through a course: throttling, refusals of several kinds, a shard killed, copies cut at one instant, SIGTERM.
    What is judged is what the broker saw.

    \b
    turnstile verdict -- python my_producer.py {bootstrap}
    turnstile verdict --checks kip219,backoff --html verdict.html -- java -jar my-consumer.jar
    turnstile verdict --attach client-id=orders

    Exit code 0, 1 when a check failed, 2 when nothing could be judged.
    """
    from turnstile.admin_client import AdminClient
    from turnstile.cluster import Cluster, ClusterError
    from turnstile.verdict.course import CannotJudge, Times
    from turnstile.verdict.run import PRIVATE, run, say_to_stderr
    from turnstile.verdict.running import RunningCluster

    if bool(command) == (attach is not None):
        raise click.UsageError("give a command behind --, or --attach")
    times = Times(copies=copies, request_timeout_s=request_timeout)
    times = replace(times.quick(), copies=copies) if quick else times
    say = (lambda told: None) if as_json else say_to_stderr
    options: dict[str, Any] = {"times": times, "checks": checks, "seed": seed, "target": attach, "say": say}
    try:
        if attach is not None:
            running = RunningCluster(AdminClient(admin, token))
            found = run(running, running.journal, None, **options)
        else:
            names = dict(_topic(topic) for topic in topics)
            with Cluster(topics=names, shards=2, limits=PRIVATE) as cluster:
                found = run(cluster, cluster.data_dir / "journal", command, **options)
    except AdminError as fault:
        raise VerdictUnknown(sentence(fault, admin)) from None
    except (CannotJudge, ClusterError, OSError) as fault:
        raise VerdictUnknown(str(fault)) from None
    if html is not None:
        from turnstile.verdict.page import page

        html.write_text(page(found), "utf-8")
    if as_json:
        show_json(found.as_json())
    else:
        _show(found)
    sys.exit(found.exit_code)


def _topic(text: str) -> tuple[str, int]:
    name, _, partitions = text.partition(":")
    return name, int(partitions or 1)


def _show(found: Any) -> None:
    from turnstile.verdict.card import COLOURS, lines, summary

    for told, first, below in lines(found):
        click.echo(click.style(f"{told:>8}", fg=COLOURS[told], bold=True) + f"  {first}")
        click.echo(printable(below, newlines=True))
    click.echo(summary(found))
