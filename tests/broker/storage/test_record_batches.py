"""Batches that the broker writes itself are those that a client would send, and are read again as they were."""

from __future__ import annotations

from batches import records_of
from hypothesis import given
from hypothesis import strategies as st

from broker.storage import validation
from broker.storage.log_config import LogConfig
from broker.storage.record_batches import Record, batch_of, end_of, records_in

NOW = 1_700_000_000_000
RECORDS = st.lists(
    st.builds(Record, st.binary(max_size=300), st.none() | st.binary(max_size=300), st.integers(NOW - 10**10, NOW)),
    min_size=1,
    max_size=20,
)


@given(RECORDS)
def test_a_batch_is_valid_and_holds_what_was_put_in(records: list[Record]) -> None:
    raw = batch_of(records)
    batch, _ = validation.validate(raw, LogConfig(compacted=True), NOW)
    assert (batch.record_count, batch.max_timestamp) == (len(records), max(each.timestamp for each in records))
    assert [(each.key, each.value) for each in records_of(raw)] == [(each.key, each.value or b"") for each in records]
    assert [*records_in(raw)] == [(each.key, each.value) for each in records]


@given(RECORDS, st.integers(1, 70))
def test_a_cut_batch_is_left_out(records: list[Record], cut: int) -> None:
    raw = batch_of(records)
    assert [*records_in(raw + raw[:-cut])] == [*records_in(raw)]
    assert end_of(raw + raw[:-cut], 0) == len(records)
    assert end_of(b"", 7) == 7
