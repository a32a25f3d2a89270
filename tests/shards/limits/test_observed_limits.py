"""Observed caps: the configuration that would be, and the pools in which it differs from the one that is."""

from __future__ import annotations

import pytest

from shards.config.image import ClusterImage
from shards.limits.caps import NO_RATE, OBSERVED, UNLIMITED, CapRule, RateRule
from shards.limits.quota_entities import key_of_entity

PER_IP, OVERRIDES, CAP = "kafka_connections_max_per_ip", "kafka_connections_max_overrides", "max.connections"
CLUSTER_RATE = "turnstile.cluster.max.connection.creation.rate"
USER_CAP = "turnstile.max.connections.per.user"
USERS = f"{USER_CAP}.overrides"
USER_RATE = "turnstile.max.connection.creation.rate.per.user"
IP = f"{OBSERVED}ip:10.0.0.1"


def image(*records: tuple[str, str, object], broker: int = 0) -> ClusterImage:
    found = ClusterImage(broker)
    found.apply(1, records, whole=True)
    return found


def test_an_observed_cap_is_of_a_pool_of_its_own_and_leaves_the_enforced_one():
    found = image(("setting", f"/{PER_IP}", "100"), ("observed", f"/{PER_IP}", "50"))
    assert found.rule_of("ip:10.0.0.1") == CapRule(100, PER_IP)
    assert found.rule_of(IP) == CapRule(50, PER_IP)
    assert found.rule_of(f"{OBSERVED}broker") == UNLIMITED


def test_without_an_observed_cap_there_is_no_observed_world():
    found = image(("setting", f"/{PER_IP}", "100"))
    assert found.observed_limits is None
    assert found.rule_of(IP) == UNLIMITED


def test_an_enforced_override_goes_before_the_observed_general_number():
    """As it would if that number were set."""
    found = image(("static", f"/{OVERRIDES}", "10.0.0.1:200"), ("observed", f"/{PER_IP}", "50"))
    assert found.rule_of(IP) == UNLIMITED  # 200 in force, and 200 it would be
    assert found.rule_of(f"{OBSERVED}ip:10.0.0.2") == CapRule(50, PER_IP)


def test_a_brokers_own_value_goes_before_one_that_is_observed_for_all():
    records = ("setting", f"1/{PER_IP}", "10"), ("observed", f"/{PER_IP}", "5")
    assert image(*records, broker=1).rule_of(IP) == UNLIMITED
    assert image(*records, broker=0).rule_of(IP) == CapRule(5, PER_IP)


def test_what_is_observed_of_one_broker_begins_nothing_on_the_others():
    record = ("observed", f"1/{PER_IP}", "5")
    assert image(record, broker=0).observed_limits is None
    assert image(record, broker=1).rule_of(IP) == CapRule(5, PER_IP)


def test_a_listener_can_be_observed():
    found = image(("observed", "/listener.name.external.max.connections", "7"))
    assert found.rule_of(f"{OBSERVED}listener:EXTERNAL") == CapRule(7, "listener.name.external.max.connections", True)
    assert found.rule_of(f"{OBSERVED}listener:INTERNAL") == UNLIMITED


@pytest.mark.parametrize(
    ("before", "after", "pools"),
    [
        ([], [("observed", f"/{PER_IP}", "5")],
         {"observed/broker", "observed/listener", "observed/ssl", "observed/ip", "observed/user",
          "observed/cluster"}),
        ([("observed", f"/{PER_IP}", "5")], [("observed", f"/{USERS}", "alice:2")], {"observed/user:alice"}),
        ([("observed", f"/{PER_IP}", "5")], [("observed", f"/{PER_IP}", "6")], {"general/observed/ip"}),
        ([("observed", f"/{PER_IP}", "5"), ("observed", f"/{OVERRIDES}", "10.0.0.0/8:3")],
         [("observed", f"/{PER_IP}", "6")], {"observed/ip"}),
        ([("observed", f"/{PER_IP}", "5"), ("setting", f"/{OVERRIDES}", "10.0.0.1:3,10.0.0.2:5")],
         [("observed", f"/{PER_IP}", "6")], {"general/observed/ip"}),
        ([("observed", f"/{PER_IP}", "5"), ("setting", f"/{PER_IP}", "4")],
         [("setting", f"/{PER_IP}", "3")], {"general/ip"}),
        ([("observed", f"/{PER_IP}", "5"), ("setting", f"/{PER_IP}", "4")],
         [("setting", f"/{PER_IP}", "5")], {"general/ip", "general/observed/ip"}),
        ([("observed", f"/{PER_IP}", "5")], [("setting", f"/{CAP}", "9")],
         {"broker", "listener", "observed/broker", "observed/listener"}),
        ([], [("setting", "/num.partitions", "2")], set()),
    ],
)  # fmt: skip
def test_a_change_names_the_pools_that_may_have_another_cap(before, after, pools):
    found = image(*before)
    assert found.apply(2, after).pools == pools


@pytest.mark.parametrize("name", [USER_CAP, USERS])
def test_caps_of_users_make_an_observed_world(name):
    assert image(("observed", f"/{name}", "alice:2" if name.endswith("overrides") else "2")).has_observed_world


def test_rates_make_an_observed_world_only_where_one_of_users_comes_after_one_that_refuses():
    """Else who a rate would have refused is known when it is asked."""
    of_user, of_broker = ("observed", f"/{USER_RATE}", "2"), ("observed", "/max.connection.creation.rate", "9")
    of_core = ("observed", "/kafka_connection_rate_limit", "9")
    of_address = ("observed_quota", key_of_entity((("ip", None),)), {"connection_creation_rate": 1})
    for alone in (of_user, of_broker, of_core, of_address):
        assert not image(alone).has_observed_world
    assert not image(of_user, of_broker).has_observed_world
    of_cluster = ("observed", f"/{CLUSTER_RATE}", "9")
    assert not image(of_cluster).has_observed_world and not image(of_cluster, of_broker).has_observed_world
    for refusing in (of_core, of_address, of_cluster):
        assert image(of_user, refusing).has_observed_world


def test_the_rate_of_the_cluster_is_observed_where_it_would_be_another_one():
    found = image(("setting", f"/{CLUSTER_RATE}", "100"), ("observed", f"/{CLUSTER_RATE}", "50"))
    assert found.observes_rates and not found.observes_listener_rates
    assert found.rate_of(f"{OBSERVED}cluster") == found.observed_rate_of("cluster") == RateRule(50, CLUSTER_RATE)
    assert found.rate_of("cluster").rate == 100
    same = image(("setting", f"/{CLUSTER_RATE}", "50"), ("observed", f"/{CLUSTER_RATE}", "50"))
    assert same.rate_of(f"{OBSERVED}cluster") == NO_RATE and not same.observes_rates
    assert image(("setting", f"/{CLUSTER_RATE}", "100")).rate_of(f"{OBSERVED}cluster") == NO_RATE


def test_rates_of_users_are_observed_apart_from_those_of_arrivals():
    found = image(("setting", f"/{USER_RATE}", "5"), ("observed", f"/{USER_RATE}.overrides", "alice:2"))
    assert found.observes_user_rates and not found.observes_rates
    assert found.observed_rate_of("user:alice").rate == 2
    assert found.observed_rate_of("user:bob").rate is None, "it would be that in force"


def test_everything_can_be_told_anew():
    found = image(("observed", f"/{PER_IP}", "5"))
    change = found.apply(2, [], whole=True)
    assert found.observed_limits is None and "observed" in change.kinds and "observed/ip" in change.pools
