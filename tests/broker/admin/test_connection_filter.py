"""connection_filter.py: what operators type is understood as it was meant, or refused with a sentence."""

import json
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.admin.connection_filter import FIELDS, LONGEST, NotKept, NotUnderstood, conditions, sort_keys
from broker.serve.listed_connections import LISTED_FIELDS, Condition, SortKey

S = 10**9


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  ", []),
        ("state = KAFKA_CONNECTION_STATE_OPEN", [Condition("state", "=", "KAFKA_CONNECTION_STATE_OPEN")]),
        ('client_id="a b"AND source.port>=9', [Condition("client_id", "=", "a b"), Condition("source.port", ">=", 9)]),
        ("client_id = 'a \"b\"'", [Condition("client_id", "=", 'a "b"')]),
        (r'client_id != "\x41\u00e9\U0001F600\"\n\\"', [Condition("client_id", "!=", 'Aé😀"\n\\')]),
        ("client_id = AND AND node_id < 2", [Condition("client_id", "=", "AND"), Condition("node_id", "<", 2)]),
        ("idle_duration > 30s", [Condition("idle_duration", ">", 30 * S)]),
        ("idle_duration > 1.5m", [Condition("idle_duration", ">", 90 * S)]),
        ("idle_duration <= 250ms", [Condition("idle_duration", "<=", S // 4)]),
        ("open_time >= 1970-01-02T00:00:00.5Z", [Condition("open_time", ">=", 86400 * S + S // 2)]),
        ('open_time < "1970-01-01T02:00:00+02:00"', [Condition("open_time", "<", 0)]),
        ("tls_info.enabled = true", [Condition("tls_info.enabled", "=", True)]),
        ("total_request_statistics.request_count > 100", [Condition("total_request_statistics.request_count", ">", 100)]),
    ],
)  # fmt: skip
def test_a_filter_is_read(text: str, expected: list[Condition]) -> None:
    assert conditions(text, LISTED_FIELDS) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("client", "is not a condition"),
        ("client_id =", "is not a condition"),
        ('client_id "a"', "is not a condition"),
        ('client_id = "a" node_id = 1', "only AND joins"),
        ('client_id = "a" OR node_id = 1', "only AND joins"),
        ("(node_id = 1)", "can't be read"),
        ("NOT node_id = 1", "is not a condition"),
        ('client_id = "a', "can't be read"),
        (r'client_id = "\q"', "is not an escape"),
        (r'client_id = "\ud800"', "is not an escape"),
        ("nobody = 1", "there is no field 'nobody'"),
        ("source = 1", "there is no field 'source'"),
        ("node_id = x", "it is a whole number"),
        ("idle_duration > 30", "it is a duration"),
        ("open_time > 2026-13-01T00:00:00Z", "it is a time"),
        ("state = OPEN", "it is one of KAFKA_CONNECTION_STATE_UNSPECIFIED"),
        ("state > KAFKA_CONNECTION_STATE_OPEN", "by = and != alone"),
        ("tls_info.enabled = yes", "it is true or false"),
        ("x" * (LONGEST + 1), "more than 4096 characters"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, says: str) -> None:
    with pytest.raises(NotUnderstood, match=says):
        conditions(text, LISTED_FIELDS)


def test_fields_that_turnstile_does_not_keep_are_refused() -> None:
    assert set(LISTED_FIELDS) < FIELDS.keys()
    for field in FIELDS.keys() - set(LISTED_FIELDS):
        with pytest.raises(NotKept, match=f"does not keep {field}"):
            conditions(f"{field} = 1", LISTED_FIELDS)
        with pytest.raises(NotKept, match=f"does not keep {field}"):
            sort_keys(f"{field} desc", LISTED_FIELDS)


def test_an_order_is_read_or_refused() -> None:
    assert sort_keys("", LISTED_FIELDS) == []
    assert sort_keys("idle_duration desc, source.port,node_id asc", LISTED_FIELDS) == [
        SortKey("idle_duration", True), SortKey("source.port", False), SortKey("node_id", False),
    ]  # fmt: skip
    for text in ("idle_duration down", "node_id,", "node_id asc desc", "nobody", "-node_id", "n" * 5000):
        with pytest.raises(NotUnderstood):
            sort_keys(text, LISTED_FIELDS)


@given(st.text(max_size=40), st.integers(0, 2**31))
def test_any_text_can_be_asked_for(text: str, port: int) -> None:
    """As rpk quotes it (Go's %q) for what JSON and Go spell alike."""
    quoted = json.dumps(text, ensure_ascii=False)
    assert conditions(f"source.port = {port} AND client_id = {quoted}", LISTED_FIELDS)[1] == Condition(
        "client_id", "=", text
    )


WORDS = st.sampled_from([*FIELDS, "AND", "OR", "=", "<", ">=", '"', "'", "\\", "(", "1", "30s", "true", " ", ","])


@given(
    st.one_of(
        st.text(max_size=60), st.lists(WORDS, max_size=12).map(" ".join), st.lists(WORDS, max_size=8).map("".join)
    )
)
def test_nothing_that_is_typed_is_a_mistake_of_ours(text: str) -> None:
    for read in (conditions, sort_keys):
        try:
            found = read(text, LISTED_FIELDS)
        except (NotUnderstood, NotKept) as fault:
            assert str(fault).endswith(".")
        else:
            assert all(each.field in LISTED_FIELDS for each in found)
            assert operator.xor(bool(found), not text.strip())
