"""Changes of observed caps: checked as if they were to be enforced, kept apart, and read back after a restart."""

from __future__ import annotations

import pytest

from shards.config.change_history import ChangedValue, with_values_in_force
from shards.config.config_state import ConfigState
from shards.config.limit_notes import notes_of_observed
from shards.config.setting_changes import observed_delta, settings_delta
from shards.config.store_recovery import usable_records
from shards.settings.errors import ConfigInvalid

PER_IP = "kafka_connections_max_per_ip"


def state(*records: tuple[str, str, str]) -> ConfigState:
    return ConfigState(2, {"/max.connections": "100"}, records)


def test_an_observed_cap_is_a_record_of_its_own():
    found = state(("setting", f"/{PER_IP}", "100"))
    delta = observed_delta(found, [["", PER_IP, " 50 "], ["1", "listener.name.EXTERNAL.max.connections", "07"]])
    assert delta == [
        ("observed", f"/{PER_IP}", "50"),
        ("observed", "1/listener.name.external.max.connections", "7"),
    ]
    found.put(delta)
    assert found.settings == {f"/{PER_IP}": "100"}
    assert observed_delta(found, [["", PER_IP, "50"]]) == []
    assert observed_delta(found, [["", PER_IP, None]]) == [("observed", f"/{PER_IP}", None)]
    assert settings_delta(found, [["", PER_IP, None]]) == [("setting", f"/{PER_IP}", None)]


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("num.partitions", "5", "can't be observed: only limits of connections can be"),
        ("num.partitions", None, "only limits of connections can be"),
        (PER_IP, "many", "it must be a whole number"),
        ("max.connections", "0", "it must be at least 1 while the cluster runs"),
        ("max.connections.per.ip", "0", "it can be zero only while max.connections.per.ip.overrides is set"),
        ("per_ip", "5", "is not a setting; did you mean"),
    ],
)
def test_what_could_not_be_enforced_or_limits_no_connections_is_refused(name, value, sentence):
    with pytest.raises(ConfigInvalid, match=sentence.replace("(", r"\(")):
        observed_delta(state(), [["", name, value]])


def test_the_rules_between_settings_are_those_of_both_together():
    enforced = state(("setting", "/max.connections.per.ip.overrides", "10.0.0.1:5"))
    assert observed_delta(enforced, [["", "max.connections.per.ip", "0"]])


def test_a_damaged_record_counts_as_not_observed():
    records = [("observed", f"/{PER_IP}", "5"), ("observed", f"/{PER_IP}x", "5"), ("observed", "/num.partitions", "5"),
               ("observed", f"/{PER_IP}", 5)]  # fmt: skip
    found = usable_records(records)
    assert found.records == [("observed", f"/{PER_IP}", "5")]
    assert len(found.faults) == 3


def test_the_history_tells_it_as_it_is():
    change = ChangedValue("observed", f"/{PER_IP}", None, "5")
    assert with_values_in_force([change], {f"/{PER_IP}": "100"}, {}) == [change]


def test_what_is_in_force_already_is_said_to_be_of_no_use():
    same = state(("setting", f"/{PER_IP}", "5"), ("observed", f"/{PER_IP}", "5"))
    assert notes_of_observed(same) == ["the observed limits are in force already: they would refuse no connection that is "
                                       "admitted now"]  # fmt: skip
    assert notes_of_observed(state(("observed", f"/{PER_IP}", "5"))) == []
    assert notes_of_observed(state(("observed", "/max.connection.creation.rate", "5"))) == []
    assert notes_of_observed(state()) == []


def test_a_broker_of_which_an_own_value_goes_before_what_is_observed_on_all_is_named():
    found = state(("setting", f"1/{PER_IP}", "50"), ("observed", "0/max.connections", "7"))
    for tried in (False, True):
        changes = [["", PER_IP, "20"], ["", "max.connections", None], ["", "max.connections.per.ip", "5"]]
        assert notes_of_observed(found, changes, tried=tried) == [
            f"broker 1 keeps its own value 50 of {PER_IP}",
            "broker 0 keeps its own value 7 of max.connections",
        ]
        assert notes_of_observed(found, [["1", PER_IP, "20"]], tried=tried) == []
