"""Regular expressions of subscriptions: what matches a whole name, what is refused, and that no expression takes long."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.groups.consumer.re2_match import TopicPattern
from broker.groups.consumer.re2_syntax import InvalidRegularExpression

REFUSED = [
    "(", ")", "a)", "[", "[a", "[]", "[^]", "*", "+a", "a|*", "a**", "a*+", "a{2}{3}", "a{3,2}", "a{1001}", "a{1,1001}",
    "((a{100}){100}){100}", "(){1000}" * 30, "\\", r"\1", r"(a)\1", r"\8", r"\C", r"\Z", r"\y", r"\pX", r"\p{Nope}", "[b-a]",
    r"[a-\d]", "[[:nope:]]", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?>a)", "a++", "(?P=n)", "(?i", "(?x)a", "(?P<n>a)(?P<n>b)",
    r"\x{110000}", "(?P<>a)", "(?i)*", "a" * 20_001,
]  # fmt: skip
MATCHES = [
    ("", [""], ["a"]),
    ("orders", ["orders"], ["orders2", "xorders", "Orders"]),
    ("orders.*", ["orders", "orders.eu", "orders_1"], ["order"]),
    (r"orders\..*", ["orders.eu"], ["orders", "orders-eu"]),
    ("a|bc|", ["a", "bc", ""], ["b", "abc"]),
    ("(?i)aB.", ["abc", "ABx"], ["ab"]),
    ("(?i:a)b", ["Ab", "ab"], ["AB"]),
    ("a(?i)b|c", ["aB", "C"], ["AB"]),
    ("[a-c]+[^a-c]", ["abcd", "a-"], ["abc", "d"]),
    ("[]a]", ["a"], ["b"]),
    ("[a-]", ["a", "-"], ["b"]),
    (r"[\d_]{2,3}", ["12", "1_3"], ["1", "1234", "ab"]),
    (r"[[:alpha:][:digit:]]+", ["a1"], ["a-1"]),
    (r"[[:^alpha:]]+", ["1-."], ["a"]),
    (r"\w+\W\w+", ["a-b", "a.b"], ["a_b", "ab"]),
    (r"\D*", ["abc", "-"], ["a1"]),
    (r"\pL+\p{Nd}?", ["ab1", "ab"], ["1"]),
    (r"\PL+", ["1-2"], ["a"]),
    (r"\p{^Lu}+", ["abc"], ["aBc"]),
    (r"\p{Greek}*", [""], ["a"]),
    (r"^a.b$", ["a-b"], ["ab"]),
    (r"\Aa\z", ["a"], ["b"]),
    (r"a\b.*", ["a", "a-b", "a.b"], ["ab", "a_b"]),
    (r"a\B.*", ["ab"], ["a", "a-b"]),
    (r"\Qa.b\E+", ["a.b", "a.bbb"], ["axb"]),
    (r"\x61\x{62}\143", ["abc"], ["ab"]),
    ("a{2}", ["aa"], ["a", "aaa"]),
    ("a{,2}", [], ["a", "aa"]),
    ("a??b*?", ["", "ab", "bb"], ["aa"]),
    ("(a*)*b", ["b", "aab"], ["a"]),
    ("(?P<n>a)(?<m>b)", ["ab"], ["a"]),
    ("(?s-i:a.)", ["ab"], ["a"]),
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:20])
def test_what_re2_cannot_do_is_refused(text):
    with pytest.raises(InvalidRegularExpression):
        TopicPattern(text)


@pytest.mark.parametrize(("text", "whole", "others"), MATCHES, ids=[text for text, _, _ in MATCHES])
def test_names_match_as_a_whole(text, whole, others):
    pattern = TopicPattern(text)
    assert [name for name in (*whole, *others) if pattern.matches(name)] == whole


atoms = st.sampled_from(
    ["a", "b", "c", ".", "[ab]", "[^a]", r"\w", r"\.", "a?", "b*", "(a|b)", "(?:ab)+", "c{1,2}", r"\b", "^", "$"]
)


@given(st.lists(atoms, max_size=6).map("".join), st.text("abc._-", max_size=6))
def test_matches_are_those_of_python(text, name):
    assert TopicPattern(text).matches(name) == bool(re.compile(text, re.ASCII).fullmatch(name))


def test_an_expression_that_others_go_back_on_takes_no_time():
    pattern = TopicPattern("(a*)*(a|aa)+(b|c|d){0,40}x")
    for n in range(200):
        assert not pattern.matches("a" * (n + 40))  # Python's re would not come back from the first one
