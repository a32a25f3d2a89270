"""Topics are created as Kafka does it, topic by topic, with its codes and messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from desk import Desk

from broker.wire import codes
from shards.mesh.mesh import COORDINATOR


async def create(desk: Desk, *topics: dict[str, Any], version: int = 7, validate_only: bool = False) -> dict[str, Any]:
    types = desk.types("create_topics", version)
    asked = tuple(
        types.CreatableTopic(
            name=topic["name"], num_partitions=topic.get("partitions", 1), replication_factor=topic.get("replicas", 1),
            assignments=tuple(
                types.CreatableReplicaAssignment(partition_index=n, broker_ids=brokers)
                for n, brokers in topic.get("assign", {}).items()
            ),
            configs=tuple(
                types.CreatableTopicConfig(name=name, value=value) for name, value in topic.get("configs", {}).items()
            ),
        )
        for topic in topics
    )  # fmt: skip
    found = await desk.ask("create_topics", version, topics=asked, validate_only=validate_only)
    return {topic.name: topic for topic in found.topics}


@pytest.mark.parametrize("version", range(2, 8))
async def test_topics_are_created_in_every_version(desk: Desk, version: int) -> None:
    found = (await create(desk, {"name": "a", "partitions": 3}, {"name": "b", "partitions": -1, "replicas": -1},
                          version=version))  # fmt: skip
    assert [t.error_code for t in found.values()] == [0, 0]
    assert {t.name: len(t.leaders) for t in desk.images[2, 0].topics} == {"a": 3, "b": 2}
    if version >= 5:
        assert (found["b"].num_partitions, found["b"].replication_factor) == (2, 1)
    if version >= 7:
        assert found["a"].topic_id == desk.images[0, 0].topics.get("a").id


async def test_a_created_topic_tells_its_configs_with_real_sources(desk: Desk) -> None:
    found = await create(desk, {"name": "a", "configs": {"retention.ms": "1000", "cleanup.policy": "compact,delete"}})
    configs = {c.name: (c.value, c.config_source) for c in found["a"].configs}
    assert configs["retention.ms"] == ("1000", 1)
    assert configs["cleanup.policy"] == ("compact,delete", 1)
    assert configs["segment.ms"][1] == 5
    assert all(source in (1, 2, 3, 4, 5) for _, source in configs.values())


async def test_only_validating_creates_nothing(desk: Desk) -> None:
    found = await create(desk, {"name": "a", "partitions": 5}, {"name": "b/"}, validate_only=True)
    assert (found["a"].error_code, found["a"].num_partitions) == (0, 5)
    assert found["b/"].error_code == codes.INVALID_TOPIC_EXCEPTION
    assert len(desk.images[0, 0].topics) == 0


UNREPLICATED = (
    "Unable to replicate the partition 4 time(s): The target replication factor of 4 cannot be reached because only 3 "
    "broker(s) are registered."
)
REFUSED = [
    ({"name": "there"}, "TOPIC_ALREADY_EXISTS", "Topic 'there' already exists."),
    ({"name": "a/b"}, "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: 'a/b' contains"),
    ({"name": ""}, "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: the empty string is not allowed"),
    ({"name": "x" * 250}, "INVALID_TOPIC_EXCEPTION", "is longer than the max allowed length 249"),
    ({"name": "dot_ted"}, "INVALID_TOPIC_EXCEPTION", "collides with existing topic: dot.ted"),
    ({"name": "a", "partitions": 0}, "INVALID_PARTITIONS", "Number of partitions was set to an invalid"),
    ({"name": "a", "partitions": -2}, "INVALID_PARTITIONS", "Number of partitions was set to an invalid"),
    ({"name": "a", "replicas": 0}, "INVALID_REPLICATION_FACTOR", "larger than 0, or -1 to use the default value."),
    ({"name": "a", "replicas": 4}, "INVALID_REPLICATION_FACTOR", UNREPLICATED),
    ({"name": "a", "configs": {"no.such": "1"}}, "INVALID_CONFIG", "no.such is not a setting"),
    ({"name": "a", "configs": {"retention.ms": "abc"}}, "INVALID_CONFIG", "retention.ms cannot be 'abc': it must"),
    ({"name": "a", "configs": {"retention.ms": None}}, "INVALID_CONFIG", "Null value not supported for topic configs"),
    ({"name": "a", "assign": {0: (0,)}}, "INVALID_REQUEST", "replication factor was not set to -1."),
    ({"name": "a", "replicas": -1, "assign": {0: (0,)}}, "INVALID_REQUEST", "numPartitions was not set to -1."),
]


@pytest.mark.parametrize(("topic", "error", "message"), REFUSED)
async def test_what_kafka_refuses_is_refused(desk: Desk, topic: dict[str, Any], error: str, message: str) -> None:
    await desk.make_topic("there")
    await desk.make_topic("dot.ted")
    found = await create(desk, topic, {"name": "good"})
    assert (found[topic["name"]].error_code, found["good"].error_code) == (getattr(codes, error), 0)
    assert message in found[topic["name"]].error_message


async def test_a_request_for_too_many_partitions_is_refused_whole(desk: Desk) -> None:
    """ReplicationControlManager also counts the partitions of topics that exist already."""
    await desk.make_topic("there")
    message = "Excessively large number of partitions per request."
    halves = {"name": "a", "partitions": 5000}, {"name": "b", "partitions": 5000}
    for more in ({"name": "c"}, {"name": "there"}):
        found = await create(desk, *halves, more)
        assert {(each.error_code, each.error_message) for each in found.values()} == {(codes.POLICY_VIOLATION, message)}
    assert {each.error_code for each in (await create(desk, *halves)).values()} == {0}
    assert len(desk.images[0, 0].topics) == 3
    types = desk.types("create_partitions", 3)
    for counts, expected in (((10_000, 10_001), codes.POLICY_VIOLATION), ((10_000, 10_000), 0)):
        topics = tuple(
            types.CreatePartitionsTopic(name=n, count=c, assignments=None) for n, c in zip("ab", counts, strict=True)
        )
        response = await desk.ask("create_partitions", 3, topics=topics)
        assert {each.error_code for each in response.results} == {expected}


ASSIGNED = [
    ({0: (5,)}, "includes broker 5, but no such broker is registered."),
    ({1: (0,)}, "partitions should be a consecutive 0-based integer sequence"),
    ({0: ()}, "includes an empty replica list."),
    ({0: (1, 1)}, "includes the broker 1 more than once."),
    (
        {0: (1, 2), 1: (1,)},
        "includes a partition with 1 replica(s), but this is not consistent with previous partitions, which have 2 replica(s).",
    ),
]


@pytest.mark.parametrize(("assign", "message"), ASSIGNED)
async def test_impossible_assignments_are_refused(desk: Desk, assign: dict[int, Any], message: str) -> None:
    found = await create(desk, {"name": "a", "partitions": -1, "replicas": -1, "assign": assign})
    assert found["a"].error_code == codes.INVALID_REPLICA_ASSIGNMENT
    assert found["a"].error_message.endswith(message)


async def test_the_first_replica_of_an_assignment_leads(desk: Desk) -> None:
    assign = {1: (0, 1), 0: (2, 1)}
    found = await create(desk, {"name": "a", "partitions": -1, "replicas": -1, "assign": assign})
    assert (found["a"].error_code, found["a"].num_partitions, found["a"].replication_factor) == (0, 2, 2)
    assert desk.images[0, 0].topics.get("a").leaders == [2, 0]
    assert await replicas(desk, "a") == {0: (2, [2, 1]), 1: (0, [0, 1])}


async def test_a_replication_factor_names_the_brokers_that_follow(desk: Desk) -> None:
    found = await create(desk, {"name": "a", "partitions": 3, "replicas": 2})
    assert (found["a"].error_code, found["a"].replication_factor) == (0, 2)
    assert await replicas(desk, "a") == {0: (0, [0, 1]), 1: (1, [1, 2]), 2: (2, [2, 0])}


async def test_the_default_replication_factor(tmp_path: Path) -> None:
    desk = Desk(tmp_path, brokers=3, default_replication_factor="3")
    await desk.start()
    found = await create(desk, {"name": "a", "partitions": 1, "replicas": -1}, validate_only=True)
    assert found["a"].replication_factor == 3
    await create(desk, {"name": "a", "partitions": 1, "replicas": -1})
    assert await replicas(desk, "a") == {0: (0, [0, 1, 2])}


async def replicas(desk: Desk, topic: str) -> dict[int, tuple[int, list[int]]]:
    """{partition: (leader, replicas)} as a client sees them; all of them are in sync."""
    (described,) = (await desk.ask("metadata", 12, topics=None)).topics
    assert described.name == topic
    assert all(each.isr_nodes == each.replica_nodes for each in described.partitions)
    return {each.partition_index: (each.leader_id, [*each.replica_nodes]) for each in described.partitions}


async def test_a_name_given_twice_is_refused_once(desk: Desk) -> None:
    found = await create(desk, {"name": "a"}, {"name": "a"}, {"name": "b"})
    assert {name: t.error_code for name, t in found.items()} == {"a": codes.INVALID_REQUEST, "b": 0}


async def test_without_the_coordinator_nothing_is_created_and_clients_try_again(desk: Desk) -> None:
    desk.down.add(COORDINATOR)
    assert (await create(desk, {"name": "a"}))["a"].error_code == codes.NOT_CONTROLLER
