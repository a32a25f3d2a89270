"""The guard on free disk space: when nothing more is appended, and what is said of it."""

from pathlib import Path
from typing import Any

import pytest
from batches import batch
from shards_in_process import Broker

from broker.storage import disk_space
from broker.storage.disk_space import DiskSpace, Volume, is_full, least_free_bytes, volume_of
from broker.wire import codes

GIB = 1 << 30
NOW = 1_700_000_000_000


@pytest.mark.parametrize(
    ("setting", "total_bytes", "expected"),
    [(None, 100 * GIB, GIB), (None, 20 * GIB, GIB), (None, 2 * GIB, GIB // 10), (None, 64 << 20, (64 << 20) // 20),
     (0, 100 * GIB, 0), (5 * GIB, 2 * GIB, 5 * GIB)],
)  # fmt: skip
def test_a_small_volume_is_used_nearly_whole_unless_a_number_is_set(
    setting: int | None, total_bytes: int, expected: int
) -> None:
    assert least_free_bytes(setting, Volume(total_bytes, 0)) == expected


@pytest.mark.parametrize(
    ("setting", "free_bytes", "expected"),
    [(10, 9, True), (10, 10, False), (None, GIB - 1, True), (None, GIB, False), (0, 0, False), (10, -1, False)],
)
def test_it_is_full_below_the_number(setting: int | None, free_bytes: int, expected: bool) -> None:
    assert is_full(setting, Volume(100 * GIB, free_bytes)) is expected


def test_a_directory_that_is_not_there_yet_is_on_its_parents_volume(tmp_path: Path) -> None:
    assert volume_of(str(tmp_path / "not" / "there")).total_bytes == volume_of(str(tmp_path)).total_bytes > 0


def test_produce_is_refused_while_there_is_too_little_and_taken_again(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, quiet: list[Any]
) -> None:
    free = [GIB]
    monkeypatch.setattr(disk_space, "volume_of", lambda directory: Volume(100 * GIB, free[0]))
    here = broker.at("t", 0)

    def append() -> Any:
        broker.logs[0].space.look()
        return broker.partitions[0].do("append", ("t", here, batch(b"v", timestamps=[NOW])))

    assert append()[0] == codes.NONE
    free[0] = GIB - 1
    code, *_, message, _ = append()
    assert code == codes.KAFKA_STORAGE_ERROR
    assert message == f"The disk has less than {GIB} bytes free (storage_min_free_bytes)."
    append()
    free[0] = GIB
    assert append()[0] == codes.NONE
    assert [(line["log_level"], line["event"]) for line in quiet] == [
        ("warning", "the disk is nearly full: produce is refused"),
        ("info", "the disk has room: produce is taken again"),
    ]


def test_by_redpandas_setting_producers_are_told_redpandas_error_also_when_it_is_set_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quiet: list[Any]
) -> None:
    monkeypatch.setattr(disk_space, "volume_of", lambda directory: Volume(100 * GIB, GIB - 1))
    setting: list[int | None] = [None]
    space = DiskSpace(str(tmp_path), lambda: setting[0])
    told = []
    for setting[0] in (None, 5 * GIB, GIB, None):
        space.look()
        assert space.full is not None
        told.append((space.full.code, f"{setting[0] or GIB} bytes" in str(space.full.message)))
    storage, away = (codes.KAFKA_STORAGE_ERROR, True), (codes.BROKER_NOT_AVAILABLE, True)
    assert told == [storage, away, away, storage]
    assert len(quiet) == 1, "it is full all the time"


def test_one_shard_of_a_broker_says_so(tmp_path: Path, quiet: list[Any]) -> None:
    DiskSpace(str(tmp_path), lambda: 1 << 62, tells=False).look()
    assert not quiet
