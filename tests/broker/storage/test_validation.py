"""What makes a batch acceptable, and each way it may not be."""

import struct

import pytest
from batches import batch, record, records_of
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from kio.records.readers import read_batch

from broker.storage import records, validation
from broker.storage.log_config import LogConfig
from broker.storage.records import Batch, Rejected
from broker.wire import codes

NOW = 1_700_000_000_000
I64 = 1 << 63


def validated(raw: bytes | None, **config: object) -> tuple[Batch, bytes]:
    return validation.validate(raw, LogConfig()._replace(**config), NOW)


def rejection(raw: bytes | None, **config: object) -> int:
    with pytest.raises(Rejected) as why:
        validated(raw, **config)
    return why.value.code


def resealed(raw: bytes) -> bytes:
    """With a checksum that matches the changed bytes."""
    return raw[:17] + struct.pack(">I", crc32c(raw[21:])) + raw[21:]


def with_header(raw: bytes, at: int, kind: str, value: int) -> bytes:
    changed = bytearray(raw)
    struct.pack_into(">" + kind, changed, at, value)
    return resealed(bytes(changed))


def test_the_tests_own_batches_are_what_kio_reads() -> None:
    raw = batch(b"one", b"two", keys=[b"k", None], timestamps=[1000, 3000], producer_id=7, epoch=1, sequence=4)
    theirs, size = read_batch(raw, 0)
    assert size == len(raw)
    assert [(each.key, each.value) for each in theirs.records] == [(b"k", b"one"), (None, b"two")]
    ours, stored = validated(raw)
    assert (ours.producer_id, ours.producer_epoch, ours.base_sequence, ours.record_count) == (7, 1, 4, 2)
    assert (ours.size, stored) == (len(raw), raw)


# --- the batch -------------------------------------------------------------------------------------------------


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


def test_too_large_a_batch_is_refused() -> None:
    assert rejection(batch(b"v" * 100), max_message_bytes=100) == codes.MESSAGE_TOO_LARGE


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
        validated(raw)


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        (records.CONTROL, codes.INVALID_RECORD),
        (records.TRANSACTIONAL, codes.INVALID_RECORD),
        (records.LOG_APPEND_TIME, codes.INVALID_TIMESTAMP),
        (5, codes.INVALID_RECORD),
    ],
)
def test_attributes_that_a_client_may_not_set(attributes: int, code: int) -> None:
    assert rejection(batch(b"a", attributes=attributes)) == code


def test_a_producer_id_needs_a_sequence_number() -> None:
    assert rejection(batch(b"a", producer_id=5, epoch=0, sequence=-1)) == codes.INVALID_RECORD


# --- its records -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, -1, 3, 1 << 30])
def test_record_counts_must_go_with_offsets_and_size(count: int) -> None:
    assert rejection(with_header(batch(b"a", b"b"), 57, "i", count)) == codes.INVALID_RECORD


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("count", [1, 3, 1_000_000, 2**31 - 1])
def test_a_batch_that_says_another_number_of_records_than_it_has(codec: int, count: int) -> None:
    """The 2**31 - 1 records of a few bytes of zstd would move the log's end by as much."""
    assert rejection(batch(b"a", b"b", attributes=codec, count=count)) == codes.INVALID_RECORD


@pytest.mark.parametrize("codec", range(5))
@given(garbage=st.binary(min_size=7, max_size=100))
def test_garbage_for_records_is_invalid(codec: int, garbage: bytes) -> None:
    assert rejection(batch(attributes=codec, payload=garbage)) == codes.INVALID_RECORD


@pytest.mark.parametrize("codec", range(1, 5))
def test_what_unpacks_to_too_much_is_invalid(codec: int) -> None:
    assert rejection(batch(b"\0" * (17 << 20), attributes=codec)) == codes.INVALID_RECORD


@pytest.mark.parametrize("codec", range(5))
def test_compressed_batches_are_stored_as_they_came(codec: int) -> None:
    raw = batch(b"a" * 100, b"b", keys=[b"k", None], attributes=codec)
    assert validated(raw)[1] == raw


def test_records_whose_lengths_do_not_add_up_are_invalid() -> None:
    assert rejection(batch(payload=record(0, b"k", b"v")[:-1] + b"\x7f\x7f")) == codes.INVALID_RECORD


def test_records_that_do_not_count_up_are_invalid() -> None:
    payload = record(0, None, b"a") + record(5, None, b"b")
    assert rejection(batch(payload=payload, count=2)) == codes.INVALID_RECORD


@pytest.mark.parametrize("codec", range(5))
def test_missing_keys_in_a_compacted_topic_are_named_one_by_one(codec: int) -> None:
    raw = batch(b"a", b"b", b"c", keys=[b"k", None, None], attributes=codec)
    with pytest.raises(Rejected) as why:
        validated(raw, compacted=True)
    assert (why.value.code, why.value.records) == (codes.INVALID_RECORD, (1, 2))
    assert validated(raw)


# --- timestamps ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timestamps", "config", "accepted"),
    [
        ([NOW, NOW + 3_600_000], {}, True),
        ([NOW, NOW + 3_600_001], {}, False),
        ([NOW - 1000, NOW], {"timestamp_before_max_ms": 1000}, True),
        ([NOW - 1001, NOW], {"timestamp_before_max_ms": 1000}, False),
        ([0, NOW], {}, True),
        ([-1, -1], {"timestamp_before_max_ms": 1000}, True),
        ([I64 - 1], {}, False),
        ([-I64], {}, False),
    ],
)
@pytest.mark.parametrize("codec", [0, 4])
def test_timestamps_out_of_bounds_are_refused(
    timestamps: list[int], config: dict[str, int], accepted: bool, codec: int
) -> None:
    raw = batch(*[b"v"] * len(timestamps), timestamps=timestamps, attributes=codec)
    if accepted:
        assert validated(raw, **config)[1] == raw
    else:
        assert rejection(raw, **config) == codes.INVALID_TIMESTAMP
    assert validated(raw, **config, log_append_time=True), "what the broker writes over does not matter"


def test_a_delta_that_overflows_is_no_timestamp() -> None:
    """ListOffsets could not answer with it."""
    for delta in (I64 - 1, -I64):
        raw = with_header(batch(payload=record(0, None, b"v", delta), count=1), 35, "q", NOW)
        assert rejection(raw) == codes.INVALID_TIMESTAMP


def test_a_header_that_says_a_far_future_is_refused() -> None:
    assert rejection(with_header(batch(b"v"), 35, "q", I64 - 1)) == codes.INVALID_TIMESTAMP


@pytest.mark.parametrize("said", [NOW - 5, NOW + 7, 0])
def test_the_largest_timestamp_in_the_header_is_put_right(said: int) -> None:
    raw = with_header(batch(b"a", b"b", timestamps=[NOW, NOW + 1]), 35, "q", said)
    header, stored = validated(raw)
    assert header.max_timestamp == NOW + 1
    assert stored == batch(b"a", b"b", timestamps=[NOW, NOW + 1])


def test_log_append_time_is_sealed_into_the_batch() -> None:
    header, stored = validated(batch(b"a", b"b", timestamps=[5, 9]), log_append_time=True)
    assert (header.max_timestamp, records.header_at(stored, 0)) == (NOW, header)
    assert header.attributes & records.LOG_APPEND_TIME
    assert [each.value for each in records_of(stored)] == [b"a", b"b"]
