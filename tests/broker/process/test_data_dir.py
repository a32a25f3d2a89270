"""What is made once for a data directory, and what is said of it when it is damaged."""

import os

import pytest

from broker.process import data_dir
from broker.process.data_dir import cluster_id, hold, scram_secret
from shards.errors import CannotStart


@pytest.mark.parametrize("make", [cluster_id, scram_secret])
def test_it_is_made_once(tmp_path, make):
    assert make(tmp_path) == make(tmp_path)


@pytest.mark.parametrize("damaged", [b"", b"\n", b"\0" * 64, b"\xff\xfe", b"two words\n"])
@pytest.mark.parametrize(("name", "make"), [("cluster-id", cluster_id), ("scram-secret", scram_secret)])
def test_a_damaged_file_is_one_sentence_that_names_it(tmp_path, name, make, damaged):
    (tmp_path / name).write_bytes(damaged)
    with pytest.raises(CannotStart, match=f"{name} should hold .*; was it edited"):
        make(tmp_path)


def test_a_folder_in_use_is_told_whatever_its_lock_says(tmp_path):
    held = hold(tmp_path)
    (tmp_path / "lock").write_bytes(b"\xff\xfe")
    with pytest.raises(CannotStart, match="is in use by a running cluster"):
        hold(tmp_path)
    os.close(held)


def of_one_that_has_ended():
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def test_what_a_killed_supervisor_leaves_behind_is_waited_for(tmp_path, monkeypatch):
    """Its children hold the folder until they have noticed."""
    of_its_children = hold(tmp_path)
    (tmp_path / "lock").write_text(f"{of_one_that_has_ended()}\n")
    monkeypatch.setattr(data_dir.time, "sleep", lambda seconds: os.close(of_its_children))
    held = hold(tmp_path)
    assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    os.close(held)


def test_what_does_not_end_is_told_after_a_while(tmp_path, monkeypatch):
    held = hold(tmp_path)
    (tmp_path / "lock").write_text(f"{of_one_that_has_ended()}\n")
    monkeypatch.setattr(data_dir, "ENDING_S", 0.0)
    with pytest.raises(CannotStart, match="is in use by a running cluster"):
        hold(tmp_path)
    os.close(held)
