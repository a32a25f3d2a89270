"""Values: read, checked, and spelled one way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.settings.config_def import BROKER, TOPIC
from shards.settings.config_types import COST, ValueType, long, number, one_of, overrides, whole, words
from shards.settings.overrides import Overrides
from shards.settings.ranges import LONG_MAX

SETTINGS = [*BROKER.values(), *TOPIC.values()]


def texts_of(kind: ValueType) -> st.SearchStrategy[str]:
    """Texts that this kind may take, and some that it may not."""
    sensible: list[st.SearchStrategy[str]] = [st.text(max_size=12)]
    if kind.json_type == "integer":
        sensible.append(st.integers(-(2**70), 2**70).map(str))
    if kind.json_type == "number":
        sensible.append(st.floats().map(str))
    if kind.choices:
        sensible.append(st.lists(st.sampled_from(kind.choices), max_size=3).map(", ".join))
    if kind.items:
        entry = st.tuples(st.ip_addresses(v=4), st.integers(0, 2**33)).map(lambda pair: f"{pair[0]}:{pair[1]}")
        sensible.append(st.lists(entry, max_size=3).map(",".join))
    return st.one_of(sensible)


@given(st.sampled_from(SETTINGS).flatmap(lambda s: st.tuples(st.just(s), texts_of(s.kind))))
def test_what_was_read_is_spelled_so_that_it_reads_the_same(case):
    setting, text = case
    try:
        value = setting.kind.parse(text)
    except ValueError as error:
        assert str(error)
        return
    spelled = setting.kind.spell(value)
    assert setting.kind.parse(spelled) == value
    assert setting.kind.spell(setting.kind.parse(spelled)) == spelled


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.name)
def test_every_default_is_a_value_its_own_kind_accepts(setting):
    if setting.default is not None:
        assert setting.kind.parse(setting.kind.spell(setting.default)) == setting.default
    assert setting.documentation.endswith(".")


@pytest.mark.parametrize(
    ("kind", "text", "rule"),
    [
        (whole(1), "0", "a whole number from 1 to 2147483647"),
        (whole(0), "1.0", "whole number"),
        (whole(0), "", "whole number"),
        (whole(0), "٣", "whole number"),  # a digit to Python's int(), not to Kafka
        (whole(1, 9, also=(-1,)), "0", "from 1 to 9 or -1"),
        (long(), str(LONG_MAX + 1), "whole number"),
        (number(0, 1), "nan", "from 0 to 1"),
        (one_of("a", "b"), "c", "one of a, b"),
        (words("compact", "delete"), "delete,shred", "one of compact, delete"),
        (words(), "a,,b", "must not be empty"),
        (words(), '["[x"]', "begin with ["),
        (COST, "Produce=" + "9" * 400 + "us", "Produce=2ms+1us/KiB"),
        (words(), '["a", 1]', "JSON list of strings"),
        (overrides(1, 10), "10.0.0.1:0", "from 1 to 10"),
        (overrides(0, 10), "10.0.0:1", "neither an IP address nor a host name"),
        (COST, "Produce", "Produce=2ms+1us/KiB"),
        (COST, "Produce=1..2ms", "Produce=2ms+1us/KiB"),
        (COST, "Produce=1ms,produce=2ms", "Produce is given twice"),
        (COST, "Produse=1ms", "Produse is not an API that a broker answers"),
        (COST, "Fetch=1us,Produce=3601s", "Produce=3601s: it must be a list"),
    ],
)
def test_a_wrong_value_is_told_the_rule(kind, text, rule):
    with pytest.raises(ValueError, match=rule.replace("+", r"\+").replace("[", r"\[")):
        kind.parse(text)


def test_lists_may_be_json_or_comma_separated():
    kind = overrides(0, 2**31 - 1)
    expected = Overrides({"10.0.0.1": 5, "2001:db8::1": 7})
    assert kind.parse('["10.0.0.1:5", "[2001:DB8::1]:7"]') == expected
    assert kind.parse(" 10.0.0.1:5 , [2001:db8::1]:7") == expected
    assert kind.spell(expected) == "10.0.0.1:5,[2001:db8::1]:7"


def test_a_cost_reads_in_any_unit():
    assert COST.parse("Produce=2ms+1us/KiB, Fetch=0.5us/KiB,*=1s") == (
        ("Produce", 2000.0, 1.0),
        ("Fetch", 0.0, 0.5),
        ("*", 1e6, 0.0),
    )


def test_what_a_topic_config_falls_back_to_is_a_broker_setting_of_the_same_kind_of_value():
    for setting in TOPIC.values():
        for name, factor in setting.broker_names:
            assert BROKER[name].kind.json_type == setting.kind.json_type, name
            assert factor == 1 or BROKER[name].kind.json_type == "integer"
