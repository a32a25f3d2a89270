"""Offsets that are committed in transactions: seen when these are committed, also by a successor, and never otherwise."""

from pathlib import Path

import pytest

from broker.kafka.groups.committed_offsets import CommittedOffsets
from broker.storage import record_file
from shards.ownership import bucket_of

TOPIC = "t", "0" * 32


def place(offset: int) -> tuple[str, str, int, int, int, str]:
    return (*TOPIC, 0, offset, -1, "")


def end(offsets: CommittedOffsets, producer_id: int, *, commit: bool, group: str = "g") -> None:
    offsets.end_transaction(bucket_of(group), producer_id, commit=commit)


def offset(offsets: CommittedOffsets) -> int | None:
    found = offsets.of("g").get(("t", 0))
    return None if found is None else found.offset


def test_a_marker_decides_and_a_later_commit_stays(tmp_path: Path) -> None:
    offsets = CommittedOffsets(tmp_path)
    offsets.pend("g", 1, [place(5)], 10)
    offsets.pend("g", 2, [place(6)], 11)
    assert (offset(offsets), offsets.pending("g")) == (None, {("t", 0)})
    for again in (offsets, CommittedOffsets(tmp_path)):
        assert (offset(again), again.pending("g")) == (None, {("t", 0)})
    end(offsets, 1, commit=True)
    assert (offset(offsets), offsets.pending("g")) == (5, {("t", 0)})
    end(offsets, 2, commit=False)
    assert (offset(offsets), offsets.pending("g")) == (5, set())
    offsets.pend("g", 3, [place(7)], 12)
    offsets.commit("g", [place(9)], 13)
    end(offsets, 3, commit=True)
    assert offset(offsets) == offset(CommittedOffsets(tmp_path)) == 9


def test_a_group_that_is_forgotten_has_nothing_pending(tmp_path: Path) -> None:
    offsets = CommittedOffsets(tmp_path)
    offsets.pend("g", 1, [place(5)], 10)
    offsets.forget("g")
    end(offsets, 1, commit=True)
    assert (offset(offsets), offsets.pending("g"), "g" in offsets) == (None, set(), False)


def test_compaction_keeps_what_is_pending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_file, "COMPACT_BYTES", 500)
    offsets = CommittedOffsets(tmp_path)
    offsets.pend("g", 1, [place(5)], 10)
    for number in range(100):
        offsets.commit("g", [place(number)], 5)
    again = CommittedOffsets(tmp_path)
    assert (offset(again), again.pending("g")) == (99, {("t", 0)})
    end(again, 1, commit=True)
    assert offset(again) == 5
