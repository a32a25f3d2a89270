"""How commands talk to a running cluster: its admin API, over the standard library, with errors of one sentence.

The cluster is found by --admin URL, else TURNSTILE_ADMIN, else the default port on this machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import click

DEFAULT_ADMIN = "http://127.0.0.1:9644"
TYPES = ("ip", "user", "client-id")  # of quota entities
DEFAULT = "<default>"  # as the name in an entity: everyone of that type without a quota of their own


class CommandFailed(click.ClickException):
    """The command could not be done; exit code 1."""

    exit_code = 1

    def show(self, file: Any = None) -> None:
        click.echo(self.format_message(), err=True)


class AdminClient:
    """Calls of one cluster's admin API."""

    def __init__(self, url: str, token: str | None = None, *, timeout_s: float = 15.0) -> None:
        self.url = (url if "://" in url else f"http://{url}").rstrip("/")
        self._token = token
        self._timeout_s = timeout_s

    def get(self, path: str, **query: Any) -> Any:
        """The JSON body. Raises Failed."""
        return self._call("GET", path, None, query)

    def put(self, path: str, body: Any, **query: Any) -> Any:
        """The JSON body of the answer, when the change is in force. Raises Failed."""
        return self._call("PUT", path, json.dumps(body).encode(), query)

    def post(self, path: str) -> Any:
        """The JSON body of the answer. Raises Failed."""
        return self._call("POST", path, b"", {})

    def _call(self, method: str, path: str, body: bytes | None, query: dict[str, Any]) -> Any:
        from http.client import HTTPException
        from urllib.error import HTTPError, URLError
        from urllib.parse import urlencode
        from urllib.request import ProxyHandler, Request, build_opener

        named = {name: value for name, value in query.items() if value is not None}
        url = f"{self.url}{path}?{urlencode(named)}" if named else self.url + path
        headers = {"content-type": "application/json", "x-turnstile-who": f"turnstile ({_user()})"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        try:
            # No proxy: the cluster is on this machine or one that was named.
            with build_opener(ProxyHandler({})).open(
                Request(url, body, headers, method=method), timeout=self._timeout_s
            ) as answer:
                return json.load(answer)
        except HTTPError as error:
            with error:
                raise CommandFailed(_refusal(error.code, error.read(), self.url)) from None
        except (URLError, HTTPException, OSError) as error:
            why = str(getattr(error, "reason", error)) or type(error).__name__
            raise CommandFailed(
                f"no cluster answers at {self.url} ({why}); start one with `turnstile up`, or name it with --admin URL "
                "or TURNSTILE_ADMIN"
            ) from None
        except ValueError as error:
            raise CommandFailed(f"{self.url} is no admin API of Turnstile ({error})") from None


def _refusal(code: int, body: bytes, url: str) -> str:
    """The sentence inside an error answer: Turnstile's own, or what there is."""
    if code == 401:
        return f"{url} needs its token; give it with --token or TURNSTILE_ADMIN_TOKEN"
    try:
        told = json.loads(body)
        if "message" in told:
            return str(told["message"])
        return "\n".join(str(sentence) for sentence in told.values())
    except (ValueError, TypeError, AttributeError):
        return f"{url} answered with {code}"


def _user() -> str:
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def with_cluster(function: Callable[..., None]) -> Callable[..., None]:
    """Options of every command that talks to a cluster; the command gets an AdminClient and whether to print JSON."""

    @wraps(function)
    def command(admin: str, token: str | None, **others: Any) -> None:
        function(AdminClient(admin, token), **others)

    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs."),
        click.option("--token", envvar="TURNSTILE_ADMIN_TOKEN", metavar="TOKEN", show_envvar=True,
                     help="Token of an admin API that needs one."),
        click.option("--admin", envvar="TURNSTILE_ADMIN", metavar="URL", default=DEFAULT_ADMIN, show_default=True,
                     show_envvar=True, help="Admin API of the cluster."),
    ):  # fmt: skip
        command = option(command)
    return command


def show_json(value: Any) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, indent=2))


def show_table(rows: Sequence[tuple[str, ...]], *, indent: str = "") -> None:
    """Rows in aligned columns; the last column may be of any length."""
    if not rows:
        return
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo((indent + "  ".join([*cells, row[-1]])).rstrip())


def entity_text(entity: dict[str, str | None]) -> str:
    """A quota entity as the command line takes it: `user=alice client-id=<default>`."""
    ordered = [kind for kind in TYPES if kind in entity]
    return " ".join(f"{kind}={DEFAULT if entity[kind] is None else entity[kind]}" for kind in ordered)
