"""Redpanda's token bucket: the figures of its own unit tests, and its invariants on generated cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.limits.atomic_token_bucket import AtomicTokenBucket

RATES = st.integers(1, 2**40)
USES = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 2**41)), max_size=30)  # (ms later, tokens)


class Played:
    """A bucket of (rate, limit, threshold) and its clock."""

    def __init__(self, rate, limit=None, threshold=1, *, full=True):
        self.now_ms = 1_000_000
        self.bucket = AtomicTokenBucket(rate, now_ms=self.now_ms, full=full, limit=limit, threshold=threshold)

    def use(self, tokens, after_ms=0):
        self.now_ms += after_ms
        return self.bucket.use(tokens, now_ms=self.now_ms)


@pytest.mark.parametrize(
    ("bucket", "uses"),
    [
        ({"rate": 10, "limit": 10}, [(0, 5, 0), (0, 5, 0), (0, 1, 100), (0, 9, 1000), (1001, 0, 0)]),
        ({"rate": 10}, [(0, 11, 100)]),
        ({"rate": 10, "full": False}, [(0, 11, 1100), (2101, 0, 0), (0, 11, 100)]),
        ({"rate": 10, "threshold": 10}, [(0, 11, 100), (101, 0, 100), (899, 0, 0)]),
        ({"rate": 10, "limit": 100}, [(0, 11, 0), (0, 89, 0), (0, 2, 200)]),
        ({"rate": 100}, [(0, 99, 0), (0, 10, 90), (1000, 10, 0)]),
        ({"rate": 4096}, [(0, 8192, 1000), (0, 1, 1000)]),
    ],
)
def test_the_figures_of_redpandas_own_tests(bucket, uses):
    """LIMITS.md, B1.1: of atomic_token_bucket_test and quota_manager_test."""
    played = Played(**bucket)
    assert [played.use(tokens, after_ms) for after_ms, tokens, _ in uses] == [delay for *_, delay in uses]


def test_a_fraction_of_a_token_is_rounded_when_it_is_due():
    played = Played(10, full=False)
    assert [played.use(0, 50) for _ in range(20)] == [0] * 20
    assert played.bucket.tokens(now_ms=played.now_ms) == 10, "twice ten a second, up to the limit"
    slow = Played(10, full=False)
    assert [slow.use(1, 49), slow.use(0, 1)] == [100, 0]


def test_no_more_than_an_hour_is_paid_at_once():
    played = Played(10, full=False)
    played.use(50_000)
    assert played.use(0, 100_000_000) == (50_000 - 36_000) / 10 * 1000


@given(RATES, USES, st.booleans())
def test_a_client_that_waits_out_the_delay_owes_less_than_the_tokens_of_a_millisecond(rate, uses, full):
    played = Played(rate, full=full)
    for after_ms, tokens in uses:
        delay_ms = played.use(tokens, after_ms)
        owed = -played.bucket.tokens(now_ms=played.now_ms)
        assert delay_ms == (0 if owed <= 0 else int(owed / rate * 1000))
        if delay_ms < 3_600_000:
            left = owed - rate * delay_ms / 1000
            assert -played.bucket.tokens(now_ms=played.now_ms + delay_ms) <= max(left, 0) + 0.5 + 2**-10
            played.now_ms += delay_ms


@given(RATES.filter(lambda rate: rate >= 1000), USES, st.booleans())
def test_no_more_passes_than_a_second_and_what_is_due(rate, uses, full):
    """one_second, counted_in_steps: the sum of all uses is at most the limit, the rate by time, and the rounding of each step."""
    played = Played(rate, full=full)
    began_ms, passed = played.now_ms, 0
    for steps, (after_ms, tokens) in enumerate(uses, 1):
        delay_ms = played.use(tokens, after_ms)
        passed += tokens
        left = played.bucket.tokens(now_ms=played.now_ms)
        assert left <= rate
        assert passed + left <= rate * full + rate * (played.now_ms - began_ms) / 1000 + steps
        assert (delay_ms > 0) <= (left < 0)
