"""Transactions in a partition's log: markers, the last stable offset, what read_committed gets, and all of it after a restart."""

import struct
from pathlib import Path
from uuid import UUID

import pytest
from batches import batch
from committed import committed
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.storage import control_records, records
from broker.storage.control_records import EndTransactionMarker
from broker.storage.files import OpenFiles
from broker.storage.log_config import LogConfig
from broker.storage.partition_log import PartitionLog
from broker.storage.producer_state import NOT_ASKED, UNVERIFIED
from broker.storage.records import Rejected, header_at
from broker.storage.transaction_index import AbortedTxn, TransactionIndex
from broker.wire import codes

TOPIC = UUID(int=7)
NOW_MS = 1_700_000_000_000


def open_log(path: Path, **limits: int) -> PartitionLog:
    return PartitionLog(str(path / "t-0"), TOPIC, OpenFiles(), LogConfig(**limits))


class Producer:
    """A transactional producer of one partition, whose coordinator agrees to everything."""

    def __init__(self, log: PartitionLog, producer_id: int, epoch: int = 0) -> None:
        self.log, self.id, self.epoch, self.sequence = log, producer_id, epoch, 0

    def batch(self, *values: bytes, transactional: bool = True) -> bytes:
        attributes = records.TRANSACTIONAL if transactional else 0
        return batch(*values, producer_id=self.id, epoch=self.epoch, sequence=self.sequence, attributes=attributes)

    def send(self, *values: bytes) -> int:
        sent = self.batch(*values)
        try:
            offset = self.log.append(sent, NOW_MS, NOT_ASKED).base_offset
        except Rejected as why:
            assert why.code == UNVERIFIED
            offset = self.log.append(sent, NOW_MS, why.records[0]).base_offset
        self.sequence += len(values)
        return offset

    def end(self, *, commit: bool, coordinator_epoch: int = 0) -> None:
        self.log.end_transaction(self.id, self.epoch, EndTransactionMarker(commit, coordinator_epoch), NOW_MS)


def code_of(log: PartitionLog, sent: bytes, verified_at: int | None = NOT_ASKED) -> int:
    with pytest.raises(Rejected) as why:
        log.append(sent, NOW_MS, verified_at)
    return why.value.code


def test_a_marker_is_a_control_batch_that_every_client_can_read() -> None:
    marker = control_records.end_marker(5, 3, EndTransactionMarker(commit=True, coordinator_epoch=9), NOW_MS)
    head = header_at(marker, 0)
    assert records.checksum_holds(marker, head)
    assert head.size == len(marker) == 78
    assert (head.producer_id, head.producer_epoch, head.base_sequence, head.record_count) == (5, 3, -1, 1)
    assert head.attributes == records.TRANSACTIONAL | records.CONTROL
    assert marker[61:] == bytes([32, 0, 0, 0, 8, 0, 0, 0, 1, 12, 0, 0]) + struct.pack(">i", 9) + b"\0"
    assert control_records.marker_of(marker) == EndTransactionMarker(True, 9)


def test_what_is_not_committed_yet_is_not_read_and_what_was_aborted_never(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    one, other = Producer(log, 1), Producer(log, 2)
    log.append(batch(b"plain"), NOW_MS)
    one.send(b"a", b"b")
    other.send(b"x")
    assert (log.last_stable_offset, committed(log)) == (1, [b"plain"])
    one.end(commit=True)
    assert log.last_stable_offset == 3  # the other's begins there
    assert committed(log) == [b"plain", b"a", b"b"]
    log.append(batch(b"later"), NOW_MS)
    other.end(commit=False)
    assert log.last_stable_offset == log.next_offset == 7
    assert committed(log) == [b"plain", b"a", b"b", b"later"]
    assert log.aborted.collect(0, 7) == [(2, 3)]
    log.check()


def test_a_batch_begins_a_transaction_only_if_the_coordinator_knows_of_it(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    one = Producer(log, 1)
    assert code_of(log, one.batch(b"a")) == UNVERIFIED
    assert code_of(log, one.batch(b"a"), 5) == UNVERIFIED
    one.send(b"a")
    one.send(b"b")  # no question while it goes on
    assert code_of(log, one.batch(b"c"), None) == UNVERIFIED  # but a request without a transactional id
    first, one.sequence = one.sequence, 0
    again = one.batch(b"a")
    assert log.append(again, NOW_MS, NOT_ASKED).base_offset == 0  # it is there already
    one.sequence = first
    one.end(commit=True)
    assert code_of(log, again) == UNVERIFIED
    late = one.batch(b"c")
    assert code_of(log, late, -1) == UNVERIFIED  # asked before the marker came: it would hang


def test_a_marker_of_the_second_version_ends_a_transaction_by_a_new_epoch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    one, last = Producer(log, 1, epoch=4), Producer(log, 2, epoch=32767)
    one.send(b"a")
    last.send(b"b")
    second = EndTransactionMarker(True, 0, transaction_version=2)
    with pytest.raises(Rejected) as why:
        log.end_transaction(1, 4, second, NOW_MS)
    assert why.value.code == codes.INVALID_PRODUCER_EPOCH
    log.end_transaction(1, 5, second, NOW_MS)
    log.end_transaction(1, 5, second, NOW_MS)  # the same again
    log.end_transaction(2, 32767, second, NOW_MS)  # there is no higher epoch
    assert log.last_stable_offset == log.next_offset


def test_wrong_batches_and_late_markers_are_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    one = Producer(log, 1, epoch=4)
    one.send(b"a")
    assert code_of(log, one.batch(b"b", transactional=False)) == codes.INVALID_TXN_STATE
    one.epoch = 3
    with pytest.raises(Rejected) as why:
        one.end(commit=True)
    assert why.value.code == codes.INVALID_PRODUCER_EPOCH
    one.epoch = 5
    one.end(commit=False, coordinator_epoch=2)
    with pytest.raises(Rejected) as why:
        one.end(commit=False, coordinator_epoch=1)
    assert why.value.code == codes.TRANSACTION_COORDINATOR_FENCED
    ended_at = log.next_offset - 1
    one.epoch, one.sequence = 4, 1
    assert code_of(log, one.batch(b"late"), ended_at) == codes.INVALID_PRODUCER_EPOCH
    one.epoch = 5
    assert code_of(log, one.batch(b"not from 0"), ended_at) == codes.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_producers_are_described(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    one = Producer(log, 1)
    one.send(b"a")
    one.end(commit=True, coordinator_epoch=6)
    one.send(b"b")
    Producer(log, 2).end(commit=True)
    assert [tuple(each) for each in log.producers.describe()] == [
        (1, 0, 1, NOW_MS, 6, 2),
        (2, 0, -1, NOW_MS, 0, -1),
    ]


STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["send", "send", "commit", "abort", "restart"])), max_size=40
)


@settings(max_examples=40)
@given(STEPS, st.booleans())
def test_a_restart_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]], damage: bool
) -> None:
    """Small segments, so that transactions span several; with `damage`, every `.txnindex` is damaged at each restart."""
    path = tmp_path_factory.mktemp("log")
    log = open_log(path, segment_bytes=300)
    producers = [Producer(log, number) for number in range(4)]
    pending: dict[int, list[bytes]] = {}
    good: dict[bytes, int] = {}
    for number, (who, step) in enumerate(steps):
        producer = producers[who]
        if step == "send":
            value = b"%d" % number
            pending.setdefault(who, []).append(value)
            good[value] = producer.send(value)
        elif step == "restart":
            before = (log.last_stable_offset, log.next_offset, log.producers.dump(), committed(log))
            if damage:
                for index in (path / "t-0").glob("*.txnindex"):
                    index.write_bytes(b"damaged" + index.read_bytes())
            log = open_log(path, segment_bytes=300)
            assert (log.last_stable_offset, log.next_offset, log.producers.dump(), committed(log)) == before
            for each in producers:
                each.log = log
        else:
            producer.end(commit=step == "commit")
            for value in pending.pop(who, []):
                if step == "abort":
                    del good[value]
    stable = [value for value, offset in good.items() if offset < log.last_stable_offset]
    open_values = {value for values in pending.values() for value in values}
    assert committed(log) == [value for value in stable if value not in open_values]
    log.check()


def test_deleted_records_take_their_aborted_transactions_with_them(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=300)
    one = Producer(log, 1)
    for _ in range(10):
        one.send(b"gone")
        one.end(commit=False)
    one.send(b"open")
    assert len(log.aborted) == 10
    log.delete_before(15)
    assert len(log.aborted) == 3
    log.delete_before(-1)
    assert (len(log.aborted), log.last_stable_offset) == (0, 21)
    kept = {path.stem for path in (tmp_path / "t-0").glob("*.log")}
    assert {path.stem for path in (tmp_path / "t-0").glob("*.txnindex")} <= kept


def test_the_index_names_what_may_be_within_a_range() -> None:
    index = TransactionIndex()
    index.append(AbortedTxn(1, 10, 20, 5))
    index.append(AbortedTxn(2, 5, 30, 31))
    index.append(AbortedTxn(3, 40, 50, 51))
    assert index.collect(0, 100) == [(1, 10), (2, 5), (3, 40)]
    assert index.collect(21, 45) == [(2, 5), (3, 40)]
    assert index.collect(0, 10) == [(2, 5)]
    assert index.collect(31, 40) == []
