"""Groups over a disk that fails, and expiry of many."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from desk import Desk

from broker.kafka.groups.coordinator import EXPIRED_AT_ONCE, GroupCoordinator
from broker.storage.record_file import RecordFile
from broker.wire import codes

TOPIC = "0" * 32


@pytest.fixture
async def home(tmp_path: Path) -> GroupCoordinator:
    desk = Desk(tmp_path)
    await desk.start()
    home = desk.homes[0, 0]
    assert home.commit("g", "", None, -1, [["t", TOPIC, 0, 5, -1, ""]]) == codes.NONE
    return home


def fail(*_: Any) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (lambda home: home.commit("g", "", None, -1, [["t", TOPIC, 0, 6, -1, ""]]), codes.KAFKA_STORAGE_ERROR),
        (lambda home: home.drop_offsets("g", [["t", 0]]), (codes.KAFKA_STORAGE_ERROR, [])),
        (lambda home: home.delete("g"), codes.KAFKA_STORAGE_ERROR),
    ],
)
async def test_a_change_that_cannot_be_written_is_a_storage_error_and_changes_nothing(
    home: GroupCoordinator,
    monkeypatch: pytest.MonkeyPatch,
    operation: Callable[[GroupCoordinator], Any],
    expected: object,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(RecordFile, "append", fail)
        assert operation(home) == expected
        assert operation(home) == expected, "the second try is no success either"
    assert home.offsets.of("g")[("t", 0)].offset == 5
    assert operation(home) in (codes.NONE, (codes.NONE, [codes.NONE]))


async def test_expiry_survives_a_failing_disk(home: GroupCoordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(RecordFile, "append", fail)
        await home.expire()
    assert "g" in home.offsets
    await home.expire()
    assert "g" not in home.offsets, "its topic does not exist"


async def test_expiry_of_many_groups_lets_others_run(home: GroupCoordinator) -> None:
    for n in range(6 * EXPIRED_AT_ONCE):
        home.offsets.store_generation(f"g{n}", 1, "consumer")
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        await home.expire()
        nursery.cancel_scope.cancel()
    assert turns >= 4
    assert not list(home.offsets)
