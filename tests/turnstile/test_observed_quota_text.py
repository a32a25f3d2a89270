"""What observed client quotas would have done, in words."""

from __future__ import annotations

from typing import Any

import pytest

from turnstile.observed_quota_text import observed_quota_lines, observed_quotas_line, would_have_throttled

ROW = {"quota": "producer_byte_rate", "value": 50.0, "requests": 1204, "throttle_ms": 84_000, "refused": 0}


def told(**changed: Any) -> dict[str, Any]:
    entity = {"entity": {"user": "alice", "client-id": None}, "values": {"producer_byte_rate": 50.0}}
    nothing = {"set": [entity], "requests": 0, "throttle_ms": 0, "more": False, "quotas": [], "clients": []}
    return {**nothing, **changed}


@pytest.mark.parametrize(
    ("counted", "sentence"),
    [
        ({}, "would have throttled 0 requests"),
        ({"requests": 1, "throttle_ms": 1_500, "clients": [{}]}, "would have throttled 1 request of 1 client, for 1.5 s"),
        ({"requests": 1204, "throttle_ms": 84_000, "clients": [{}] * 3, "more": True, "quotas": [ROW]},
         "would have throttled 1,204 requests of at least 3 clients, for 84.0 s"),
        ({"requests": 2, "throttle_ms": 900, "clients": [{}], "quotas": [{**ROW, "refused": 4}]},
         "would have throttled 2 requests of 1 client, for 0.9 s, and refused 4 mutations"),
    ],
)  # fmt: skip
def test_a_count_is_a_sentence(counted: dict[str, Any], sentence: str) -> None:
    assert would_have_throttled(told(**counted)) == sentence


def test_every_quota_is_named_with_what_it_would_have_done() -> None:
    lines = observed_quota_lines(told(requests=1204, throttle_ms=84_000, quotas=[ROW]))
    assert lines[1:] == [
        "  observed: user=alice client-id=<default> producer_byte_rate=50",
        "  producer_byte_rate=50: 1,204 requests throttled, for 84.0 s",
    ]


def test_one_line_counts_what_is_observed() -> None:
    assert observed_quotas_line(told()) == "1 client quota would have throttled 0 requests"
