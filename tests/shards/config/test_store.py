"""The store keeps what it was told, also across a kill."""

import os
import signal
import sqlite3
import subprocess
import sys

import pytest

from shards.config.store import Store
from shards.errors import CannotStart, CannotStore


def test_a_reopened_store_goes_on_where_it_was(tmp_path):
    store = Store(tmp_path / "cluster.sqlite")
    store.commit(1.0, "alice", [("setting", "/kafka_connections_max", None, "5"), ("quota", "{}", None, {"k": 1.5})])
    store.commit(2.0, "bob", [("setting", "/kafka_connections_max", "5", None)])
    store.close()
    again = Store(tmp_path / "cluster.sqlite")
    assert again.records() == [("quota", "{}", {"k": 1.5})]
    assert again.version == 2
    assert again.commit(3.0, "carol", [("setting", "/kafka_connections_max", None, "7")]) == 3
    latest, middle, first = again.history()
    assert (latest["version"], latest["who"], latest["at"]) == (3, "carol", 3.0)
    assert middle["changes"] == [["setting", "/kafka_connections_max", "5", None]]
    assert first["changes"][1] == ["quota", "{}", None, {"k": 1.5}]
    assert [entry["version"] for entry in again.history(1, before=3)] == [2]
    again.close()


def test_a_commit_that_fails_leaves_nothing_of_itself(tmp_path):
    store = Store(tmp_path / "cluster.sqlite")
    with pytest.raises(sqlite3.Error):
        store.commit(1.0, "alice", [("setting", "/a", None, "1"), ("setting", object(), None, "2")])
    assert store.records() == []
    assert store.version == 0
    assert store.commit(1.0, "alice", [("setting", "/a", None, "1")]) == 1
    store.close()


def test_what_a_full_disk_does_not_take_is_refused_whole_and_works_again_later(tmp_path):
    store = Store(tmp_path / "cluster.sqlite")
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(CannotStore, match="full"):
        store.commit(1.0, "alice", [("setting", "/a", None, "1"), ("setting", "/b", None, "2" * 100_000)])
    assert store.records() == [] and store.version == 0
    store._db.execute(f"PRAGMA max_page_count = {pages + 1000}")
    assert store.commit(1.0, "alice", [("setting", "/a", None, "1")]) == 1
    store.close()


def test_a_number_that_cannot_be_noted_is_not_given_out(tmp_path):
    store = Store(tmp_path / "cluster.sqlite")
    store._db.execute("PRAGMA query_only = ON")
    with pytest.raises(CannotStore):
        store.allocate("producer_id", 10)
    store._db.execute("PRAGMA query_only = OFF")
    assert store.allocate("producer_id", 10) == 0
    store.close()


def test_what_was_committed_survives_kill_9(tmp_path):
    """The child tells its version only after commit returned; then it is killed in the middle of more of them."""
    program = (
        "import sys; from pathlib import Path; from shards.config.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        "while True:\n"
        "    v = store.commit(0.0, 'me', [('setting', '/n', None, str(store.version + 1))])\n"
        "    first = store.allocate('producer_id', 10)\n"
        "    print(v, first, flush=True)\n"
    )
    path = tmp_path / "cluster.sqlite"
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for _ in range(200):
            told = child.stdout.readline().split()
        os.kill(child.pid, signal.SIGKILL)
    store = Store(path)
    assert store.version >= int(told[0])
    assert store.records() == [("setting", "/n", str(store.version))]
    assert store.allocate("producer_id", 10) > int(told[1])
    store.close()


def test_credentials_are_not_in_the_history(tmp_path):
    store = Store(tmp_path / "cluster.sqlite")
    store.commit(1.0, "alice", [("user", "bob", None, {"SCRAM-SHA-256": {"stored_key": "secret"}})])
    assert store.history()[0]["changes"] == [["user", "bob", None, ["SCRAM-SHA-256"]]]
    assert store.records()[0][2]["SCRAM-SHA-256"]["stored_key"] == "secret"
    store.close()


def test_a_file_that_is_no_database_is_one_sentence(tmp_path):
    (tmp_path / "cluster.sqlite").write_text("not a database, but long enough to be read as the header of one" * 50)
    with pytest.raises(CannotStart, match="can't be used"):
        Store(tmp_path / "cluster.sqlite")
