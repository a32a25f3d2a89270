"""Share groups over the wire: any shard answers, the home decides; settings and group configs that bound them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from desk import Desk

from broker.kafka.groups.share.home import ShareCoordinator
from broker.wire import codes

JOIN = {"member_epoch": 0, "subscribed_topic_names": ("t",)}


async def beat(desk: Desk, group: str, *, at: tuple[int, int] = (0, 0), **fields: Any) -> Any:
    asked = {"member_id": "m", "subscribed_topic_names": None, "rack_id": None, **fields}
    return await desk.ask("share_group_heartbeat", 1, at=at, group_id=group, **asked)


async def describe(desk: Desk, *groups: str, at: tuple[int, int] = (0, 0)) -> Any:
    return (await desk.ask("share_group_describe", 1, at=at, group_ids=groups)).groups


async def test_any_shard_of_the_groups_broker_answers(desk: Desk) -> None:
    group = desk.group_at(0, 1)
    joined = await beat(desk, group, **JOIN)
    assert (joined.error_code, joined.member_epoch, joined.assignment.topic_partitions) == (codes.NONE, 2, ())
    told = await beat(desk, group, member_epoch=2)
    assert [each.partitions for each in told.assignment.topic_partitions] == [(0, 1, 2, 3)]
    for shard in (0, 1):
        (found,) = await describe(desk, group, at=(0, shard))
        assert (found.group_state, found.members[0].assignment.topic_partitions[0].topic_name) == ("Stable", "t")
    assert (await beat(desk, group, at=(1, 0), **JOIN)).error_code == codes.NOT_COORDINATOR
    assert (await describe(desk, group, at=(1, 0)))[0].error_code == codes.NOT_COORDINATOR


async def test_heartbeats_that_cost_much_are_answered_in_turns(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.kafka.groups.share.group.COSTLY", 0)
    group = desk.group_at(0, 1)
    await beat(desk, group, **JOIN)
    order: list[int] = []

    async def join(number: int) -> None:
        answer = await beat(desk, group, **{**JOIN, "member_id": f"m{number}"})
        assert answer.error_code == codes.NONE
        order.append(answer.member_epoch)

    pieces = 0
    answer_of = ShareCoordinator._answer

    def counted(*args: Any) -> Any:
        nonlocal pieces
        pieces += 1
        return answer_of(*args)

    monkeypatch.setattr(ShareCoordinator, "_answer", counted)
    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(join, number)
        await trio.testing.wait_all_tasks_blocked()
        assert pieces < 20, "between two of them everything else has its turn"
    assert sorted(order) == list(range(3, 23))
    (found,) = await describe(desk, group)
    assert len(found.members) == 21


async def test_a_home_that_is_away_is_no_coordinator_and_its_successor_knows_the_members(desk: Desk) -> None:
    group = desk.group_at(0, 1)
    await beat(desk, group, **JOIN)
    await beat(desk, group, member_epoch=2)
    desk.down.add(1)
    assert (await beat(desk, group, member_epoch=2)).error_code == codes.NOT_COORDINATOR
    desk.down.clear()
    desk.restart((0, 1))
    answer = await beat(desk, group, member_epoch=2)
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (codes.NONE, 3, None)


async def test_a_silent_member_is_lost(desk: Desk, autojump_clock: trio.testing.MockClock) -> None:
    group = desk.group_at(0, 1)
    await beat(desk, group, **JOIN)
    await trio.sleep(44.9)
    assert (await describe(desk, group))[0].group_state == "Stable"
    await trio.sleep(0.2)
    assert (await describe(desk, group))[0].group_state == "Empty"


async def test_a_group_obeys_configs_of_its_own(desk: Desk, autojump_clock: trio.testing.MockClock) -> None:
    group = desk.group_at(0, 1)
    types = desk.types("incremental_alter_configs", 1)
    configs = [
        types.AlterableConfig(name=name, config_operation=0, value=value)
        for name, value in (("share.session.timeout.ms", "50000"), ("share.heartbeat.interval.ms", "7000"))
    ]
    resource = types.AlterConfigsResource(resource_type=32, resource_name=group, configs=configs)
    (done,) = (await desk.ask("incremental_alter_configs", 1, resources=(resource,))).responses
    assert done.error_code == codes.NONE
    joined = await beat(desk, group, **JOIN)
    assert joined.heartbeat_interval.total_seconds() == 7
    await trio.sleep(49.9)
    assert (await describe(desk, group))[0].group_state == "Stable"
    await trio.sleep(0.2)
    assert (await describe(desk, group))[0].group_state == "Empty"


@pytest.mark.parametrize("name", ["group.share.max.size", "turnstile.share.members.max", "turnstile.share.groups.max"])
async def test_member_beyond_a_setting_is_refused(tmp_path: Path, name: str) -> None:
    desk = Desk(tmp_path, brokers=1, shards=1, **{name.replace(".", "_"): "1"})
    await desk.start()
    await desk.make_topic("t", 1)
    assert (await beat(desk, "g", **JOIN)).error_code == codes.NONE
    other = "h" if name == "turnstile.share.groups.max" else "g"
    assert (await beat(desk, other, **JOIN, member_id="n")).error_code == codes.GROUP_MAX_SIZE_REACHED


async def test_without_the_feature_there_are_none(desk: Desk) -> None:
    for image in desk.images.values():
        image.features["share.version"] = 0
    group = desk.group_at(0, 0)
    assert (await beat(desk, group, **JOIN)).error_code == codes.UNSUPPORTED_VERSION
    assert (await describe(desk, group))[0].error_code == codes.UNSUPPORTED_VERSION
