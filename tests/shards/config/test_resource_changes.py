"""Client metrics resources and configs of groups: all or nothing, canonical, bounded."""

import pytest

from shards.config.config_state import ConfigState
from shards.config.resource_changes import check_resource_record, resource_configs_delta
from shards.settings.errors import ConfigInvalid

METRICS, GROUP = "client_metrics", "group_config"


def state(*records: tuple[str, str, dict[str, str]], **settings: str) -> ConfigState:
    return ConfigState(1, {f"/{name.replace('_', '.')}": text for name, text in settings.items()}, records)


def test_a_resource_is_there_while_it_has_a_config() -> None:
    delta = resource_configs_delta(state(), METRICS, [["a", "metrics", " x. , y. "], ["a", "interval.ms", "+500"]])
    assert delta == [(METRICS, "a", {"metrics": "x.,y.", "interval.ms": "500"})]
    now = state(*delta)
    assert resource_configs_delta(now, METRICS, [["a", "metrics", "x.,y."]]) == []
    assert resource_configs_delta(now, METRICS, [["a", "metrics", None]]) == [(METRICS, "a", {"interval.ms": "500"})]
    gone = [["a", "metrics", None], ["a", "interval.ms", None], ["b", "match", None]]
    assert resource_configs_delta(now, METRICS, gone) == [(METRICS, "a", None)]


def test_one_wrong_config_refuses_all() -> None:
    with pytest.raises(ConfigInvalid, match="Illegal client matching pattern: client_id"):
        resource_configs_delta(state(), METRICS, [["a", "metrics", "*"], ["b", "match", "client_id"]])


def test_there_may_be_so_many() -> None:
    now = state((METRICS, "a", {"metrics": "*"}), (METRICS, "b", {"metrics": "*"}),
                turnstile_client_metrics_subscriptions_max="1")  # fmt: skip
    with pytest.raises(ConfigInvalid, match="there may be at most 1") as refused:
        resource_configs_delta(now, METRICS, [["c", "metrics", "*"]])
    assert refused.value.error == "POLICY_VIOLATION"
    assert resource_configs_delta(now, METRICS, [["a", "metrics", "x."]]), "those that are there can be changed"


def test_a_groups_configs_lie_between_the_brokers_bounds() -> None:
    session = "consumer.session.timeout.ms"
    with pytest.raises(ConfigInvalid, match=r"greater than or equal to group\.consumer\.min\.session\.timeout\.ms"):
        resource_configs_delta(state(), GROUP, [["g", session, "1000"]])
    lower = state(group_consumer_min_session_timeout_ms="1000", group_consumer_min_heartbeat_interval_ms="100")
    with pytest.raises(ConfigInvalid, match=rf"{session} must be greater than consumer\.heartbeat\.interval\.ms"):
        resource_configs_delta(lower, GROUP, [["g", session, "1000"]])
    both = [["g", session, "1000"], ["g", "consumer.heartbeat.interval.ms", "100"]]
    assert resource_configs_delta(lower, GROUP, both)[0][:2] == (GROUP, "g")


def test_records_that_can_not_be_read() -> None:
    for kind, name, configs in (
        (METRICS, "", {"metrics": "*"}), (METRICS, "a", {}), (METRICS, "a", {"interval.ms": "1"}),
        (GROUP, "g", {"no.such": "1"}), (GROUP, "g", {"consumer.session.timeout.ms": "x"}),
    ):  # fmt: skip
        with pytest.raises((ConfigInvalid, ValueError, KeyError)):
            check_resource_record(kind, name, configs)
    check_resource_record(GROUP, "g", {"consumer.session.timeout.ms": "1"})
