"""The topology of a streams group, and what the topics of the cluster make of it: tasks, internal topics, what is missing.

Pure functions. `configure` decides how many partitions each internal topic has and how many tasks each subtopology:

configured_counts_agree  Topics of a copartition group have the same number of partitions, and an internal topic that exists has
    the number that was decided.
tasks_cover_the_sources  A subtopology has as many tasks as its source topic with most partitions, and its changelogs as many
    partitions.

Source: InternalTopicManager, RepartitionTopics, CopartitionedTopicsEnforcer, ChangelogTopics of Kafka 4.3.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from broker.kafka.groups.streams.status import (
    INCORRECTLY_PARTITIONED_TOPICS,
    MISSING_INTERNAL_TOPICS,
    MISSING_SOURCE_TOPICS,
    Status,
)

PartitionsOf = Callable[[str], int | None]
"""The number of partitions of a topic of the cluster; None: there is no such topic."""


class InvalidTopology(Exception):
    """STREAMS_INVALID_TOPOLOGY: no topics could make this topology run."""


class InternalTopic(NamedTuple):
    """`partitions` 0: as many as its readers need; `replication_factor` 0: the broker's default."""

    name: str
    partitions: int = 0
    replication_factor: int = 0
    configs: tuple[tuple[str, str], ...] = ()


class Subtopology(NamedTuple):
    """`sources` are topics of users; repartition topics and changelogs are internal. A copartition group has the topics' names."""

    id: str
    sources: tuple[str, ...] = ()
    repartition_sinks: tuple[str, ...] = ()
    repartition_sources: tuple[InternalTopic, ...] = ()
    changelogs: tuple[InternalTopic, ...] = ()
    copartition_groups: tuple[tuple[str, ...], ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """All topics that its tasks read."""
        return (*self.sources, *(topic.name for topic in self.repartition_sources))

    @property
    def is_stateful(self) -> bool:
        return bool(self.changelogs)


class Topology(NamedTuple):
    """`epoch`: the application's, which rises when it brings another topology."""

    epoch: int
    subtopologies: tuple[Subtopology, ...]

    def required_topics(self) -> frozenset[str]:
        """The names of all topics that it reads or keeps its state in."""
        return frozenset(
            name for each in self.subtopologies for name in (*each.inputs, *(topic.name for topic in each.changelogs))
        )

    def subtopology_of(self, topic: str) -> str | None:
        """The subtopology whose tasks read a topic."""
        return next((each.id for each in self.subtopologies if topic in each.inputs), None)


class ConfiguredTopology(NamedTuple):
    """`tasks`: how many each subtopology has, None while topics are missing; `partitions`: of each internal topic; `missing`: the
    internal topics to be created; `status`: why the group is not ready, None when it is."""

    tasks: Mapping[str, int] | None
    partitions: Mapping[str, int]
    missing: tuple[InternalTopic, ...]
    status: Status | None

    @property
    def is_ready(self) -> bool:
        return self.status is None


def topology_of(fields: Sequence[Any] | None) -> Topology | None:
    """The topology, from the fields that msgpack carried."""
    if fields is None:
        return None
    epoch, subtopologies = fields
    return Topology(epoch, tuple(_subtopology(*each) for each in subtopologies))


def _subtopology(
    name: str,
    sources: Iterable[str],
    sinks: Iterable[str],
    repartition_sources: Iterable[Sequence[object]],
    changelogs: Iterable[Sequence[object]],
    copartition_groups: Iterable[Iterable[str]],
) -> Subtopology:
    return Subtopology(
        name,
        tuple(sources),
        tuple(sinks),
        tuple(map(_internal_topic, repartition_sources)),
        tuple(map(_internal_topic, changelogs)),
        tuple(tuple(group) for group in copartition_groups),
    )


def _internal_topic(fields: Sequence[Any]) -> InternalTopic:
    name, partitions, replication_factor, configs = fields
    return InternalTopic(name, partitions, replication_factor, tuple((key, value) for key, value in configs))


class _Misfit(Exception):
    """The topics of the cluster do not fit the topology."""

    def __init__(self, code: int, detail: str) -> None:
        super().__init__(detail)
        self.status = Status(code, detail)


def configure(topology: Topology, partitions_of: PartitionsOf) -> ConfiguredTopology:
    """The tasks and missing topics of a topology, by the topics that there are. Raises InvalidTopology."""
    try:
        _check_sources(topology, partitions_of)
        counts = _decided(topology, partitions_of)
        tasks = {each.id: _most(each.inputs, partitions_of, counts) for each in topology.subtopologies}
        missing = _missing(topology, partitions_of, counts)
    except _Misfit as misfit:
        return ConfiguredTopology(None, {}, (), misfit.status)
    status = None
    if missing:
        names = ", ".join(sorted(topic.name for topic in missing))
        status = Status(MISSING_INTERNAL_TOPICS, f"Internal topics are missing: [{names}]")
    return ConfiguredTopology(tasks, counts, missing, status)


def _check_sources(topology: Topology, partitions_of: PartitionsOf) -> None:
    missing = sorted({name for each in topology.subtopologies for name in each.sources if partitions_of(name) is None})
    if missing:
        raise _Misfit(MISSING_SOURCE_TOPICS, f"Source topics {', '.join(missing)} are missing.")


def _decided(topology: Topology, partitions_of: PartitionsOf) -> dict[str, int]:
    """Internal topic -> its number of partitions."""
    counts = _repartitioned(topology, partitions_of)
    internal = {topic.name: topic.partitions for each in topology.subtopologies for topic in each.repartition_sources}
    for each in topology.subtopologies:
        for group in each.copartition_groups:
            _copartition(group, internal, partitions_of, counts)
    for each in topology.subtopologies:
        most = _most(each.inputs, partitions_of, counts)
        counts |= {topic.name: most for topic in each.changelogs if topic.name not in each.sources}
    return counts


def _repartitioned(topology: Topology, partitions_of: PartitionsOf) -> dict[str, int]:
    """Repartition topic -> as many partitions as it says, else as the widest input of the subtopologies that write it."""
    topics = {topic.name: topic.partitions for each in topology.subtopologies for topic in each.repartition_sources}
    counts = {name: partitions for name, partitions in topics.items() if partitions}
    left = [name for name, partitions in topics.items() if not partitions]
    while left:
        known = len(counts)
        for name in left:
            writers = (each for each in topology.subtopologies if name in each.repartition_sinks)
            inputs = (counts.get(topic) or partitions_of(topic) for each in writers for topic in each.inputs)
            widest = max((count for count in inputs if count), default=0)
            if widest:
                counts[name] = widest
        left = [name for name in left if name not in counts]
        if len(counts) == known:
            raise InvalidTopology(
                "Failed to compute number of partitions for all repartition topics, make sure all user input topics are created "
                "and all Pattern subscriptions match at least one topic in the cluster"
            )
    return counts


def _copartition(
    group: Sequence[str], internal: Mapping[str, int], partitions_of: PartitionsOf, counts: dict[str, int]
) -> None:
    """`internal`: repartition topic -> the partitions that it says, 0 for none; these get the number of the group."""
    fixed = {name: internal[name] for name in group if internal.get(name)}
    flexible = [name for name in group if internal.get(name) == 0]
    sources = {name: partitions_of(name) or counts.get(name, 0) for name in group if name not in internal}
    decisive = sources or fixed
    if len(set(decisive.values())) > 1:
        described = ", ".join(f"{name}={count}" for name, count in sorted(decisive.items()))
        raise _Misfit(
            INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{described}}}]",
        )
    count = next(iter(decisive.values()), 0) or max((counts[name] for name in flexible), default=0)
    for name, own in fixed.items():
        if own != count:
            raise _Misfit(
                INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{own}] of repartition topic [{name}] doesn't match number of partitions [{count}] of the "
                "source topic.",
            )
    counts |= dict.fromkeys(flexible, count)


def _most(topics: Iterable[str], partitions_of: PartitionsOf, counts: Mapping[str, int]) -> int:
    return max((partitions_of(name) or counts.get(name, 0) for name in topics), default=0)


def _missing(topology: Topology, partitions_of: PartitionsOf, counts: Mapping[str, int]) -> tuple[InternalTopic, ...]:
    missing: dict[str, InternalTopic] = {}
    for each in topology.subtopologies:
        for topic in (*each.repartition_sources, *each.changelogs):
            found = partitions_of(topic.name)
            count = counts.get(topic.name, found)
            if found is None:
                missing[topic.name] = topic._replace(partitions=counts[topic.name])
            elif found != count:
                raise _Misfit(
                    INCORRECTLY_PARTITIONED_TOPICS,
                    f"Existing topic {topic.name} has different number of partitions: expected {count}, found {found}",
                )
    return tuple(missing.values())
