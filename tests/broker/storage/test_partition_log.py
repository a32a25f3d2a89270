"""A log against a plain list: after appends, deletes, torn files, closing and opening again, the records are the same."""

import errno
import os
import shutil
import tempfile
from pathlib import Path
from uuid import UUID

import pytest
from batches import batch, records_of, values_of, without_cut
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker.runtime.set_aside import set_aside_in
from broker.storage import partition_log
from broker.storage.files import OpenFiles
from broker.storage.log_config import LogConfig
from broker.storage.log_segments import OutOfRange
from broker.storage.partition_log import PartitionLog
from broker.storage.records import PLACE, Rejected
from broker.wire import codes

TOPIC = UUID(int=7)
NOW = 1_700_000_000_000
SMALL = LogConfig(segment_bytes=400, retention_bytes=-1)


def opened(
    directory: Path | str, limits: LogConfig = SMALL, topic_id: UUID = TOPIC, files: OpenFiles | None = None
) -> PartitionLog:
    return PartitionLog(str(directory), topic_id, OpenFiles(max_open=2) if files is None else files, limits)


def placed(raw: bytes, offset: int) -> bytes:
    """The batch as the log writes it."""
    return PLACE.pack(offset, len(raw) - 12, 0) + raw[PLACE.size :]


def everything(log: PartitionLog) -> list[bytes]:
    values, offset = [], log.start_offset
    while data := log.read(offset, 1, at_least_one=True):
        found = records_of(data)
        values += [each.value for each in found if each.offset >= offset]
        offset = found[-1].offset + 1
    return values


class LogMachine(RuleBasedStateMachine):
    """The model: `values[i]` has offset i; `sent` are the batches of producer 5, by sequence number."""

    @initialize()
    def begin(self) -> None:
        self.directory = tempfile.mkdtemp()
        self.reopen()
        self.values: list[bytes] = []
        self.start = 0
        self.sent: list[tuple[int, int, int]] = []  # sequence, count, base offset

    def reopen(self) -> None:
        """As after kill -9, but for descriptors, of which a test has only so many."""
        if hasattr(self, "files"):
            self.files.close()
        self.files = OpenFiles(max_open=2)
        self.log = opened(self.directory, files=self.files)

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            self.files.close()
            shutil.rmtree(self.directory, ignore_errors=True)

    def fresh(self, count: int, size: int) -> list[bytes]:
        return [b"%d" % (len(self.values) + index) + b"." * size for index in range(count)]

    @rule(count=st.integers(1, 4), size=st.integers(0, 150))
    def append(self, count: int, size: int) -> None:
        values = self.fresh(count, size)
        assert self.log.append(batch(*values), NOW).base_offset == len(self.values)
        self.values += values

    @rule(count=st.integers(1, 3))
    def append_idempotently(self, count: int) -> None:
        sequence = sum(sent[1] for sent in self.sent)
        values = self.fresh(count, 20)
        raw = batch(*values, producer_id=5, epoch=0, sequence=sequence)
        assert self.log.append(raw, NOW).base_offset == len(self.values)
        self.sent.append((sequence, count, len(self.values)))
        self.values += values

    @precondition(lambda self: self.sent)
    @rule(back=st.integers(1, 5))
    def send_again(self, back: int) -> None:
        sequence, count, base_offset = self.sent[-min(back, len(self.sent))]
        values = self.values[base_offset : base_offset + count]
        raw = batch(*values, producer_id=5, epoch=0, sequence=sequence)
        assert self.log.append(raw, NOW).base_offset == base_offset

    @precondition(lambda self: self.sent)
    @rule(gap=st.integers(1, 9))
    def send_with_a_gap(self, gap: int) -> None:
        sequence = sum(sent[1] for sent in self.sent) + gap
        with pytest.raises(Rejected) as why:
            self.log.append(batch(b"never", producer_id=5, epoch=0, sequence=sequence), NOW)
        assert why.value.code == codes.OUT_OF_ORDER_SEQUENCE_NUMBER

    @rule(close=st.booleans())
    def open_again(self, close: bool) -> None:
        """Closed in good order, or as kill -9 leaves it."""
        if close:
            self.log.close()
        self.reopen()
        assert self.log.torn_bytes == 0

    @precondition(lambda self: self.log.next_offset > self.start)
    @rule(part=st.integers(1, 200), garbage=st.booleans())
    def tear(self, part: int, garbage: bool) -> None:
        """The process is killed in the middle of writing a batch that was never acknowledged; or a machine's end leaves
        anything else there, which is set aside."""
        raw = placed(batch(b"never", b"never" * 40), len(self.values))[:part]
        if garbage:
            raw = b"?" + os.urandom(part)
        last = sorted(Path(self.directory).glob("*.log"))[-1]
        with last.open("ab") as file:
            file.write(raw)
        before = len(set_aside_in(self.directory))
        self.reopen()
        assert self.log.torn_bytes == (0 if garbage else len(raw))
        assert len(set_aside_in(self.directory)) == before + garbage

    @precondition(lambda self: self.values)
    @rule(share=st.floats(0, 1))
    def delete_before(self, share: float) -> None:
        offset = int(len(self.values) * share)
        self.start = max(self.start, offset)
        assert self.log.delete_before(offset) == self.start

    @precondition(lambda self: self.values)
    @rule(share=st.floats(0, 1), max_bytes=st.integers(0, 600), at_least_one=st.booleans())
    def read(self, share: float, max_bytes: int, at_least_one: bool) -> None:
        offset = int(len(self.values) * share)
        if offset < self.start:
            with pytest.raises(OutOfRange):
                self.log.read(offset, max_bytes, at_least_one)
            return
        data = self.log.read(offset, max_bytes, at_least_one)
        found = records_of(without_cut(data))
        if offset == len(self.values):
            assert not found
        elif found:
            assert found[0].offset <= offset <= found[-1].offset
            assert [each.value for each in found] == self.values[found[0].offset : found[-1].offset + 1]
            assert len(data) <= max_bytes or (at_least_one and data == without_cut(data))
        else:
            assert not data
            assert not at_least_one

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "log"):
            self.log.check()
            assert (self.log.start_offset, self.log.next_offset) == (self.start, len(self.values))
            assert everything(self.log) == self.values[self.start :]


TestLog = LogMachine.TestCase


def test_a_lost_sidecar_or_snapshot_is_made_up_for_by_scanning(tmp_path: Path) -> None:
    log = opened(tmp_path)
    values = [b"%d" % index * 40 for index in range(20)]
    for sequence, value in enumerate(values):
        log.append(batch(value, producer_id=5, epoch=0, sequence=sequence), NOW)
    assert len(list(tmp_path.glob("*.log"))) > 3
    for file in [*tmp_path.glob("*.index"), *tmp_path.glob("*.producers")]:
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    log = opened(tmp_path)
    log.check()
    assert everything(log) == values
    assert log.append(batch(values[-1], producer_id=5, epoch=0, sequence=19), NOW).base_offset == 19


def test_a_topic_created_again_starts_with_nothing(tmp_path: Path) -> None:
    opened(tmp_path).append(batch(b"old"), NOW)
    log = opened(tmp_path, topic_id=UUID(int=8))
    assert (log.start_offset, log.next_offset) == (0, 0)
    assert log.append(batch(b"new"), NOW).base_offset == 0
    assert everything(opened(tmp_path, topic_id=UUID(int=8))) == [b"new"]


@pytest.mark.parametrize("content", [b"", None])
def test_an_unreadable_or_lost_meta_file_costs_no_records(tmp_path: Path, content: bytes | None) -> None:
    opened(tmp_path).append(batch(b"kept"), NOW)
    (tmp_path / "partition.meta").unlink()
    if content is not None:
        (tmp_path / "partition.meta").write_bytes(content)
    assert everything(opened(tmp_path)) == [b"kept"]
    assert len(set_aside_in(tmp_path)) == (content is not None)
    assert everything(opened(tmp_path, topic_id=UUID(int=8))) == [], "it was written again"


def test_a_full_disk_is_a_storage_error_and_leaves_nothing_torn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened(tmp_path)
    log.append(batch(b"before"), NOW)
    written = os.pwritev

    def half(descriptor: int, buffers: tuple[memoryview, ...], position: int) -> int:
        return written(descriptor, [buffers[0], buffers[1][:10]], position)

    def full(descriptor: int, data: bytes, position: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(partition_log.os, "pwritev", half)
        patch.setattr(partition_log.os, "pwrite", full)
        with pytest.raises(Rejected, match="No space left") as why:
            log.append(batch(b"too much"), NOW)
    assert why.value.code == codes.KAFKA_STORAGE_ERROR
    log.check()
    assert log.append(batch(b"after"), NOW).base_offset == 1
    assert everything(opened(tmp_path)) == [b"before", b"after"]


def test_a_short_write_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = os.pwritev
    monkeypatch.setattr(
        partition_log.os, "pwritev", lambda fd, buffers, position: written(fd, [buffers[0], buffers[1][:10]], position)
    )
    log = opened(tmp_path)
    log.append(batch(b"in two parts"), NOW)
    assert everything(log) == [b"in two parts"]


def test_too_large_a_batch_is_refused(tmp_path: Path) -> None:
    log = opened(tmp_path, SMALL._replace(max_message_bytes=100))
    with pytest.raises(Rejected) as why:
        log.append(batch(b"v" * 100), NOW)
    assert why.value.code == codes.MESSAGE_TOO_LARGE


def test_retention_by_bytes_drops_the_oldest_segments(tmp_path: Path) -> None:
    log = opened(tmp_path, LogConfig(segment_bytes=1 << 20, retention_bytes=40_000))
    for _ in range(200):
        log.append(batch(b"v" * 1000), NOW)
    log.check()
    assert 40_000 <= log.size_bytes <= 40_000 + 2 * 5_000  # a segment not wholly too much, and the one that grows
    assert log.next_offset == 200
    assert opened(tmp_path).start_offset == log.start_offset > 150


def test_retention_by_time_drops_what_is_too_old_even_the_last_segment(tmp_path: Path) -> None:
    log = opened(tmp_path, SMALL._replace(retention_ms=1000))
    for age_ms in (5000, 500):
        log.append(batch(b"v" * 400, timestamps=[NOW - age_ms]), NOW)
    log.retain(NOW)
    assert (log.start_offset, log.next_offset) == (1, 2)
    log.retain(NOW + 1000)
    assert (log.start_offset, log.next_offset, log.size_bytes) == (2, 2, 0)
    assert opened(tmp_path).next_offset == 2


def test_an_idempotent_producer_is_known_after_retention_dropped_its_records(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append(batch(b"mine", producer_id=5, epoch=0, sequence=0), NOW)
    log.delete_before(-1)
    log = opened(tmp_path)
    assert log.size_bytes == 0
    assert log.append(batch(b"mine", producer_id=5, epoch=0, sequence=0), NOW).base_offset == 0


def test_timestamp_finds_the_first_offset_since_it(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for start in range(0, 300, 10):
        log.append(batch(b"a" * 30, b"b", timestamps=[NOW + start, NOW + start + 5]), NOW)
    assert log.offset_since(NOW - 99) == (0, NOW)
    assert log.offset_since(NOW + 102) == (21, NOW + 105)
    assert log.offset_since(NOW + 295) == (59, NOW + 295)
    assert log.offset_since(NOW + 296) is None
    assert log.offset_of_max_timestamp() == (59, NOW + 295)
    log.delete_before(30)
    assert log.offset_since(NOW) == (30, NOW + 150)


@pytest.mark.parametrize("codec", range(5))
def test_a_compressed_batch_answers_for_its_records(tmp_path: Path, codec: int) -> None:
    log = opened(tmp_path)
    log.append(batch(b"a", b"b", timestamps=[NOW, NOW + 50], attributes=codec), NOW)
    assert log.offset_since(NOW - 5) == (0, NOW)
    assert log.offset_since(NOW + 20) == (1, NOW + 50)


def test_log_append_time_replaces_the_clients_timestamp(tmp_path: Path) -> None:
    log = opened(tmp_path, SMALL._replace(log_append_time=True))
    raw = batch(b"a", timestamps=[5], producer_id=1, epoch=0, sequence=0)
    assert log.append(raw, NOW).append_time_ms == NOW
    assert log.append(raw, NOW + 9).append_time_ms == NOW
    assert log.offset_since(NOW) == (0, NOW)


def test_compacted_topics_need_keys(tmp_path: Path) -> None:
    log = opened(tmp_path, SMALL._replace(compacted=True))
    log.append(batch(b"a", keys=[b"k"]), NOW)
    with pytest.raises(Rejected) as why:
        log.append(batch(b"a", b"b", keys=[b"k", None]), NOW)
    assert why.value.records == (1,)


def test_a_deletion_that_could_not_be_written_is_no_success_when_it_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened(tmp_path)
    log.append(batch(b"a", b"b"), NOW)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("broker.storage.partition_meta.replace_checked", full)
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                log.delete_before(1)
    assert log.start_offset == 0
    assert log.delete_before(1) == 1
    assert opened(tmp_path).start_offset == 1


def test_files_of_deleted_records_that_could_not_go_at_once_go_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened(tmp_path)
    for _ in range(9):
        log.append(batch(b"v" * 300), NOW)

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(partition_log.LogSegment, "delete", refuse)
        assert log.delete_before(8) == 8
    log.retain(NOW)
    log.check()
    assert len(list(tmp_path.glob("*.log"))) == 1
    assert everything(log) == [b"v" * 300]


def test_deleting_beyond_the_end_is_out_of_range(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append(batch(b"a"), NOW)
    for offset in (2, -2):
        with pytest.raises(OutOfRange):
            log.delete_before(offset)
    assert log.delete_before(-1) == 1


def test_a_waiter_is_notified_of_growth_and_of_the_end(tmp_path: Path) -> None:
    class Told:
        def __init__(self) -> None:
            self.what: list[object] = []

        def appended(self, size_bytes: int) -> None:
            self.what.append(size_bytes)

        def closed(self) -> None:
            self.what.append("gone")

    log, told = opened(tmp_path), Told()
    log.waiters.add(told)
    raw = batch(b"a")
    log.append(raw, NOW)
    log.close()
    assert told.what == [len(raw), "gone"]


def test_a_reader_at_the_end_goes_on_in_the_next_segment(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append(batch(b"a" * 300), NOW)
    assert values_of(log.read(0, 1 << 20, at_least_one=True)) == [b"a" * 300]
    log.append(batch(b"b" * 300), NOW)
    assert values_of(log.read(1, 1 << 20, at_least_one=True)) == [b"b" * 300]
