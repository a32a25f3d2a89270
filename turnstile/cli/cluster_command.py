"""Shared by the commands that talk to a running cluster: how it is found, and how its errors are shown.

The cluster is found by --admin URL, else TURNSTILE_ADMIN, else the default port on this machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TextIO

import click

from turnstile.admin_client import DEFAULT_ADMIN, AdminClient, AdminError, AdminRefused, AdminUnreachable
from turnstile.cli.output import CommandFailed

HINT = "start one with `turnstile up`, or name it with --admin URL or TURNSTILE_ADMIN"

admin_option = click.option(
    "--admin", envvar="TURNSTILE_ADMIN", metavar="URL", default=DEFAULT_ADMIN, show_default=True, show_envvar=True,
    help="Admin API of the cluster.",
)  # fmt: skip


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
    if file is not None:
        context.params["token"] = token_in(file)


def token_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The admin API's token as the command's argument `token`: from a file, the environment, or the command line."""
    by_file = click.option(
        "--token-file", type=click.File(), metavar="FILE", expose_value=False, callback=_take_from_file,
        help="File with the token on its first line.",
    )  # fmt: skip
    by_value = click.option(
        "--token", envvar="TURNSTILE_ADMIN_TOKEN", metavar="TOKEN", show_envvar=True, is_eager=True,
        callback=_warn_of_argument, help="Token of an admin API that needs one; shows in the list of processes.",
    )  # fmt: skip
    return by_value(by_file(function))


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def with_cluster(function: Callable[..., None]) -> Callable[..., None]:
    """Options of every command that talks to a cluster; the command gets an AdminClient and whether to print JSON."""

    @wraps(function)
    def command(admin: str, token: str | None, **others: Any) -> None:
        client = AdminClient(admin, token)
        try:
            function(client, **others)
        except AdminError as fault:
            raise CommandFailed(sentence(fault, client.url)) from None

    return admin_option(token_option(json_option(command)))


def sentence(fault: AdminError, url: str) -> str:
    """A failed call in one sentence for people: the API's, with what to do about it where that is known."""
    if isinstance(fault, AdminUnreachable):
        return f"{fault}; {HINT}"
    if isinstance(fault, AdminRefused) and fault.status == 401:
        return f"{url} needs its token; give it with --token-file or TURNSTILE_ADMIN_TOKEN"
    return str(fault)
