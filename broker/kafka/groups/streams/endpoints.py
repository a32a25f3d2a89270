"""Where the clients of a streams group answer interactive queries, and for which partitions.

Source: EndpointToPartitionsManager of Kafka 4.3.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from broker.kafka.groups.streams.reconciliation import TaskProgress
from broker.kafka.groups.streams.tasks import TaskSet
from broker.kafka.groups.streams.topology import PartitionsOf, Topology


class Endpoint(NamedTuple):
    """The address at which a client answers interactive queries."""

    host: str
    port: int


class TopicPartitions(NamedTuple):
    """Partitions of one topic."""

    topic: str
    partitions: tuple[int, ...]


class EndpointPartitions(NamedTuple):
    """The partitions that the tasks of a client with an endpoint read."""

    endpoint: Endpoint
    active: tuple[TopicPartitions, ...]
    standby: tuple[TopicPartitions, ...]


class HasEndpoint(Protocol):
    """A member, as far as it is needed here."""

    @property
    def endpoint(self) -> Endpoint | None: ...

    @property
    def progress(self) -> TaskProgress: ...


def endpoints_of(
    members: Iterable[HasEndpoint], topology: Topology, partitions_of: PartitionsOf
) -> tuple[EndpointPartitions, ...]:
    """The partitions of the members that have an endpoint."""
    inputs = {each.id: each.inputs for each in topology.subtopologies}

    def read(tasks: TaskSet) -> tuple[TopicPartitions, ...]:
        numbers: dict[str, list[int]] = {}
        for subtopology, number in sorted(tasks):
            for topic in inputs.get(subtopology, ()):
                if number < (partitions_of(topic) or 0):
                    numbers.setdefault(topic, []).append(number)
        return tuple(TopicPartitions(topic, tuple(each)) for topic, each in numbers.items())

    return tuple(
        EndpointPartitions(
            member.endpoint, read(member.progress.assigned.active), read(member.progress.assigned.standby)
        )
        for member in members
        if member.endpoint is not None
    )
