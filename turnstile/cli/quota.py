"""`turnstile quota`: read and change quotas of IPs, users and client ids of a running cluster."""

from __future__ import annotations

from typing import Any, NamedTuple

import click

from broker.runtime.printable import printable
from turnstile.admin_client import AdminClient
from turnstile.cli import completion
from turnstile.cli.cluster_command import same_cluster, with_cluster
from turnstile.cli.output import CommandFailed, show_change, show_json, show_table
from turnstile.cli.suggest import Commands, did_you_mean
from turnstile.cli.use_rows import client_rows
from turnstile.entities import DEFAULT, ENTITY_TYPES, entity_text
from turnstile.observed_quota_text import observed_quota_lines
from turnstile.quantities import count, written

_CLIENTS = 20
_PREFIX = "client-id-prefix"
KEYS = (
    "connection_creation_rate for ip; producer_byte_rate, consumer_byte_rate, request_percentage and "
    "controller_mutation_rate for user and client-id"
)


observe_option = click.option(
    "--observe",
    is_flag=True,
    help="Observed quotas instead of enforced ones (shadow mode, dry run): they throttle and refuse no client, and the cluster "
    "counts what they would have done.",
)


@click.group(cls=Commands)
def quota() -> None:
    """Read and change quotas, live.

    An entity is ip=ADDRESS, user=NAME, client-id=NAME, or user and client-id together; <default> as the name means
    every name of that type that has no quota of its own. A cluster started with turnstile.quota.semantics=redpanda also
    has client-id-prefix=TEXT, in place of client-id.

    \b
    Keys of ip:                  connection_creation_rate (connections a second)
    Keys of user and client-id:  producer_byte_rate, consumer_byte_rate (bytes a second),
                                 request_percentage, controller_mutation_rate
    \b
    turnstile quota set ip=10.0.0.1 connection_creation_rate=20
    turnstile quota set 'ip=<default>' connection_creation_rate=100
    turnstile quota set user=alice 'client-id=<default>' producer_byte_rate=1MB/s
    turnstile quota explain user=alice client-id=app

    A quota can be rehearsed first (shadow mode, dry run): an observed quota throttles no client, and the cluster counts what
    it would have done.

    \b
    turnstile quota set --observe client-id=app producer_byte_rate=1MB/s
    turnstile quota observed
    turnstile quota unset --observe client-id=app
    """


@quota.command("set")
@click.argument(
    "words", nargs=-1, required=True, metavar="ENTITY KEY=VALUE...", shell_complete=completion.entity_words(values="=")
)
@observe_option
@click.option("--dry-run", is_flag=True, help="Only check the change. To see what it would do to clients: --observe.")
@with_cluster
def set_(cluster: AdminClient, words: tuple[str, ...], observe: bool, dry_run: bool, as_json: bool) -> None:
    """Set quotas of an entity. Its other quotas stay. 1MB/s is 1000000, 1MiB/s is 1048576.

    \b
    turnstile quota set ip=10.0.0.1 connection_creation_rate=20
    turnstile quota set user=alice client-id=app producer_byte_rate=1024 consumer_byte_rate=2048
    """
    entity, rest = _entity(words)
    values: dict[str, float] = {}
    for word in rest:
        key, equals, text = word.partition("=")
        if not equals:
            raise click.UsageError(f"{word!r} is not KEY=VALUE; keys are {KEYS}")
        try:
            values[key] = written(text)
        except ValueError:
            raise click.UsageError(f"{key} cannot be {text!r}: a quota is a number, such as 1000000 or 1MB/s") from None
    if not values:
        raise click.UsageError(f"give at least one KEY=VALUE; keys are {KEYS}")
    body = {"alter": [{"entity": entity, "set": values}]}
    answer = cluster.put("/v1/quotas", body, dry_run=dry_run or None, observe=observe or None)
    shown = " ".join(f"{key}={_number(value)}" for key, value in values.items())
    how = " is observed, not enforced" if observe else ""
    show_change(answer, [f"{entity_text(entity)}: {shown}{how}"], as_json=as_json, dry_run=dry_run)
    if observe and not (as_json or dry_run):
        done, command = ("refused", "config observed") if "ip" in entity else ("throttled", "quota observed")
        click.echo(f"what it would have {done}: {same_cluster(command)}", err=True)


@quota.command("unset")
@click.argument(
    "words", nargs=-1, required=True, metavar="ENTITY [KEY...]", shell_complete=completion.entity_words(named=True)
)
@observe_option
@with_cluster
def unset(cluster: AdminClient, words: tuple[str, ...], observe: bool, as_json: bool) -> None:
    """Remove quotas of an entity: the quotas with these KEYs, or all of its quotas.

    \b
    turnstile quota unset ip=10.0.0.1
    turnstile quota unset user=alice producer_byte_rate
    turnstile quota unset --observe client-id=app
    """
    entity, keys = _entity(words)
    now: dict[str, float] = next((row["values"] for row in _quotas(cluster, observe) if row["entity"] == entity), {})
    missing = [key for key in keys if key not in now]
    if missing or not now:
        which = "observed " * observe
        raise CommandFailed(f"{entity_text(entity)} has no {which}{' and no '.join(missing) if missing else 'quota'}")
    change = {"alter": [{"entity": entity, "remove": keys or list(now)}]}
    answer = cluster.put("/v1/quotas", change, observe=observe or None)
    done = f"{' '.join(keys or now)} is no longer observed" if observe else f"removed {' '.join(keys or now)}"
    show_change(answer, [f"{entity_text(entity)}: {done}"], as_json=as_json)


@quota.command("list")
@click.argument("words", nargs=-1, metavar="[ENTITY]", shell_complete=completion.entity_words(named=True))
@observe_option
@with_cluster
def list_(cluster: AdminClient, words: tuple[str, ...], observe: bool, as_json: bool) -> None:
    """Show all quotas, or only those of entities that ENTITY is a part of.

    \b
    turnstile quota list
    turnstile quota list user=alice
    """
    wanted, rest = _entity(words) if words else ({}, [])
    if rest:
        raise click.UsageError(f"{rest[0]!r} is not an entity, such as ip=ADDRESS, user=NAME or client-id=NAME")
    rows = [
        row
        for row in _quotas(cluster, observe)
        if all(kind in row["entity"] and row["entity"][kind] == name for kind, name in wanted.items())
    ]
    if as_json:
        show_json({"quotas": rows})
    elif not rows:
        click.echo(
            f"no quota is {'observed' if observe else 'set'}"
            + (f" for {printable(entity_text(wanted))}" if wanted else "")
        )
    else:
        show_table([
            (entity_text(row["entity"]), " ".join(f"{key}={_number(value)}" for key, value in row["values"].items()))
            for row in rows
        ])  # fmt: skip


@quota.command("observed")
@with_cluster
def observed(cluster: AdminClient, as_json: bool) -> None:
    """Show the observed quotas (shadow mode, dry run), and which clients they would have throttled.

    The connections that observed quotas of addresses would have refused are in `turnstile config observed`.

    \b
    turnstile quota observed
    """
    answer = cluster.get("/v1/quotas/observed")
    if as_json:
        show_json(answer)
        return
    if not answer["set"]:
        first = same_cluster("quota set --observe client-id=app producer_byte_rate=1MB/s")
        click.echo(f"no quota is observed: {first}")
        return
    for line in observed_quota_lines(answer):
        click.echo(printable(line))
    rows = [
        (row["user"], row["client_id"] or "-", count(row["requests"]), ", ".join(row["quotas"]))
        for row in answer["clients"][:_CLIENTS]
    ]
    show_table([("USER", "CLIENT ID", "REQUESTS", "BECAUSE OF"), *rows] if rows else [], indent="  ")


@quota.command("explain")
@click.argument(
    "words", nargs=-1, required=True, metavar="[user=NAME] [client-id=NAME]", shell_complete=completion.entity_words()
)
@with_cluster
def explain(cluster: AdminClient, words: tuple[str, ...], as_json: bool) -> None:
    """Show the quotas that hold for a client: the entity that each comes from, and its use on each broker.

    For each kind of quota, the first of these entities that has one counts, as in Kafka: (user, client-id),
    (user, <default>), user, (<default>, client-id), (<default>, <default>), <default> user, client-id, <default> client-id.
    With turnstile.quota.semantics=redpanda the order is Redpanda's, which also has client-id-prefix; there <default> user does
    not include clients without a login.

    \b
    turnstile quota explain user=alice client-id=app
    """
    entity, rest = _entity(words)
    if rest or not entity.keys() <= {"user", "client-id"}:
        raise click.UsageError("explain takes user=NAME and client-id=NAME")
    found = cluster.get("/v1/quotas/explain", **{kind: name or "" for kind, name in entity.items()})
    if as_json:
        show_json(found)
        return
    if not found["quotas"]:
        click.echo(f"no quota holds for {printable(entity_text(entity))}")
        return
    show_table(client_rows(found))


class _NamedEntity(NamedTuple):
    """The entity that some words of the command name, and the other words."""

    entity: dict[str, str | None]
    rest: list[str]


def _entity(words: tuple[str, ...]) -> _NamedEntity:
    entity: dict[str, str | None] = {}
    rest: list[str] = []
    for word in words:
        kind, equals, name = word.partition("=")
        if not equals or kind not in ENTITY_TYPES:
            rest.append(word)
        elif kind in entity:
            raise click.UsageError(f"{kind} is given twice")
        elif not name:
            raise click.UsageError(f"{kind}= has no name; {kind}={DEFAULT} is every {kind} without a quota of its own")
        else:
            entity[kind] = None if name == DEFAULT else _one_spelling(name) if kind == "ip" else name
    if not entity and (meant := did_you_mean(words[0].partition("=")[0], ENTITY_TYPES)):
        raise click.UsageError(f"{words[0]!r} is not an entity{meant}")
    if "ip" in entity and len(entity) > 1:
        raise click.UsageError("an entity with ip= has neither user= nor client-id=")
    if entity.get(_PREFIX, "") is None:
        raise click.UsageError(f"{_PREFIX} can't be {DEFAULT}: it is the beginning of client ids")
    if not entity:
        raise click.UsageError("name an entity: ip=ADDRESS, user=NAME or client-id=NAME; <default> stands for any name")
    return _NamedEntity(entity, rest)


def _one_spelling(ip: str) -> str:
    from shards.settings.addresses import normalise_ip

    try:
        return normalise_ip(ip)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _quotas(cluster: AdminClient, observe: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = cluster.get("/v1/quotas", observe=observe or None)["quotas"]
    return rows


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(value)
