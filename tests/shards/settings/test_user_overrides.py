"""Numbers of single users: what is read, and spelled so that it reads back as equal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.settings.user_overrides import UserOverrides

MOST = 2**32 - 1


def parse(text: str) -> UserOverrides:
    return UserOverrides.parse(text, 0, MOST)


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("", {}),
        ("[]", {}),
        ("alice:5", {"alice": 5}),
        (" alice:5 , bob:0 ", {"alice": 5, "bob": 0}),
        ("urn:x:alice:7", {"urn:x:alice": 7}),
        ('["smith, j:5", "bob:1"]', {"smith, j": 5, "bob": 1}),
        ("alice:5,alice:5", {"alice": 5}),
    ],
)
def test_overrides_are_read_from_a_list_or_from_words(text: str, entries: dict[str, int]) -> None:
    assert parse(text).entries == entries


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("alice", "not of the form user:number"),
        (":5", "not of the form user:number"),
        ("alice:", "not a whole number"),
        ("alice:-1", "not a whole number"),
        ("alice:1.5", "not a whole number"),
        ("alice:4294967296", "from 0 to 4294967295"),
        ("alice:" + "9" * 5000, "not a whole number"),
        ("alice:5,", "not of the form user:number"),
        ("alice:5,alice:6", "listed twice, with 5 and with 6"),
        ('["alice:5"', "JSON list of strings"),
        ("[5]", "JSON list of strings"),
    ],
)
def test_wrong_overrides_are_refused_with_a_sentence(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse(text)


@given(st.dictionaries(st.text(min_size=1), st.integers(0, MOST), max_size=5))
def test_the_spelling_of_any_overrides_reads_back_as_equal(entries: dict[str, int]) -> None:
    overrides = UserOverrides(entries)
    assert parse(str(overrides)) == overrides
