"""Topics grow as Kafka lets them, with its codes and messages."""

from __future__ import annotations

from typing import Any

from desk import Desk

from broker.wire import codes


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


async def test_topic_grows_to_the_count_and_assignments_asked_for(desk: Desk) -> None:
    await desk.make_topic("a", 2)
    assert await grow(desk, ("a", 4, None), validate_only=True) == {"a": (0, None)}
    assert len(desk.images[0, 0].topics.get("a").leaders) == 2
    assert await grow(desk, ("a", 4, None)) == {"a": (0, None)}
    assert await grow(desk, ("a", 6, ((2,), (1,)))) == {"a": (0, None)}
    assert desk.images[0, 0].topics.get("a").leaders[4:] == [2, 1]


async def test_more_partitions_have_as_many_replicas_as_the_first(desk: Desk) -> None:
    types = desk.types("create_topics", 7)
    asked = types.CreatableTopic(name="a", num_partitions=1, replication_factor=2, assignments=(), configs=())
    await desk.ask("create_topics", 7, topics=(asked,))
    assert await grow(desk, ("a", 3, None)) == {"a": (0, None)}
    assert desk.images[0, 0].topics.get("a").replicas == [[0, 1], [1, 2], [2, 0]]
    code, message = (await grow(desk, ("a", 4, ((2,),))))["a"]
    assert code == codes.INVALID_REPLICA_ASSIGNMENT
    assert message.endswith(
        "a partition with 1 replica(s), but this is not consistent with previous partitions, which have 2 replica(s)."
    )
    assert await grow(desk, ("a", 4, ((2, 1),))) == {"a": (0, None)}
    assert desk.images[0, 0].topics.get("a").replicas[3] == [2, 1]


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
