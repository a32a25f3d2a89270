"""Redpanda's limits of controller operations: the coordinator over direct calls, under a mock clock."""

import pytest
import trio
from direct import Cluster

from shards.errors import ControllerThrottled
from shards.settings.redpanda_controller import ENABLED, GROUPS, capacity_of, rate_of

SETTINGS = [["", ENABLED, "true"], *(["", rate_of(group), "2"] for group in GROUPS)]
REFUSED = "THROTTLING_QUOTA_EXCEEDED"
OK = ""


@pytest.fixture
async def coordinator(store):
    cluster = Cluster(store)
    await cluster.start()
    await cluster.coordinator.alter_settings("turnstile up", SETTINGS)
    return cluster.coordinator


def topics(*names):
    return [[name, 1, {}] for name in names]


async def created(coordinator, *names, who="me"):
    return [error for error, _ in await coordinator.create_topics(who, topics(*names))]


async def test_of_a_batch_each_topic_is_an_operation_and_what_finds_no_token_is_refused_alone(
    coordinator, autojump_clock
):
    assert await created(coordinator, "a", "b", "c") == [OK, OK, REFUSED]
    assert set(coordinator.state.topics) == {"a", "b"}
    await trio.sleep(0.5)
    assert await created(coordinator, "d", "e") == [OK, REFUSED]
    ((error, why),) = await coordinator.create_topics("me", topics("f"))
    assert (error, rate_of("topic_operations") in why) == (REFUSED, True)


async def test_what_is_validated_only_or_refused_anyway_costs_nothing(coordinator, autojump_clock):
    for _ in range(5):
        assert await coordinator.create_topics("me", topics("a"), True) == [["", ""]]
    await created(coordinator, "a")
    assert await created(coordinator, "a", "a") == ["TOPIC_ALREADY_EXISTS"] * 2
    assert await created(coordinator, "b") == [OK]
    assert await created(coordinator, "c") == [REFUSED]


async def test_topics_are_deleted_extended_and_configured_by_the_same_bucket(coordinator, autojump_clock):
    await created(coordinator, "a", "b")
    assert [error for error, _ in await coordinator.delete_topics("me", ["a"])] == [REFUSED]
    assert [error for error, _ in await coordinator.create_partitions("me", [["a", 2, None]])] == [REFUSED]
    with pytest.raises(ControllerThrottled, match=rate_of("topic_operations")):
        await coordinator.alter_topic_configs("me", [["a", "retention.ms", "5"]])
    await trio.sleep(0.5)
    assert [error for error, _ in await coordinator.delete_topics("me", ["a", "b"])] == [OK, REFUSED]
    assert set(coordinator.state.topics) == {"b"}


async def test_each_group_has_a_bucket_of_its_own(coordinator, autojump_clock):
    await created(coordinator, "a", "b", "c")
    users = [[name, "SCRAM-SHA-256", {}] for name in "xyz"]
    with pytest.raises(ControllerThrottled, match=rate_of("acls_and_users_operations")):
        await coordinator.alter_users("me", users)
    await coordinator.alter_users("me", users[:2])
    assert set(coordinator.state.users) == {"x", "y"}, "the whole change was refused, and took nothing"
    for cap in ("5", "6"):
        await coordinator.alter_settings("me", [["", "kafka_connections_max", cap]])
    with pytest.raises(ControllerThrottled, match=rate_of("configuration_operations")):
        await coordinator.alter_settings("me", [["", "kafka_connections_max", "7"]])
    await coordinator.alter_quotas("me", [[{"user": "x"}, {"producer_byte_rate": 5.0}]])
    moved = [["a", 0, [0]]] * 3
    assert {error for error, _ in await coordinator.reassign("me", moved, True)} == {OK}, "nothing moves, nothing costs"


async def test_what_the_cluster_is_started_with_is_free_and_so_is_all_while_it_is_off(coordinator, autojump_clock):
    assert await created(coordinator, *"abcd", who="turnstile up") == [OK] * 4
    await coordinator.alter_settings("turnstile up", [["", ENABLED, None]])
    assert await created(coordinator, *"efgh") == [OK] * 4


async def test_a_capacity_is_filled_by_the_rate(coordinator, autojump_clock):
    await coordinator.alter_settings("turnstile up", [["", capacity_of("topic_operations"), "4"]])
    assert await created(coordinator, "a", "b", "c") == [OK, OK, REFUSED], "a second's worth at first"
    await trio.sleep(60)
    assert await created(coordinator, *"cdefg") == [OK] * 4 + [REFUSED]
