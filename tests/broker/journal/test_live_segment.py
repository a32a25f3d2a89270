"""The file of a live segment: whole passes only, and a failing disk is asked again after a while."""

import os
from pathlib import Path

import pytest

from broker.journal import spool
from broker.journal.live_segment import RETRY_NS, LiveSegment

ROWS = memoryview(bytes(3 * spool.ROW))


def segment(folder: Path, spool_bytes: int = 1 << 20) -> LiveSegment:
    return LiveSegment(folder, (0, 1, 7), spool_bytes)


def test_a_write_that_falls_short_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = segment(tmp_path)
    assert live.open(0, 0) and live.append(ROWS)
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:100]))
    assert not live.append(ROWS)
    assert live.fault == "the disk took a part of a write"
    assert live.finish() == 0
    (finished,) = spool.spool_folder(tmp_path).glob("*.spool")
    assert finished.stat().st_size == spool.ROW + len(ROWS)


def test_a_folder_that_cannot_be_made_is_tried_again_after_a_while(tmp_path: Path) -> None:
    live = segment(tmp_path / "there")
    (tmp_path / "there").touch()
    assert not live.open(0, 1)
    assert "Not a directory" in live.fault or "File exists" in live.fault
    (tmp_path / "there").unlink()
    assert not live.open(0, RETRY_NS)
    assert live.open(0, RETRY_NS + 1)
    live.finish()


def test_no_segment_is_made_while_the_spool_is_full(tmp_path: Path) -> None:
    live = segment(tmp_path, spool_bytes=spool.ROW)
    assert live.open(0, 0) and live.append(ROWS)
    live.finish()
    assert not live.open(3, 1)
    next(spool.spool_folder(tmp_path).iterdir()).unlink()
    assert live.open(3, 1 + RETRY_NS)
    live.finish()


def test_the_spool_is_not_looked_at_for_each_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spool that nobody converts has ever more files."""
    live = segment(tmp_path, spool_bytes=1000 * len(ROWS))
    looked: list[object] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: looked.append(folder) or scandir(folder))
    for number in range(100):
        assert live.open(3 * number, number) and live.append(ROWS)
        live.finish()
    assert 1 < len(looked) <= 15


def test_a_segment_that_was_removed_is_lost_with_its_events(tmp_path: Path) -> None:
    live = segment(tmp_path)
    assert live.open(0, 0) and live.append(ROWS)
    live.events = 3
    next(spool.spool_folder(tmp_path).iterdir()).unlink()
    assert live.finish() == 3
    assert "was removed" in live.fault
