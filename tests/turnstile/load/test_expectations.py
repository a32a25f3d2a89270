"""What `turnstile load --expect` takes, and when a run misses it."""

import pytest

from turnstile.load.expectations import ExpectationInvalid, parse

NUMBERS = {
    "attempted": 200, "admitted": 197, "refused": 3, "broken": 0, "connect_errors": 0, "closed_by_broker": 0,
    "unanswered": 0, "connect_ms": {"p50": 1.5, "p99": 49.9, "max": 80.0}, "refuse_ms": {"p50": 2.0, "p99": 9.0, "max": 9.0},
}  # fmt: skip
NONE = {**NUMBERS, "attempted": 0, "admitted": 0, "connect_ms": {"p50": None, "p99": None, "max": None}}
RESULT = {**NUMBERS, "groups": {"data centre": {**NUMBERS, "refused": 0}, "v1.2": NONE}}


@pytest.mark.parametrize(
    "text",
    ["refused<2%", "refused<=1.5%", "refused==3", "admitted>=197", "p99<50ms", "p99 < 0.05s", "refuse_max<=9",
     "data centre.refused==0", "v1.2.refused<1000%", "broken == 0"],
)  # fmt: skip
def test_expectation_holds_of_the_result(text: str) -> None:
    assert parse(text).judge(RESULT) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("refused<1%", "refused<1%: it was 1.50%"),
        ("refused<3", "refused<3: it was 3"),
        ("p99<49.9ms", "p99<49.9ms: it was 49.90 ms"),
        ("max<0.08s", "max<0.08s: it was 80 ms"),
        ("office.refused<1%", "there is no group 'office'"),
        ("v1.2.p50<1ms", "no connection was admitted"),
    ],
)
def test_missed_expectation_says_what_it_was(text: str, why: str) -> None:
    assert why in str(parse(text).judge(RESULT))


@pytest.mark.parametrize(
    "text", ["refused", "refused<", "refused<many", "refused!1", "lost<1", "refused<1ms", "p99<5%", ""]
)
def test_text_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(ExpectationInvalid):
        parse(text)
