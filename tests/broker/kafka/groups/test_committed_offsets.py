"""Committed offsets survive every end of the process, and their files never grow without end."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.kafka.groups import committed_offsets
from broker.kafka.groups.committed_offsets import (
    CommittedOffsets,
    OffsetAndMetadata,
)
from broker.runtime.set_aside import set_aside_in
from broker.storage import record_file
from broker.storage.record_file import MAX_WASTE, RecordFile
from shards.ownership import PARTITIONS, bucket_of, home_of_bucket, home_of_coordinator_key

A, B = "a" * 32, "b" * 32


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Closes the files of everything that a test opens."""
    opened: list[CommittedOffsets] = []
    load = CommittedOffsets.__init__

    def remembered(self: CommittedOffsets, *arguments: Any, **named: Any) -> None:
        load(self, *arguments, **named)
        opened.append(self)

    monkeypatch.setattr(CommittedOffsets, "__init__", remembered)
    yield
    for each in opened:
        each.close()


def commit(
    offsets: CommittedOffsets, group: str, partition: int, offset: int, *, metadata: str = "", at: int = 1000
) -> None:
    offsets.commit(group, [("t", A, partition, offset, -1, metadata)], at)


def test_a_successor_finds_what_was_committed(tmp_path: Path) -> None:
    first = CommittedOffsets(tmp_path)
    first.commit("g", [("t", A, 0, 5, 3, "m"), ("u", B, 2, 7, -1, "")], 1000)
    commit(first, "g", 0, 6, at=2000)
    first.store_generation("g", 4, "consumer")
    second = CommittedOffsets(tmp_path)
    assert second.of("g") == {
        ("t", 0): OffsetAndMetadata(6, -1, "", 2000, A),
        ("u", 2): OffsetAndMetadata(7, -1, "", 1000, B),
    }
    assert second.generation("g") == (4, "consumer")


def test_dropped_offsets_and_forgotten_groups_stay_gone(tmp_path: Path) -> None:
    first = CommittedOffsets(tmp_path)
    commit(first, "g", 0, 5)
    commit(first, "g", 1, 6)
    commit(first, "h", 0, 7)
    first.drop("g", [("t", 0), ("t", 9)])
    first.forget("h")
    second = CommittedOffsets(tmp_path)
    assert list(second) == ["g"]
    assert list(second.of("g")) == [("t", 1)]


def test_a_forgotten_group_may_come_back(tmp_path: Path) -> None:
    offsets = CommittedOffsets(tmp_path)
    commit(offsets, "g", 0, 5)
    offsets.forget("g")
    commit(offsets, "g", 1, 6)
    assert list(CommittedOffsets(tmp_path).of("g")) == [("t", 1)]


@given(group=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=400))
def test_any_group_id_can_be_kept(tmp_path_factory: pytest.TempPathFactory, group: str) -> None:
    directory = tmp_path_factory.mktemp("groups")
    offsets = CommittedOffsets(directory)
    commit(offsets, group, 0, 5)
    commit(offsets, group + "x", 0, 6)
    assert {g: o.of(g)[("t", 0)].offset for o in [CommittedOffsets(directory)] for g in o} == {group: 5, group + "x": 6}


# --- files and shards ------------------------------------------------------------------------------------------


def open_below(folder: Path) -> int:
    """Descriptors of this process for files below a folder; those of other tests come and go."""
    count = 0
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            count += os.readlink(f"/proc/self/fd/{descriptor}").startswith(str(folder))
    return count


def test_a_thousand_groups_share_a_few_files(tmp_path: Path) -> None:
    offsets = CommittedOffsets(tmp_path)
    for n in range(1000):
        commit(offsets, f"g{n}", 0, n)
    assert len(list(tmp_path.iterdir())) == PARTITIONS
    assert 0 < open_below(tmp_path) <= PARTITIONS
    offsets.close()
    assert open_below(tmp_path) == 0
    found = CommittedOffsets(tmp_path)
    assert {g: found.of(g)[("t", 0)].offset for g in found} == {f"g{n}": n for n in range(1000)}


def test_another_number_of_shards_finds_the_same_groups(tmp_path: Path) -> None:
    for shard in range(2):
        offsets = CommittedOffsets(tmp_path, lambda bucket, shard=shard: home_of_bucket(bucket, 1, 2) == shard)
        for n in range(100):
            if home_of_coordinator_key(f"g{n}", 1, 2) == shard:
                commit(offsets, f"g{n}", 0, n)
    found: set[str] = set()
    for shard in range(3):
        mine = set(CommittedOffsets(tmp_path, lambda bucket, shard=shard: home_of_bucket(bucket, 1, 3) == shard))
        assert not mine & found
        found |= mine
    assert found == {f"g{n}" for n in range(100)}


# --- compaction ------------------------------------------------------------------------------------------------


def test_a_file_stays_within_a_multiple_of_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_file, "COMPACT_BYTES", 10_000)
    offsets = CommittedOffsets(tmp_path)
    file = tmp_path / f"{bucket_of('g'):02d}.offsets"
    most = 0
    for n in range(4000):
        commit(offsets, "g", n % 8, n, metadata="x" * 50)
        most = max(most, file.stat().st_size)
    assert most <= 2 * 10_000
    offsets = CommittedOffsets(tmp_path)
    assert {c.offset for c in offsets.of("g").values()} == set(range(3992, 4000))
    for _ in range(1000):
        commit(offsets, "g", 0, 9)
    assert file.stat().st_size <= 2 * 10_000, "waste of an earlier process counts"


def test_many_groups_that_hold_what_they_wrote_are_not_compacted_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_file, "COMPACT_BYTES", 1000)
    monkeypatch.setattr(committed_offsets, "bucket_of", lambda group: 0)
    compactions: list[int] = []
    replace = RecordFile.replace
    monkeypatch.setattr(RecordFile, "replace", lambda log, frames: (compactions.append(log.size), replace(log, frames)))
    offsets = CommittedOffsets(tmp_path)
    for n in range(500):
        commit(offsets, f"g{n}", 0, n)
    assert not compactions
    for n in range(MAX_WASTE * 1000):
        commit(offsets, f"g{n % 500}", 0, n)
    assert 1 <= len(compactions) <= 2


def test_a_compaction_that_fails_costs_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_file, "COMPACT_BYTES", 1000)
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("no space")))
    offsets = CommittedOffsets(tmp_path)
    for n in range(200):
        commit(offsets, "g", 0, n)
    assert CommittedOffsets(tmp_path).of("g")[("t", 0)].offset == 199


# --- damage ----------------------------------------------------------------------------------------------------


def test_a_failed_write_leaves_file_and_memory_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = CommittedOffsets(tmp_path)
    commit(offsets, "g", 0, 1)
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: write(fd, data[: len(data) // 2]))
        for change in (lambda: commit(offsets, "g", 0, 2), lambda: offsets.drop("g", [("t", 0)])):
            with pytest.raises(OSError, match="bytes fit"):
                change()
        with pytest.raises(OSError, match="bytes fit"):
            offsets.forget("g")
    assert offsets.of("g")[("t", 0)].offset == 1
    commit(offsets, "g", 1, 3)
    found = CommittedOffsets(tmp_path).of("g")
    assert {place: each.offset for place, each in found.items()} == {("t", 0): 1, ("t", 1): 3}


def test_a_damaged_commit_leaves_the_ones_before_and_behind_it(tmp_path: Path) -> None:
    offsets = CommittedOffsets(tmp_path)
    for n in range(3):
        commit(offsets, "g", n, n)
    file = tmp_path / f"{bucket_of('g'):02d}.offsets"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)
    assert list(CommittedOffsets(tmp_path).of("g")) == [("t", 0), ("t", 2)]
    assert len(set_aside_in(tmp_path)) == 1


@pytest.mark.parametrize("body", [[], 7, [1], [99, "g"], [1, "g", 5, [["t"]]], [1, 2, 3, 4], b"\xc1"])
def test_a_sound_record_of_another_kind_is_stepped_over(tmp_path: Path, body: object) -> None:
    offsets = CommittedOffsets(tmp_path)
    commit(offsets, "g", 0, 1)
    log = RecordFile(tmp_path / f"{bucket_of('g'):02d}.offsets")
    log.append(body if isinstance(body, bytes) else msgpack.packb(body))
    commit(offsets, "g", 1, 2)
    assert list(CommittedOffsets(tmp_path).of("g")) == [("t", 0), ("t", 1)]
