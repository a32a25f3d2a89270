"""Streams groups over the wire: any shard answers, the home decides; internal topics, settings, restarts, other groups."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from desk import Desk

from broker.kafka.groups.streams.status import MISSING_INTERNAL_TOPICS
from broker.wire import codes


def topology(desk: Desk, *, changelog: str | None = None, **fields: Any) -> Any:
    types = desk.types("streams_group_heartbeat", 0)
    made = (
        types.TopicInfo(
            name=changelog,
            partitions=0,
            replication_factor=0,
            topic_configs=(types.KeyValue(key="cleanup.policy", value="compact"),),
        )
        if changelog
        else None
    )
    given = {
        "subtopology_id": "0", "source_topics": ("t",), "source_topic_regex": (), "state_changelog_topics": (made,) if made else (),
        "repartition_sink_topics": (), "repartition_source_topics": (), "copartition_groups": (), **fields,
    }  # fmt: skip
    return types.Topology(epoch=0, subtopologies=(types.Subtopology(**given),))


async def beat(desk: Desk, group: str, *, at: tuple[int, int] = (0, 0), **fields: Any) -> Any:
    asked = {
        "member_id": "m", "member_epoch": 0, "endpoint_information_epoch": 0, "instance_id": None, "rack_id": None,
        "rebalance_timeout": timedelta(milliseconds=-1), "topology": None, "active_tasks": None, "standby_tasks": None,
        "warmup_tasks": None, "process_id": None, "user_endpoint": None, "client_tags": None, "task_offsets": None,
        "task_end_offsets": None, "shutdown_application": False, **fields,
    }  # fmt: skip
    return await desk.ask("streams_group_heartbeat", 0, at=at, group_id=group, **asked)


async def join(desk: Desk, group: str, *, at: tuple[int, int] = (0, 0), **fields: Any) -> Any:
    first = {"topology": topology(desk), "rebalance_timeout": timedelta(seconds=60), "process_id": "p", **fields}
    return await beat(desk, group, at=at, **{"active_tasks": (), "standby_tasks": (), "warmup_tasks": (), **first})


async def describe(desk: Desk, *groups: str, at: tuple[int, int] = (0, 0)) -> Any:
    return (await desk.ask("streams_group_describe", 0, at=at, group_ids=groups)).groups


def active(told: Any) -> list[tuple[str, tuple[int, ...]]]:
    return [(each.subtopology_id, each.partitions) for each in told.active_tasks]


async def test_any_shard_of_the_groups_broker_answers(desk: Desk) -> None:
    group = desk.group_at(0, 1)
    types = desk.types("streams_group_heartbeat", 0)
    given = {
        "user_endpoint": types.Endpoint(host="here", port=7001),
        "client_tags": (types.KeyValue(key="zone", value="a"),),
    }
    joined = await join(desk, group, **given)
    assert (joined.error_code, joined.member_epoch, active(joined)) == (codes.NONE, 2, [("0", (0, 1, 2, 3))])
    (endpoint,) = joined.partitions_by_user_endpoint
    assert (endpoint.user_endpoint.port, endpoint.active_partitions[0].partitions) == (7001, (0, 1, 2, 3))
    for shard in (0, 1):
        (found,) = await describe(desk, group, at=(0, shard))
        assert (found.error_code, found.group_state, found.topology.subtopologies[0].source_topics) == (
            0,
            "Stable",
            ("t",),
        )
        (member,) = found.members
        assert (member.client_host, member.process_id, member.user_endpoint.host) == ("/127.0.0.1", "p", "here")
        assert active(member.assignment) == active(member.target_assignment) == [("0", (0, 1, 2, 3))]
    listed = (await desk.ask("list_groups", 5, states_filter=(), types_filter=("streams",))).groups
    assert [(each.group_id, each.group_type, each.group_state) for each in listed] == [(group, "streams", "Stable")]
    assert (await join(desk, group, at=(1, 0))).error_code == codes.NOT_COORDINATOR
    assert (await describe(desk, group, at=(1, 0)))[0].error_code == codes.NOT_COORDINATOR
    left = await beat(desk, group, member_epoch=-1)
    assert (left.error_code, left.member_epoch) == (codes.NONE, -1)
    assert (await describe(desk, group))[0].group_state == "Empty"


async def test_internal_topics_are_created_with_their_configs(desk: Desk) -> None:
    group = desk.group_at(0, 1)
    joined = await join(desk, group, topology=topology(desk, changelog="t-changelog"))
    assert [each.status_code for each in joined.status] == [MISSING_INTERNAL_TOPICS] and active(joined) == []
    await trio.testing.wait_all_tasks_blocked()
    made = desk.images[0, 0].topics.get("t-changelog")
    assert made is not None and len(made.leaders) == 4
    told = await beat(desk, group, member_epoch=2, active_tasks=(), standby_tasks=(), warmup_tasks=())
    assert active(told) == [("0", (0, 1, 2, 3))] and told.status == ()
    (found,) = await describe(desk, group)
    (changelog,) = found.topology.subtopologies[0].state_changelog_topics
    assert (changelog.partitions, changelog.topic_configs[0].value) == (4, "compact")


async def test_a_home_that_is_away_is_no_coordinator_and_its_successor_knows_tasks_and_topology(desk: Desk) -> None:
    group = desk.group_at(0, 1)
    await join(desk, group)
    desk.down.add(1)
    assert (await beat(desk, group, member_epoch=2)).error_code == codes.NOT_COORDINATOR
    desk.down.clear()
    desk.restart((0, 1))
    answer = await beat(desk, group, member_epoch=2)
    assert (answer.error_code, answer.member_epoch, answer.active_tasks) == (codes.NONE, 2, None)
    other = await join(desk, group, member_id="n", process_id="q")
    assert other.error_code == codes.NONE and active(other) == []
    (found,) = await describe(desk, group)
    assert {each.member_id: active(each.assignment) for each in found.members} == {"m": [("0", (0, 1, 2, 3))], "n": []}


async def test_a_silent_member_is_lost(desk: Desk, autojump_clock: trio.testing.MockClock) -> None:
    group = desk.group_at(0, 1)
    await join(desk, group)
    await trio.sleep(44.9)
    assert (await describe(desk, group))[0].group_state == "Stable"
    await trio.sleep(0.2)
    assert (await describe(desk, group))[0].group_state == "Empty"


async def test_configs_of_the_group_are_obeyed(desk: Desk) -> None:
    group = desk.group_at(0, 1)
    types = desk.types("incremental_alter_configs", 1)
    given = {"streams.heartbeat.interval.ms": "7000", "streams.num.standby.replicas": "1"}
    configs = [types.AlterableConfig(name=name, config_operation=0, value=value) for name, value in given.items()]
    resource = types.AlterConfigsResource(resource_type=32, resource_name=group, configs=configs)
    (done,) = (await desk.ask("incremental_alter_configs", 1, resources=(resource,))).responses
    assert done.error_code == codes.NONE
    await desk.make_topic("t-changelog", 4)
    stateful = topology(desk, changelog="t-changelog")
    assert (await join(desk, group, topology=stateful)).heartbeat_interval == timedelta(seconds=7)
    other = await join(desk, group, topology=stateful, member_id="n", process_id="q")
    assert active(other) == [] and [each.partitions for each in other.standby_tasks] == [(0, 1)]


@pytest.mark.parametrize(
    ("setting", "value", "code"),
    [
        ("group.coordinator.rebalance.protocols", "classic,consumer", codes.UNSUPPORTED_VERSION),
        ("group.streams.max.size", "1", codes.GROUP_MAX_SIZE_REACHED),
        ("turnstile.streams.members.max", "1", codes.GROUP_MAX_SIZE_REACHED),
    ],
)
async def test_member_that_a_setting_forbids_is_refused(
    tmp_path: Path, nursery: trio.Nursery, setting: str, value: str, code: int
) -> None:
    desk = Desk(tmp_path, **{setting: value})
    await desk.start(nursery)
    await desk.make_topic("t", 1)
    await join(desk, "g")
    assert (await join(desk, "g", member_id="n", process_id="q")).error_code == code


async def test_a_group_has_one_protocol(desk: Desk) -> None:
    streams, consumer = desk.group_at(0, 1), desk.group_at(0, 0)
    await join(desk, streams)
    plain = {"member_epoch": 0, "rack_id": None, "rebalance_timeout": timedelta(seconds=60), "subscribed_topic_names": ("t",),
             "subscribed_topic_regex": None, "server_assignor": None, "topic_partitions": (), "instance_id": None}  # fmt: skip
    beaten = await desk.ask("consumer_group_heartbeat", 1, group_id=streams, member_id="c", **plain)
    assert beaten.error_code == codes.GROUP_ID_NOT_FOUND
    await desk.ask("consumer_group_heartbeat", 1, group_id=consumer, member_id="c", **plain)
    assert (await join(desk, consumer)).error_code == codes.GROUP_ID_NOT_FOUND
    (found,) = await describe(desk, consumer)
    assert (found.error_code, found.error_message) == (
        codes.GROUP_ID_NOT_FOUND,
        f"Group {consumer} is not a streams group.",
    )
    (deleted,) = (await desk.ask("delete_groups", 2, groups_names=(streams,))).results
    assert deleted.error_code == codes.NON_EMPTY_GROUP
    await beat(desk, streams, member_epoch=-1)
    (deleted,) = (await desk.ask("delete_groups", 2, groups_names=(streams,))).results
    assert deleted.error_code == codes.NONE
    assert (await beat(desk, streams, member_epoch=2)).error_code == codes.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("fields", "code", "said"),
    [
        ({"instance_id": "i"}, codes.INVALID_REQUEST, "Static membership is not yet supported."),
        ({"member_id": ""}, codes.INVALID_REQUEST, "MemberId can't be empty."),
        ({"topology": None}, codes.INVALID_REQUEST, "Topology must be non-null when (re-)joining."),
        ({"rebalance_timeout": timedelta(milliseconds=-1)}, codes.INVALID_REQUEST, "RebalanceTimeoutMs must be provided"),
        ({"standby_tasks": None}, codes.INVALID_REQUEST, "If one task-type is non-null, all must be non-null."),
        ({"member_epoch": -3}, codes.INVALID_REQUEST, "MemberEpoch is -3, but must be greater than or equal to -2."),
        ({"member_epoch": 2}, codes.INVALID_REQUEST, "Topology can only be provided when (re-)joining."),
        ({"source_topics": ()}, codes.INVALID_REQUEST, "Subtopology 0 has no source topic."),
        ({"source_topic_regex": ("t.*",)}, codes.INVALID_REQUEST, "Regular expressions for source topics"),
        ({"source_topics": ("a/b",)}, codes.STREAMS_INVALID_TOPOLOGY, "Topic names a/b are not valid topic names."),
        ({"source_topics": ("__consumer_offsets",)}, codes.STREAMS_INVALID_TOPOLOGY, "is prohibited."),
    ],
)  # fmt: skip
async def test_requests_that_no_group_could_answer_are_refused(
    desk: Desk, fields: dict[str, Any], code: int, said: str
) -> None:
    parts = {name: fields.pop(name) for name in ("source_topics", "source_topic_regex") if name in fields}
    given = {"topology": topology(desk, **parts), **fields}
    answer = await join(desk, desk.group_at(0, 1), **given)
    assert answer.error_code == code and said in answer.error_message


async def test_offsets_are_those_of_members(desk: Desk) -> None:
    group = desk.group_at(0, 1)
    await join(desk, group)
    types = desk.types("offset_commit", 9)
    partition = types.OffsetCommitRequestPartition(
        partition_index=1, committed_offset=7, committed_leader_epoch=-1, committed_metadata=""
    )
    topics = (types.OffsetCommitRequestTopic(name="t", partitions=(partition,)),)

    async def commit(member: str, epoch: int) -> int:
        answer = await desk.ask(
            "offset_commit", 9, group_id=group, generation_id_or_member_epoch=epoch, member_id=member, topics=topics
        )
        return int(answer.topics[0].partitions[0].error_code)

    assert await commit("m", 2) == codes.NONE
    assert await commit("m", 1) == codes.STALE_MEMBER_EPOCH
    assert await commit("n", 2) == codes.UNKNOWN_MEMBER_ID
