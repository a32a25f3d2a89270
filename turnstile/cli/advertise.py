"""`turnstile advertise`: where clients of a running cluster are told to connect."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from turnstile.admin_client import AdminClient
from turnstile.cli import completion
from turnstile.cli.cluster_command import with_cluster
from turnstile.cli.output import show_change, show_json, show_table

if TYPE_CHECKING:
    from broker.admin.answers import AdvertisedAnswer, ChangedAdvertised
    from shards.config.advertised_changes import AdvertisedAddress

_AUTO = "auto"
_SOURCES = {"live": "set live", "start": "as it was started", "listener": "where it listens"}


@click.command()
@click.argument("words", nargs=-1, metavar="[LISTENER] [ADDRESS...]", shell_complete=completion.listeners)
@click.option(
    "--broker", type=click.IntRange(0), metavar="ID", help="Only this broker.  [default: each has an address]"
)
@click.option("--list", "lists", is_flag=True, help="Show the advertised addresses.")
@click.option(
    "--unset", is_flag=True, help="Take back the addresses that were set live, of LISTENER or of all listeners."
)
@with_cluster
def advertise(
    cluster: AdminClient, words: tuple[str, ...], broker: int | None, lists: bool, unset: bool, as_json: bool
) -> None:
    """Set the advertised addresses of a listener, live. A mapped port, for example, is known only after the start.

    ADDRESS is host:port, one for each broker; a port alone takes the host of the ADDRESS before it. `auto` tells each client the
    address that it connected to, which is wrong behind a mapped port. LISTENER may be left out if there is only one.

    \b
    turnstile advertise EDGE localhost:32801
    turnstile advertise EDGE localhost:32801,32802,32803      three brokers
    turnstile advertise EDGE host.docker.internal:9192 --broker 1
    turnstile advertise EDGE auto
    turnstile advertise --list
    turnstile advertise EDGE --unset

    The addresses are in force on every shard when the command returns. They survive restarts and a reset.
    """
    listener, addresses = _split(words)
    if lists:
        if addresses or unset or broker is not None or listener:
            raise click.UsageError("--list shows all listeners, and goes with nothing else")
        _show(cluster.get("/v1/advertise"), as_json=as_json)
    elif unset:
        if addresses:
            raise click.UsageError("--unset takes no address")
        answer = cluster.delete("/v1/advertise", listener=listener, broker=broker)
        show_change(answer, _lines(answer, listener, broker), as_json=as_json)
    elif not addresses:
        raise click.UsageError(
            "say the address, as in: turnstile advertise EDGE localhost:32801; --list shows those in force"
        )
    else:
        given = {"listener": listener, "broker": broker, "addresses": addresses}
        answer = cluster.put("/v1/advertise", {name: value for name, value in given.items() if value is not None})
        show_change(answer, _lines(answer, listener, broker), as_json=as_json)


def told_address(row: AdvertisedAddress) -> str:
    """The address that clients are told, and whether it is a guess."""
    text = f"the address that they reached, port {row['port']}" if row["address"] == _AUTO else str(row["address"])
    return f"{text} (a guess)" if row["guess"] else text


class _Words(NamedTuple):
    """The arguments: a listener, if any, and addresses."""

    listener: str | None
    addresses: list[str]


def _split(words: tuple[str, ...]) -> _Words:
    if words and ":" not in words[0] and words[0] != _AUTO:
        return _Words(words[0], list(words[1:]))
    return _Words(None, list(words))


def _lines(answer: ChangedAdvertised, listener: str | None, broker: int | None) -> list[str]:
    return [
        f"{row['listener']} broker {row['broker']}: clients are told {told_address(row)}"
        for row in answer["advertised"]
        if listener in (None, row["listener"]) or row["listener"] == (listener or "").upper()
        if broker in (None, row["broker"])
    ]


def _show(answer: AdvertisedAnswer, *, as_json: bool) -> None:
    if as_json:
        show_json(answer)
        return
    rows = [
        (row["listener"], str(row["broker"]), told_address(row), _SOURCES[row["source"]])
        for row in answer["advertised"]
    ]
    show_table([("LISTENER", "BROKER", "CLIENTS ARE TOLD", ""), *rows])
