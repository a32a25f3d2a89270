"""The walk over records against records made here, and against the same records with a byte changed."""

import pytest
from batches import record, zigzag
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.storage import record_scan
from broker.storage.record_entries import entries
from broker.storage.record_scan import MalformedRecords, Summary

ALL = 1 << 31
DELTAS = st.one_of(st.just(0), st.integers(0, 70), st.integers(0, 10_000), st.integers(-(1 << 40), 1 << 40))
SHAPES = st.tuples(
    st.one_of(st.none(), st.just(b""), st.binary(max_size=80)), st.one_of(st.none(), st.binary(max_size=90))
)
RUNS = st.lists(st.tuples(SHAPES, DELTAS, st.integers(1, 90)), min_size=1, max_size=5)


def scanned(raw: bytes, count: int, most: int = ALL) -> Summary:
    """Of records behind others in bytes, and of the same in a memoryview, as unpacked ones are."""
    summary = record_scan.scan(b"front" + raw, 5, count, most)
    unpacked = record_scan.scan(memoryview(raw), 0, count, most)
    assert unpacked == summary
    return summary


def made(runs: list[tuple[tuple[bytes | None, bytes | None], int, int]]) -> tuple[bytes, list[int], list[bool]]:
    """Runs of records that are alike: the bytes, the timestamp deltas, which have a key."""
    raw, deltas, keyed = b"", [], []
    for (key, value), delta, count in runs:
        for _ in range(count):
            raw += record(len(deltas), key, value, delta + len(deltas) % 3)
            deltas.append(delta + len(deltas) % 3)
            keyed.append(key is not None)
    return raw, deltas, keyed


@settings(max_examples=200)
@given(runs=RUNS)
def test_sound_records_are_summed_up(runs: list[tuple[tuple[bytes | None, bytes | None], int, int]]) -> None:
    raw, deltas, keyed = made(runs)
    without_key = [index for index, has in enumerate(keyed) if not has]
    found = scanned(raw, len(deltas))
    assert (found.earliest, found.latest, found.exact) == (min(deltas), max(deltas), True)
    assert [index for each in found.without_key for index in each] == without_key
    assert [each.timestamp_delta for each in entries(b"front" + raw, 5, len(deltas))] == deltas


@pytest.mark.parametrize("count", [9, 64, 65, 80, 8192, 8200, 9000])
@pytest.mark.parametrize("step", [0, 1, 40])
def test_long_runs_of_records_that_are_alike(count: int, step: int) -> None:
    raw = b"".join(record(index, b"key", b"v" * 100, index * step) for index in range(count))
    assert scanned(raw, count) == Summary(0, (count - 1) * step, [], True)


class Reader:
    """A plain reader of records, as DefaultRecord.readFrom is; anything but sound records is a ValueError."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.at = 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.raw):
            raise ValueError("too short")
        self.at += size
        return self.raw[self.at - size : self.at]

    def number(self, bits: int = 32) -> int:
        value = 0
        for shift in range(0, bits, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 128:
                if value >= 1 << bits:
                    break
                return (value >> 1) ^ -(value & 1)
        raise ValueError("too long")

    def data(self, *, nullable: bool = True) -> None:
        size = self.number()
        if size >= 0 or not nullable:
            self.take(size)

    def record(self) -> int:
        """Its offset delta."""
        size = self.number()
        end = self.at + size
        self.take(1)
        self.number(64)
        offset = self.number()
        self.data()
        self.data()
        headers = self.number()
        if headers < 0:
            raise ValueError("negative")
        for _ in range(headers):
            self.data(nullable=False)
            self.data()
        if self.at != end:
            raise ValueError("another length")
        return offset


def reference(raw: bytes, count: int) -> bool:
    """Whether a plain reader finds exactly these records, with offsets from 0 on."""
    reader = Reader(raw)
    try:
        return [reader.record() for _ in range(count)] == [*range(count)] and reader.at == len(raw)
    except ValueError:
        return False


@settings(max_examples=1500)
@given(data=st.data())
def test_a_changed_byte_is_found_when_another_reader_stumbles_over_it(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(None, b"v" * 10), (b"k", b"v" * 100), (b"", None), (b"k" * 70, b"v")]))
    count = data.draw(st.sampled_from([1, 5, 12, 70]))
    raw = bytearray(b"".join(record(index, *shape, index) for index in range(count)))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    try:
        scanned(bytes(raw), count)
    except MalformedRecords:
        assert not reference(bytes(raw), count)
    else:
        assert reference(bytes(raw), count)


@settings(max_examples=300)
@given(raw=st.binary(max_size=300), count=st.integers(1, 40))
def test_garbage_is_refused(raw: bytes, count: int) -> None:
    try:
        scanned(raw, count)
    except MalformedRecords:
        return
    assert reference(raw, count)


def test_headers_are_scanned_and_malformed_ones_refused() -> None:
    sound = record(0, None, b"v", 0, ((b"a", b"1"), (b"b", None), (b"", b"")))
    assert scanned(sound, 1).exact
    for headers in (b"\x02" + b"\x01" + b"\x00", b"\x02\x7e", b"\xfe\xff\xff\xff\x0f", b"\x01"):
        body = b"\0\0\0\1\2v" + headers
        with pytest.raises(MalformedRecords):
            scanned(zigzag(len(body)) + body, 1)


@pytest.mark.parametrize("change", [-1, 1])
def test_another_number_of_records_than_was_said(change: int) -> None:
    raw = b"".join(record(index, None, b"v" * index) for index in range(20))
    with pytest.raises(MalformedRecords):
        scanned(raw, 20 + change)


def test_of_too_many_records_the_first_are_looked_at() -> None:
    raw = b"".join(record(index, None, b"v") for index in range(50))
    assert scanned(raw, 50, most=20) == Summary(0, 0, [range(20)], False)
    scanned(raw[:-3] + b"???", 50, most=20)
    with pytest.raises(MalformedRecords):
        scanned(b"???" + raw[3:], 50, most=20)
