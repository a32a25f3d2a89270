"""`turnstile load`: arguments into a scenario, the scenario to the driver, its result to the terminal."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from turnstile.admin_client import AdminClient, AdminError
from turnstile.cli import completion
from turnstile.cli.cluster_command import admin_option, json_option, sentence, token_option, which_cluster
from turnstile.cli.load_on_spark import OnSpark, runs_on_spark, spark_options
from turnstile.cli.output import CommandFailed
from turnstile.cli.param_type import ParamType
from turnstile.interrupted import INTERRUPTED, SAID

if TYPE_CHECKING:
    from rich.console import Console

    from turnstile.load.driver import LoadResult
    from turnstile.load.expectations import Expectation
    from turnstile.load.output import RunJson
    from turnstile.load.probes import Login
    from turnstile.load.spec import LoadScenario

_DEFAULT_CONNECTIONS = 1000
_RECONNECT_FOR_S = 10.0
_EXPECTATION_MISSED = 99
_LIST_WIDTH = 80  # of --list in a pipe: prose, which a pager shows in a terminal of any width


class _Hold(ParamType[float]):
    name = "seconds|end"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = float("inf") if value == "end" else float(str(value))
        except ValueError:
            seconds = -1.0
        if not seconds >= 0:
            self.fail(f"{value!r} is neither seconds nor 'end'", param, ctx)
        return seconds


_UNLIMITED = (
    "Nothing was refused or throttled: this cluster has no limit that the scenario reaches. To see it without and with the "
    "limits that it is about:"
)


def _with_limits() -> str:
    """The command that was given, with --apply: without a token, which is not to be shown."""
    context = click.get_current_context()
    words = ["turnstile", "load", *which_cluster()]
    for name in ("master", "bootstrap", "scenario", "proxy_protocol"):
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            words += [f"--{name.replace('_', '-')}", str(context.params[name])]
    return shlex.join([*words, "--apply"])


class _LoginType(ParamType["Login"]):
    """A user and its password."""

    name = "login"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Login:
        from turnstile.load.probes import Login

        user, equals, password = str(value).partition("=")
        if not user or not equals or not password:
            self.fail(f"{value!r} is not NAME=PASSWORD.", param, ctx)
        return Login(user, password)


_POSITIVE = click.FloatRange(min=0, min_open=True)


@click.command()
@click.option("--bootstrap", help="Brokers, HOST:PORT,... .  [default: of the cluster at --admin, else 127.0.0.1:9092]")
@admin_option
@token_option
@click.option(
    "--scenario",
    metavar="NAME|FILE",
    shell_complete=completion.scenarios,
    help="A shipped scenario (see --list) or a TOML file.",
)
@click.option("--list", "listing", is_flag=True, help="List the shipped scenarios.")
@click.option("--replay", type=click.Path(path_type=Path), help="A connection log to repeat: Zeek conn.log, or CSV.")
@click.option(
    "--speed", type=_POSITIVE, default=1.0, show_default=True, help="With --replay: times as fast as the log."
)
@click.option("--sources", metavar="CIDR,...", help="Addresses to connect from, in turn, such as 127.1.0.0/22.")
@click.option(
    "--connections", type=click.IntRange(min=1), help="The number of clients.  [default: 1000, or rate x duration]"
)
@click.option("--rate", type=_POSITIVE, help="Clients that start per second.  [default: as fast as answers arrive]")
@click.option("--duration", type=_POSITIVE, help="Seconds after which no more connections are opened.")
@click.option(
    "--hold", type=_Hold(), default=0.0, help="Seconds a connection stays open; 'end': until all have answers."
)
@click.option("--reconnect", is_flag=True, help="Refused clients try again, with a back-off, for --duration (10 s).")
@click.option("--concurrency", type=click.IntRange(min=1), default=256, show_default=True,
              help="The most connections without an answer at a time; not with --rate.")  # fmt: skip
@click.option(
    "--processes",
    type=click.IntRange(1, 4096),
    help="Driver processes.  [default: one for two cores, up to 4; with --master one in each slot]",
)
@click.option("--probe", type=click.Choice(["apiversions", "login", "none"]), default="apiversions",
              help="The request whose answer shows that a connection was admitted.  [default: apiversions; login with --user, and "
              "if turnstile.refuse.mode answers refused connections]")  # fmt: skip
@click.option("--user", type=_LoginType(), metavar="NAME=PASSWORD", help="The user of each connection (SASL PLAIN).")
@click.option(
    "--grace",
    type=_POSITIVE,
    default=1.0,
    show_default=True,
    help="With --probe none: a connection counts as admitted after so many seconds.",
)
@click.option("--timeout", type=_POSITIVE, default=30.0, show_default=True, help="Seconds to wait for an answer.")
@click.option("--expect", "expected", multiple=True, metavar="TEXT",
              help="A condition on the results, such as 'refused<1%' or 'p99<50ms'; exit code 99 if it does not hold.")  # fmt: skip
@click.option("--apply", is_flag=True,
              help="Run the scenario twice, without and with the limits that it suggests, and show both side by side.")  # fmt: skip
@click.option("--proxy-protocol", type=click.Choice(["v1", "v2"]),
              help="Begin each connection with a PROXY header, as a proxy does; it announces --sources.")  # fmt: skip
@click.option(
    "--close", type=click.Choice(["fin", "rst"]), default="fin", show_default=True, help="Close by FIN or RST."
)
@spark_options
@json_option
def load(bootstrap: str | None, admin: str, token: str | None, scenario: str | None, listing: bool, as_json: bool,
         processes: int | None, expected: tuple[str, ...], apply: bool, on: OnSpark | None, **options: object) -> None:  # fmt: skip
    """Drive connections and traffic, and compare the results with the cluster's own counts.

    Exit code 0: done. 1: the load failed, or the cluster's counts differ from the results. 99: a condition of --expect does
    not hold; with --apply, in the run with the limits. 130: Ctrl-C; the results up to then are shown.

    \b
    turnstile load --sources 127.1.0.0/22 --connections 5000
    turnstile load --sources 127.1.0.1 --rate 200 --duration 20 --hold 5
    turnstile load --scenario nat
    turnstile load --scenario nat --apply
    turnstile load --scenario nat --expect 'refused<1%' --expect 'office.p99<50ms'
    turnstile load --replay conn.log --sources 127.1.0.0/16 --speed 10
    turnstile load --bootstrap 127.0.0.1:9093 --proxy-protocol v2 --sources 203.0.113.0/24

    With --master the drivers are tasks of a Spark cluster, one in each slot, and start together. Each drives its share of the
    clients from addresses of its host. Workers need Python and Spark. A scenario's real clients run on this machine.

    \b
    turnstile load --master spark://host:7077 --bootstrap broker:9092 --worker-sources 10.0.0.0/8 --connections 100000
    """
    from rich.console import Console

    from turnstile.load import output, side_by_side
    from turnstile.load.bootstrap import bootstrap_of
    from turnstile.load.comparison import compare
    from turnstile.load.raw_sockets import DriverError

    out, bar_console = Console(), Console(stderr=True)
    if not out.is_terminal:
        out.width = 120
    if listing:
        if not out.is_terminal:
            out.width = _LIST_WIDTH
        _list(out, as_json=as_json)
        return
    chosen, expectations = _checked(scenario, options, expected)
    if apply and not chosen.suggested:
        raise click.UsageError("--apply needs a scenario that suggests limits.")
    if on is not None and chosen.proxy_protocol is not None:
        raise click.UsageError(
            "--proxy-protocol does not go with --master: PROXY headers announce any address from here."
        )
    if chosen.story and not as_json:
        out.print(f"[bold]{chosen.title}[/]. {chosen.story}", highlight=False)
        for command in chosen.suggested.commands():
            out.print(f"  {'with' if apply else 'try'}: {command}", highlight=False, markup=False)
    cluster = AdminClient(admin, token)
    chosen = _asking_further(chosen, cluster)

    try:
        with _runs(on, chosen, bootstrap or bootstrap_of(cluster), cluster, processes, bar_console) as run_once:
            both = compare(chosen, cluster, run_once) if apply else None
            result = run_once() if both is None else both.limited or both.plain
    except DriverError as fault:
        raise CommandFailed(str(fault)) from None
    except AdminError as fault:
        raise CommandFailed(sentence(fault, cluster.url)) from None
    interrupted, disagrees = result.interrupted, result.reconciliation.agree is False
    judged = output.as_json(result)
    if both is not None:
        interrupted, disagrees = both.interrupted, both.disagrees
    if as_json:
        click.echo(json.dumps(judged if both is None else side_by_side.as_json(both)))
    elif both is not None:
        side_by_side.show(both, out)
    else:
        output.show(result, out)
        if chosen.suggested and not interrupted and not result.limited:
            out.print(f"{_UNLIMITED}\n  {_with_limits()}", highlight=False, markup=False, soft_wrap=True)
    lost = result.lost if both is None else both.lost
    for driver in lost:
        click.echo(f"{driver.loss}.", err=True)
    if interrupted:
        click.echo(SAID, err=True)
        sys.exit(INTERRUPTED)
    if disagrees or lost:
        sys.exit(1)
    _judge(expectations, judged)


def _asking_further(chosen: LoadScenario, cluster: AdminClient) -> LoadScenario:
    """The scenario, with a probe that recognises refused connections that are answered, where the cluster has such."""
    from dataclasses import replace

    from turnstile.load.probes import API_VERSIONS, LOGIN, refuses_with_an_answer

    given = click.get_current_context().get_parameter_source("probe")
    by_default = given is click.core.ParameterSource.DEFAULT and chosen.probe == API_VERSIONS
    return replace(chosen, probe=LOGIN) if by_default and refuses_with_an_answer(cluster) else chosen


@contextmanager
def _runs(
    on: OnSpark | None,
    chosen: LoadScenario,
    bootstrap: str,
    cluster: AdminClient,
    processes: int | None,
    console: Console,
) -> Iterator[Callable[[], LoadResult]]:
    """The function that runs the scenario once: here, or on the workers of a Spark cluster."""
    if on is not None:
        with runs_on_spark(on, chosen, bootstrap, cluster, processes) as on_workers:
            yield on_workers
        return
    from turnstile.load import output
    from turnstile.load.driver import run

    def run_once() -> LoadResult:
        with output.Bar(chosen, console) as bar:
            return run(chosen, bootstrap, cluster, processes=processes, watch=bar)

    yield run_once


def _list(out: Console, *, as_json: bool) -> None:
    from turnstile.load import output
    from turnstile.load import scenario_file as scenarios

    shipped = scenarios.shipped()
    if as_json:
        click.echo(json.dumps([{"name": s.name, "title": s.title, "story": s.story} for s in shipped]))
    else:
        out.print(output.list_of(shipped))


class _CheckedOptions(NamedTuple):
    """The scenario that the options ask for, and what has to hold of it."""

    scenario: LoadScenario
    expectations: list[Expectation]


def _checked(name: str | None, options: dict[str, object], expected: tuple[str, ...]) -> _CheckedOptions:
    """Raises UsageError, with a sentence."""
    from turnstile.load.expectations import parse
    from turnstile.load.spec import SpecInvalid

    try:
        expectations = [parse(text) for text in expected]
        chosen = _scenario(name, options)
        groups = [group.name for group in chosen.groups]
        for each in expectations:
            if each.group is not None and each.group not in groups:
                raise ValueError(
                    f"{each.text!r}: {each.group} is not a group of this load; its groups are {', '.join(groups)}"
                )
    except (SpecInvalid, ValueError) as wrong:
        raise click.UsageError(str(wrong)) from None
    return _CheckedOptions(chosen, expectations)


def _judge(expectations: list[Expectation], result: RunJson) -> None:
    """Ends the command where an expectation is missed."""
    missed = [why for each in expectations if (why := each.judge(result)) is not None]
    for why in missed:
        click.echo(f"missed: {why}", err=True)
    if missed:
        sys.exit(_EXPECTATION_MISSED)


def _scenario(name: str | None, options: dict[str, Any]) -> LoadScenario:
    """The scenario that the options ask for. Raises SpecInvalid or ValueError, with a sentence."""
    from dataclasses import replace

    from turnstile.load import connlog
    from turnstile.load import scenario_file as scenarios
    from turnstile.load.probes import LOGIN
    from turnstile.load.sources import Sources
    from turnstile.load.spec import ClientGroup, LoadScenario

    given = click.get_current_context().get_parameter_source
    chosen_by_hand = [n for n in ("sources", "connections", "rate", "duration", "hold", "reconnect", "concurrency")
                      if given(n) is not click.core.ParameterSource.DEFAULT]  # fmt: skip
    if name is not None:
        if chosen_by_hand or options["replay"]:
            other = chosen_by_hand[0] if chosen_by_hand else "replay"
            raise ValueError(f"--{other} does not go with --scenario, which defines the whole load.")
        found = scenarios.find(name)
        announcing = options["proxy_protocol"]
        return found if announcing is None else replace(found, proxy_protocol=announcing)
    sources = Sources(options["sources"]) if options["sources"] else None
    if options["replay"] is not None:
        if sources is None:
            raise ValueError("--replay needs --sources, a range of addresses to use in place of the log's.")
        made = connlog.replay(options["replay"], sources, speed=options["speed"])
    else:
        rate, duration, connections = options["rate"], options["duration"], options["connections"]
        if rate and not connections and not duration:
            raise ValueError("--rate needs --duration or --connections.")
        if options["reconnect"] and not duration:
            duration = _RECONNECT_FOR_S
        clients = connections or (max(1, round(rate * duration)) if rate else _DEFAULT_CONNECTIONS)
        group = ClientGroup(
            clients=clients, sources=sources, rate=rate, duration_s=duration, hold_s=options["hold"],
            reconnect=options["reconnect"], concurrency=options["concurrency"],
        )  # fmt: skip
        made = LoadScenario(name="storm", groups=(group,))
    login = options["user"]
    by_default = given("probe") is click.core.ParameterSource.DEFAULT
    return replace(
        made,
        probe=LOGIN if login is not None and by_default else options["probe"],
        user=login.user if login is not None else "",
        password=login.password if login is not None else "",
        grace_s=options["grace"],
        timeout_s=options["timeout"],
        close=options["close"],
        proxy_protocol=options["proxy_protocol"],
    )
