"""What is left of a log that was cleaned: of each key the last record, where and as it was; and all that producers need."""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from batches import batch
from cleaned import Read, batches_of, clean, finish, read_all, records_in
from committed import committed
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.storage.cleaning import Cleaning, CleaningAborted
from broker.storage.control_records import EndTransactionMarker
from broker.storage.files import OpenFiles
from broker.storage.log_config import LogConfig
from broker.storage.log_ends import LogEnds
from broker.storage.log_to_clean import CHECKPOINT, load_checkpoint, log_to_clean
from broker.storage.records import CONTROL, DELETE_HORIZON, TRANSACTIONAL, Rejected, header_at
from broker.storage.shared_log import SharedLog
from broker.wire import codes

NOW = 1_700_000_000_000
HOUR = 3_600_000
TOPIC = UUID(int=1)
LIMITS = LogConfig(
    segment_bytes=1000, retention_bytes=-1, compacted=True, min_cleanable_ratio=0, delete_retention_ms=HOUR
)


class Logs:
    """Views of one log. `sent`: what was appended, by offset."""

    def __init__(self, directory: Path, limits: LogConfig = LIMITS) -> None:
        self.ends = LogEnds(16)
        self.directory = directory / "t-0"
        self.limits = limits
        self.sent: list[Read] = []
        self.log = self.opened(0)

    def opened(self, shard: int) -> SharedLog:
        end = self.ends.end_of(0, "t", 0)
        return SharedLog(str(self.directory), TOPIC, OpenFiles(), end, shard=shard, limits=self.limits)

    def append(self, *pairs: tuple[bytes, bytes | None], time: int = NOW, attributes: int = 0) -> None:
        keys: list[bytes | None] = [key for key, _ in pairs]
        timestamps = [time + index for index, _ in enumerate(pairs)]
        raw = batch(*(value for _, value in pairs), keys=keys, timestamps=timestamps, attributes=attributes)  # type: ignore[arg-type]
        base = self.log.append(raw, NOW).base_offset
        for index, (key, value) in enumerate(pairs):
            self.sent.append(Read(base + index, time + index, key, value))

    def roll(self) -> None:
        """All that was appended is in closed segments."""
        with self.log:
            if self.log._segments[-1].size:
                self.log._roll()

    def latest(self) -> list[Read]:
        """Of each key the last record."""
        last = {record.key: record.offset for record in self.sent}
        return [record for record in self.sent if last[record.key] == record.offset]


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Logs]:
    logs = Logs(tmp_path)
    yield logs
    logs.log.close()


def test_of_each_key_the_last_record_is_left_where_and_as_it_was(logs: Logs) -> None:
    choose = random.Random(1)
    for turn in range(200):
        logs.append(*((b"%d" % choose.randrange(9), b"%d" % turn) for _ in range(3)))
    logs.roll()
    size, end = logs.log.size_bytes, logs.log.next_offset
    assert clean(logs.log, NOW)
    assert read_all(logs.log) == logs.latest()
    assert (logs.log.start_offset, logs.log.next_offset) == (0, end)
    assert logs.log.size_bytes < size / 5
    logs.log.check()
    assert not clean(logs.log, NOW), "nothing is dirty"
    logs.append((b"another", b"1"))
    logs.roll()
    assert clean(logs.log, NOW)
    assert len(logs.log._segments) < 5, "small segments become one"
    assert read_all(logs.log) == logs.latest()


@pytest.mark.parametrize("codec", range(5))
def test_batches_stay_of_their_codec(logs: Logs, codec: int) -> None:
    for turn in range(40):
        logs.append((b"a", b"x" * 50), (b"%d" % turn, b"y" * 50), (b"b", b"z"), attributes=codec)
    logs.roll()
    clean(logs.log, NOW)
    assert read_all(logs.log) == logs.latest()
    assert {head.attributes for head, _ in batches_of(logs.log) if head.record_count} == {codec}


def test_the_active_segment_and_what_is_young_or_undecided_stays(logs: Logs) -> None:
    for turn in range(50):
        logs.append((b"a", b"%d" % turn * 20), time=NOW + turn * 1000)
    active = logs.log._segments[-1].base_offset
    logs.log.limits = LIMITS._replace(min_compaction_lag_ms=10_000)
    now = NOW + 30_000
    clean(logs.log, now)
    left = read_all(logs.log)
    young = [record for record in logs.sent if record.timestamp > NOW + 20_000]
    assert left[-len(young) :] == young and len(left) < 50
    raw = batch(b"open", keys=[b"a"], producer_id=7, epoch=0, sequence=0, attributes=TRANSACTIONAL)
    first_open = logs.log.append(raw, NOW, -1).base_offset
    for turn in range(50):
        logs.append((b"a", b"%d" % turn * 20), time=NOW)
    logs.log.limits = LIMITS
    assert clean(logs.log, now)
    assert {record.offset for record in read_all(logs.log)} >= set(range(first_open, logs.log.next_offset))
    assert logs.log.closed_segments[-1].base_offset > active


def test_a_tombstone_stays_for_its_retention_and_then_goes_with_its_key(logs: Logs) -> None:
    for turn in range(20):
        logs.append((b"a", b"%d" % turn * 20), (b"kept", b"k"))
    logs.append((b"a", None), (b"kept", b"last"), time=NOW - 5)
    logs.roll()
    clean(logs.log, NOW)
    assert read_all(logs.log) == logs.sent[-2:]
    assert [head.base_timestamp for head, _ in batches_of(logs.log) if head.attributes & DELETE_HORIZON] == [NOW + HOUR]
    for later, left in ((NOW + HOUR - 1, 3), (NOW + HOUR, 2)):
        logs.append((b"%d" % later, b"new"))
        logs.roll()
        clean(logs.log, later)
        assert (b"a" in [record.key for record in read_all(logs.log)]) == (later < NOW + HOUR)
        assert len(read_all(logs.log)) == left + (later == NOW + HOUR)
    logs.log.check()


def test_no_producer_is_forgotten(logs: Logs) -> None:
    for sequence in range(40):
        raw = batch(b"%d" % sequence * 9, keys=[b"a"], producer_id=7, epoch=3, sequence=sequence)
        logs.log.append(raw, NOW)
    for turn in range(40):
        logs.append((b"a", b"%d" % turn * 20))
    logs.roll()
    clean(logs.log, NOW)
    assert batches_of(logs.log, 1)[0][0].record_count, "a client gets no answer without a record while there is another"
    heads = [found.batch for segment in logs.log._segments for found in segment.batches()]
    last = [head for head in heads if head.producer_id == 7]
    assert [(head.base_offset, head.base_sequence, head.record_count) for head in last] == [(39, 39, 0)]
    for path in logs.directory.glob("*.producers"):
        path.unlink()  # its last batch is all that tells of it
    with logs.log:
        logs.log._words[1] += 1
    assert logs.log.append(batch(b"b", keys=[b"a"], producer_id=7, epoch=3, sequence=40), NOW).base_offset == 80
    with pytest.raises(Rejected) as refused:
        logs.log.append(batch(b"b", keys=[b"a"], producer_id=7, epoch=3, sequence=50), NOW)
    assert refused.value.code == codes.OUT_OF_ORDER_SEQUENCE_NUMBER


def transact(logs: Logs, producer: int, sequence: int, commit: bool, key: bytes, value: bytes) -> None:
    begun = logs.log.producers._markers.get(producer)
    raw = batch(value, keys=[key], producer_id=producer, epoch=0, sequence=sequence, attributes=TRANSACTIONAL)
    logs.log.append(raw, NOW, -1 if begun is None else begun.offset)
    logs.log.end_transaction(producer, 0, EndTransactionMarker(commit, 0), NOW)


def test_aborted_records_go_and_markers_go_behind_their_records(logs: Logs) -> None:
    transact(logs, 7, 0, True, b"a", b"old")
    transact(logs, 7, 1, False, b"a", b"aborted")
    transact(logs, 8, 0, True, b"b", b"kept")
    transact(logs, 7, 2, True, b"other", b"last")
    for turn in range(30):
        logs.append((b"c", b"%d" % turn * 20))
    logs.roll()
    now = NOW
    for _ in range(3):
        clean(logs.log, now)
        assert committed(logs.log)[:3] == [b"old", b"kept", b"last"]
        assert committed(logs.opened(1)) == committed(logs.log)
        logs.append((b"c", b"%d" % now * 20))
        logs.roll()
        now += HOUR
    markers = [head.producer_id for head, _ in batches_of(logs.log) if head.attributes & CONTROL]
    assert markers == [7, 8, 7], "of the commits, whose records are there"
    assert not len(logs.log.aborted) and not list(logs.directory.glob("*.txnindex"))
    transact(logs, 7, 3, True, b"a", b"newer")
    assert committed(logs.log)[-1] == b"newer" == committed(logs.opened(2))[-1]


def test_a_marker_that_waits_for_its_horizon_keeps_its_time(logs: Logs) -> None:
    logs.append((b"a", b"old"), time=NOW - 10)
    transact(logs, 7, 0, False, b"a", b"aborted")
    logs.append((b"b", b"last"), time=NOW + 5)
    transact(logs, 7, 1, True, b"c", b"later")
    logs.roll()
    clean(logs.log, NOW)
    logs.append((b"b", b"dirty"), time=NOW + 9)
    logs.roll()
    clean(logs.log, NOW)
    marker = next(head for head, _ in batches_of(logs.log) if head.attributes & CONTROL)
    assert marker.attributes & DELETE_HORIZON and marker.base_timestamp == NOW + HOUR
    assert logs.log.offset_since(NOW - 5) == (marker.base_offset, NOW)


def test_keys_that_do_not_fit_are_for_another_time(logs: Logs) -> None:
    for turn in range(300):
        logs.append((b"%d" % (turn % 100), b"%d" % turn * 9))
    logs.roll()
    rounds = 0
    while clean(logs.log, NOW, most_keys=20):
        rounds += 1
        left = {record.key: record.value for record in read_all(logs.log)}
        assert left == {record.key: record.value for record in logs.sent}
    assert rounds > 3
    assert len(read_all(logs.log)) < 150


def test_lookups_by_time_and_offset_over_what_is_gone(logs: Logs) -> None:
    for turn in range(60):
        logs.append((b"a", b"%d" % turn * 9), (b"%d" % turn, b"k"), time=NOW + turn * 10)
    logs.roll()
    clean(logs.log, NOW)
    left = logs.latest()
    assert read_all(logs.log) == left
    for at in range(0, 600, 7):
        expected = next(((record.offset, record.timestamp) for record in left if record.timestamp >= NOW + at), None)
        assert logs.log.offset_since(NOW + at) == expected
    assert logs.log.offset_of_max_timestamp() == (119, NOW + 591)
    for offset in range(120):
        data = logs.log.read(offset, 1, True)
        found = [record for record in records_in(header_at(data, 0), data) if record.offset >= offset]
        assert found[0] == next(record for record in left if record.offset >= offset)


def test_a_log_of_which_nothing_is_left_can_be_read_to_its_end(logs: Logs) -> None:
    logs.append((b"a", b"1"))
    logs.append((b"a", None))
    logs.roll()
    clean(logs.log, NOW)
    logs.append((b"b", b"1"), (b"b", None))
    logs.roll()
    clean(logs.log, NOW)
    with logs.log:
        logs.log._roll() if logs.log._segments[-1].size else None
    clean(logs.log, NOW + HOUR)
    (logs.directory / CHECKPOINT).unlink()
    clean(logs.log, NOW + HOUR)
    assert read_all(logs.log) == []
    assert batches_of(logs.log)[-1][0].last_offset == 3, "who waits for the end gets there"


def test_what_can_not_be_read_is_kept_as_it_is(logs: Logs) -> None:
    for turn in range(30):
        logs.append((b"a", b"%02d" % turn * 9))
    logs.roll()
    path = Path(logs.log._segments[0].path)
    raw = bytearray(path.read_bytes())
    raw[80] ^= 1
    path.write_bytes(raw)
    clean(logs.log, NOW)
    first = logs.log.read(0, 1, True)
    assert first == raw[: len(first)]
    left = logs.log.read(1, 1 << 20, True)
    assert b"29" * 9 in left and b"28" * 9 not in left


def test_records_that_were_deleted_meanwhile_end_a_cleaning(logs: Logs) -> None:
    for turn in range(60):
        logs.append((b"a", b"%d" % turn * 20))
    found = log_to_clean(logs.log, -1, NOW)
    assert found is not None
    steps = Cleaning(logs.log, found, most_keys=1000, now_ms=NOW).steps()
    next(steps)
    logs.opened(1).delete_before(30)
    with pytest.raises((CleaningAborted, OSError)):
        finish(steps)
    assert clean(logs.log, NOW)
    assert [record.offset for record in read_all(logs.log)][-1] == 59
    assert logs.log.start_offset == 30
    logs.log.check()


def test_a_checkpoint_of_another_topic_or_a_damaged_one_counts_as_none(logs: Logs) -> None:
    logs.append((b"a", b"1"))
    logs.roll()
    clean(logs.log, NOW)
    assert load_checkpoint(str(logs.directory), TOPIC) == 1
    assert load_checkpoint(str(logs.directory), UUID(int=2)) == -1
    (logs.directory / CHECKPOINT).write_bytes(b"123456")
    assert load_checkpoint(str(logs.directory), TOPIC) == -1


def test_other_views_take_the_new_segments_and_read_nothing_else(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    other = logs.opened(1)
    for turn in range(90):
        logs.append((b"%d" % (turn % 7), b"%d" % turn * 9))
    other.refresh()
    last, producers = other._segments[-1], other.producers
    logs.append((b"a", b"behind"))
    monkeypatch.setattr(SharedLog, "_load", None)
    assert clean(logs.log, NOW)
    assert read_all(other) == read_all(logs.log)
    assert other._segments[-1] is last and other.producers is producers
    assert [segment.name for segment in other._segments] == [segment.name for segment in logs.log._segments]


def test_a_log_opened_again_is_the_same(logs: Logs) -> None:
    for turn in range(90):
        logs.append((b"%d" % (turn % 7), b"%d" % turn * 9), (b"%d" % (turn % 11), None if turn % 3 else b"x"))
    clean(logs.log, NOW)
    before = read_all(logs.log)
    for path in logs.directory.glob("*.index"):
        os.unlink(path)
    with logs.log:
        logs.log._words[1] += 1
    again = logs.opened(1)
    assert read_all(again) == before
    again.check()
    assert read_all(logs.log, 1) == before


PAIRS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from([b"v", b"w" * 30, None])), min_size=1, max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), PAIRS, st.sampled_from([0, 0, 1, 2, 3, 4])),
        st.tuples(st.just("clean"), st.integers(0, 2 * HOUR), st.sampled_from([2, 1000])),
        st.just(("roll",)),
        st.just(("open",)),
        st.tuples(st.just("delete"), st.floats(0, 1)),
    ),
    max_size=40,
)


@settings(max_examples=120, deadline=None)
@given(steps=STEPS)
def test_the_last_value_of_each_key_and_every_order_stay(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple]
) -> None:  # type: ignore[type-arg]
    logs = Logs(tmp_path_factory.mktemp("any"), LIMITS._replace(segment_bytes=400))
    now, time = NOW, NOW
    for step, *given_ in steps:
        if step == "append":
            pairs, codec = given_
            time += 10
            logs.append(*((b"%d" % key, value) for key, value in pairs), time=time, attributes=codec)
        elif step == "clean":
            now += given_[0]
            clean(logs.log, now, most_keys=given_[1])
        elif step == "roll" and logs.log._segments:
            logs.roll()
        elif step == "open":
            logs.log.close()
            logs.log = logs.opened(0)
        elif step == "delete":
            logs.log.delete_before(int(given_[0] * logs.log.next_offset))
        holds(logs)
    logs.log.close()


def holds(logs: Logs) -> None:
    """last_record_of_each_key_stays, and what a reader of any view finds."""
    start = logs.log.start_offset
    left = read_all(logs.log)
    sent = {record.offset: record for record in logs.sent}
    assert all(sent[record.offset] == record for record in left), "offset, key, value and timestamp"
    assert [record.offset for record in left] == sorted({record.offset for record in left})
    assert logs.log.next_offset == len(logs.sent)
    present = {record.offset for record in left}
    for record in logs.latest():
        assert record.offset in present or record.value is None or record.offset < start
    gone = {record.key for record in logs.latest() if record.value is None and record.offset not in present}
    assert not gone & {record.key for record in left if record.offset >= start} or start
    logs.log.check()


def test_a_tombstone_behind_what_is_known_stays_though_its_horizon_is_over(logs: Logs) -> None:
    """Older values of its key may still be there: they come back if it goes first."""
    logs.append((b"a", b"old" * 20), (b"b", b"1"))
    logs.append((b"a", None), (b"b", b"2"))
    logs.roll()
    found = log_to_clean(logs.log, -1, NOW)
    assert found is not None
    finish(Cleaning(logs.log, found, most_keys=1, now_ms=NOW).steps())
    assert clean(logs.log, NOW + 2 * HOUR, most_keys=1)
    left = {record.key: record.value for record in read_all(logs.log)}
    assert left.get(b"a") is None and left[b"b"] == b"2"


def test_a_transaction_that_was_aborted_long_ago_says_nothing_of_a_later_one(logs: Logs) -> None:
    transact(logs, 7, 0, False, b"a", b"aborted")
    logs.roll()
    clean(logs.log, NOW)
    logs.append((b"a", b"old"))
    transact(logs, 7, 1, True, b"a", b"new")
    logs.roll()
    clean(logs.log, NOW)
    assert committed(logs.log) == [b"new"]


def test_damage_to_a_cleaned_segment_costs_the_batch_it_is_in(tmp_path_factory: pytest.TempPathFactory) -> None:
    """And no record comes back that was removed."""
    logs = Logs(tmp_path_factory.mktemp("made"), LIMITS._replace(segment_bytes=4000))
    for turn in range(60):
        logs.append((b"%d" % (turn % 9), b"%d" % turn * 9), (b"a", b"%d" % turn))
    logs.roll()
    clean(logs.log, NOW)
    left = {record.offset: record for record in read_all(logs.log)}
    path = next(logs.directory.glob("*-*.log"))
    raw = path.read_bytes()
    logs.log.close()
    for at in range(0, len(raw), 11):
        directory = tmp_path_factory.mktemp("damaged")
        shutil.copytree(logs.directory, directory / "t-0")
        damaged = directory / "t-0" / path.name
        damaged.write_bytes(raw[:at] + bytes([raw[at] ^ 0xFF]) + raw[at + 1 :])
        damaged.with_suffix(".index").unlink()
        found = [readable_of(directory) for _ in range(2)]
        assert found[0] == found[1], "damage is met once"
        assert found[0].items() <= left.items()
        assert len(left) - len(found[0]) <= 2
        shutil.rmtree(directory)


def readable_of(directory: Path) -> dict[int, Read]:
    again = Logs(directory, LIMITS._replace(segment_bytes=4000))
    again.log.check()
    found = {record.offset: record for record in read_all(again.log)}
    again.log.close()
    return found
