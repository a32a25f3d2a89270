"""Epochs only rise, whatever becomes of their file while a cluster runs."""

import shutil

import pytest

from shards.errors import CannotStart
from shards.supervisor import epochs
from shards.supervisor.epochs import MOST, RESERVED, Epochs


def test_epochs_rise_by_one_and_go_on_after_a_clean_end(tmp_path):
    path = tmp_path / "epoch"
    first = Epochs(path)
    assert [first.next() for _ in range(3)] == [1, 2, 3]
    first.end()
    assert path.read_text() == "3\n"
    assert Epochs(path).next() == 4


def test_after_a_kill_they_go_on_above_all_that_were_given_out(tmp_path):
    path = tmp_path / "epoch"
    for expected in (1, 1 + RESERVED, 1 + 2 * RESERVED):
        killed = Epochs(path)
        assert killed.next() == expected


@pytest.mark.parametrize("spoilt", ["many", "", "-1", str(MOST + 1), "9" * 50, "9" * 5000, "1 2", "\0\0", "1e3"])
def test_a_spoilt_file_is_named(tmp_path, spoilt):
    path = tmp_path / "epoch"
    path.write_text(spoilt)
    with pytest.raises(CannotStart, match="epoch should hold one number from 0 to"):
        Epochs(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(CannotStart, match="epoch should hold one number from 0 to"):
        Epochs(path)


def test_a_fork_needs_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(epochs, "RESERVED", 10)
    path = tmp_path / "data" / "epoch"
    path.parent.mkdir()
    given = Epochs(path)
    path.write_text("damaged")
    assert given.next() == 1
    shutil.rmtree(path.parent)  # as a disk that takes nothing any more
    assert [given.next() for _ in range(9)] == list(range(2, 11))
    with pytest.raises(OSError):
        given.next()
    path.parent.mkdir()
    assert given.next() == 11
    assert path.read_text() == "20\n"
    given.end()


def test_the_file_is_written_anew_while_half_of_the_reserve_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(epochs, "RESERVED", 10)
    path = tmp_path / "epoch"
    given = Epochs(path)
    for _ in range(5):
        given.next()
    assert path.read_text() == "10\n"
    given.next()
    assert path.read_text() == "15\n"
