"""`turnstile fault`: what a running cluster does wrong on purpose."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import click

from turnstile.admin_client import AdminClient, AdminRefused
from turnstile.cli import completion
from turnstile.cli.cluster_command import with_cluster
from turnstile.cli.output import show_change, show_json, show_table
from turnstile.cli.suggest import Commands

if TYPE_CHECKING:
    from broker.admin.answers import FaultRow

_KINDS = ("error", "disconnect", "delay", "blackhole", "throttle")
_SHOWN = ("error", "delay_ms", "throttle_ms", "reset", "mute", "api", "client_id", "ip", "connection")
_TRIGGERS = ("once", "on_call", "times", "every_ms", "probability", "seed")


@click.group(cls=Commands)
def fault() -> None:
    """Make answers fail, wait or vanish, for an API, a client id, an address or a connection.

    \b
    error       the answer has the error --error
    disconnect  the connection is closed instead of an answer; without --api at once, and so is each new connection
    delay       the answer is sent --delay-ms later
    blackhole   the request is neither served nor answered
    throttle    the answer has the throttle time --throttle-ms, and the connection is muted for that time

    \b
    turnstile fault add error --api Produce --error NOT_LEADER_OR_FOLLOWER --times 2
    turnstile fault add delay --client-id 'orders-*' --delay-ms 500 --probability 0.1 --seed 7
    turnstile fault add disconnect --ip 127.1.0.9 --reset
    turnstile fault list
    turnstile fault remove fault-1

    A fault is in force on every shard when the command returns. Faults end with the cluster.
    """


@fault.command("add")
@click.argument("kind", type=click.Choice(_KINDS))
@click.option("--name", help="Name of the fault.  [default: fault-1, fault-2, ...]")
@click.option(
    "--api", shell_complete=completion.apis, help="The APIs that it hits, such as Produce,Fetch.  [default: all]"
)
@click.option("--client-id", help="The client id that it hits; * and ? stand for other characters.")
@click.option("--ip", help="The address of the clients that it hits.")
@click.option("--connection", metavar="IP:PORT", help="The connection that it hits: the client's address and port.")
@click.option(
    "--error",
    metavar="NAME",
    shell_complete=completion.errors,
    help="Kafka's name of an error, such as REQUEST_TIMED_OUT.",
)
@click.option("--delay-ms", type=click.IntRange(1), help="The delay of an answer.")
@click.option("--throttle-ms", type=click.IntRange(1), help="The throttle time in an answer.")
@click.option("--no-mute", is_flag=True, help="Do not mute a throttled connection: read its next request at once.")
@click.option("--reset", is_flag=True, help="Close the connection by RST.")
@click.option("--once", is_flag=True, help="Hit the first call only.")
@click.option("--on-call", type=click.IntRange(1), metavar="N", help="Hit the Nth call only.")
@click.option("--times", type=click.IntRange(1), metavar="N", help="Hit the first N calls.")
@click.option(
    "--every-ms", type=click.IntRange(1), metavar="N", help="Hit a call if the fault fired N ms ago or longer."
)
@click.option("--probability", type=click.FloatRange(0, 1), metavar="P", help="Hit this part of the calls, at random.")
@click.option("--seed", type=click.IntRange(0), help="The seed that chooses these calls.  [default: 0]")
@partial(with_cluster, spellings=("--cluster",))  # --name is the fault's
def add(
    cluster: AdminClient, kind: str, as_json: bool, no_mute: bool, reset: bool, once: bool, **given: object
) -> None:
    """Add a fault. It replaces a fault of the same name."""
    switches = {"once": once, "reset": reset}
    wanted = {"kind": kind, **given, **{name: True for name, value in switches.items() if value}}
    if no_mute:
        wanted["mute"] = False
    body = {"add": [{name: value for name, value in wanted.items() if value is not None}]}
    try:
        answer = cluster.put("/v1/faults", body)
    except AdminRefused as fault:
        raise click.UsageError(_by_options(fault)) from None
    show_change(answer, [f"{answer['names'][0]}: {kind}"], as_json=as_json)


@fault.command("list")
@with_cluster
def list_(cluster: AdminClient, as_json: bool) -> None:
    """Show the faults, and how often each has fired."""
    found = cluster.get("/v1/faults")
    if as_json:
        show_json(found)
    elif not found["faults"]:
        click.echo("no fault is set")
    else:
        rows = [(each["name"], each["kind"], str(each["fired"]), _told(each)) for each in found["faults"]]
        show_table([("FAULT", "KIND", "FIRED", "FOR"), *rows])


@fault.command("remove")
@click.argument("names", nargs=-1, shell_complete=completion.faults)
@click.option("--all", "every", is_flag=True, help="Remove all faults.")
@with_cluster
def remove(cluster: AdminClient, names: tuple[str, ...], every: bool, as_json: bool) -> None:
    """Remove faults by their names."""
    if bool(names) == every:
        raise click.UsageError("name the faults to remove, or give --all")
    gone = [each["name"] for each in cluster.get("/v1/faults")["faults"]] if every else list(names)
    answer = cluster.put("/v1/faults", {"remove": gone})
    show_change(answer, [f"removed {' '.join(gone)}"] if gone else ["no fault was set"], as_json=as_json)


def _by_options(fault: AdminRefused) -> str:
    """The API's sentence with the command's options in the place of the parts of a fault that they give."""
    options = {option.name: option.opts[0] for option in add.params if isinstance(option, click.Option)}
    first, space, rest = str(fault).partition(" ")
    rest = re.sub(r"(?<=with )\w+(?=:)", lambda match: options.get(match[0], match[0]), rest)
    return f"{options.get(first, first)}{space}{rest}"


def _told(fault: FaultRow) -> str:
    given: Mapping[str, object] = fault
    parts = [(name, given[name]) for name in (*_SHOWN, *_TRIGGERS) if name in given]
    return " ".join(f"{name}={','.join(value) if isinstance(value, list) else value}" for name, value in parts)
