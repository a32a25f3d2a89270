"""Topics are created, grown and deleted as Kafka does it, topic by topic, with its codes and messages."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from desk import Desk

from broker.protocol import codes
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


@pytest.fixture
async def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path, brokers=3, num_partitions="2")
    await desk.start()
    return desk


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


REFUSED = [
    ({"name": "there"}, "TOPIC_ALREADY_EXISTS", "Topic 'there' already exists."),
    ({"name": "a/b"}, "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: 'a/b' contains"),
    ({"name": ""}, "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: the empty string is not allowed"),
    ({"name": "x" * 250}, "INVALID_TOPIC_EXCEPTION", "is longer than the max allowed length 249"),
    ({"name": "dot_ted"}, "INVALID_TOPIC_EXCEPTION", "collides with existing topic: dot.ted"),
    ({"name": "a", "partitions": 0}, "INVALID_PARTITIONS", "Number of partitions was set to an invalid"),
    ({"name": "a", "partitions": -2}, "INVALID_PARTITIONS", "Number of partitions was set to an invalid"),
    ({"name": "a", "partitions": 10_001}, "POLICY_VIOLATION", "Excessively large number of partitions"),
    ({"name": "a", "replicas": 0}, "INVALID_REPLICATION_FACTOR", "Replication factor must be larger than 0"),
    ({"name": "a", "replicas": 4}, "INVALID_REPLICATION_FACTOR", "because only 3 broker(s) are registered."),
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


ASSIGNED = [
    ({0: (5,)}, "includes broker 5, but no such broker is registered."),
    ({1: (0,)}, "partitions should be a consecutive 0-based integer sequence"),
    ({0: ()}, "includes an empty replica list."),
    ({0: (1, 1)}, "includes the broker 1 more than once."),
]


@pytest.mark.parametrize(("assign", "message"), ASSIGNED)
async def test_impossible_assignments_are_refused(desk: Desk, assign: dict[int, Any], message: str) -> None:
    found = await create(desk, {"name": "a", "partitions": -1, "replicas": -1, "assign": assign})
    assert found["a"].error_code == codes.INVALID_REPLICA_ASSIGNMENT
    assert found["a"].error_message.endswith(message)


async def test_the_first_replica_of_an_assignment_leads(desk: Desk) -> None:
    assign = {1: (0,), 0: (2, 1)}
    found = await create(desk, {"name": "a", "partitions": -1, "replicas": -1, "assign": assign})
    assert (found["a"].error_code, found["a"].num_partitions) == (0, 2)
    assert desk.images[0, 0].topics.get("a").leaders == [2, 0]


async def test_a_name_given_twice_is_refused_once(desk: Desk) -> None:
    found = await create(desk, {"name": "a"}, {"name": "a"}, {"name": "b"})
    assert {name: t.error_code for name, t in found.items()} == {"a": codes.INVALID_REQUEST, "b": 0}


async def test_without_the_coordinator_nothing_is_changed_and_clients_try_again(desk: Desk) -> None:
    await desk.make_topic("there")
    desk.down.add(COORDINATOR)
    assert (await create(desk, {"name": "a"}))["a"].error_code == codes.NOT_CONTROLLER
    deleted = await desk.ask("delete_topics", 5, topic_names=("there",))
    assert deleted.responses[0].error_code == codes.NOT_CONTROLLER


@pytest.mark.parametrize("version", range(1, 6))
async def test_topics_are_deleted_by_name(desk: Desk, version: int) -> None:
    await desk.make_topic("a")
    await desk.make_topic("b")
    found = await desk.ask("delete_topics", version, topic_names=("a", "nope", "b", "b"))
    assert [(t.name, t.error_code) for t in found.responses] == [
        ("a", 0),
        ("nope", codes.UNKNOWN_TOPIC_OR_PARTITION),
        ("b", codes.INVALID_REQUEST),
    ]
    assert desk.images[1, 0].topics.names() == ["b"]


async def test_topics_are_deleted_by_id(desk: Desk) -> None:
    await desk.make_topic("a")
    await desk.make_topic("b")
    ids = {t.name: t.id for t in desk.images[0, 0].topics}
    unknown = uuid.uuid4()
    state = desk.types("delete_topics", 6).DeleteTopicState
    asked = (
        state(name=None, topic_id=ids["a"]), state(name=None, topic_id=unknown), state(name="b", topic_id=None),
        state(name="b", topic_id=ids["b"]), state(name=None, topic_id=None),
    )  # fmt: skip
    found = await desk.ask("delete_topics", 6, topics=asked)
    assert [(t.name, t.topic_id, t.error_code) for t in found.responses] == [
        ("a", ids["a"], 0),
        (None, unknown, codes.UNKNOWN_TOPIC_ID),
        ("b", ids["b"], 0),
        ("b", ids["b"], codes.INVALID_REQUEST),
        (None, None, codes.INVALID_REQUEST),
    ]


async def test_deletion_can_be_switched_off(tmp_path: Path) -> None:
    desk = Desk(tmp_path, delete_topic_enable="false")
    await desk.start()
    await desk.make_topic("a")
    found = await desk.ask("delete_topics", 5, topic_names=("a",))
    assert found.responses[0].error_code == codes.TOPIC_DELETION_DISABLED


async def grow(desk: Desk, *topics: tuple[str, int, Any], validate_only: bool = False) -> dict[str, tuple[int, Any]]:
    types = desk.types("create_partitions", 3)
    asked = tuple(
        types.CreatePartitionsTopic(
            name=name, count=count,
            assignments=None if assign is None
            else tuple(types.CreatePartitionsAssignment(broker_ids=brokers) for brokers in assign),
        )
        for name, count, assign in topics
    )  # fmt: skip
    found = await desk.ask("create_partitions", 3, topics=asked, validate_only=validate_only)
    return {t.name: (t.error_code, t.error_message) for t in found.results}


async def test_topics_grow(desk: Desk) -> None:
    await desk.make_topic("a", 2)
    assert await grow(desk, ("a", 4, None), validate_only=True) == {"a": (0, None)}
    assert len(desk.images[0, 0].topics.get("a").leaders) == 2
    assert await grow(desk, ("a", 4, None)) == {"a": (0, None)}
    assert await grow(desk, ("a", 6, ((2,), (1,)))) == {"a": (0, None)}
    assert desk.images[0, 0].topics.get("a").leaders[4:] == [2, 1]


async def test_topics_do_not_shrink_or_stay(desk: Desk) -> None:
    await desk.make_topic("a", 2)
    await desk.make_topic("b", 2)
    assert await grow(desk, ("a", 2, None), ("b", 1, None), ("nope", 3, None), ("x", 1, None), ("x", 1, None)) == {
        "a": (codes.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        "b": (codes.INVALID_PARTITIONS, "The topic b currently has 2 partition(s); 1 would not be an increase."),
        "nope": (codes.UNKNOWN_TOPIC_OR_PARTITION, None),
        "x": (codes.INVALID_REQUEST, "Duplicate topic name."),
    }
    assert (await grow(desk, ("a", 4, ((0,),))))["a"][0] == codes.INVALID_REPLICA_ASSIGNMENT
    assert (await grow(desk, ("a", 3, ((7,),))))["a"][0] == codes.INVALID_REPLICA_ASSIGNMENT
    assert (await grow(desk, ("a", 2, ((7,),))))["a"][0] == codes.INVALID_PARTITIONS


async def test_an_empty_replica_list_is_refused(desk: Desk) -> None:
    await desk.make_topic("a", 2)
    message = "The manual partition assignment includes an empty replica list."
    assert await grow(desk, ("a", 3, ((),))) == {"a": (codes.INVALID_REPLICA_ASSIGNMENT, message)}
