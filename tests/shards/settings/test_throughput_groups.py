"""`kafka_throughput_control`, and the names of APIs that the limits may be set for."""

import pytest

from broker.wire.apis import APIS
from shards.settings.api_keys import API_KEYS
from shards.settings.throughput_groups import is_exempt, parse_groups, spell_groups

GROUPS = parse_groups('[{"name": "a", "client_id": "app-[0-9]+"}, {"client_id": "+empty"}]')


@pytest.mark.parametrize(
    ("client_id", "exempt"), [("app-1", True), ("app-1x", False), ("my-app-1", False), ("", False), (None, True)]
)
def test_the_whole_client_id_has_to_match(client_id, exempt):
    assert is_exempt(GROUPS, client_id) == exempt


def test_a_group_without_client_id_has_everyone():
    assert [is_exempt(parse_groups('[{"name": "all"}]'), each) for each in ("x", "", None)] == [True] * 3
    assert not is_exempt(parse_groups(""), None)


def test_the_text_of_groups_is_theirs():
    assert parse_groups(spell_groups(GROUPS)) == GROUPS
    assert spell_groups(GROUPS) == '[{"name": "a", "client_id": "app-[0-9]+"}, {"client_id": "+empty"}]'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[", "JSON list"),
        ("{}", "a list of groups"),
        ("[1]", "an object of name and client_id"),
        ('[{"throughput_limit_node_in_bps": 5}]', "no limits of its own"),
        ('[{"name": ""}]', "not empty"),
        ('[{"client_id": "(?=a)"}]', "RE2"),
        ('[{"client_id": "+any"}]', r"\+empty"),
        ('[{"name": "a"}, {"name": "a"}]', "unique"),
    ],
)
def test_what_is_no_list_of_groups_is_refused_with_the_rule(text, why):
    with pytest.raises(ValueError, match=why):
        parse_groups(text)


def test_every_api_can_be_controlled():
    assert set(API_KEYS) == {api.name.lower() for api in APIS.values()}
