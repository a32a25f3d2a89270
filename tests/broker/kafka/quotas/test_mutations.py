"""controller_mutation_rate where it meets handlers: topics made by Metadata, and what was charged but did not happen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from desk import Desk
from trio.testing import MockClock

from broker.kafka.quotas.mutations import Mutations
from broker.serve.call import Call
from broker.wire import codes
from shards.mesh.mesh import COORDINATOR

RATE = 1.0  # a burst of 11 partitions; the clock moves by the time that large answers take, which is well below 0.2 s


@pytest.fixture
async def desk(tmp_path: Path, autojump_clock: MockClock) -> Desk:
    desk = Desk(tmp_path, num_partitions="4")
    await desk.start()
    await limit(desk, RATE)
    return desk


async def limit(desk: Desk, rate: float) -> None:
    types = desk.types("alter_client_quotas", 1)
    entity = (types.EntityData(entity_type="client-id", entity_name="client"),)
    ops = (types.OpData(key="controller_mutation_rate", value=rate, remove=False),)
    entries = (types.EntryData(entity=entity, ops=ops),)
    await desk.ask("alter_client_quotas", 1, entries=entries, validate_only=False)


def tokens(desk: Desk) -> float:
    meters = desk.quotas[0, 0].meters
    left = meters.mutation.tokens("ANONYMOUS", "client", now_ms=meters._now_ms())
    assert left is not None
    return left


async def metadata(desk: Desk, *names: str) -> Any:
    topic = desk.types("metadata", 9).MetadataRequestTopic
    topics = tuple(topic(name=name) for name in names)
    return await desk.ask("metadata", 9, topics=topics, allow_auto_topic_creation=True)


async def test_topics_made_by_metadata_cost_their_partitions_until_the_bucket_is_empty(
    desk: Desk, autojump_clock: MockClock
) -> None:
    found = await metadata(desk, "a", "b", "c", "d")
    assert [(topic.error_code, len(topic.partitions)) for topic in found.topics] == [
        (codes.NONE, 4),
        (codes.NONE, 4),
        (codes.NONE, 4),  # 3 tokens were left
        (codes.UNKNOWN_TOPIC_OR_PARTITION, 0),
    ]
    assert tokens(desk) == pytest.approx(-1, abs=0.2)
    autojump_clock.jump(1.1)
    assert [topic.error_code for topic in (await metadata(desk, "d")).topics] == [codes.NONE]


async def test_without_the_coordinator_nothing_is_charged(desk: Desk, autojump_clock: MockClock) -> None:
    await desk.make_topic("t", 5)
    desk.down.add(COORDINATOR)
    deleted = await desk.ask("delete_topics", 5, topic_names=("t",))
    assert [topic.error_code for topic in deleted.responses] == [codes.NOT_CONTROLLER]
    found = await metadata(desk, "a", "b")
    assert [topic.error_code for topic in found.topics] == [codes.LEADER_NOT_AVAILABLE] * 2
    assert tokens(desk) == pytest.approx(11, abs=0.2)


async def test_clients_that_ask_for_one_missing_topic_pay_for_it_once(desk: Desk, autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(metadata, desk, "a")
    assert tokens(desk) == pytest.approx(11 - 4, abs=0.2)


async def test_topics_that_may_not_be_deleted_cost_nothing(tmp_path: Path, autojump_clock: MockClock) -> None:
    desk = Desk(tmp_path, delete_topic_enable="false")
    await desk.start()
    await limit(desk, RATE)
    await desk.make_topic("t", 5)
    found = await desk.ask("delete_topics", 5, topic_names=("t",), timeout=1000)
    assert [topic.error_code for topic in found.responses] == [codes.TOPIC_DELETION_DISABLED]
    assert tokens(desk) == pytest.approx(11, abs=0.2)


async def test_what_a_request_took_itself_is_off_its_throttle_time(desk: Desk, autojump_clock: MockClock) -> None:
    bill = await Mutations(desk.quotas[0, 0]).charge(Call(19, 5, client_id="client"), {"a": 9, "b": 7}, strict=False)
    assert bill.paid == {"a": 9, "b": 7}
    assert bill.throttle_ms == 5000
    autojump_clock.jump(1.5)
    assert bill.throttle_ms == 3500
    autojump_clock.jump(5)
    assert bill.throttle_ms == 0
