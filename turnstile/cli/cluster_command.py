"""What commands that talk to a running cluster share: how it is found, and how its errors are shown.

The cluster is found by --admin URL, else TURNSTILE_ADMIN, else the default port on this machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from turnstile.admin_client import DEFAULT_ADMIN, AdminClient, AdminError, AdminRefused, AdminUnreachable
from turnstile.cli.output import CommandFailed

HINT = "start one with `turnstile up`, or name it with --admin URL or TURNSTILE_ADMIN"

admin_option = click.option(
    "--admin", envvar="TURNSTILE_ADMIN", metavar="URL", default=DEFAULT_ADMIN, show_default=True, show_envvar=True,
    help="Admin API of the cluster.",
)  # fmt: skip
token_option = click.option(
    "--token", envvar="TURNSTILE_ADMIN_TOKEN", metavar="TOKEN", show_envvar=True,
    help="Token of an admin API that needs one.",
)  # fmt: skip
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

    for option in (json_option, token_option, admin_option):
        command = option(command)
    return command


def sentence(fault: AdminError, url: str) -> str:
    """What a person reads of a failed call: the API's sentence, and what to do about it where that is known."""
    if isinstance(fault, AdminUnreachable):
        return f"{fault}; {HINT}"
    if isinstance(fault, AdminRefused) and fault.status == 401:
        return f"{url} needs its token; give it with --token or TURNSTILE_ADMIN_TOKEN"
    return str(fault)
