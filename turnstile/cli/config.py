"""`turnstile config`: read and change settings of a running cluster over its admin API."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterable, Mapping
from typing import Any

import click

from broker.runtime.printable import printable
from turnstile.admin_client import AdminClient
from turnstile.cli import completion
from turnstile.cli.cluster_command import same_cluster, with_cluster
from turnstile.cli.output import show_change, show_json, show_table
from turnstile.cli.suggest import Commands
from turnstile.entities import entity_text, entity_words
from turnstile.observed_text import limits_connections, observed_lines, quotas_of
from turnstile.quantities import count
from turnstile.settings import as_text

UNLIMITED = 2**31 - 1  # the value of Kafka's settings for no limit
_SETTINGS = {"setting": "", "static": " (command line)", "observed": " (observed)"}
"""The words that the history adds to the names of settings, by the kind of record."""
_ADDRESSES = 20

broker_option = click.option(
    "--broker", type=click.IntRange(0), metavar="ID", help="Only this broker.  [default: the whole cluster]"
)
observe_option = click.option(
    "--observe",
    is_flag=True,
    help="Observed limits instead of enforced ones (shadow mode, dry run): they refuse no connection, and the cluster counts "
    "the connections that they would have refused.",
)


@click.group(cls=Commands)
def config() -> None:
    """Read and change limits and other settings, live.

    A change is in force on every shard when the command returns. It survives restarts, and is in the history.
    Redpanda's names and Kafka's both work, such as kafka_connections_max_per_ip and max.connections.per.ip. If both are set,
    the tighter limit holds.

    \b
    turnstile config set kafka_connections_max_per_ip 50
    turnstile config set kafka_connections_max_overrides '["10.0.0.1:5", "10.1.0.0/16:200"]'
    turnstile config set max.connections=1000 listener.name.external.max.connections=800
    turnstile config get kafka_connections_max_per_ip
    turnstile config unset kafka_connections_max_per_ip

    A cap or a creation rate can be rehearsed first (shadow mode, dry run): an observed limit refuses no connection, and the
    cluster counts the connections that it would have refused.

    \b
    turnstile config set --observe kafka_connections_max_per_ip 50
    turnstile config observed
    turnstile config unset --observe kafka_connections_max_per_ip
    """


@config.command("get")
@click.argument("name", shell_complete=completion.settings)
@broker_option
@observe_option
@with_cluster
def get(cluster: AdminClient, name: str, broker: int | None, observe: bool, as_json: bool) -> None:
    """Print the value of setting NAME; an empty line if it has none.

    \b
    turnstile config get kafka_connections_max_per_ip
    turnstile config get max.connections --broker 0
    """
    found = cluster.get("/v1/cluster_config", key=name, broker=broker, observe=observe or None)
    obeyed = not _not_emulated(cluster, [name])
    if as_json:
        show_json(found if obeyed else {**found, "emulated": False})
    else:
        click.echo(printable(spelled(found[name])))
        if not obeyed:
            click.echo(f"{name} is not emulated: nothing acts on it", err=True)


@config.command("export")
@with_cluster
def export(cluster: AdminClient, as_json: bool) -> None:
    """Print the set-up of a running cluster as a file for `turnstile up --config`.

    The file leaves out users, whose passwords are not known, settings of single brokers, and observed quotas. Comments in it
    name them.

    \b
    turnstile config export > turnstile.toml
    """
    from turnstile.cli.config_file import write

    about = cluster.get("/v1/cluster")
    settings = cluster.get("/v1/cluster_config", include_defaults="false")
    quotas = cluster.get("/v1/quotas")["quotas"]
    observed = cluster.get("/v1/cluster_config", observe=True)
    observed_quotas = cluster.get("/v1/quotas", observe=True)["quotas"]
    if as_json:
        show_json(
            {
                "cluster": about,
                "limits": settings,
                "quota": quotas,
                "observe": observed,
                "observed_quota": observed_quotas,
            }
        )
        return
    users = [user["name"] for user in cluster.get("/v1/users")["users"]]
    overrides = cluster.get("/v1/cluster_config/broker_overrides")["overrides"]
    click.echo(write(about, settings, quotas, users, overrides, observed), nl=False)
    for row in observed_quotas:
        rates = [f"{key}={value:.15g}" for key, value in row["values"].items()]
        command = shlex.join(["turnstile", "quota", "set", "--observe", *entity_words(row["entity"]), *rates])
        click.echo(printable(f"# a file has no observed quotas: {command}"))


@config.command("set", context_settings={"ignore_unknown_options": True})
@click.argument(
    "name_and_value",
    nargs=-1,
    required=True,
    metavar="NAME VALUE | NAME=VALUE...",
    shell_complete=completion.live_settings,
)
@broker_option
@observe_option
@click.option("--dry-run", is_flag=True, help="Only check the change. To see what it would do to clients: --observe.")
@with_cluster
def set_(
    cluster: AdminClient,
    name_and_value: tuple[str, ...],
    broker: int | None,
    observe: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Set one setting, or several at once. If one of them is refused, none is set.

    A list is JSON or comma-separated. An override is ip:count, [ipv6]:count, or network/length:count, which holds for each
    address of the network by itself.

    \b
    turnstile config set kafka_connections_max_per_ip 50
    turnstile config set kafka_connections_max_overrides 10.0.0.1:5,10.1.0.0/16:200
    turnstile config set max.connections=1000 max.connection.creation.rate=200
    turnstile config set --observe kafka_connections_max_per_ip 50
    """
    wanted = _pairs(name_and_value)
    answer = cluster.put(
        "/v1/cluster_config",
        {"upsert": wanted, "remove": []},
        broker=broker,
        observe=observe or None,
        dry_run=dry_run or None,
    )
    ignored = _not_emulated(cluster, wanted)
    if as_json and ignored:
        answer = {**answer, "not_emulated": ignored}
    how = " is observed, not enforced" if observe else ""
    lines = [f"{name} = {value}{how}" for name, value in wanted.items()]
    show_change(answer, lines, as_json=as_json, dry_run=dry_run)
    if observe and not (as_json or dry_run):
        click.echo(f"what it would have refused: {same_cluster('config observed')}", err=True)
    if not as_json:
        for name in ignored:
            click.echo(f"{name} is not emulated: it is stored and shown, nothing acts on it", err=True)


@config.command("unset")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=completion.set_settings)
@broker_option
@observe_option
@with_cluster
def unset(cluster: AdminClient, names: tuple[str, ...], broker: int | None, observe: bool, as_json: bool) -> None:
    """Take live changes back. A setting then has its value of the command line again, or else its default.

    \b
    turnstile config unset kafka_connections_max_per_ip
    turnstile config unset --observe kafka_connections_max_per_ip
    """
    answer = cluster.put(
        "/v1/cluster_config", {"upsert": {}, "remove": list(names)}, broker=broker, observe=observe or None
    )
    if observe or as_json:
        show_change(answer, [f"{name} is no longer observed" for name in names], as_json=as_json)
        return
    back = {name: spelled(cluster.get("/v1/cluster_config", key=name, broker=broker)[name]) for name in names}
    show_change(
        answer, [f"{name} is unset{f': now {back[name]}' if back[name] else ''}" for name in names], as_json=False
    )


@config.command("observed")
@with_cluster
def observed(cluster: AdminClient, as_json: bool) -> None:
    """Show the observed limits (shadow mode, dry run), and the connections that they would have refused.

    \b
    turnstile config observed
    """
    answer = cluster.get("/v1/refusals", observed=True, by="ip")
    if as_json:
        show_json(answer)
        return
    if answer["summary"] is not None and quotas_of(answer["summary"], ip=False):
        click.echo(f"client quotas are observed: {same_cluster('quota observed')}", err=True)
    if answer["summary"] is None or not limits_connections(answer["summary"]):
        first = same_cluster("config set --observe kafka_connections_max_per_ip 50")
        click.echo(f"no limit of connections is observed: {first}")
        return
    for line in observed_lines(answer["summary"]):
        click.echo(printable(line))
    rows = [(row["ip"], count(row["count"]), ", ".join(row["reasons"])) for row in answer["refusals"][:_ADDRESSES]]
    show_table([("ADDRESS", "CONNECTIONS", "BECAUSE OF"), *rows] if rows else [], indent="  ")


@config.command("list")
@click.option("--all", "everything", is_flag=True, help="All settings, also those with their default values.")
@broker_option
@with_cluster
def list_(cluster: AdminClient, everything: bool, broker: int | None, as_json: bool) -> None:
    """Show the limits on connections, all other settings that are set, and those of single brokers.

    \b
    turnstile config list
    turnstile config list --all
    """
    values = cluster.get("/v1/cluster_config", broker=broker)
    given = cluster.get("/v1/cluster_config", broker=broker, include_defaults="false")
    schema = cluster.get("/v1/cluster_config/schema")["properties"]
    if as_json:
        shown = values if everything else given
        ignored = [name for name in shown if not schema.get(name, {}).get("emulated", True)]
        show_json({**shown, "not_emulated": ignored} if ignored else shown)
        return
    overrides = cluster.get("/v1/cluster_config/broker_overrides")["overrides"] if broker is None else {}
    rows = [("NAME", "VALUE", "", "WHAT IT DOES")]
    rows += [
        (name, readable(value), "set" if name in given else "", _what_it_does(schema, name))
        for name, value in values.items()
        if everything or name in given or _is_limit(name)
    ]
    for number, own in overrides.items():
        rows += [(name, readable(v), f"broker {number}", _what_it_does(schema, name)) for name, v in own.items()]
    observed = cluster.get("/v1/cluster_config", broker=broker, observe=True)
    rows += [(name, readable(v), "observed", _what_it_does(schema, name)) for name, v in observed.items()]
    show_table(rows)


@config.command("history")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="The number of changes to show."
)
@with_cluster
def history(cluster: AdminClient, limit: int, as_json: bool) -> None:
    """Show the changes of the configuration: version, time, author, old and new values. The latest comes first."""
    changes = cluster.get("/v1/config/history", limit=limit)["history"]
    if as_json:
        show_json(changes)
        return
    for change in changes:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(change["at"]))
        click.echo(f"version {change['version']}  {at}  {printable(change['who'])}")
        shown = [record for record in change["changes"] if record[0] != "static" or record[1].startswith("/")][:20]
        show_table([(described(kind, key), _moved(kind, old, new)) for kind, key, old, new in shown], indent="  ")
        if not shown:
            click.echo("  cluster started")
        if len(change["changes"]) > len(shown) == 20:
            click.echo(f"  and {len(change['changes']) - len(shown)} more")


def described(kind: str, key: str) -> str:
    """The changed setting, quota, user or topic, for people."""
    if kind in ("quota", "observed_quota"):
        return f"quota of {entity_text(json.loads(key))}{' (observed)' * (kind == 'observed_quota')}"
    if kind == "advertised":
        broker, _, listener = key.partition("/")
        return f"address of {listener} (broker {broker})"
    if kind not in _SETTINGS:
        return f"{kind} {key}"
    broker, _, name = key.partition("/")
    return name + (f" (broker {broker})" if broker else "") + _SETTINGS[kind]


def spelled(value: object) -> str:
    """A value as `config set` takes it; "" for none."""
    return "" if value is None else as_text(value)


def readable(value: object) -> str:
    """A value for people."""
    return "unlimited" if value == UNLIMITED else spelled(value) or "-"


def _pairs(words: tuple[str, ...]) -> dict[str, str]:
    if "=" not in words[0]:
        if len(words) != 2:
            raise click.UsageError(
                "give NAME VALUE, or NAME=VALUE once or more, as in: config set kafka_connections_max_per_ip 50"
            )
        return {words[0]: words[1]}
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise click.UsageError(f"{word!r} is not NAME=VALUE")
        pairs[name] = value
    return pairs


def _not_emulated(cluster: AdminClient, names: Iterable[str]) -> list[str]:
    """The names of settings that Turnstile accepts but does not emulate."""
    schema = cluster.get("/v1/cluster_config/schema")["properties"]
    return [name for name in names if not schema.get(name, {}).get("emulated", True)]


def _what_it_does(schema: Mapping[str, Any], name: str) -> str:
    """The first sentence of a setting's description."""
    row = schema.get(name, {})
    sentence: str = row.get("description", "Of one listener.").partition(". ")[0].rstrip(".")
    if not row.get("emulated", True) and not sentence.startswith("Not emulated"):
        return f"Not emulated. {sentence}"
    return sentence


def _is_limit(name: str) -> bool:
    return name.startswith(("kafka_connection", "max.connection")) or name.startswith("listener.name.")


def _moved(kind: str, before: object, after: object) -> str:
    """The old and the new value. Of a topic only that it changed: its record is internal."""
    if kind == "topic":
        return "created" if before is None else "deleted" if after is None else "changed"
    return f"{_old(before)} -> {_old(after)}"


def _old(value: object) -> str:
    if value is None:
        return "(unset)"
    text = " ".join(f"{key}={one}" for key, one in value.items()) if isinstance(value, dict) else spelled(value)
    return text if len(text) <= 100 else text[:97] + "..."
