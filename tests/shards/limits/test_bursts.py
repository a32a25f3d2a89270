"""The burst that is told is the one that passes: beside the arithmetic that enforces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.limits.bucket import ConnectionBucket, TokenBucket
from shards.limits.bursts import burst_note, burst_notes, burst_of
from shards.limits.connection_limits import CORE_RATE, ConnectionLimits
from shards.limits.core_bucket import EXACT
from shards.limits.rate import Rate

SIZES = st.integers(1, 20)


def limits(samples: int = 11, size_s: int = 1, **more: int) -> ConnectionLimits:
    names = ("quota.window.num", "quota.window.size.seconds", "controller.quota.window.num")
    return ConnectionLimits({**dict.fromkeys(names[::2], samples), names[1]: size_s, **more})


@given(st.integers(2, 20), SIZES, st.integers(1, 50))
def test_as_many_connections_as_are_told_pass_at_one_instant_and_not_one_more(
    samples: int, size_s: int, per_s: int
) -> None:
    told = burst_of("connection_creation_rate", float(per_s), limits(samples, size_s))
    rate = Rate(limits(samples, size_s).window)
    passed = 0
    while rate.charge(1, float(per_s), now_ms=5_000) == 0:
        passed += 1
    assert passed == told.amount


@given(st.integers(2, 20), SIZES, st.integers(1, 50))
def test_the_setting_that_is_told_makes_it_as_small_as_is_told(samples: int, size_s: int, per_s: int) -> None:
    told = burst_of("max.connection.creation.rate", float(per_s), limits(samples, size_s))
    assert told.setting == "quota.window.num"
    again = burst_of("max.connection.creation.rate", float(per_s), limits(told.small_num, size_s))
    assert again.amount == told.small_amount <= told.amount


def test_mutations_have_the_buckets_burst_and_cores_have_theirs() -> None:
    told = burst_of("controller_mutation_rate", 2.0, limits())
    bucket = TokenBucket(limits().mutation_window)
    assert bucket.tokens(2.0, now_ms=0) == told.amount == 22
    core = ConnectionBucket(5, now_ms=0)
    passed = 0
    while core.take(now_ms=0, most_ms=0) == 0:
        passed += 1
    assert passed == burst_of(CORE_RATE, 5.0, limits()).amount


def test_the_note_names_amount_seconds_and_setting() -> None:
    assert burst_note("connection_creation_rate", 2.0, limits()) == (
        "after a pause 20 connections pass at once before connection_creation_rate=2 holds any back, as in Kafka (10 s of it); "
        "a cluster started by `turnstile up --set quota.window.num=2` lets 2 pass."
    )


@pytest.mark.parametrize(
    ("name", "window"), [(CORE_RATE, 11), ("connection_creation_rate", 2), ("producer_byte_rate", 2)]
)
def test_a_second_of_a_rate_needs_no_note(name: str, window: int) -> None:
    assert burst_note(name, 2.0, limits(window)) == ""


def test_rates_that_are_set_are_told_and_unlimited_ones_are_not() -> None:
    own = {"listener.name.a.max.connection.creation.rate": 3, "max.connections": 5}
    quotas = [
        ((("ip", "10.0.0.1"),), {"connection_creation_rate": 2147483647.0}),
        ((("user", None),), {"producer_byte_rate": 5.0}),
    ]
    notes = burst_notes(limits(**own), quotas)
    assert [note.split(" pass at once")[0] for note in notes] == [
        "after a pause 30 connections", "user=<default>: after a pause 50 bytes",
    ]  # fmt: skip
    assert burst_notes(limits(**own), names=["max.connections"]) == []


@pytest.mark.parametrize(("per_s", "passing"), [("300", "333"), ("501", "1,000"), ("5000", "1,000")])
def test_a_rate_of_a_core_says_how_many_pass_by_whole_milliseconds(per_s: str, passing: str) -> None:
    set_ = {CORE_RATE: int(per_s)}
    (note,) = burst_notes(ConnectionLimits(set_))
    assert f"lets {passing} connections a second pass on each core" in note and EXACT in note
    assert burst_notes(ConnectionLimits({**set_, EXACT: True})) == []
    assert burst_notes(ConnectionLimits({CORE_RATE: 500})) == []
