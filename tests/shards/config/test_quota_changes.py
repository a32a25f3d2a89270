"""quota_changes.py: quotas and users are validated whole or refused whole, in Kafka's words."""

import pytest

from shards.config.config_state import ConfigState
from shards.config.quota_changes import quotas_delta, users_delta
from shards.settings.errors import ConfigInvalid


def state() -> ConfigState:
    return ConfigState(2, {})


# Answers of Kafka 4.1's own ClientQuotaControlManager to the same questions.
@pytest.mark.parametrize(
    ("entity", "key", "value", "message"),
    [
        ({}, "producer_byte_rate", 1.0, "Invalid empty client quota entity"),
        ({"ip": "10.0.0.1"}, "connection_creation_rate", 0.0, "Quota connection_creation_rate must be greater than 0"),
        ({"ip": "10.0.0.1"}, "connection_creation_rate", 5.5, "connection_creation_rate cannot be a fractional value."),
        ({"ip": "10.0.0.1"}, "connection_creation_rate", 3e9,
         "Proposed value for connection_creation_rate is too large for an INT."),
        ({"ip": "10.0.0.1"}, "producer_byte_rate", 5.0, "Invalid configuration key producer_byte_rate"),
        ({"ip": "no.such"}, "connection_creation_rate", 5.0, "no.such is not a valid IP or resolvable host."),
        ({"ip": "10.0.0.1", "user": "u"}, "connection_creation_rate", 5.0,
         "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"),
        ({"user": "u", "client-id": ""}, "producer_byte_rate", 5.0, "Empty client-id not supported"),
        ({"group": "g"}, "producer_byte_rate", 5.0, "Unhandled client quota entity type: group"),
        ({"user": "u"}, "producer_byte_rate", 1e19, "Proposed value for producer_byte_rate is too large for a LONG."),
        ({"user": "u"}, "request_percentage", -0.5, "Quota request_percentage must be greater than 0"),
        ({"client-id": "c"}, "connection_creation_rate", 1.0, "Invalid configuration key connection_creation_rate"),
    ],
)  # fmt: skip
def test_quotas_are_refused_in_kafkas_words(entity, key, value, message):
    with pytest.raises(ConfigInvalid) as refused:
        quotas_delta(state(), [[entity, {key: value}]])
    assert str(refused.value) == message
    assert refused.value.error == "INVALID_REQUEST"


def test_quotas_are_set_merged_and_removed_per_entity():
    now = state()
    both = {"producer_byte_rate": 5, "request_percentage": 0.5}
    now.put(quotas_delta(now, [[{"user": "a", "client-id": None}, both]]))
    assert now.quotas == {'{"client-id":null,"user":"a"}': {"producer_byte_rate": 5.0, "request_percentage": 0.5}}
    now.put(quotas_delta(now, [[{"client-id": None, "user": "a"}, {"producer_byte_rate": None}]]))
    assert now.quotas == {'{"client-id":null,"user":"a"}': {"request_percentage": 0.5}}
    now.put(quotas_delta(now, [[{"client-id": None, "user": "a"}, {"request_percentage": None, "unknown": None}]]))
    assert now.quotas == {}


def test_an_ip_entity_has_one_spelling():
    delta = quotas_delta(state(), [[{"ip": "::ffff:10.0.0.1"}, {"connection_creation_rate": 5}]])
    assert delta == [("quota", '{"ip":"10.0.0.1"}', {"connection_creation_rate": 5.0})]


def test_credentials_come_and_go_by_mechanism():
    now = state()
    now.put(users_delta(now, [["alice", "PLAIN", {"h": "1"}], ["alice", "SCRAM-SHA-256", {"h": "2"}]]))
    now.put(users_delta(now, [["alice", "PLAIN", None]]))
    assert now.users == {"alice": {"SCRAM-SHA-256": {"h": "2"}}}
    with pytest.raises(ConfigInvalid, match="no PLAIN credential"):
        users_delta(now, [["alice", "PLAIN", None]])
