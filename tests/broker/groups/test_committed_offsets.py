"""Committed offsets survive whatever happens to the process, and the file never grows without end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.groups.committed_offsets import COMPACT_BYTES, MAX_WASTE, CommittedOffset, CommittedOffsets

A, B = "a" * 32, "b" * 32


def commit(
    offsets: CommittedOffsets, group: str, partition: int, offset: int, *, metadata: str = "", at: int = 1000
) -> None:
    offsets.commit(group, [("t", A, partition, offset, -1, metadata)], at)


def only_file(directory: Path) -> Path:
    (path,) = directory.iterdir()
    return path


def test_a_successor_finds_what_was_committed(tmp_path: Path) -> None:
    first = CommittedOffsets(tmp_path)
    first.commit("g", [("t", A, 0, 5, 3, "m"), ("u", B, 2, 7, -1, "")], 1000)
    commit(first, "g", 0, 6, at=2000)
    first.remember("g", 4, "consumer")
    second = CommittedOffsets(tmp_path)
    assert second.of("g") == {
        ("t", 0): CommittedOffset(6, -1, "", 2000, A),
        ("u", 2): CommittedOffset(7, -1, "", 1000, B),
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


@given(cut=st.integers(min_value=0, max_value=10_000))
def test_a_torn_tail_loses_only_the_torn_commit(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    directory = tmp_path_factory.mktemp("groups")
    offsets = CommittedOffsets(directory)
    sizes = []
    for n in range(20):
        commit(offsets, "g", 0, n)
        sizes.append(only_file(directory).stat().st_size)
    cut = cut % (sizes[-1] + 1)
    os.truncate(only_file(directory), cut)
    whole = sum(size <= cut for size in sizes)
    successor = CommittedOffsets(directory)
    assert successor.of("g").get(("t", 0), None) == (CommittedOffset(whole - 1, -1, "", 1000, A) if whole else None)
    commit(successor, "g", 0, 99)
    assert CommittedOffsets(directory).of("g")[("t", 0)].offset == 99


def test_a_damaged_record_ends_the_file_there(tmp_path: Path) -> None:
    offsets = CommittedOffsets(tmp_path)
    commit(offsets, "g", 0, 1)
    size = only_file(tmp_path).stat().st_size
    commit(offsets, "g", 0, 2)
    data = bytearray(only_file(tmp_path).read_bytes())
    data[size + 12] ^= 0xFF
    only_file(tmp_path).write_bytes(data)
    assert CommittedOffsets(tmp_path).of("g")[("t", 0)].offset == 1
    assert only_file(tmp_path).stat().st_size == size


def test_the_file_stays_within_a_multiple_of_what_it_holds(tmp_path: Path) -> None:
    offsets = CommittedOffsets(tmp_path)
    for n in range(20_000):
        commit(offsets, "g", n % 8, n, metadata="x" * 50)
        if n % 1000 == 0:
            assert only_file(tmp_path).stat().st_size <= max(COMPACT_BYTES, MAX_WASTE * 2000)
    assert {c.offset for c in CommittedOffsets(tmp_path).of("g").values()} == set(range(19_992, 20_000))


def test_a_failed_write_leaves_file_and_memory_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = CommittedOffsets(tmp_path)
    commit(offsets, "g", 0, 1)
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[: len(data) // 2]))
    with pytest.raises(OSError, match="bytes fit"):
        commit(offsets, "g", 0, 2)
    monkeypatch.undo()
    assert offsets.of("g")[("t", 0)].offset == 1
    commit(offsets, "g", 1, 3)
    assert {place: c.offset for place, c in CommittedOffsets(tmp_path).of("g").items()} == {("t", 0): 1, ("t", 1): 3}


@given(group=st.text(min_size=1, max_size=400))
def test_any_group_id_has_a_file_of_its_own(tmp_path_factory: pytest.TempPathFactory, group: str) -> None:
    try:
        group.encode()
    except UnicodeEncodeError:
        return
    directory = tmp_path_factory.mktemp("groups")
    offsets = CommittedOffsets(directory)
    commit(offsets, group, 0, 5)
    commit(offsets, group + "x", 0, 6)
    assert {g: o.of(g)[("t", 0)].offset for o in [CommittedOffsets(directory)] for g in o} == {group: 5, group + "x": 6}


def test_a_shard_leaves_the_files_of_others_alone(tmp_path: Path) -> None:
    everything = CommittedOffsets(tmp_path)
    for group in ("one", "two", "three"):
        commit(everything, group, 0, 1)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    mine = CommittedOffsets(tmp_path, owns=lambda group: group == "two")
    assert list(mine) == ["two"]
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_compaction_that_was_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    commit(CommittedOffsets(tmp_path), "g.h", 0, 5)
    (tmp_path / "g.h.new").write_bytes(b"half")
    assert CommittedOffsets(tmp_path).of("g.h")[("t", 0)].offset == 5
    assert only_file(tmp_path).name == "g.h.offsets"


def test_many_groups_keep_few_files_open(tmp_path: Path) -> None:
    offsets = CommittedOffsets(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    for n in range(300):
        commit(offsets, f"g{n}", 0, n)
    assert len(os.listdir("/proc/self/fd")) - before <= 64
    commit(offsets, "g0", 0, 1000)
    offsets.close()
    assert CommittedOffsets(tmp_path).of("g0")[("t", 0)].offset == 1000
