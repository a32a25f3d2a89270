"""Topologies with the topics of a cluster: how many tasks, which internal topics, and what does not fit."""

from __future__ import annotations

import msgpack
import pytest

from broker.kafka.groups.streams.status import (
    INCORRECTLY_PARTITIONED_TOPICS,
    MISSING_INTERNAL_TOPICS,
    MISSING_SOURCE_TOPICS,
)
from broker.kafka.groups.streams.topology import (
    ConfiguredTopology,
    InternalTopic,
    InvalidTopology,
    Subtopology,
    Topology,
    configure,
    topology_of,
)

COUNT = Topology(
    0,
    (
        Subtopology("0", ("words", "more"), repartition_sinks=("by-word",)),
        Subtopology(
            "1",
            repartition_sources=(InternalTopic("by-word"),),
            changelogs=(InternalTopic("counts", configs=(("cleanup.policy", "compact"),)),),
        ),
    ),
)


def configured(topology: Topology, **topics: int) -> ConfiguredTopology:
    return configure(topology, {name.replace("_", "-"): count for name, count in topics.items()}.get)


def test_internal_topics_are_as_wide_as_the_widest_source() -> None:
    found = configured(COUNT, words=3, more=5)
    assert found.tasks == {"0": 5, "1": 5}
    assert found.partitions == {"by-word": 5, "counts": 5}
    assert {topic.name: topic.partitions for topic in found.missing} == found.partitions
    assert found.missing[1].configs == (("cleanup.policy", "compact"),)
    assert found.status is not None and found.status.code == MISSING_INTERNAL_TOPICS and not found.is_ready
    assert found.status.detail == "Internal topics are missing: [by-word, counts]"


def test_a_topology_is_ready_when_its_topics_are_there() -> None:
    found = configured(COUNT, words=3, more=5, by_word=5, counts=5)
    assert found.is_ready and not found.missing and found.tasks == {"0": 5, "1": 5}


def test_missing_sources_are_named_and_nothing_is_created() -> None:
    found = configured(COUNT, more=5)
    assert found.status == (MISSING_SOURCE_TOPICS, "Source topics words are missing.")
    assert found.tasks is None and not found.missing


@pytest.mark.parametrize("name", ["by_word", "counts"])
def test_an_internal_topic_of_another_size_is_said(name: str) -> None:
    found = configured(COUNT, words=3, more=5, **{"by_word": 5, "counts": 5, name: 4})
    assert found.status is not None and found.status.code == INCORRECTLY_PARTITIONED_TOPICS
    assert found.status.detail.endswith("has different number of partitions: expected 5, found 4")


def test_a_repartition_topic_keeps_the_number_that_it_says() -> None:
    topology = Topology(
        0,
        (
            Subtopology("0", ("words",), repartition_sinks=("by-word",)),
            Subtopology("1", repartition_sources=(InternalTopic("by-word", 7),), repartition_sinks=("again",)),
            Subtopology("2", repartition_sources=(InternalTopic("again"),)),
        ),
    )
    assert configured(topology, words=3).partitions == {"by-word": 7, "again": 7}


def test_a_loop_of_repartition_topics_is_no_topology() -> None:
    loop = Topology(0, (Subtopology("0", repartition_sources=(InternalTopic("a"),), repartition_sinks=("a",)),))
    with pytest.raises(InvalidTopology, match="Failed to compute number of partitions"):
        configured(loop)


def joined(*copartitioned: str, fixed: int = 0) -> Topology:
    return Topology(
        0,
        (
            Subtopology("0", ("left",), repartition_sinks=("by-key",)),
            Subtopology(
                "1", ("right",), repartition_sources=(InternalTopic("by-key", fixed),), copartition_groups=(copartitioned,)
            ),
        ),
    )  # fmt: skip


def test_a_repartition_topic_gets_the_number_of_the_topic_that_it_is_joined_with() -> None:
    assert configured(joined("right", "by-key"), left=3, right=8).partitions == {"by-key": 8}


def test_a_fixed_repartition_topic_that_does_not_fit_its_partner_is_said() -> None:
    found = configured(joined("right", "by-key", fixed=4), left=3, right=8)
    assert found.status == (
        INCORRECTLY_PARTITIONED_TOPICS,
        "Number of partitions [4] of repartition topic [by-key] doesn't match number of partitions [8] of the source topic.",
    )


def test_sources_that_are_joined_must_be_alike() -> None:
    topology = Topology(0, (Subtopology("0", ("left", "right"), copartition_groups=(("left", "right"),)),))
    assert configured(topology, left=4, right=4).tasks == {"0": 4}
    found = configured(topology, left=3, right=8)
    assert found.status is not None and found.status.code == INCORRECTLY_PARTITIONED_TOPICS
    assert "{left=3, right=8}" in found.status.detail


def test_a_source_topic_that_is_its_own_changelog_is_not_created() -> None:
    topology = Topology(0, (Subtopology("0", ("table",), changelogs=(InternalTopic("table"),)),))
    found = configured(topology, table=4)
    assert found.is_ready and found.tasks == {"0": 4}


def test_a_topology_comes_through_msgpack_as_it_was() -> None:
    assert topology_of(msgpack.unpackb(msgpack.packb(COUNT))) == COUNT
