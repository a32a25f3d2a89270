"""Which batches of transactions a cleaning removes, and when it may remove their markers."""

from batches import batch

from broker.storage.cleaned_transactions import CleanedTransactions
from broker.storage.control_records import EndTransactionMarker, end_marker
from broker.storage.records import TRANSACTIONAL, Batch, header_at
from broker.storage.transaction_index import AbortedTxn


def records(producer: int, offset: int) -> Batch:
    raw = batch(b"v", producer_id=producer, epoch=0, sequence=0, attributes=TRANSACTIONAL)
    return header_at(raw, 0)._replace(base_offset=offset)


def marker(producer: int, offset: int) -> Batch:
    return header_at(end_marker(producer, 0, EndTransactionMarker(True, 0), 0), 0)._replace(base_offset=offset)


def test_batches_of_an_aborted_transaction_are_removed_up_to_its_marker() -> None:
    seen = CleanedTransactions([AbortedTxn(1, 2, 6, 7)])
    assert [seen.on_batch(records(1, 0)), seen.on_marker(marker(1, 1))] == [False, False]
    assert [seen.on_batch(records(1, 2)), seen.on_batch(records(2, 3)), seen.on_batch(records(1, 4))] == [
        True,
        False,
        True,
    ]
    assert not seen.on_marker(marker(1, 6)), "batches of it were there"
    assert not seen.on_batch(records(1, 7)), "another transaction"


def test_a_marker_whose_transaction_has_no_batch_left_may_be_removed() -> None:
    seen = CleanedTransactions([AbortedTxn(1, 0, 5, 6)])
    assert seen.on_marker(marker(2, 3))
    assert seen.on_marker(marker(1, 5))
    assert not seen.on_batch(records(2, 6))
    assert not seen.on_marker(marker(2, 7))
    assert seen.on_marker(marker(2, 8))


def test_what_is_not_transactional_is_of_no_transaction() -> None:
    seen = CleanedTransactions([AbortedTxn(1, 0, 5, 6)])
    assert not seen.on_batch(header_at(batch(b"v", producer_id=1, epoch=0, sequence=0), 0))
