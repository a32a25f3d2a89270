"""What makes a batch acceptable, and each way it may not be."""

import struct

import pytest
from batches import batch, record, records_of
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from kio.records.readers import read_batch

from broker.log import records
from broker.log.records import Rejected
from broker.protocol import codes


def resealed(raw: bytes) -> bytes:
    """With a checksum that matches whatever was changed."""
    return raw[:17] + struct.pack(">I", crc32c(raw[21:])) + raw[21:]


def rejection(raw: bytes | None) -> int:
    with pytest.raises(Rejected) as why:
        records.validate(raw)
    return why.value.code


def test_the_tests_own_batches_are_what_kio_reads() -> None:
    raw = batch(b"one", b"two", keys=[b"k", None], timestamps=[1000, 3000], producer_id=7, epoch=1, sequence=4)
    theirs, size = read_batch(raw, 0)
    assert size == len(raw)
    assert [(each.key, each.value) for each in theirs.records] == [(b"k", b"one"), (None, b"two")]
    ours = records.validate(raw)
    assert (ours.producer_id, ours.producer_epoch, ours.base_sequence, ours.record_count) == (7, 1, 4, 2)
    assert ours.size == len(raw)


@pytest.mark.parametrize("raw", [None, b""])
def test_no_batch_at_all_is_invalid(raw: bytes | None) -> None:
    assert rejection(raw) == codes.INVALID_RECORD


def test_two_batches_are_one_too_many() -> None:
    assert rejection(batch() + batch()) == codes.INVALID_RECORD


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats_have_their_own_error(magic: int) -> None:
    assert rejection(batch(magic=magic)) == codes.UNSUPPORTED_FOR_MESSAGE_FORMAT


def test_a_magic_from_the_future_is_invalid() -> None:
    assert rejection(batch(magic=3)) == codes.INVALID_RECORD


@given(data=st.data())
def test_any_flipped_bit_behind_the_checksum_is_noticed(data: st.DataObject) -> None:
    raw = bytearray(batch(b"a" * 50, b"b"))
    raw[data.draw(st.integers(21, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert rejection(bytes(raw)) == codes.CORRUPT_MESSAGE


@given(cut=st.integers(1, 150))
def test_a_torn_batch_is_corrupt(cut: int) -> None:
    raw = batch(b"a" * 100)
    assert rejection(raw[: max(len(raw) - cut, 17)]) == codes.CORRUPT_MESSAGE


@given(raw=st.binary(max_size=120))
def test_anything_else_is_rejected_too(raw: bytes) -> None:
    with pytest.raises(Rejected):
        records.validate(raw)


@pytest.mark.parametrize("count", [0, -1, 3, 1 << 30])
def test_record_counts_must_go_with_offsets_and_size(count: int) -> None:
    raw = bytearray(batch(b"a", b"b"))
    raw[57:61] = struct.pack(">i", count)
    assert rejection(resealed(bytes(raw))) == codes.INVALID_RECORD


def test_more_records_than_bytes_are_invalid() -> None:
    assert rejection(batch(b"a", count=1_000_000)) == codes.INVALID_RECORD


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        (records.CONTROL, codes.INVALID_RECORD),
        (records.TRANSACTIONAL, codes.INVALID_TXN_STATE),
        (5, codes.INVALID_RECORD),
    ],
)
def test_attributes_that_a_client_may_not_set(attributes: int, code: int) -> None:
    assert rejection(batch(b"a", attributes=attributes)) == code


def test_a_producer_id_needs_a_sequence_number() -> None:
    assert rejection(batch(b"a", producer_id=5, epoch=0, sequence=-1)) == codes.INVALID_RECORD


def test_missing_keys_are_named_one_by_one() -> None:
    raw = batch(b"a", b"b", b"c", keys=[b"k", None, None])
    with pytest.raises(Rejected) as why:
        records.require_keys(raw, records.header_at(raw, 0))
    assert (why.value.code, why.value.records) == (codes.INVALID_RECORD, (1, 2))


def test_records_whose_lengths_do_not_add_up_are_invalid() -> None:
    raw = batch(payload=record(0, b"k", b"v")[:-1] + b"\x7f\x7f")
    with pytest.raises(Rejected):
        list(records.outlines(raw, 0, records.header_at(raw, 0)))


def test_log_append_time_is_sealed_into_the_batch() -> None:
    raw = records.stamped(batch(b"a", b"b", timestamps=[5, 9]), 1234)
    header = records.validate(raw)
    assert header.max_timestamp == 1234
    assert header.attributes & records.LOG_APPEND_TIME
    assert [each.value for each in records_of(raw)] == [b"a", b"b"]
