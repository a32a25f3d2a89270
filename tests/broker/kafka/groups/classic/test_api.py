"""Groups and their offsets over the wire: any shard answers for a group, its home decides, offsets outlive it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio
from desk import Desk

from broker.wire import codes


def ms(n: int) -> timedelta:
    return timedelta(milliseconds=n)


class Client:
    """A member of a group: joins and syncs at any shard."""

    def __init__(self, desk: Desk, group: str, at: tuple[int, int], version: int = 9) -> None:
        self.desk, self.group, self.at, self.version = desk, group, at, version
        self.member = ""
        self.generation = -1
        self.joined: Any = None

    async def join(self, **fields: Any) -> Any:
        protocol = self.desk.types("join_group", self.version).JoinGroupRequestProtocol(name="range", metadata=b"m")
        asked = {
            "group_id": self.group, "session_timeout": ms(10_000), "rebalance_timeout": ms(10_000),
            "member_id": self.member, "protocol_type": "consumer", "protocols": (protocol,),
        }  # fmt: skip
        found = await self.desk.ask("join_group", self.version, at=self.at, **{**asked, **fields})
        if found.error_code == codes.MEMBER_ID_REQUIRED:
            self.member = found.member_id
            return await self.join(**fields)
        if not found.error_code:
            self.member, self.generation, self.joined = found.member_id, found.generation_id, found
        return found

    async def ask_for_id(self) -> Any:
        protocol = self.desk.types("join_group", self.version).JoinGroupRequestProtocol(name="range", metadata=b"m")
        return await self.desk.ask(
            "join_group", self.version, at=self.at, group_id=self.group, session_timeout=ms(10_000),
            rebalance_timeout=ms(10_000), member_id="", protocol_type="consumer", protocols=(protocol,),
        )  # fmt: skip

    async def sync(self, version: int = 5) -> Any:
        share = self.desk.types("sync_group", version).SyncGroupRequestAssignment
        shares = tuple(share(member_id=m.member_id, assignment=m.member_id.encode()) for m in self.joined.members)
        return await self.desk.ask(
            "sync_group", version, at=self.at, group_id=self.group, generation_id=self.generation,
            member_id=self.member, assignments=shares, protocol_type="consumer", protocol_name="range",
        )  # fmt: skip

    async def beat(self, version: int = 4) -> int:
        found = await self.desk.ask(
            "heartbeat", version, at=self.at, group_id=self.group, generation_id=self.generation, member_id=self.member
        )
        return int(found.error_code)


async def at_once(*functions: Callable[[], Awaitable[Any]]) -> list[Any]:
    results: list[Any] = [None] * len(functions)

    async def run(n: int, function: Callable[[], Awaitable[Any]]) -> None:
        results[n] = await function()

    async with trio.open_nursery() as nursery:
        for n, function in enumerate(functions):
            nursery.start_soon(run, n, function)
    return results


def to_commit(desk: Desk, version: int, topic: str, offsets: dict[int, int], metadata: str | None = "") -> Any:
    types = desk.types("offset_commit", version)
    parts = tuple(
        types.OffsetCommitRequestPartition(partition_index=n, committed_offset=offset, committed_metadata=metadata)
        for n, offset in offsets.items()
    )
    return types.OffsetCommitRequestTopic(name=topic, partitions=parts)


async def commit(desk: Desk, group: str, offsets: dict[int, int], version: int = 9, **fields: Any) -> list[int]:
    asked = {
        "group_id": group, "generation_id_or_member_epoch": -1, "member_id": "",
        "topics": (to_commit(desk, version, fields.pop("topic", "t"), offsets, fields.pop("metadata", "")),),
    }  # fmt: skip
    found = await desk.ask("offset_commit", version, **{**asked, **fields})
    return [p.error_code for t in found.topics for p in t.partitions]


async def fetch(desk: Desk, group: str, partitions: tuple[int, ...] | None, at: tuple[int, int] = (0, 0)) -> Any:
    types = desk.types("offset_fetch", 9)
    topics = None
    if partitions is not None:
        topics = (types.OffsetFetchRequestTopics(name="t", partition_indexes=partitions),)
    asked = (types.OffsetFetchRequestGroup(group_id=group, topics=topics),)
    found = (await desk.ask("offset_fetch", 9, at=at, groups=asked, require_stable=False)).groups[0]
    if found.error_code:
        return found.error_code
    return {(t.name, p.partition_index): p.committed_offset for t in found.topics for p in t.partitions}


# A test that lets time pass asks for `autojump_clock` itself: pytest-trio looks for clocks among a test's own arguments.


async def test_members_on_different_shards_are_one_group(desk: Desk) -> None:
    group = desk.group_at(0, 1)
    first, second = Client(desk, group, (0, 0)), Client(desk, group, (0, 1), version=5)
    await first.join()
    await first.sync()
    second.member = (await second.ask_for_id()).member_id
    await at_once(second.join, first.join)
    assert first.generation == second.generation == 2
    assert {m.member_id for m in first.joined.members} == {first.member, second.member}
    synced = await at_once(second.sync, first.sync)
    assert [s.assignment for s in synced] == [second.member.encode(), first.member.encode()]
    assert await first.beat() == await second.beat() == codes.NONE


@pytest.mark.parametrize("version", range(10))
async def test_a_member_joins_in_every_version(desk: Desk, version: int) -> None:
    for home in (0, 1):
        client = Client(desk, desk.group_at(0, home), (0, 0), version=version)
        joined = await client.join()
        assert (joined.error_code, joined.leader, joined.protocol_name) == (0, client.member, "range")
        assert client.member.startswith("client-")
        assert (await client.sync(min(version, 5))).assignment == client.member.encode()
        assert await client.beat(min(version, 4)) == codes.NONE
        left = await leave(desk, client, min(version, 5))
        assert left == [codes.NONE]
        assert await client.beat() == codes.UNKNOWN_MEMBER_ID


async def leave(desk: Desk, client: Client, version: int) -> list[int]:
    if version < 3:
        found = await desk.ask("leave_group", version, at=client.at, group_id=client.group, member_id=client.member)
        return [found.error_code]
    who = desk.types("leave_group", version).MemberIdentity(member_id=client.member)
    found = await desk.ask("leave_group", version, at=client.at, group_id=client.group, members=(who,))
    assert found.error_code == codes.NONE
    return [m.error_code for m in found.members]


async def test_another_brokers_group_is_not_ours(desk: Desk) -> None:
    group = desk.group_at(1, 0)
    client = Client(desk, group, (0, 0))
    assert (await client.join()).error_code == codes.NOT_COORDINATOR
    assert await client.beat() == codes.NOT_COORDINATOR
    assert await commit(desk, group, {0: 5}) == [codes.NOT_COORDINATOR]
    assert await fetch(desk, group, (0,)) == codes.NOT_COORDINATOR
    described = await desk.ask("describe_groups", 6, groups=(group,))
    assert described.groups[0].error_code == codes.NOT_COORDINATOR


async def test_while_a_home_is_down_its_groups_are_not_ours_either(desk: Desk) -> None:
    group = desk.group_at(0, 1)
    client = Client(desk, group, (0, 0))
    desk.down.add(1)
    assert (await client.join()).error_code == codes.NOT_COORDINATOR
    assert await commit(desk, group, {0: 5}) == [codes.NOT_COORDINATOR]
    assert await fetch(desk, group, (0,)) == codes.COORDINATOR_LOAD_IN_PROGRESS
    listed = await desk.ask("list_groups", 5)
    assert listed.error_code == codes.COORDINATOR_LOAD_IN_PROGRESS


async def test_a_silent_member_is_lost(desk: Desk, autojump_clock: trio.testing.MockClock) -> None:
    client = Client(desk, desk.group_at(0, 1), (0, 0))
    await client.join()
    await client.sync()
    await trio.sleep(9.9)
    assert await client.beat() == codes.NONE
    await trio.sleep(10.1)
    assert await client.beat() == codes.UNKNOWN_MEMBER_ID


async def test_offsets_and_members_survive_a_killed_home(desk: Desk) -> None:
    group = desk.group_at(0, 1)
    client = Client(desk, group, (0, 0))
    await client.join()
    await client.sync()
    mine = {"member_id": client.member, "generation_id_or_member_epoch": client.generation}
    assert await commit(desk, group, {0: 5, 3: 7}, **mine) == [0, 0]
    desk.restart((0, 1))
    assert await client.beat() == codes.NONE
    assert await commit(desk, group, {0: 9}, **mine) == [codes.NONE]
    assert await fetch(desk, group, (0, 1, 3)) == {("t", 0): 9, ("t", 1): -1, ("t", 3): 7}
    joined = await client.join()
    assert joined.generation_id == 2, "generations go on rising"


async def test_a_home_that_starts_again_answers_only_once_it_knows_the_topics(desk: Desk) -> None:
    group = desk.group_at(0, 1)
    await commit(desk, group, {0: 5})
    nursery, desk.nursery = desk.nursery, None
    desk.restart((0, 1))
    known = desk.images[0, 1].topics
    desk.images[0, 1].topics = type(known)()

    async def come_up() -> None:
        await trio.testing.wait_all_tasks_blocked()
        desk.images[0, 1].topics = known
        assert nursery is not None
        nursery.start_soon(desk.homes[0, 1].run)

    fetched, _ = await at_once(lambda: fetch(desk, group, None), come_up)
    assert fetched == {("t", 0): 5}


@pytest.mark.parametrize("version", range(2, 10))
async def test_offsets_are_committed_in_every_version(desk: Desk, version: int) -> None:
    group = desk.group_at(0, 1)
    unknown = codes.UNKNOWN_TOPIC_OR_PARTITION
    assert await commit(desk, group, {0: 5, 9: 1}, version=version, metadata=None) == [0, unknown]
    assert await commit(desk, group, {0: 5}, version=version, topic="nope") == [unknown]
    assert await commit(desk, group, {1: 5}, version=version, metadata="x" * 5000) == [codes.OFFSET_METADATA_TOO_LARGE]
    assert await fetch(desk, group, None) == {("t", 0): 5}


@pytest.mark.parametrize("version", range(1, 8))
async def test_offsets_are_fetched_in_the_old_versions(desk: Desk, version: int) -> None:
    group = desk.group_at(0, 0)
    await commit(desk, group, {1: 5}, metadata="note")
    topics = (desk.types("offset_fetch", version).OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1)),)
    found = await desk.ask("offset_fetch", version, group_id=group, topics=topics, require_stable=False)
    parts = [(p.partition_index, p.committed_offset, p.metadata, p.error_code) for p in found.topics[0].partitions]
    assert parts == [(0, -1, "", 0), (1, 5, "note", 0)]


async def test_topics_are_named_by_id_since_version_10(desk: Desk) -> None:
    group, unknown = desk.group_at(0, 1), UUID(int=7)
    topic_id = desk.images[0, 0].topics.get("t").id
    types = desk.types("offset_commit", 10)
    part = types.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_leader_epoch=-1, committed_metadata=None
    )
    asked = tuple(types.OffsetCommitRequestTopic(topic_id=each, partitions=(part,)) for each in (unknown, topic_id))
    done = await desk.ask(
        "offset_commit",
        10,
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=asked,
    )
    assert [(each.topic_id, each.partitions[0].error_code) for each in done.topics] == [
        (unknown, codes.UNKNOWN_TOPIC_ID), (topic_id, 0)
    ]  # fmt: skip
    types = desk.types("offset_fetch", 10)
    wanted = tuple(
        types.OffsetFetchRequestTopics(topic_id=each, partition_indexes=(0,)) for each in (topic_id, unknown)
    )
    groups = tuple(types.OffsetFetchRequestGroup(group_id=group, topics=topics) for topics in (wanted, None))
    named, everything = (await desk.ask("offset_fetch", 10, groups=groups, require_stable=False)).groups
    assert [(each.topic_id, each.partitions[0].committed_offset, each.partitions[0].error_code) for each in named.topics] == [
        (topic_id, 5, 0), (unknown, -1, codes.UNKNOWN_TOPIC_ID)
    ]  # fmt: skip
    assert [(each.topic_id, each.partitions[0].committed_offset) for each in everything.topics] == [(topic_id, 5)]


async def test_several_groups_are_fetched_at_once(desk: Desk) -> None:
    mine, other, foreign = desk.group_at(0, 0), desk.group_at(0, 1), desk.group_at(1, 0)
    await commit(desk, mine, {0: 1})
    await commit(desk, other, {0: 2})
    types = desk.types("offset_fetch", 8)
    asked = tuple(types.OffsetFetchRequestGroup(group_id=g, topics=None) for g in (mine, other, foreign, "nobody"))
    found = await desk.ask("offset_fetch", 8, groups=asked[:3], require_stable=False)
    assert [(g.group_id, g.error_code, [p.committed_offset for t in g.topics for p in t.partitions])
            for g in found.groups] == [(mine, 0, [1]), (other, 0, [2]), (foreign, codes.NOT_COORDINATOR, [])]  # fmt: skip


async def test_offsets_of_a_deleted_topic_do_not_come_back_with_its_name(desk: Desk) -> None:
    group = desk.group_at(0, 1)
    await commit(desk, group, {0: 5})
    await desk.coordinator.delete_topics("test", ["t"])
    assert await fetch(desk, group, (0,)) == {("t", 0): -1}
    await desk.make_topic("t", 1)
    assert await fetch(desk, group, None) == {}
    home = desk.homes[0, 1]
    await home.expire()
    assert not home.offsets.of(group)


async def test_groups_expire_when_nothing_of_them_is_left(desk: Desk, autojump_clock: trio.testing.MockClock) -> None:
    group = desk.group_at(0, 1)
    client = Client(desk, group, (0, 0))
    await client.join()
    await leave(desk, client, 5)
    home = desk.homes[0, 1]
    await trio.sleep(500)
    assert group in [g.id for g in home.groups]
    await trio.sleep(200)
    assert not len(home.groups)
    assert not list(home.offsets)


async def test_offsets_of_an_empty_group_expire(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    desk = Desk(tmp_path, offsets_retention_minutes="1")
    await desk.start()
    await desk.make_topic("t")
    home = desk.homes[0, 0]
    home._wall_ms = lambda: int(trio.current_time() * 1000)
    await commit(desk, "simple", {0: 5})
    client = Client(desk, "busy", (0, 0))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(home.run)
        await client.join(session_timeout=ms(1_000_000))
        await client.sync()
        mine = {"member_id": client.member, "generation_id_or_member_epoch": client.generation}
        assert await commit(desk, "busy", {0: 5}, **mine) == [0]
        await trio.sleep(200)
        nursery.cancel_scope.cancel()
    assert await fetch(desk, "simple", None) == {}
    assert await fetch(desk, "busy", None) == {("t", 0): 5}


async def test_groups_are_described(desk: Desk) -> None:
    group = desk.group_at(0, 1)
    client = Client(desk, group, (0, 0))
    await client.join()
    asked = (group, "nobody" if desk.group_at(0, 0) else "")
    before = (await desk.ask("describe_groups", 6, groups=asked[:1])).groups[0]
    assert (before.group_state, before.protocol_data, before.members[0].member_metadata) == (
        "CompletingRebalance",
        "",
        b"",
    )
    await client.sync()
    found = (await desk.ask("describe_groups", 6, groups=(group,), include_authorized_operations=True)).groups[0]
    assert (found.group_state, found.protocol_type, found.protocol_data) == ("Stable", "consumer", "range")
    assert found.authorized_operations == 3400
    (member,) = found.members
    assert (member.client_id, member.client_host, member.member_metadata) == ("client", "/127.0.0.1", b"m")
    assert member.member_assignment == client.member.encode()


async def test_a_group_that_does_not_exist_is_dead_or_an_error(desk: Desk) -> None:
    name = desk.group_at(0, 1)
    old = (await desk.ask("describe_groups", 5, groups=(name,))).groups[0]
    assert (old.error_code, old.group_state) == (0, "Dead")
    new = (await desk.ask("describe_groups", 6, groups=(name,))).groups[0]
    assert (new.error_code, new.error_message) == (codes.GROUP_ID_NOT_FOUND, f"Group {name} not found.")
    deleted = await desk.ask("delete_groups", 2, groups_names=(name, desk.group_at(1, 0)))
    assert [r.error_code for r in deleted.results] == [codes.GROUP_ID_NOT_FOUND, codes.NOT_COORDINATOR]


async def test_groups_are_listed_by_state_and_type(desk: Desk) -> None:
    client = Client(desk, desk.group_at(0, 1), (0, 0))
    await client.join()
    await client.sync()
    simple = desk.group_at(0, 0)
    await commit(desk, simple, {0: 1})

    async def listed(states: tuple[str, ...] = (), kinds: tuple[str, ...] = ()) -> list[tuple[str, str, str, str]]:
        found = await desk.ask("list_groups", 5, states_filter=states, types_filter=kinds)
        return sorted((g.group_id, g.protocol_type, g.group_state, g.group_type) for g in found.groups)

    stable, empty = (client.group, "consumer", "Stable", "classic"), (simple, "", "Empty", "classic")
    assert await listed() == sorted([stable, empty])
    assert await listed(("stable",)) == [stable]
    assert await listed(("EMPTY", "Dead")) == [empty]
    assert await listed((), ("Classic",)) == sorted([stable, empty])
    assert await listed((), ("consumer",)) == []
    for version in range(5):
        assert len((await desk.ask("list_groups", version)).groups) == 2


async def test_only_empty_groups_are_deleted(desk: Desk) -> None:
    client = Client(desk, desk.group_at(0, 1), (0, 0))
    await client.join()
    await commit(desk, desk.group_at(0, 0), {0: 1})

    async def delete() -> list[int]:
        names = (client.group, desk.group_at(0, 0))
        return [r.error_code for r in (await desk.ask("delete_groups", 2, groups_names=names)).results]

    assert await delete() == [codes.NON_EMPTY_GROUP, codes.NONE]
    await leave(desk, client, 5)
    assert await delete() == [codes.NONE, codes.GROUP_ID_NOT_FOUND]
    assert (await desk.ask("list_groups", 5)).groups == ()


async def test_offsets_are_deleted_unless_members_read_the_topic(desk: Desk) -> None:
    await desk.make_topic("u", 1)
    group = desk.group_at(0, 1)
    client = Client(desk, group, (0, 0))
    subscribed = b"\0\1\0\0\0\1\0\1t\0\0\0\0"
    protocol = desk.types("join_group", 9).JoinGroupRequestProtocol(name="range", metadata=subscribed)
    await client.join(protocols=(protocol,))
    await client.sync()
    mine = {"member_id": client.member, "generation_id_or_member_epoch": client.generation}
    await commit(desk, group, {0: 5}, **mine)
    await commit(desk, group, {0: 6}, topic="u", **mine)
    types = desk.types("offset_delete", 0)

    async def delete(*names: str) -> tuple[int, list[int]]:
        part = types.OffsetDeleteRequestPartition(partition_index=0)
        topics = tuple(types.OffsetDeleteRequestTopic(name=name, partitions=(part,)) for name in names)
        found = await desk.ask("offset_delete", 0, group_id=group, topics=topics)
        return found.error_code, [p.error_code for t in found.topics for p in t.partitions]

    assert await delete("t", "u", "nope") == (0, [codes.GROUP_SUBSCRIBED_TO_TOPIC, 0, codes.UNKNOWN_TOPIC_OR_PARTITION])
    assert await fetch(desk, group, None) == {("t", 0): 5}
    await leave(desk, client, 5)
    assert await delete("t") == (0, [0])
    assert await fetch(desk, group, None) == {}


async def test_a_static_member_is_removed_by_an_administrator(desk: Desk) -> None:
    client = Client(desk, desk.group_at(0, 1), (0, 0))
    await client.join(group_instance_id="box-1")
    identity = desk.types("leave_group", 5).MemberIdentity
    asked = (identity(member_id="", group_instance_id="box-1"), identity(member_id="", group_instance_id="box-2"))
    found = await desk.ask("leave_group", 5, group_id=client.group, members=asked)
    assert [(m.group_instance_id, m.error_code) for m in found.members] == [
        ("box-1", 0),
        ("box-2", codes.UNKNOWN_MEMBER_ID),
    ]
