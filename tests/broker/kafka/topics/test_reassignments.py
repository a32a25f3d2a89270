"""Replicas beside the leader are names: they may be others, the leader stays."""

from __future__ import annotations

from typing import Any

import pytest
from desk import Desk

from broker.wire import codes
from shards.mesh.mesh import COORDINATOR


async def reassign(desk: Desk, *partitions: tuple[str, int, tuple[int, ...] | None], factor: bool = True) -> Any:
    """The response to a request for (topic, partition, replicas); `factor`: their number may change."""
    types = desk.types("alter_partition_reassignments", 1)
    topics = tuple(
        types.ReassignableTopic(
            name=name, partitions=(types.ReassignablePartition(partition_index=partition, replicas=replicas),)
        )
        for name, partition, replicas in partitions
    )
    return await desk.ask("alter_partition_reassignments", 1, topics=topics, allow_replication_factor_change=factor)


async def reassigned(
    desk: Desk, *partitions: tuple[str, int, tuple[int, ...] | None], factor: bool = True
) -> list[Any]:
    response = await reassign(desk, *partitions, factor=factor)
    assert response.error_code == 0
    return [(p.error_code, p.error_message) for topic in response.responses for p in topic.partitions]


async def elected(desk: Desk, kind: int, *partitions: int) -> list[int]:
    """The codes of an election of leaders of topic a."""
    asked = desk.types("elect_leaders", 2).TopicPartitions(topic="a", partitions=partitions)
    response = await desk.ask("elect_leaders", 2, election_type=kind, topic_partitions=(asked,))
    return [p.error_code for p in response.replica_election_results[0].partition_result]


async def test_replicas_that_keep_the_leader_are_taken(desk: Desk) -> None:
    await desk.make_topic("a", 2)
    assert await reassigned(desk, ("a", 0, (0, 2)), ("a", 1, (2, 1, 0))) == [(0, None), (0, None)]
    for image in desk.images.values():
        topic = image.topics.get("a")
        assert (topic.leaders, [*map(list, topic.replicas)]) == ([0, 1], [[0, 2], [2, 1, 0]])
    assert (await desk.ask("list_partition_reassignments", 0, topics=None)).topics == ()
    assert await elected(desk, 0, 0, 1) == [codes.ELECTION_NOT_NEEDED, codes.PREFERRED_LEADER_NOT_AVAILABLE]
    assert await elected(desk, 1, 0, 1) == [codes.ELECTION_NOT_NEEDED] * 2
    assert await reassigned(desk, ("a", 0, (0,)), ("a", 1, (1,))) == [(0, None), (0, None)]
    assert "replicas" not in desk.coordinator.state.topics["a"]


REFUSED = [
    (("no", 0, (0,)), codes.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find a topic named no."),
    (("a", 7, (0,)), codes.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition a:7."),
    (("a", 0, None), codes.NO_REASSIGNMENT_IN_PROGRESS, None),
    (("a", 0, ()), codes.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes an empty replica list."),
    (("a", 0, (1, 2)), codes.INVALID_REPLICA_ASSIGNMENT, "Partitions do not move in this cluster: the leader has to stay among "
     "the replicas."),
    (("a", 0, (0, 3)), codes.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes broker 3, but no such broker "
     "is registered."),
    (("a", 0, (0, 0)), codes.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes the broker 0 more than "
     "once."),
]  # fmt: skip


@pytest.mark.parametrize(("partition", "code", "message"), REFUSED)
async def test_others_are_refused_one_by_one(desk: Desk, partition: Any, code: int, message: str | None) -> None:
    await desk.make_topic("a", 2)
    assert await reassigned(desk, partition, ("a", 1, (1, 2))) == [(code, message), (0, None)]


async def test_their_number_stays_where_it_has_to(desk: Desk) -> None:
    await desk.make_topic("a", 1)
    message = "The replication factor is changed from 1 to 2"
    assert await reassigned(desk, ("a", 0, (0, 1)), factor=False) == [(codes.INVALID_REPLICATION_FACTOR, message)]


async def test_while_the_coordinator_is_away_clients_are_to_ask_again(desk: Desk) -> None:
    await desk.make_topic("a", 1)
    desk.down.add(COORDINATOR)
    response = await reassign(desk, ("a", 0, (0, 1)))
    assert (response.error_code, response.responses) == (codes.NOT_CONTROLLER, ())
