"""Names of bounded length: equal ones stay equal, different ones different."""

from shards.limits.short_names import LONGEST_KNOWN, short_name


def test_a_usual_name_is_itself() -> None:
    assert short_name("") == ""
    assert short_name("x" * LONGEST_KNOWN) == "x" * LONGEST_KNOWN


def test_a_long_name_is_its_beginning_and_a_digest_and_a_short_one_from_then_on() -> None:
    long = "client-" + "x" * 32_000
    short = short_name(long)
    assert short.startswith("client-xxx")
    assert len(short) < LONGEST_KNOWN
    assert short_name(short) == short == short_name(str(long))
    assert short_name(long + "x") != short


def test_any_text_of_the_wire_has_a_short_name() -> None:
    assert len(short_name("\ud800" * 300)) < LONGEST_KNOWN
