"""The note on a quota of bytes says what the arithmetic that enforces does with the largest batch."""

import pytest

from shards.limits.byte_rates import CONSUMER, PRODUCER, byte_rate_note, byte_rate_notes
from shards.limits.connection_limits import ConnectionLimits
from shards.limits.rate import Rate

LIMITS = ConnectionLimits({})
LARGEST = 1_048_588


def test_a_batch_that_the_note_calls_too_large_is_over_the_quota_after_any_pause() -> None:
    assert "a batch of more than 200,000 bytes is never delivered" in byte_rate_note(CONSUMER, 20_000, LIMITS, LARGEST)
    for now_ms in (60_000, 3_600_000):
        assert Rate(LIMITS.window).charge(200_000, 20_000.0, now_ms=now_ms) == 0
        assert Rate(LIMITS.window).charge(200_100, 20_000.0, now_ms=now_ms) > 0


def test_a_produce_is_muted_for_as_long_as_the_note_says() -> None:
    muted_ms = Rate(LIMITS.window).charge(LARGEST, 20_000.0, now_ms=60_000)
    assert f"mutes its connection for {muted_ms / 1000:,.0f} s" in byte_rate_note(PRODUCER, 20_000, LIMITS, LARGEST)


@pytest.mark.parametrize(("name", "enough"), [(CONSUMER, LARGEST / 10), (PRODUCER, LARGEST / 40)])
def test_the_rate_that_lets_the_largest_batch_pass_in_time_needs_no_note(name: str, enough: float) -> None:
    """A producer's connection is muted for as long as clients wait: 10 s of the rate at once, and 30 s more."""
    assert byte_rate_note(name, enough + 1, LIMITS, LARGEST) == ""
    assert byte_rate_note(name, enough - 1, LIMITS, LARGEST) != ""
    assert byte_rate_note("request_percentage", 1, LIMITS, LARGEST) == ""


def test_a_note_names_its_client() -> None:
    (note,) = byte_rate_notes(
        LIMITS, [((("user", "alice"), ("client-id", None)), {CONSUMER: 5.0, PRODUCER: 1e9})], LARGEST
    )
    assert note.startswith("user=alice, client-id=<default>: as in Kafka, a batch of more than 50 bytes")
