"""A change is answered only once it is in force, also when shards fail; over direct calls, under a mock clock."""

import json

import pytest
import trio
from direct import Cluster, Shard

from shards.config import publisher
from shards.config.config_state import Change
from shards.config.publisher import BUSY_DEADLINE_S, PART_BYTES, _parts
from shards.settings.errors import ConfigInvalid


@pytest.fixture
async def cluster(store):
    return Cluster(store)


async def set_cap(cluster: Cluster, value: str | None, who: str = "me") -> int:
    return await cluster.coordinator.alter_settings(who, [["", "kafka_connections_max", value]])


def caps(cluster: Cluster) -> list[int | None]:
    return [shard.image.rule_of("broker").cap for shard in cluster.shards.values()]


async def test_when_the_call_returns_every_shard_has_applied_it(cluster, autojump_clock):
    await cluster.start()
    cluster.shards[0, 1].delay_s = 0.5
    before = cluster.coordinator.state.version
    assert await set_cap(cluster, "7") == before + 1
    assert caps(cluster) == [7, 7, 7]
    assert cluster.versions() == {before + 1}


async def test_a_refused_change_reaches_no_shard_and_is_not_stored(cluster, store):
    await cluster.start()
    before = cluster.coordinator.state.version
    with pytest.raises(ConfigInvalid):
        await cluster.coordinator.alter_settings("me", [["", "kafka_connections_max", "7"], ["", "nope", "1"]])
    assert caps(cluster) == [None] * 3
    assert cluster.versions() == {before}
    assert store.records() == []


async def test_validating_only_changes_nothing(cluster):
    await cluster.start()
    await cluster.coordinator.alter_settings("me", [["", "kafka_connections_max", "7"]], True)
    assert await cluster.coordinator.create_topics("me", [["t", 1, {}]], True) == [["", ""]]
    assert caps(cluster) == [None] * 3
    assert not cluster.coordinator.state.topics


async def test_a_shard_that_does_not_acknowledge_is_killed_and_only_then_the_caller_told(cluster, autojump_clock):
    await cluster.start()
    cluster.shards[0, 1].stuck = True
    await set_cap(cluster, "7")
    assert cluster.killed == [(0, 1)]
    await cluster.start((0, 1))
    assert caps(cluster) == [7, 7, 7]


async def test_a_silent_shard_takes_none_of_the_peers_with_it_that_wait_for_it(cluster, nursery, autojump_clock):
    """Shards enforce a version together: the peers of a stuck one can't acknowledge before it is gone."""
    await cluster.start()
    waiting = cluster.shards[0, 0]
    waiting.stuck = True
    cluster.shards[0, 1].silent = True
    kill = cluster.kill

    def kill_and_free_peers(member: tuple[int, int]) -> None:
        kill(member)
        for done in waiting.dones:
            done()

    cluster.kill = kill_and_free_peers
    await set_cap(cluster, "7")
    assert cluster.killed == [(0, 1)]
    assert waiting.image.rule_of("broker").cap == 7


async def test_a_change_waits_for_a_shard_that_is_on_its_way(cluster, nursery, autojump_clock):
    """After a coordinator restart a shard may be alive and not yet connected: it must not be forgotten."""
    await cluster.start((0, 0), (0, 1))
    returned = []

    async def change() -> None:
        returned.append(await set_cap(cluster, "7"))

    nursery.start_soon(change)
    await trio.testing.wait_all_tasks_blocked()
    assert returned == []
    await cluster.start((1, 0))
    await trio.testing.wait_all_tasks_blocked()
    assert len(returned) == 1
    assert cluster.killed == []
    assert caps(cluster) == [7, 7, 7]


async def test_a_shard_that_never_comes_is_killed_at_the_deadline(cluster, autojump_clock):
    await cluster.start((0, 0), (0, 1))
    began = trio.current_time()
    await set_cap(cluster, "7")
    assert trio.current_time() - began == pytest.approx(2.0)  # it is not there to be asked again
    assert cluster.killed == [(1, 0)]


async def test_a_shard_that_is_busy_is_not_killed_however_long_it_takes(cluster, autojump_clock):
    """It starts on a loaded machine, or applies a large state."""
    await cluster.start((0, 0))
    cluster.busy = {(0, 1), (1, 0)}
    cluster.shards[0, 0].delay_s = 20.0
    cluster.busy.add((0, 0))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(set_cap, cluster, "7")
        await trio.sleep(40)
        nursery.start_soon(cluster.start, (0, 1), (1, 0))
    assert cluster.killed == []
    assert caps(cluster) == [7, 7, 7]


async def test_a_shard_that_waits_for_a_busy_peer_is_not_killed(cluster, nursery, autojump_clock):
    await cluster.start()
    waiting, working = cluster.shards[0, 0], cluster.shards[0, 1]
    waiting.stuck, working.delay_s, cluster.busy = True, 30.0, {(0, 1)}

    async def go_on_with_the_peer() -> None:
        await trio.sleep(31)
        for done in waiting.dones:
            done()

    nursery.start_soon(go_on_with_the_peer)
    await set_cap(cluster, "7")
    assert cluster.killed == []


async def test_a_machine_that_stalls_makes_no_shard_late(cluster, nursery, autojump_clock):
    await cluster.start()
    stalled = cluster.shards[0, 1]
    stalled.stuck = True
    nursery.start_soon(set_cap, cluster, "7")
    await trio.testing.wait_all_tasks_blocked()
    autojump_clock.jump(47)
    await trio.testing.wait_all_tasks_blocked()
    assert cluster.killed == []
    for done in stalled.dones:
        done()
    await trio.testing.wait_all_tasks_blocked()
    assert caps(cluster) == [7, 7, 7]


async def test_a_shard_that_gets_nowhere_any_more_is_killed_a_deadline_later(cluster, nursery, autojump_clock):
    await cluster.start()
    cluster.shards[0, 1].stuck, cluster.busy = True, {(0, 1)}
    began = trio.current_time()

    async def stop_working() -> None:
        await trio.sleep(10)
        cluster.busy = set()

    nursery.start_soon(stop_working)
    await set_cap(cluster, "7")
    assert cluster.killed == [(0, 1)]
    assert 11.5 <= trio.current_time() - began <= 12.5


async def test_a_shard_that_is_busy_for_ever_is_killed_in_the_end(cluster, autojump_clock):
    await cluster.start()
    cluster.shards[0, 1].stuck, cluster.busy = True, {(0, 1)}
    began = trio.current_time()
    await set_cap(cluster, "7")
    assert cluster.killed == [(0, 1)]
    assert trio.current_time() - began >= BUSY_DEADLINE_S


async def test_each_part_of_a_large_state_that_is_taken_is_progress(cluster, monkeypatch, autojump_clock):
    monkeypatch.setattr(publisher, "PART_BYTES", 4096)
    await cluster.start()
    await cluster.coordinator.create_topics("me", [[f"topic-{n}", 20, {}] for n in range(300)])
    slow = Shard((1, 0))
    slow.delay_s = 1.5
    cluster.lose((1, 0))
    cluster.shards[1, 0] = slow
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cluster.coordinator.connected, (1, 0))
        nursery.start_soon(set_cap, cluster, "7")
    assert len(slow.parts) > 5
    assert cluster.killed == []
    assert slow.image.rule_of("broker").cap == 7


async def test_a_shard_lost_during_a_push_gets_the_whole_state_when_it_is_back(cluster, autojump_clock):
    await cluster.start()
    cluster.shards[1, 0].delay_s = 1.0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(set_cap, cluster, "7")
        await trio.sleep(0.5)
        cluster.lose((1, 0))
        await cluster.start((1, 0))
    assert cluster.killed == []
    assert caps(cluster) == [7, 7, 7]


async def test_concurrent_changes_come_one_after_the_other(cluster, autojump_clock):
    await cluster.start()
    for n, shard in enumerate(cluster.shards.values()):
        shard.delay_s = n / 10
    versions: list[int] = []

    async def change(value: int) -> None:
        versions.append(await set_cap(cluster, str(value)))

    before = cluster.coordinator.state.version
    async with trio.open_nursery() as nursery:
        for value in range(1, 8):
            nursery.start_soon(change, value)
    assert versions == list(range(before + 1, before + 8))
    assert len(set(caps(cluster))) == 1
    for shard in cluster.shards.values():
        assert [version for version, _, _ in shard.parts] == list(range(before, before + 8))


async def test_a_caller_that_goes_away_does_not_stop_the_push(cluster, autojump_clock):
    await cluster.start()
    for shard in cluster.shards.values():
        shard.delay_s = 0.3
    with trio.move_on_after(0.1):
        await set_cap(cluster, "7")
    assert caps(cluster) == [7, 7, 7]


async def test_the_same_value_again_is_no_new_version(cluster):
    await cluster.start()
    assert await set_cap(cluster, "7") == await set_cap(cluster, " 7 ")
    assert len(cluster.coordinator.history()) == 2


async def test_a_restarted_coordinator_goes_on_with_what_was_stored(cluster, store):
    await cluster.start()
    await cluster.coordinator.create_topics("me", [["t", 4, {}]])
    version = await set_cap(cluster, "7")
    second = Cluster(store)
    assert second.coordinator.state.version == version
    await second.start()
    assert caps(second) == [7, 7, 7]
    assert {topic.name: len(topic.leaders) for topic in second.shards[0, 0].image.topics} == {"t": 4}
    assert await set_cap(second, "8", who="admin") == version + 1
    entry = second.coordinator.history(1)[0]
    assert (entry["who"], entry["at"]) == ("admin", 1000.0)
    assert entry["changes"] == [["setting", "/kafka_connections_max", "7", "8"]]


async def test_a_topic_of_the_command_line_that_was_deleted_does_not_come_back_with_the_coordinator(store):
    wanted = [["orders", 2, {}], ["audit", 1, {}]]
    first = Cluster(store)
    await first.start()
    await first.coordinator.create_first_topics("run 1", wanted)
    assert await first.coordinator.delete_topics("me", ["orders"]) == [["", ""]]
    restarted = Cluster(store)
    await restarted.start()
    await restarted.coordinator.create_first_topics("run 1", wanted)
    assert restarted.coordinator.state.topics.keys() == {"audit"}
    next_run = Cluster(store)
    await next_run.start()
    await next_run.coordinator.create_first_topics("run 2", wanted)
    assert next_run.coordinator.state.topics.keys() == {"audit", "orders"}


async def test_what_became_of_the_topics_of_the_command_line_is_said(store):
    cluster = Cluster(store, {"/default.replication.factor": "3"})
    await cluster.start()
    assert [name for name, _, _ in await cluster.coordinator.create_first_topics("1", [["t", 1, {}]])] == ["t"]
    again = Cluster(store, {"/default.replication.factor": "1"})
    await again.start()
    assert await again.coordinator.create_first_topics("2", [["a.b", 2, {}], ["a_b", 1, {}], ["a.b", 3, {}]]) == [
        ("a_b", 1, "Topic 'a_b' collides with existing topic: a.b"),
        ("a.b", 3, "it exists, with 2 partitions"),
    ]
    assert await again.coordinator.create_first_topics("3", [["a.b", 2, {}]]) == []


async def test_the_command_line_is_a_version_when_it_differs_and_yields_to_live_changes(store):
    first = Cluster(store, {"/kafka_connections_max": "5"})
    await first.start()
    assert caps(first) == [5, 5, 5]
    version = await set_cap(first, "7")
    assert caps(first) == [7, 7, 7]
    same = Cluster(store, {"/kafka_connections_max": "5"})
    assert same.coordinator.state.version == version
    other = Cluster(store)
    assert other.coordinator.state.version == version + 1
    assert other.coordinator.history(1)[0]["changes"] == [["static", "/kafka_connections_max", "5", None]]


async def test_the_history_tells_the_values_in_force_also_where_the_command_line_gave_them(store):
    cluster = Cluster(store, {"/kafka_connections_max": "50"})
    await cluster.start()
    alter = cluster.coordinator.alter_settings
    for change in (["", "10"], ["1", "5"], ["", None], ["1", None]):
        await alter("me", [[change[0], "kafka_connections_max", change[1]]])
    told = [entry["changes"][0][1:] for entry in cluster.coordinator.history(4)][::-1]
    assert told == [
        ["/kafka_connections_max", "50", "10"],
        ["1/kafka_connections_max", "10", "5"],
        ["/kafka_connections_max", "10", "50"],
        ["1/kafka_connections_max", "5", "50"],
    ]
    assert cluster.coordinator.state.settings == {}
    assert Cluster(store, {"/kafka_connections_max": "50"}).coordinator.state.settings == {}, "it is not stored"


async def test_a_large_state_arrives_in_parts_and_is_shown_whole(cluster, autojump_clock):
    await cluster.start()
    for batch in range(20):
        await cluster.coordinator.create_topics("me", [[f"topic-{batch}-{n}", 20, {}] for n in range(500)])
    await cluster.start((0, 0))
    shard = cluster.shards[0, 0]
    assert len(shard.parts) > 1
    assert [more for _, _, more in shard.parts] == [True] * (len(shard.parts) - 1) + [False]
    assert len(shard.image.topics) == 10_000


def test_no_part_of_a_push_is_much_larger_than_the_bound():
    delta: list[Change] = [("quota", str(n), {"k": 1.0}) for n in range(100_000)]
    parts = list(_parts(delta))
    assert [tuple(change) for part in parts for change in part] == delta
    assert all(len(json.dumps(part)) < 1.2 * PART_BYTES for part in parts)
    assert list(_parts([])) == [[]]


async def test_shards_are_asked_together_and_a_silent_shard_is_left_out(cluster):
    await cluster.start()
    del cluster.shards[0, 1]
    answers = await cluster.coordinator.ask_all("describe_proxies")
    assert answers == {(0, 0): [["10.0.0.1", None, 0]], (1, 0): [["10.0.0.1", None, 0]]}
    assert cluster.coordinator.describe_shards()[0, 0] == cluster.coordinator.state.version


async def test_producer_ids_are_never_given_twice(cluster, store):
    first = cluster.coordinator.allocate_producer_ids(1000)
    assert Cluster(store).coordinator.allocate_producer_ids(1000) == first + 1000


async def test_its_methods_are_served_without_the_peer_that_calls(cluster):
    await cluster.start()
    served = {}
    cluster.coordinator.serve_on(served.__setitem__)
    assert await served["create_topics"]((0, 0), "User:a", [["t", 2, {}]], False) == [["", ""]]
    assert await served["delete_topics"]((0, 0), "User:a", ["t"]) == [["", ""]]
    assert isinstance(served["allocate_producer_ids"]((0, 0), 5), int)
