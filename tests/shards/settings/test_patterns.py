"""Clients' regular expressions."""

import pytest

from shards.settings import patterns


def test_the_whole_text_has_to_match():
    assert patterns.whole("tx-[0-9]+")("tx-12")
    assert not patterns.whole("tx-[0-9]")("tx-12")


def test_no_pattern_takes_long():
    """Python's `re` would take years."""
    assert not patterns.whole("(a+)+$")("a" * 100 + "b")
    assert patterns.whole("(.*)*(.*)*(.*)*x")("y" * 1000 + "x")


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "a{2000}", r"(a)\1", "(?=a)", "(){1000}" * 30])
def test_what_re2_does_not_know_is_refused_with_a_reason(pattern):
    with pytest.raises(patterns.BadPattern, match=r"\S"):
        patterns.whole(pattern)
