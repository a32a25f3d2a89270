"""The `turnstile` command: arguments in, calls out, nothing else. Each command imports what it needs when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click

from turnstile.cli.suggest import Commands
from turnstile.interrupted import INTERRUPTED, SAID, undo_first

COMMANDS = {
    "demo": "Run a cluster and a load, and show which clients were refused and why, in half a minute.",
    "init": "Write a turnstile.toml to start from.",
    "up": "Launch a cluster.",
    "presets": "List the limits that managed clusters publish, for `up --like`.",
    "config": "Read, change and rehearse limits and other settings, live.",
    "quota": "Read and change quotas of IPs, users and client ids.",
    "explain": "Show the limits that hold for an address or a client, and their use.",
    "advertise": "Set the advertised addresses, live.",
    "user": "Add and remove users for listeners with SASL.",
    "fault": "Make answers fail, wait or vanish, for an API, a client or an address.",
    "telemetry": "Show the metrics that clients push (KIP-714).",
    "top": "Watch connections, limits and refusals as they happen.",
    "connections": "List open connections, with their clients and idle times.",
    "topic": "List and create topics.",
    "logs": "Show the messages of a detached cluster.",
    "restart": "End a running cluster and start it again, on the same ports and data.",
    "down": "End a running cluster.",
    "health": "Check whether a cluster answers, for health checks and scripts that wait.",
    "status": "Show the processes of a running cluster, and list other running clusters.",
    "completion": "Print the script by which a shell completes commands, settings and names.",
    "schema": "Print the JSON Schema of a file, or the admin API as OpenAPI.",
    "load": "Drive connections and traffic, and compare the results with the cluster's own counts.",
    "verdict": "Judge how a client behaves when it is throttled and refused.",
    "replay": "Run a scenario through the limits under virtual time.",
    "audit": "Prove from a journal that no limit was exceeded (Spark).",
    "report": "Show which clients were refused, when and why (Spark).",
    "followed": "Show the counts of `report --follow` (Spark).",
    "plan": "Replay a connection log against candidate limits (Spark).",
}
"""Each command and its line of help. Command `x` is the object `x` of turnstile/cli/x.py."""


class _Lazy(Commands):
    """Imports a command's module when that command runs, so that the others don't pay for it."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        from turnstile.cli.output import naming_closed_output

        with naming_closed_output():  # of --help and --version
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        from turnstile.cli.output import naming_closed_output

        with naming_closed_output():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        from broker.runtime.collector import paused

        with paused():
            command: click.Command = getattr(import_module(f"turnstile.cli.{cmd_name}"), cmd_name)
        _name_variables(command, f"TURNSTILE_{cmd_name}")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _name_variables(command: click.Command, prefix: str) -> None:
    """Gives each option its variable of the environment: `up --admin-port` is TURNSTILE_UP_ADMIN_PORT."""
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            _name_variables(each, f"{prefix}_{name}")
    for option in command.params:
        if isinstance(option, click.Option) and option.envvar is None:
            longest = max(option.opts, key=len).lstrip("-")
            option.envvar = f"{prefix}_{longest}".replace("-", "_").upper()


def _show_version(ctx: click.Context, param: click.Parameter, is_asked: bool) -> None:
    if not is_asked or ctx.resilient_parsing:
        return
    from turnstile.version import described

    click.echo(f"turnstile, version {described()}")
    ctx.exit()


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def turnstile() -> None:
    """A Kafka-compatible broker emulator that really enforces connection caps, creation rates and client quotas.

    \b
    turnstile demo                                         see it work
    turnstile up --set kafka_connections_max_per_ip=50     launch it
    turnstile load --sources 127.1.0.0/24 --connections 500 --hold 5
    turnstile config set kafka_connections_max_per_ip 10   enforced when it returns
    turnstile top                                          watch

    \b
    source <(turnstile completion bash)                    completion; zsh and fish, too

    Ctrl-C ends a command with exit code 130. Four commands run until Ctrl-C, and then end with exit code 0: `turnstile up` once
    it is up, `top`, `logs --follow` and `report --follow`.
    """
    undo_first()


def _import_ours() -> None:
    """The packages `broker` and `shards` that were installed with this one, not modules of these names on PYTHONPATH."""
    home = str(Path(__file__).parents[2])
    sys.path.insert(0, home)
    try:
        import broker  # noqa: F401
        import shards  # noqa: F401
    finally:
        sys.path.remove(home)


def _name_the_variable(fault: click.ClickException) -> None:
    """Has the sentence about a value from the environment name the variable, and not an option that was not typed."""
    option = fault.param if isinstance(fault, click.BadParameter) else None
    if not isinstance(option, click.Option) or {word.partition("=")[0] for word in sys.argv} & set(option.opts):
        return
    names = [option.envvar] if isinstance(option.envvar, str) else option.envvar or ()
    used = next((name for name in names if os.environ.get(name)), None)
    if used is not None:
        assert isinstance(fault, click.BadParameter)
        fault.param_hint = f"'{used}'"


def main() -> None:
    """Entry point: a mistake of the user's ends in one sentence and exit code 1 or 2, Ctrl-C in one line and 130, output that
    can't be written in 2."""
    _import_ours()
    from shards.settings.errors import TurnstileError
    from turnstile.cli.output import STDOUT, UNWRITTEN, OutputClosed, discard, is_of_output

    try:
        code = turnstile.main(prog_name="turnstile", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as fault:
        _end(fault.exit_code, partial(_show, fault))
    except TurnstileError as fault:
        _end(1, partial(click.echo, f"turnstile: {fault}", err=True))
    except (click.Abort, KeyboardInterrupt):
        _end(INTERRUPTED, partial(click.echo, SAID, err=True))
    except OutputClosed:
        discard(STDOUT)
        sys.exit(UNWRITTEN)
    except OSError as fault:
        if not is_of_output(fault):
            raise
        discard(STDOUT)
        _end(UNWRITTEN, partial(_say_unwritten, fault))


def _end(code: int, say: Callable[[], None]) -> NoReturn:
    """Ends the process with `code`, also where what it says can't be written."""
    from turnstile.cli.output import STDERR, STDOUT, discard

    try:
        say()
    except OSError as fault:
        discard(STDOUT)
        try:
            _say_unwritten(fault)
        except OSError:
            discard(STDERR)
    sys.exit(code)


def _say_unwritten(fault: OSError) -> None:
    click.echo(f"turnstile: the output can't be written: {fault.strerror}", err=True)


def _show(fault: click.ClickException) -> None:
    """The sentence on stderr; of a command that was given --json, as JSON on stdout."""
    from turnstile.cli.output import CommandFailed, show_error

    _name_the_variable(fault)
    if "--json" in sys.argv and not isinstance(fault, CommandFailed):
        show_error(fault.format_message())
    else:
        fault.show()


if __name__ == "__main__":
    main()
