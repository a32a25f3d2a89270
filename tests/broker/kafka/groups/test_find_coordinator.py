"""FindCoordinator makes the internal topics, when somebody first asks for a coordinator and not before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from desk import Desk

from broker.wire import codes
from shards.config.internal_topics import GROUP_METADATA, TRANSACTION_STATE
from shards.mesh.mesh import COORDINATOR
from shards.ownership import PARTITIONS

GROUP, TRANSACTION, SHARE = 0, 1, 2


async def find(desk: Desk, version: int, kind: int, key: str = "k") -> Any:
    if version < 4:
        return await desk.ask("find_coordinator", version, key_type=kind, key=key)
    return (await desk.ask("find_coordinator", version, key_type=kind, coordinator_keys=(key,))).coordinators[0]


@pytest.mark.parametrize("version", [0, 3, 6])
async def test_an_internal_topic_is_made_at_the_first_question(tmp_path: Path, version: int) -> None:
    desk = Desk(tmp_path, brokers=3, auto_create_topics_enable="false")
    await desk.start()
    await desk.make_topic("t")
    assert desk.images[0, 0].topics.names() == ["t"]
    found = await find(desk, version, GROUP)
    assert found.error_code == 0
    assert desk.images[2, 0].topics.names() == [GROUP_METADATA, "t"]
    shown = await desk.ask("metadata", 13, topics=None)
    assert [(t.name, t.is_internal, len(t.partitions)) for t in shown.topics] == [
        (GROUP_METADATA, True, PARTITIONS),
        ("t", False, 1),
    ]
    described = await desk.ask("describe_topic_partitions", 0, topics=(), response_partition_limit=100)
    assert [(t.name, t.is_internal) for t in described.topics] == [(GROUP_METADATA, True), ("t", False)]
    if version:
        await find(desk, version, TRANSACTION)
        assert desk.images[1, 0].topics.names() == [GROUP_METADATA, TRANSACTION_STATE, "t"]


async def test_the_leader_of_its_partition_is_the_coordinator(tmp_path: Path) -> None:
    desk = Desk(tmp_path, brokers=3)
    await desk.start()
    for group, partition in (("a", 97 % 50), ("hello", 99162322 % 50), ("group-1", 293427299 % 50)):
        found = await find(desk, 4, GROUP, group)
        assert found.node_id == desk.images[0, 0].topics.get(GROUP_METADATA).leaders[partition]


async def test_nothing_is_made_for_share_partitions_or_for_no_key(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.start()
    await find(desk, 6, SHARE)
    await desk.ask("find_coordinator", 6, key_type=GROUP, coordinator_keys=())
    assert desk.asked == []


async def test_many_that_ask_at_once_ask_the_coordinator_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.start()
    async with trio.open_nursery() as nursery:
        for n in range(5):
            nursery.start_soon(find, desk, 4, GROUP, f"g{n}")
    assert desk.asked == ["create_topics"]


async def test_groups_find_their_coordinator_while_the_topic_can_not_be_made(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.start()
    desk.down.add(COORDINATOR)
    assert (await find(desk, 4, GROUP)).error_code == 0
    assert len(desk.images[0, 0].topics) == 0
    desk.down.clear()
    await find(desk, 4, GROUP)
    assert GROUP_METADATA in desk.images[0, 0].topics


async def test_metadata_by_name_makes_it_too(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.start()
    topic = desk.types("metadata", 12).MetadataRequestTopic
    asked = (topic(name=TRANSACTION_STATE, topic_id=None),)
    unknown = await desk.ask("metadata", 12, topics=asked, allow_auto_topic_creation=False)
    assert [(t.error_code, t.is_internal) for t in unknown.topics] == [(codes.UNKNOWN_TOPIC_OR_PARTITION, True)]
    found = await desk.ask("metadata", 12, topics=asked, allow_auto_topic_creation=True)
    assert [(t.error_code, t.is_internal, len(t.partitions)) for t in found.topics] == [(0, True, PARTITIONS)]
    assert desk.images[0, 0].topic_get(TRANSACTION_STATE, "cleanup.policy") == ("compact",)
