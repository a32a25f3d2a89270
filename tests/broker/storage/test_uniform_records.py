"""What a plan lets pass, and that this is nothing which the walk over the records would refuse."""

import pytest
from batches import record
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.storage import record_scan
from broker.storage.record_scan import MalformedRecords
from broker.storage.uniform_records import MOST_PLANS, MOST_RECORDS, RecordLayout, UniformRecords

ALL = 1 << 31
SHAPES = st.sampled_from([(None, b"v" * 10), (b"k", b"v" * 100), (b"", None), (b"k" * 70, b"v"), (None, b"v" * 57)])


def uniform(count: int, key: bytes | None, value: bytes | None, *, step: int = 0) -> bytes:
    return b"".join(record(index, key, value, index * step) for index in range(count))


def layout_of(raw: bytes) -> RecordLayout:
    return RecordLayout(*record_scan._record_at(raw, 0, 0)[0])


def learned(raw: bytes, count: int) -> UniformRecords:
    plans = UniformRecords()
    plans.learn(raw, 0, count, layout_of(raw))
    return plans


@pytest.mark.parametrize("count", [8, 63, 64, 65, 146, MOST_RECORDS])
@pytest.mark.parametrize("key", [None, b"key"])
def test_a_batch_like_one_that_was_learned_follows_its_plan(count: int, key: bytes | None) -> None:
    plans = learned(uniform(count, key, b"a" * 100), count)
    other = b"".join(record(index, key and b"KEY", b"b" * 100, 5 if index else 3) for index in range(count))
    assert plans.match(other, 0, count) == (3, 5, key is not None)
    assert plans.match(memoryview(other), 0, count) == (3, 5, key is not None)


def test_a_plan_is_for_one_size_number_and_place() -> None:
    raw = uniform(20, None, b"v" * 100)
    plans = learned(raw, 20)
    assert plans.match(raw, 0, 20) is not None
    assert plans.match(b"x" + raw, 1, 20) is None
    assert plans.match(raw, 0, 19) is None
    assert plans.match(raw[:-1], 0, 20) is None


@pytest.mark.parametrize("delta", [-1, 64, 1 << 40])
def test_timestamp_deltas_that_are_negative_or_long_are_for_the_walk(delta: int) -> None:
    plans = learned(uniform(20, None, b"v" * 100), 20)
    odd = b"".join(record(index, None, b"v" * 100, delta if index == 7 else 0) for index in range(20))
    assert plans.match(odd, 0, 20) is None


@pytest.mark.parametrize("count", [20, 70])
def test_records_of_several_layouts_are_not_learned(count: int) -> None:
    sizes = [10, *[11] * (count - 3), 12, 10]
    raw = b"".join(record(index, None, b"v" * size) for index, size in enumerate(sizes))
    assert learned(raw, count).match(raw, 0, count) is None


@settings(max_examples=500)
@given(data=st.data())
def test_whatever_passes_by_a_plan_passes_the_walk(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    count = data.draw(st.sampled_from([8, 12, 64, 70, 200]))
    raw = bytearray(uniform(count, *shape))
    plans = learned(bytes(raw), count)
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    found = plans.match(bytes(raw), 0, count)
    if found is None:
        return
    walked = record_scan._walk(bytes(raw), 0, count, ALL)
    without_key = [index for each in walked.without_key for index in each]
    assert found == (walked.earliest, walked.latest, not without_key)
    assert without_key in ([], [*range(count)])


def test_a_batch_that_is_not_like_the_one_before_is_walked_over() -> None:
    raw = bytearray(uniform(100, b"k", b"v" * 50))
    sound = record_scan.scan(bytes(raw), 0, 100, ALL)
    assert record_scan.scan(bytes(raw), 0, 100, ALL) == sound
    raw[len(raw) // 2 : len(raw) // 2 + 60] = b"\0" * 60
    with pytest.raises(MalformedRecords):
        record_scan.scan(bytes(raw), 0, 100, ALL)


def test_the_number_of_plans_is_bounded() -> None:
    plans = UniformRecords()
    for size in range(MOST_PLANS + 1):
        raw = uniform(8, None, b"v" * size)
        plans.learn(raw, 0, 8, layout_of(raw))
        assert plans.match(raw, 0, 8) is not None
    assert len(plans._plans) == 1
    too_many = uniform(MOST_RECORDS + 1, None, b"v")
    plans.learn(too_many, 0, MOST_RECORDS + 1, layout_of(too_many))
    assert len(plans._plans) == 1
