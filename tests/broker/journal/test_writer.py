"""The writer: what is added comes back, and a full disk or a killed process costs what it says and no more."""

import errno
import json
import os
import signal
from pathlib import Path

import pytest

from broker.journal import buffer, live_segment, reader, spool
from broker.journal.writer import JournalWriter


def kinds(folder: Path) -> list[str]:
    return [event["kind"] for event in reader.events(folder)]


def test_every_column_comes_back(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, 2, 1, 7)
    journal.admitted(1, "10.0.0.1", 40_000, "EXTERNAL", 3, 1.5)
    journal.refused(
        2,
        "::1",
        40_001,
        "EXTERNAL",
        reason="ip_cap",
        limit="max.connections.per.ip",
        limit_value=5,
        version=3,
        held_ms=0.25,
    )
    journal.closed(
        1,
        "10.0.0.1",
        40_000,
        "EXTERNAL",
        reason="client",
        user="alice",
        client_id="app",
        bytes_moved=1 << 40,
        open_ms=2.5,
    )
    journal.add("throttled", conn=1, user="alice", api="Produce", bytes_moved=0, throttle_ms=0, limit_value=0.0)
    journal.config(4, [["setting", "/max.connections", "9"]])
    journal.close()
    admitted, refused, closed, throttled, config = reader.events(tmp_path)
    common = {"broker": 2, "shard": 1, "epoch": 7}
    assert admitted.items() >= {
        **common, "kind": "admitted", "seq": 0, "conn": 1, "ip": "10.0.0.1", "port": 40_000, "version": 3,
        "held_ms": 1.5,
    }.items()  # fmt: skip
    assert "user" not in admitted and "bytes" not in admitted
    assert refused.items() >= {
        "seq": 1, "ip": "::1", "reason": "ip_cap", "limit": "max.connections.per.ip", "limit_value": 5.0,
        "held_ms": 0.25,
    }.items()  # fmt: skip
    assert (
        closed.items()
        >= {"reason": "client", "user": "alice", "client_id": "app", "bytes": 1 << 40, "held_ms": 2.5}.items()
    )
    assert throttled.items() >= {"api": "Produce", "bytes": 0, "throttle_ms": 0, "limit_value": 0.0}.items()
    assert config["detail"] == '{"changes":[["setting","/max.connections","9"]],"full":false,"acknowledged":false}'
    assert admitted["mono_ns"] <= refused["mono_ns"] <= config["mono_ns"]


def test_throttled_is_add_with_the_columns_of_a_charge(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, 0, 0, 1)
    journal.throttled(
        7, "::1", 9, "EXTERNAL", user="alice", client_id=None, api="Fetch", amount=1 << 40, throttle_ms=1 << 31,
        limit="consumer_byte_rate", limit_value=0.5, version=3, at_ms=1 << 40,
    )  # fmt: skip
    journal.add(
        "throttled", conn=7, ip="::1", port=9, listener="EXTERNAL", user="alice", api="Fetch", bytes_moved=1 << 40,
        throttle_ms=1 << 31, limit="consumer_byte_rate", limit_value=0.5, version=3, at_ns=(1 << 40) * 1_000_000,
    )  # fmt: skip
    journal.close()
    throttled, added = reader.events(tmp_path)
    assert throttled | {"seq": 1} == added
    assert (throttled["bytes"], throttled["throttle_ms"]) == (1 << 40, (1 << 31) - 1)


def test_moved_is_add_with_nothing_but_a_detail(tmp_path: Path) -> None:
    detail = {
        "pool": 'rate:listener:"é',
        "to": 1,
        "tokens": -1,
        "at_ms": 1 << 40,
        "charged": False,
        "lost": {"ip:::1": 2},
    }
    journal = JournalWriter(tmp_path, 0, 0, 1)
    journal.moved("grant", detail, 3)
    journal.add("grant", detail=detail, version=3)
    journal.moved("reclaim", detail, 4)
    journal.close()
    moved, added, reclaimed = reader.events(tmp_path)
    differing = ("seq", "ts", "mono_ns")
    assert {name: moved[name] for name in moved if name not in differing} == {
        name: added[name] for name in added if name not in differing
    }
    assert (reclaimed["kind"], reclaimed["version"], json.loads(reclaimed["detail"])) == ("reclaim", 4, detail)


def test_seq_is_gapless_over_segments(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, 0, 0, 1)
    for number in range(10):
        journal.admitted(number + 1, f"10.0.0.{number}", 1, "L", 1)
        journal.flush(number * live_segment.ROLL_NS)
    journal.close()
    assert [event["seq"] for event in reader.events(tmp_path)] == list(range(10))
    assert len(list(spool.spool_folder(tmp_path).glob("*.spool"))) > 3


def test_more_events_in_a_pass_than_the_buffer_holds(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, 0, 0, 1)
    count = buffer.BUFFER_ROWS * 2 + 5
    for number in range(count):
        journal.closed(
            number + 1, f"ip{number}", 1, "L", reason="client", user=None, client_id=None, bytes_moved=0, open_ms=0.0
        )
    journal.close()
    table = reader.read_table(tmp_path)
    assert table.column("ip").to_pylist() == [f"ip{number}" for number in range(count)]


def test_more_strings_than_a_segment_has_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer, "MAX_IDS", 20)
    journal = JournalWriter(tmp_path, 0, 0, 1)
    for number in range(100):
        journal.refused(
            number + 1, f"ip{number}", 1, "L", reason=f"r{number}", limit=f"limit{number}", limit_value=1.0, version=1
        )
    journal.close()
    seen = [(event["seq"], event["ip"], event["reason"], event["limit"]) for event in reader.events(tmp_path)]
    assert seen == [(number, f"ip{number}", f"r{number}", f"limit{number}") for number in range(100)]


@pytest.mark.parametrize("size", [55, 56, 57, 120, 1_000_000])
def test_long_details_are_whole(tmp_path: Path, size: int) -> None:
    journal = JournalWriter(tmp_path, 0, 0, 1)
    detail = '{"x":"' + "\xff" * (size // 2) + '"}'  # its bytes look like definitions
    journal.add("config", version=1, detail=detail)
    journal.add("shard_up")
    journal.close()
    events = list(reader.events(tmp_path))
    assert [event["kind"] for event in events] == ["config", "shard_up"]
    assert events[0]["detail"] == detail


def test_a_shard_begins_and_ends_with_events_that_say_so(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, 1, 2, 7)
    journal.start(4, 2)
    assert [event["kind"] for event in reader.events(tmp_path)] == ["shard_up"]  # before anything else happens
    journal.admitted(1, "10.0.0.1", 1, "L", 1)
    journal.end()
    events = list(reader.events(tmp_path))
    assert json.loads(events[0]["detail"]) == {"broker": 1, "shard": 2, "epoch": 7, "shards": 4, "brokers": 2}
    assert [(event["kind"], event["seq"]) for event in events] == [("shard_up", 0), ("admitted", 1), ("ended", 2)]


def test_names_are_cut_to_a_bound(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, 0, 0, 1)
    journal.add("throttled", client_id="é" * 40_000)
    journal.close()
    assert next(reader.events(tmp_path))["client_id"] == "é" * (buffer.MAX_TEXT_BYTES // 2)


def test_a_full_disk_drops_events_counts_them_and_shows_the_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = JournalWriter(tmp_path, 0, 0, 1)
    real_write = os.write

    def full(descriptor: int, data: bytes) -> int:
        """Half of it gets onto the disk, then there is no space."""
        if len(data) == spool.ROW:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real_write(descriptor, bytes(data)[: len(data) // 2])

    journal.admitted(1, "10.0.0.1", 1, "L", 1)
    journal.flush(0)
    monkeypatch.setattr(os, "write", full)
    for number in range(2, 5):
        journal.admitted(number, "10.0.0.2", 1, "L", 1)
        journal.flush(number * live_segment.RETRY_NS)
    assert journal.dropped == 3
    assert "No space left" in journal.fault
    monkeypatch.setattr(os, "write", real_write)
    journal.admitted(5, "10.0.0.1", 1, "L", 1)
    journal.flush(10 * live_segment.RETRY_NS)
    journal.close()
    assert [(event["seq"], event["conn"]) for event in reader.events(tmp_path)] == [(0, 1), (4, 5)]


def test_too_much_spool_drops_events_until_it_is_converted(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, 0, 0, 1, spool_bytes=100)
    journal.admitted(1, "10.0.0.1", 1, "L", 1)
    journal.close()
    journal.admitted(2, "10.0.0.1", 1, "L", 1)
    journal.close()
    assert journal.dropped == 1
    next(spool.spool_folder(tmp_path).iterdir()).unlink()
    journal.admitted(3, "10.0.0.1", 1, "L", 1)
    journal.flush(1 << 62)
    assert [event["seq"] for event in reader.events(tmp_path)] == [2]


def test_events_of_a_segment_that_was_removed_are_dropped_ones(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, 0, 0, 1)
    for number in range(7):
        journal.admitted(number, "10.0.0.1", 1, "L", 1)
    journal.flush(0)
    assert (journal.written, journal.dropped) == (7, 0)
    next(spool.spool_folder(tmp_path).iterdir()).unlink()
    journal.admitted(7, "10.0.0.1", 1, "L", 1)
    journal.flush(live_segment.ROLL_NS)
    assert (journal.written, journal.dropped) == (0, 8)


def test_a_killed_process_loses_no_flushed_event(tmp_path: Path) -> None:
    said, say = os.pipe()
    child = os.fork()
    if child == 0:
        journal = JournalWriter(tmp_path, 0, 0, 1)
        journal.admitted(1, "10.0.0.1", 1, "L", 1)
        journal.flush()
        journal.admitted(2, "10.0.0.1", 1, "L", 1)
        os.write(say, b"x")
        signal.pause()
    os.read(said, 1)
    assert spool.has_writer(tmp_path)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not spool.has_writer(tmp_path)
    assert spool.finish_abandoned(tmp_path) == 1
    assert [event["seq"] for event in reader.events(tmp_path)] == [0]


def test_an_unknown_kind_is_a_bug(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        JournalWriter(tmp_path, 0, 0, 1).add("imagined")


def test_credentials_never_get_into_a_journal(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, 0, 0, 1)
    changes = [
        ["setting", "/max.connections", "9"],
        ["static", "/ssl.keystore.password", "hunter2"],
        ["user", "alice", {"SCRAM-SHA-256": "hunter2"}],
    ]
    journal.config(1, changes, full=True)
    journal.close()
    detail = next(reader.events(tmp_path))["detail"]
    assert "hunter2" not in detail
    assert '["setting","/max.connections","9"]' in detail
