"""`turnstile topic`: list and create topics of a running cluster. It creates them over a listener, as any Kafka client does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from broker.runtime.printable import printable
from turnstile.admin_client import AdminClient
from turnstile.cli.cluster_command import same_cluster, with_cluster
from turnstile.cli.output import show_json, show_table
from turnstile.cli.suggest import Commands
from turnstile.cli.up_params import NameAndValue, SizedTopic
from turnstile.quantities import plural


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
    """Show each topic and its number of partitions."""
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
    "--config",
    "configs",
    type=NameAndValue(),
    multiple=True,
    help="A config of these topics, such as retention.ms=600000.",
)
@with_cluster
def create(
    cluster: AdminClient, topics: Sequence[tuple[str, int]], configs: Sequence[tuple[str, str]], as_json: bool
) -> None:
    """Create topics. NAME alone makes a topic with one partition.

    Exit code 1 if a topic could not be created; the other topics are created all the same.
    """
    from turnstile.cli.create_topics import create_topics

    wanted = dict(topics)
    if len(wanted) < len(topics):
        raise click.UsageError("a topic is named twice")
    refused = create_topics(cluster, wanted, dict(configs))
    made = [name for name in wanted if name not in refused]
    if as_json:
        show_json({"created": made, "refused": refused})
    for name, partitions in topics if not as_json else ():
        if name in refused:
            click.echo(printable(f"{name}: {refused[name]}"), err=True)
        else:
            click.echo(f"Created {name} with {partitions} {plural('partition', partitions)}.")
    if refused:
        click.get_current_context().exit(1)
