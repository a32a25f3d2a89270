"""`turnstile topic`: topics of a running cluster. They are created as any client of Kafka does it, over a listener."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from broker.runtime.printable import printable
from turnstile.admin_client import AdminClient
from turnstile.cli.cluster_command import same_cluster, with_cluster
from turnstile.cli.output import CommandFailed, show_json, show_table
from turnstile.cli.suggest import Commands
from turnstile.cli.up import NameAndValue, SizedTopic

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient as KafkaAdmin

_WITHIN_S = 15.0
_NONE_IS_OPEN = (
    "every listener of this cluster asks for a login or TLS: create the topic with a client that has them, such as "
    "kafka-topics.sh, or start the cluster with --topic"
)


@click.group(cls=Commands)
def topic() -> None:
    """List and create topics.

    \b
    turnstile topic list
    turnstile topic create orders:6 payments:3
    turnstile topic create audit --config retention.ms=600000
    """


@topic.command("list")
@with_cluster
def list_topics(cluster: AdminClient, as_json: bool) -> None:
    """Each topic, and how many partitions it has."""
    topics: Mapping[str, int] = cluster.get("/v1/cluster")["topics"]
    if as_json:
        show_json({"topics": topics})
    elif topics:
        show_table([("topic", "partitions"), *((name, str(count)) for name, count in sorted(topics.items()))])
    else:
        click.echo(f"There are no topics: {same_cluster('topic create NAME:PARTITIONS')}", err=True)


@topic.command("create")
@click.argument("topics", nargs=-1, required=True, type=SizedTopic(), metavar="NAME[:PARTITIONS]...")
@click.option(
    "--config", "configs", type=NameAndValue(), multiple=True, help="A topic's config, such as retention.ms=600000."
)
@with_cluster
def create(
    cluster: AdminClient, topics: Sequence[tuple[str, int]], configs: Sequence[tuple[str, str]], as_json: bool
) -> None:
    """Create topics, of one partition where no other number is given.

    Exit code 1 when one of them could not be created; the others are.
    """
    refused = _create(_open_listener(cluster.get("/v1/cluster")["listeners"]), dict(topics), dict(configs))
    made = [name for name, _ in topics if name not in refused]
    if as_json:
        show_json({"created": made, "refused": refused})
    for name, partitions in topics if not as_json else ():
        if name in refused:
            click.echo(printable(f"{name}: {refused[name]}"), err=True)
        else:
            click.echo(f"Created {name} with {partitions} partition{'' if partitions == 1 else 's'}.")
    if refused:
        click.get_current_context().exit(1)


def _open_listener(listeners: Sequence[Mapping[str, Any]]) -> str:
    """HOST:PORT of a listener that asks for nothing. Raises CommandFailed."""
    found = next((each["address"] for each in listeners if not {"sasl", "tls"} & set(each["options"])), None)
    if found is None:
        raise CommandFailed(_NONE_IS_OPEN)
    return str(found)


def _create(bootstrap: str, topics: Mapping[str, int], configs: dict[str, str]) -> dict[str, str]:
    """Why each topic that was refused was, by name. Raises CommandFailed when no broker answers."""
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

    admin = _kafka_admin(bootstrap)
    wanted = [NewTopic(name, num_partitions=partitions, config=configs) for name, partitions in topics.items()]
    refused = {}
    for name, outcome in admin.create_topics(wanted, request_timeout=_WITHIN_S).items():
        try:
            outcome.result()
        except KafkaException as fault:
            error: KafkaError = fault.args[0]
            if error.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
                raise CommandFailed(
                    f"no broker answered at {bootstrap} within {_WITHIN_S:.0f} s: `{same_cluster('explain ip=127.0.0.1')}` shows "
                    "which limits hold for connections from here"
                ) from None
            refused[name] = error.str()
    return refused


def _kafka_admin(bootstrap: str) -> KafkaAdmin:
    from confluent_kafka.admin import AdminClient as KafkaAdmin

    silent = logging.Logger("librdkafka", logging.CRITICAL)  # what it would write is in the errors
    return KafkaAdmin({"bootstrap.servers": bootstrap, "client.id": "turnstile"}, logger=silent)
