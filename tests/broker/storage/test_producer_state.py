"""Sequence numbers of idempotent producers: duplicates, gaps, fencing, wrapping, and the bound on what is kept."""

import pytest
from batches import batch
from hypothesis import given
from hypothesis import strategies as st

from broker.storage import producer_state
from broker.storage.producer_state import ProducerStateManager
from broker.storage.records import Batch, Rejected, header_at
from broker.wire import codes


def sent(sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 9) -> Batch:
    return header_at(batch(*[b"v"] * count, producer_id=producer_id, epoch=epoch, sequence=sequence), 0)


def rejection(known: ProducerStateManager, tried: Batch) -> int:
    with pytest.raises(Rejected) as why:
        known.check(tried)
    return why.value.code


def test_a_batch_sent_again_gets_its_first_offset() -> None:
    known = ProducerStateManager()
    for index in range(producer_state.BATCHES_KEPT):
        known.record(sent(index * 10, 10), 100 + index * 10)
    for index in range(producer_state.BATCHES_KEPT):
        earlier = known.check(sent(index * 10, 10))
        assert earlier is not None
        assert earlier.base_offset == 100 + index * 10


def test_a_sixth_batch_back_is_out_of_order() -> None:
    known = ProducerStateManager()
    for index in range(producer_state.BATCHES_KEPT + 1):
        known.record(sent(index), index)
    assert rejection(known, sent(0)) == codes.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_is_out_of_order_and_the_next_is_not() -> None:
    known = ProducerStateManager()
    known.record(sent(0, 3), 0)
    assert rejection(known, sent(4)) == codes.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert known.check(sent(3)) is None


def test_the_same_start_with_another_length_is_no_duplicate() -> None:
    known = ProducerStateManager()
    known.record(sent(0, 3), 0)
    assert rejection(known, sent(0, 2)) == codes.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert ProducerStateManager().check(sent(77)) is None


def test_an_older_epoch_is_fenced_and_a_newer_begins_at_zero() -> None:
    known = ProducerStateManager()
    known.record(sent(0, epoch=3), 0)
    assert rejection(known, sent(1, epoch=2)) == codes.INVALID_PRODUCER_EPOCH
    assert rejection(known, sent(1, epoch=4)) == codes.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert known.check(sent(0, epoch=4)) is None


def test_sequence_numbers_wrap() -> None:
    known = ProducerStateManager()
    known.record(sent(2**31 - 2, 2), 0)
    assert known.check(sent(0)) is None
    assert rejection(known, sent(1)) == codes.OUT_OF_ORDER_SEQUENCE_NUMBER
    known.record(sent(0, 2), 2)
    earlier = known.check(sent(2**31 - 2, 2))
    assert earlier is not None
    assert earlier.base_offset == 0


def test_the_producer_idle_longest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_state, "MAX_PRODUCERS", 2)
    known = ProducerStateManager()
    for producer_id in (1, 2, 1, 3):
        known.record(sent(0, producer_id=producer_id), 0)
    assert len(known) == 2
    assert known.check(sent(0, producer_id=1)) is not None
    assert known.check(sent(5, producer_id=2)) is None


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=20))
def test_a_snapshot_says_the_same(appended: list[tuple[int, int]]) -> None:
    known, offset, following = ProducerStateManager(), 0, dict.fromkeys(range(4), 0)
    for producer_id, count in appended:
        known.record(sent(following[producer_id], count, producer_id=producer_id), offset)
        following[producer_id] += count
        offset += count
    assert ProducerStateManager.load(known.dump()).dump() == known.dump()
