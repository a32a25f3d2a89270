"""KIP-848's groups over the wire: any shard answers, the home decides; settings that switch them off or bound them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from desk import Desk

from broker.wire import codes

JOIN = {"member_epoch": 0, "rebalance_timeout": timedelta(seconds=10), "topic_partitions": (), "member_id": "m"}


async def beat(desk: Desk, group: str, *, at: tuple[int, int] = (0, 0), version: int = 1, **fields: Any) -> Any:
    asked = {"topic_partitions": None, **fields}
    return await desk.ask("consumer_group_heartbeat", version, at=at, group_id=group, **asked)


async def describe(desk: Desk, *groups: str, at: tuple[int, int] = (0, 0)) -> Any:
    return (await desk.ask("consumer_group_describe", 1, at=at, group_ids=groups)).groups


async def test_any_shard_of_the_groups_broker_answers(desk: Desk) -> None:
    group = desk.group_at(0, 1)
    joined = await beat(desk, group, **JOIN, subscribed_topic_names=("t",))
    assert (joined.error_code, joined.member_epoch, joined.member_id) == (codes.NONE, 2, "m")
    assert [each.partitions for each in joined.assignment.topic_partitions] == [(0, 1, 2, 3)]
    for shard in (0, 1):
        (found,) = await describe(desk, group, at=(0, shard))
        assert (found.group_state, found.members[0].assignment.topic_partitions[0].topic_name) == ("Stable", "t")
    assert (
        await beat(desk, group, at=(1, 0), **JOIN, subscribed_topic_names=("t",))
    ).error_code == codes.NOT_COORDINATOR
    assert (await describe(desk, group, at=(1, 0)))[0].error_code == codes.NOT_COORDINATOR


async def test_a_group_that_is_not_there_is_told_from_one_of_the_classic_protocol(desk: Desk) -> None:
    group, other = desk.group_at(0, 1), desk.group_at(0, 0)
    types = desk.types("offset_commit", 9)
    place = types.OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
    topic = types.OffsetCommitRequestTopic(name="t", partitions=(place,))
    anonymous = {"generation_id_or_member_epoch": -1, "member_id": ""}
    await desk.ask("offset_commit", 9, group_id=group, topics=(topic,), **anonymous)
    found = await describe(desk, group, other)
    assert [each.error_code for each in found] == [codes.GROUP_ID_NOT_FOUND] * 2
    assert [each.error_message for each in found] == [
        f"Group {group} is not a consumer group.",
        f"Group {other} not found.",
    ]


async def test_version_0_makes_a_member_id(desk: Desk) -> None:
    joined = await beat(
        desk, desk.group_at(0, 1), version=0, **{**JOIN, "member_id": ""}, subscribed_topic_names=("t",)
    )
    assert joined.error_code == codes.NONE and len(joined.member_id) == 36


async def test_what_an_expression_matches_is_told_by_a_later_heartbeat(desk: Desk) -> None:
    group = desk.group_at(0, 1)
    joined = await beat(desk, group, **JOIN, subscribed_topic_regex="[t-u]+")
    assert (joined.member_epoch, joined.assignment.topic_partitions) == (2, ())
    await trio.testing.wait_all_tasks_blocked()
    mine = {"member_id": "m", "rebalance_timeout": timedelta(milliseconds=-1)}
    later = await beat(desk, group, member_epoch=2, **mine)
    assert later.member_epoch == 3 and [e.partitions for e in later.assignment.topic_partitions] == [(0, 1, 2, 3)]
    await desk.make_topic("uu", 1)
    later = await beat(desk, group, member_epoch=3, **mine)
    assert later.member_epoch == 4 and len(later.assignment.topic_partitions) == 2
    refused = await beat(desk, group, **{**JOIN, "member_id": "n"}, subscribed_topic_regex="(")
    assert refused.error_code == codes.INVALID_REGULAR_EXPRESSION


async def test_a_home_that_is_away_is_no_coordinator_and_its_successor_knows_the_members(desk: Desk) -> None:
    group = desk.group_at(0, 1)
    await beat(desk, group, **JOIN, subscribed_topic_names=("t",))
    desk.down.add(1)
    mine = {"member_id": "m", "member_epoch": 2, "rebalance_timeout": timedelta(milliseconds=-1)}
    assert (await beat(desk, group, **mine)).error_code == codes.NOT_COORDINATOR
    desk.down.clear()
    desk.restart((0, 1))
    answer = await beat(desk, group, **mine)
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (codes.NONE, 2, None)


async def test_a_silent_member_is_lost(desk: Desk, autojump_clock: trio.testing.MockClock) -> None:
    group = desk.group_at(0, 1)
    await beat(desk, group, **JOIN, subscribed_topic_names=("t",))
    await trio.sleep(44.9)
    assert (await describe(desk, group))[0].group_state == "Stable"
    await trio.sleep(0.2)
    assert (await describe(desk, group))[0].group_state == "Empty"


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("group.coordinator.rebalance.protocols", "classic", codes.UNSUPPORTED_VERSION),
        ("group.consumer.assignors", "range", codes.UNSUPPORTED_ASSIGNOR),
        ("turnstile.consumer.members.max", "1", codes.GROUP_MAX_SIZE_REACHED),
        ("group.consumer.max.size", "1", codes.GROUP_MAX_SIZE_REACHED),
    ],
)
async def test_member_that_a_setting_forbids_is_refused(tmp_path: Path, name: str, value: str, code: int) -> None:
    desk = Desk(tmp_path, brokers=1, shards=1, **{name.replace(".", "_"): value})
    await desk.start()
    await beat(desk, "g", **JOIN, subscribed_topic_names=("t",))
    other = {**JOIN, "member_id": "n", "server_assignor": "uniform"}
    assert (await beat(desk, "g", **other, subscribed_topic_names=("t",))).error_code == code
