"""Shared by the commands that talk to a running cluster: how it is found, and how its errors are shown.

The cluster is found by --admin URL or by the --name that `turnstile up` gave it, else by TURNSTILE_ADMIN, else by
TURNSTILE_NAME, else at the default port on this machine.
"""

import shlex
from collections.abc import Callable, Sequence
from functools import wraps
from typing import NamedTuple, TextIO

import click

from turnstile.admin_client import DEFAULT_ADMIN, AdminClient, AdminError, AdminRefused, AdminUnreachable
from turnstile.cli import completion
from turnstile.cli.output import CommandFailed

HINT = "start one with `turnstile up`, or name it with --admin URL or TURNSTILE_ADMIN"
_NAME = "turnstile.name"
"""The key of the _Given name in a context's `meta`."""


class _Given(NamedTuple):
    """A cluster's name; whether it stands on the command line."""

    name: str
    on_command_line: bool


def admin_option(
    function: Callable[..., None], *, spellings: Sequence[str] = ("--name", "--cluster")
) -> Callable[..., None]:
    """The URL of the cluster's admin API as the command's argument `admin`; `spellings`: of the option with its name."""
    by_url = click.option(
        "--admin", envvar="TURNSTILE_ADMIN", metavar="URL", default=DEFAULT_ADMIN, show_default=True, show_envvar=True,
        callback=_chosen, help="The URL of the cluster's admin API.",
    )  # fmt: skip
    by_name = click.option(
        "cluster_name", *spellings, envvar="TURNSTILE_NAME", metavar="NAME", show_envvar=True, is_eager=True,
        expose_value=False, callback=_note_name, shell_complete=completion.cluster_names,
        help="The name that the cluster got from `turnstile up --name`.",
    )  # fmt: skip
    return by_url(by_name(function))


def _note_name(context: click.Context, parameter: click.Parameter, name: str | None) -> None:
    if name:
        source = context.get_parameter_source("cluster_name")
        context.meta[_NAME] = _Given(name, source is click.core.ParameterSource.COMMANDLINE)


def _chosen(context: click.Context, parameter: click.Parameter, url: str) -> str:
    """The URL that was given, or that of the named cluster. Raises UsageError, CommandFailed."""
    given: _Given | None = context.meta.get(_NAME)
    source = context.get_parameter_source("admin")
    if given is None or (not given.on_command_line and source is not click.core.ParameterSource.DEFAULT):
        return url
    if source is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("give --admin or --name, not both: each chooses a cluster")
    from broker.process.cluster_names import find

    found = find(given.name)
    if found is None:
        raise CommandFailed(f"no cluster named {given.name!r} is running here; {_running()}")
    return found.admin


def _running() -> str:
    from broker.process.cluster_names import running

    names = [each.name for each in running()]
    return f"running clusters: {', '.join(names)}" if names else "start it with `turnstile up --name`"


def which_cluster() -> list[str]:
    """The options of this command line that choose the cluster; none where it has none."""
    context = click.get_current_context()
    given: _Given | None = context.meta.get(_NAME)
    if given is not None and given.on_command_line:
        return ["--name", given.name]
    by_url = context.get_parameter_source("admin") is click.core.ParameterSource.COMMANDLINE
    return ["--admin", context.params["admin"]] if by_url else []


def same_cluster(command: str) -> str:
    """A command of `turnstile` for this command's cluster, fit for a shell: "topic list" -> turnstile topic list --name x."""
    return " ".join(["turnstile", command, *map(shlex.quote, which_cluster())])


def is_chosen() -> bool:
    """True if the command was told which cluster is meant."""
    context = click.get_current_context()
    return _NAME in context.meta or context.get_parameter_source("admin") is not click.core.ParameterSource.DEFAULT


def token_in(file: TextIO) -> str:
    """The token on the first line of a file. Raises click.UsageError when there is none."""
    with file:
        token = file.readline().strip()
    if not token:
        raise click.UsageError(f"{file.name} has no token on its first line")
    return token


def _warn_of_argument(context: click.Context, parameter: click.Parameter, token: str | None) -> str | None:
    if context.get_parameter_source("token") is click.core.ParameterSource.COMMANDLINE:
        click.echo("--token can be read in the list of processes; use --token-file or TURNSTILE_ADMIN_TOKEN", err=True)
    return token


def _take_from_file(context: click.Context, parameter: click.Parameter, file: TextIO | None) -> None:
    """--token-file replaces any other token; the file of the environment is used where there is none."""
    if file is None:
        return
    is_variable = context.get_parameter_source("token_file") is click.core.ParameterSource.ENVIRONMENT
    if not (is_variable and context.params.get("token")):
        context.params["token"] = token_in(file)


def token_option(function: Callable[..., None]) -> Callable[..., None]:
    """The admin API's token as the command's argument `token`: from a file, the environment, or the command line."""
    by_file = click.option(
        "--token-file", type=click.File(), envvar="TURNSTILE_ADMIN_TOKEN_FILE", metavar="FILE", show_envvar=True,
        expose_value=False, callback=_take_from_file,
        help="A file with the token on its first line.",
    )  # fmt: skip
    by_value = click.option(
        "--token", envvar="TURNSTILE_ADMIN_TOKEN", metavar="TOKEN", show_envvar=True, is_eager=True,
        callback=_warn_of_argument, help="The token of the admin API. Other users can see it in the list of processes.",
    )  # fmt: skip
    return by_value(by_file(function))


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def with_cluster(
    function: Callable[..., None], *, spellings: Sequence[str] = ("--name", "--cluster")
) -> Callable[..., None]:
    """Options of every command that talks to a cluster; the command gets an AdminClient and whether to print JSON."""

    @wraps(function)
    def command(admin: str, token: str | None, **others: object) -> None:
        client = AdminClient(admin, token)
        try:
            function(client, **others)
        except AdminError as fault:
            raise CommandFailed(sentence(fault, client.url)) from None

    return admin_option(token_option(json_option(command)), spellings=spellings)


def sentence(fault: AdminError, url: str) -> str:
    """A failed call in one sentence for people: the API's, with what to do about it where that is known."""
    if isinstance(fault, AdminUnreachable):
        from broker.process.cluster_names import running

        names = ", ".join(f"--name {each.name}" for each in running())
        return f"{fault}; {HINT}{f'; running here: {names}' if names else ''}"
    if isinstance(fault, AdminRefused) and fault.status == 401:
        return f"{url} needs its token; give it with --token-file, TURNSTILE_ADMIN_TOKEN_FILE or TURNSTILE_ADMIN_TOKEN"
    return str(fault)
