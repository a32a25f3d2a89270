"""Settings that limit connections: names, inheritance, overrides in two vocabularies, and what is refused."""

import random

import pytest

from shards.limits.caps import GENERAL, NO_RATE, UNLIMITED, CapRule, RateRule
from shards.limits.connection_limits import ConnectionLimits
from shards.limits.rate import Window
from shards.settings.errors import ConfigInvalid
from shards.settings.ranges import INT_MAX, UINT32_MAX

LISTENERS = ("EXTERNAL", "INTERNAL")


def with_changes(*changes: tuple[str, str | None]) -> ConnectionLimits:
    limits = ConnectionLimits()
    for name, text in changes:
        limits = limits.with_change(name, text, LISTENERS)
    return limits


def test_by_default_nothing_is_limited() -> None:
    limits = ConnectionLimits()
    for pool in ("broker", "broker:all", "listener:EXTERNAL", "ssl", "ip:10.0.0.1", "user:alice"):
        assert limits.rule_of(pool) == UNLIMITED
        assert limits.rate_of(pool) == NO_RATE
    assert limits.core_rate_of("10.0.0.1") == NO_RATE
    assert limits.window == limits.mutation_window == Window(11, 1000)
    assert not limits.limits_core_rate
    assert not limits.recheck


def test_a_listener_without_a_value_of_its_own_has_the_brokers() -> None:
    limits = with_changes(
        ("max.connections", "100"),
        ("max.connection.creation.rate", "20"),
        ("listener.name.external.max.connections", "30"),
        ("listener.name.INTERNAL.max.connection.creation.rate", " 5 "),
    )
    assert limits.rule_of("listener:EXTERNAL") == CapRule(30, "listener.name.external.max.connections", wait=True)
    assert limits.rate_of("listener:EXTERNAL") == RateRule(20.0, "max.connection.creation.rate")
    assert limits.rule_of("listener:INTERNAL") == CapRule(100, "max.connections", wait=True)
    assert limits.rate_of("listener:INTERNAL") == RateRule(5.0, "listener.name.internal.max.connection.creation.rate")
    assert limits.with_change("max.connections", None).rule_of("listener:INTERNAL") == UNLIMITED


def test_a_listeners_own_int_max_lifts_the_brokers_number() -> None:
    limits = with_changes(("max.connections", "5"), ("listener.name.external.max.connections", str(INT_MAX)))
    assert limits.rule_of("listener:EXTERNAL") == UNLIMITED


def test_an_address_has_the_tighter_of_both_vocabularies() -> None:
    limits = with_changes(
        ("max.connections.per.ip", "10"),
        ("max.connections.per.ip.overrides", "10.0.0.1:3,10.0.0.2:30"),
        ("kafka_connections_max_per_ip", "8"),
        ("kafka_connections_max_overrides", '["10.0.0.1:5", "10.0.0.0/8:50"]'),
    )
    assert limits.rule_of("ip:10.0.0.1") == CapRule(3, "max.connections.per.ip.overrides")
    assert limits.rule_of("ip:10.0.0.2") == CapRule(30, "max.connections.per.ip.overrides")
    assert limits.rule_of("ip:10.0.0.3") == CapRule(10, "max.connections.per.ip")
    assert limits.rule_of("ip:11.0.0.3") == CapRule(8, "kafka_connections_max_per_ip")


def test_with_an_override_of_its_own_an_address_draws_on_its_own_bucket() -> None:
    limits = with_changes(
        ("kafka_connection_rate_limit", "7"), ("kafka_connection_rate_limit_overrides", "10.0.0.0/8:9")
    )
    assert limits.core_rate_of("10.1.1.1") == RateRule(9.0, "kafka_connection_rate_limit_overrides")
    assert limits.core_rate_of("11.1.1.1") == RateRule(7.0, "kafka_connection_rate_limit")
    assert limits.limits_core_rate


def test_windows_and_recheck_are_read_from_settings() -> None:
    limits = with_changes(
        ("quota.window.num", "3"), ("quota.window.size.seconds", "2"), ("controller.quota.window.num", "100")
    )
    assert limits.window == Window(3, 2000)
    assert limits.mutation_window == Window(100, 1000)
    assert with_changes(("turnstile.ip.rate.recheck", "TRUE")).recheck


@pytest.mark.parametrize("name", ["kafka_connections_max", "kafka_connections_max_per_ip"])
def test_redpandas_caps_are_unsigned_32_bit_numbers(name: str) -> None:
    assert with_changes((name, "3000000000")).given[name] == 3_000_000_000
    with pytest.raises(ConfigInvalid, match=f"from 0 to {UINT32_MAX}"):
        with_changes((name, str(UINT32_MAX + 1)))


def test_redpandas_rate_is_a_64_bit_number() -> None:
    assert with_changes(("kafka_connection_rate_limit", "3000000000")).core_rate.rate == 3e9


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("max.connections", "0", "max.connections cannot be '0': it must be at least 1 while the cluster runs."),
        ("max.connection.creation.rate", "0", "it must be at least 1 while the cluster runs"),
        ("listener.name.internal.max.connections", "-1", "it must be a whole number from 0 to 2147483647"),
        ("listener.name.internal.max.connections", "0", "listener.name.internal.max.connections cannot be '0'"),
        ("listener.name.other.max.connections", "1", "names no listener of this cluster, which has EXTERNAL, INTERNAL"),
        ("max.connections", "many", "a whole number"),
        ("max.connections", "1_000", "a whole number"),
        ("max.connections", str(2**31), "from 0 to 2147483647"),
        ("max.connections.per.ip", "-1", "from 0 to 2147483647"),
        ("max.connections.per.ip", "0", "only while max.connections.per.ip.overrides is set"),
        ("max.connections.per.ip.overrides", "10.0.0.1", "override '10.0.0.1'"),
        ("kafka_connections_max_overrides", "[5]", "a JSON list of strings"),
        ("kafka_connection_rate_limit", "0", "from 1 to"),
        ("kafka_connection_rate_limit_overrides", "10.0.0.1:0", "the number for 10.0.0.1 must be from 1 to"),
        ("quota.window.num", "0", "from 1 to 2147483647"),
        ("turnstile.ip.rate.recheck", "yes", "it must be true or false"),
        ("max.connection", "1", "did you mean max.connections"),
        ("listener.name.external.max.connections.per.ip", "1", "is not a setting; a listener can have its own"),
        ("listener.name.x", "1", "is not a setting"),
        ("", "1", "is not a setting"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_a_sentence(name: str, text: str, why: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        with_changes((name, text))
    assert why in str(refused.value)


def test_a_cap_of_zero_per_address_needs_overrides_and_keeps_them() -> None:
    limits = with_changes(("max.connections.per.ip.overrides", "10.0.0.1:5"), ("max.connections.per.ip", "0"))
    assert limits.rule_of("ip:10.0.0.1").cap == 5
    assert limits.rule_of("ip:10.0.0.2").cap == 0
    with pytest.raises(ConfigInvalid, match="only while"):
        limits.with_change("max.connections.per.ip.overrides", None)


@pytest.mark.parametrize("setting", ["max.connections", "max.connection.creation.rate"])
def test_a_broker_wide_zero_is_no_matter_where_every_listener_has_its_own(setting: str) -> None:
    """Source: SocketServer.ListenerConnectionQuota.validateReconfiguration, which asks each listener."""
    own = with_changes((f"listener.name.external.{setting}", "1"), (f"listener.name.internal.{setting}", "1"))
    assert own.with_change(setting, "0", LISTENERS).given[setting] == 0


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ({}, {"kafka_connections_max": "5"}, {"broker"}),
        ({}, {"max.connections": "5"}, {"broker", "listener"}),
        ({}, {"listener.name.external.max.connections": "5"}, {"listener"}),
        ({}, {"kafka_connections_max_per_ip": "5"}, {"general/ip"}),
        (
            {"kafka_connections_max_per_ip": "5", "kafka_connections_max_overrides": "10.0.0.1:5,10.1.0.0/16:7"},
            {"kafka_connections_max_per_ip": "6"},
            {"general/ip"},
        ),
        # With both vocabularies the general rule may be that of an address in the network.
        (
            {"kafka_connections_max_per_ip": "5", "max.connections.per.ip.overrides": "10.1.0.0/16:7"},
            {"kafka_connections_max_per_ip": "6"},
            {"ip"},
        ),
        # The first follows the general rule of the other vocabulary, up to its own number; the second does not.
        (
            {"kafka_connections_max_per_ip": "5", "max.connections.per.ip.overrides": "10.0.0.1:7,10.0.0.2:6"},
            {"kafka_connections_max_per_ip": "7"},
            {"general/ip", "ip:10.0.0.2"},
        ),
        (
            {"kafka_connections_max_per_ip": "5", "max.connections.per.ip.overrides": "10.0.0.1:9"},
            {"kafka_connections_max_per_ip": "7"},
            {"general/ip"},
        ),
        ({}, {"kafka_connection_rate_limit": "5"}, set()),
        ({}, {"kafka_connections_max_overrides": "10.0.0.1:5"}, {"ip:10.0.0.1"}),
        (
            {"kafka_connections_max_overrides": "10.0.0.1:5,10.0.0.2:6"},
            {"kafka_connections_max_overrides": "10.0.0.1:5,10.0.0.2:7,10.0.0.3:8"},
            {"ip:10.0.0.2", "ip:10.0.0.3"},
        ),
        (
            {"kafka_connections_max_overrides": "10.0.0.1:5,10.0.0.0/8:6"},
            {"kafka_connections_max_overrides": "10.0.0.0/8:6"},
            {"ip:10.0.0.1"},
        ),
        (
            {"kafka_connections_max_overrides": "10.0.0.1:5"},
            {"kafka_connections_max_overrides": "10.0.0.1:5,10.0.0.0/8:6"},
            {"ip"},
        ),
        # The other vocabulary is tighter for this address before and after.
        ({"max.connections.per.ip": "2"}, {"kafka_connections_max_overrides": "10.0.0.1:5"}, set()),
    ],
)
def test_what_changed_is_named_as_closely_as_is_cheap(
    before: dict[str, str], after: dict[str, str], changed: set[str]
) -> None:
    old = with_changes(*before.items())
    new = old
    for name, text in after.items():
        new = new.with_change(name, text, LISTENERS)
    assert new.changed_pools(old) == changed


@pytest.mark.parametrize("seed", range(300))
def test_what_changed_leaves_no_pool_with_an_earlier_rule(seed: int) -> None:
    """As rule_changes.py does it: pools that are named get their rule, of a kind that is general those that had the general one."""
    draw = random.Random(seed)
    addresses = [f"10.{number}.0.{last}" for number in (0, 1) for last in (1, 2)]

    def drawn(settings: dict[str, str]) -> dict[str, str]:
        settings = dict(settings)
        for name in ("kafka_connections_max_per_ip", "max.connections.per.ip"):
            if draw.random() < 0.5:
                settings[name] = str(draw.randrange(1, 5))
        for name in ("kafka_connections_max_overrides", "max.connections.per.ip.overrides"):
            if draw.random() < 0.3:
                listed = draw.sample([*addresses, "10.0.0.0/16", "10.1.0.0/16"], draw.randrange(3))
                settings[name] = ",".join(f"{each}:{draw.randrange(1, 5)}" for each in listed)
        return settings

    settings = drawn({})
    before, after = with_changes(*settings.items()), with_changes(*drawn(settings).items())
    changed = after.changed_pools(before)
    for address in (*addresses, "10.0.0.3", "10.2.0.1"):
        pool = f"ip:{address}"
        rule = before.rule_of(pool)
        if "ip" in changed or pool in changed:
            rule = after.rule_of(pool)
        elif f"{GENERAL}ip" in changed and rule == before.rule_of("ip:"):
            rule = after.rule_of("ip:")
        assert rule == after.rule_of(pool), pool


def test_a_user_has_its_own_number_or_that_of_all_users():
    general, own = "turnstile.max.connections.per.user", "turnstile.max.connections.per.user.overrides"
    limits = with_changes((general, "5"), (own, "alice:1,ip:10.0.0.1:9"))
    assert limits.rule_of("user:bob") == CapRule(5, general)
    assert limits.rule_of("user:alice") == CapRule(1, own)
    assert limits.rule_of("user:ip:10.0.0.1") == CapRule(9, own)
    assert limits.rule_of("ip:10.0.0.1") == UNLIMITED


def test_a_change_of_one_users_number_changes_its_pool_alone():
    name = "turnstile.max.connections.per.user.overrides"
    before = ConnectionLimits().with_change(name, "alice:1,bob:2")
    assert before.with_change(name, "alice:1,bob:3").changed_pools(before) == {"user:bob"}
    assert before.with_change(name, "alice:1").changed_pools(before) == {"user:bob"}
    assert before.with_change("turnstile.max.connections.per.user", "7").changed_pools(before) == {"general/user"}
    assert before.with_change("kafka_connections_max", "7").changed_pools(before) == {"broker"}


def test_the_cap_of_connections_over_tls_is_a_pool_of_its_own():
    name = "turnstile.max.ssl.connections"
    limits = with_changes((name, "5"))
    assert limits.rule_of("ssl") == CapRule(5, name) and limits.rule_of("broker") == UNLIMITED
    assert limits.changed_pools(ConnectionLimits()) == {"ssl"}


def test_the_cap_of_the_cluster_is_a_pool_of_its_own():
    name = "turnstile.cluster.max.connections"
    limits = with_changes((name, "5"))
    assert limits.rule_of("cluster") == CapRule(5, name) and limits.rule_of("broker") == UNLIMITED
    assert limits.changed_pools(ConnectionLimits()) == {"cluster"}


def test_the_rate_of_the_cluster_is_none_of_its_brokers():
    name = "turnstile.cluster.max.connection.creation.rate"
    limits = with_changes((name, "5"))
    assert limits.rate_of("cluster") == RateRule(5.0, name)
    assert limits.rate_of("broker") == limits.rate_of("listener:A") == ConnectionLimits().rate_of("cluster") == NO_RATE
    with pytest.raises(ConfigInvalid):
        with_changes((name, "0"))


def test_a_user_has_its_own_rate_or_that_of_all_users():
    general, own = (f"turnstile.max.connection.creation.rate.per.user{each}" for each in ("", ".overrides"))
    limits = with_changes((general, "5"), (own, "alice:1"))
    assert limits.rate_of("user:bob") == RateRule(5.0, general)
    assert limits.rate_of("user:alice") == RateRule(1.0, own)
    assert limits.rate_of("ip:10.0.0.1") == NO_RATE and limits.changed_pools(ConnectionLimits()) == set()
    with pytest.raises(ConfigInvalid):
        with_changes((general, "0"))
