"""Topics are deleted by name and by id, as Kafka does it."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from desk import Desk

from broker.wire import codes
from shards.mesh.mesh import COORDINATOR


async def test_without_the_coordinator_nothing_is_deleted_and_clients_try_again(desk: Desk) -> None:
    await desk.make_topic("there")
    desk.down.add(COORDINATOR)
    deleted = await desk.ask("delete_topics", 5, topic_names=("there",))
    assert deleted.responses[0].error_code == codes.NOT_CONTROLLER


@pytest.mark.parametrize("version", range(1, 6))
async def test_topics_are_deleted_by_name(desk: Desk, version: int) -> None:
    await desk.make_topic("a")
    await desk.make_topic("b")
    found = await desk.ask("delete_topics", version, topic_names=("a", "nope", "b", "b"))
    assert [(t.name, t.error_code) for t in found.responses] == [
        ("a", 0),
        ("nope", codes.UNKNOWN_TOPIC_OR_PARTITION),
        ("b", codes.INVALID_REQUEST),
    ]
    assert desk.images[1, 0].topics.names() == ["b"]


async def test_topics_are_deleted_by_id(desk: Desk) -> None:
    await desk.make_topic("a")
    await desk.make_topic("b")
    ids = {t.name: t.id for t in desk.images[0, 0].topics}
    unknown = uuid.uuid4()
    state = desk.types("delete_topics", 6).DeleteTopicState
    asked = (
        state(name=None, topic_id=ids["a"]), state(name=None, topic_id=unknown), state(name="b", topic_id=None),
        state(name="b", topic_id=ids["b"]), state(name=None, topic_id=None),
    )  # fmt: skip
    found = await desk.ask("delete_topics", 6, topics=asked)
    assert [(t.name, t.topic_id, t.error_code) for t in found.responses] == [
        ("a", ids["a"], 0),
        (None, unknown, codes.UNKNOWN_TOPIC_ID),
        ("b", ids["b"], 0),
        ("b", ids["b"], codes.INVALID_REQUEST),
        (None, None, codes.INVALID_REQUEST),
    ]


async def test_deletion_can_be_switched_off(tmp_path: Path) -> None:
    desk = Desk(tmp_path, delete_topic_enable="false")
    await desk.start()
    await desk.make_topic("a")
    found = await desk.ask("delete_topics", 5, topic_names=("a",))
    assert found.responses[0].error_code == codes.TOPIC_DELETION_DISABLED
