"""`turnstile user`: the users that may log in on listeners with SASL (PLAIN and SCRAM)."""

from __future__ import annotations

import sys

import click

from broker.runtime.printable import printable
from turnstile.admin_client import AdminClient
from turnstile.cli import completion
from turnstile.cli.cluster_command import with_cluster
from turnstile.cli.output import show_json, show_table
from turnstile.cli.suggest import Commands


@click.group(cls=Commands)
def user() -> None:
    """Manage the users that may log in on listeners with SASL.

    \b
    turnstile up --listener SASL=127.0.0.1:9092,sasl
    turnstile user add alice
    turnstile user add alice < password-file
    turnstile user list
    turnstile user remove alice

    A client then logs in with PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. Passwords are kept salted and hashed.
    """


@user.command()
@click.argument("name")
@click.option("--password", help="The password. Other users of the machine can see it in the list of processes.")
@with_cluster
def add(cluster: AdminClient, name: str, password: str | None, as_json: bool) -> None:
    """Add user NAME, or change its password. The password is asked for on a terminal, else read from the first line of standard
    input."""
    password = password or _asked_for()
    done = cluster.put("/v1/users", {"name": name, "password": password})
    if as_json:
        show_json(done)
    else:
        click.echo(f"user {printable(name)} may log in on every shard, version {done['config_version']}")


def _asked_for() -> str:
    if sys.stdin.isatty():
        answer: str = click.prompt("Password", hide_input=True, confirmation_prompt=True)
        return answer
    password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise click.UsageError("there is no password on the first line of standard input")
    return password


@user.command()
@click.argument("name", shell_complete=completion.users)
@with_cluster
def remove(cluster: AdminClient, name: str, as_json: bool) -> None:
    """Remove user NAME. Its open connections stay open."""
    done = cluster.put("/v1/users", {"name": name, "password": None})
    if as_json:
        show_json(done)
    else:
        click.echo(f"user {printable(name)} is gone from every shard, version {done['config_version']}")


@user.command("list")
@with_cluster
def list_(cluster: AdminClient, as_json: bool) -> None:
    """List the users, and the SASL mechanisms that each can log in with."""
    users = cluster.get("/v1/users")["users"]
    if as_json:
        show_json({"users": users})
    else:
        rows = [(each["name"], ", ".join(["PLAIN", *each["mechanisms"]])) for each in users]
        show_table([("USER", "MECHANISMS"), *rows])
