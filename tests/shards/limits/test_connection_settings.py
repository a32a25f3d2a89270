"""Settings that limit connections: names, inheritance, overrides in two vocabularies, and what is refused."""

import pytest

from shards.limits.caps import CapRule
from shards.limits.connection_settings import ConnectionSettings, ListenerLimits
from shards.limits.rate import Window

NONE_SET = ConnectionSettings(("EXTERNAL", "INTERNAL"))


def with_changes(*changes: tuple[str, object]) -> ConnectionSettings:
    settings = NONE_SET
    for name, value in changes:
        settings = settings.with_change(name, value)
    return settings


def test_by_default_nothing_is_limited() -> None:
    assert NONE_SET.broker == NONE_SET.listener["EXTERNAL"] == ListenerLimits(None, None)
    assert NONE_SET.ip_cap("10.0.0.1").cap is None
    assert NONE_SET.core_rate_of("10.0.0.1") == ("", None)
    assert NONE_SET.window == NONE_SET.mutation_window == Window(11, 1000)
    assert not NONE_SET.limits_core_rate
    assert not NONE_SET.recheck


def test_a_listener_without_a_value_of_its_own_has_the_brokers() -> None:
    settings = with_changes(
        ("max.connections", "100"),
        ("max.connection.creation.rate", 20),
        ("listener.name.external.max.connections", "30"),
        ("listener.name.INTERNAL.max.connection.creation.rate", " 5 "),
    )
    assert settings.listener == {"EXTERNAL": ListenerLimits(30, 20), "INTERNAL": ListenerLimits(100, 5)}
    assert settings.with_change("max.connections", None).listener["INTERNAL"].cap is None


def test_an_address_has_the_tighter_of_both_vocabularies() -> None:
    settings = with_changes(
        ("max.connections.per.ip", "10"),
        ("max.connections.per.ip.overrides", "10.0.0.1:3,10.0.0.2:30"),
        ("kafka_connections_max_per_ip", 8),
        ("kafka_connections_max_overrides", ["10.0.0.1:5", "10.0.0.0/8:50"]),
    )
    assert settings.ip_cap("10.0.0.1") == CapRule(3, "max.connections.per.ip.overrides")
    assert settings.ip_cap("10.0.0.2") == CapRule(30, "max.connections.per.ip.overrides")
    assert settings.ip_cap("10.0.0.3") == CapRule(10, "max.connections.per.ip")
    assert settings.ip_cap("11.0.0.3") == CapRule(8, "kafka_connections_max_per_ip")


def test_with_an_override_of_its_own_an_address_draws_on_its_own_bucket() -> None:
    settings = with_changes(
        ("kafka_connection_rate_limit", "7"), ("kafka_connection_rate_limit_overrides", "10.0.0.0/8:9")
    )
    assert settings.core_rate_of("10.1.1.1") == ("10.1.1.1", 9)
    assert settings.core_rate_of("11.1.1.1") == ("", 7)
    assert settings.limits_core_rate


def test_windows_and_recheck() -> None:
    settings = with_changes(
        ("quota.window.num", "3"), ("quota.window.size.seconds", "2"), ("controller.quota.window.num", "100")
    )
    assert settings.window == Window(3, 2000)
    assert settings.mutation_window == Window(100, 1000)
    assert with_changes(("turnstile.ip.rate.recheck", "TRUE")).recheck


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("max.connections", "0", "max.connections of listener EXTERNAL is 0; it must be at least 1"),
        ("max.connection.creation.rate", "0", "of listener EXTERNAL is 0; it must be at least 1"),
        ("listener.name.internal.max.connections", "-1", "of listener INTERNAL is -1; it must be at least 1"),
        ("max.connections", "many", "'many'; it must be a whole number"),
        ("max.connections", "1_000", "'1_000'; it must be a whole number"),
        ("max.connections", 1.5, "1.5; it must be a whole number"),
        ("max.connections", True, "True; it must be a whole number"),
        ("max.connections", str(2**31), "must fit in 32 bits"),
        ("max.connections.per.ip", "-1", "max.connections.per.ip is -1; it must be at least 0"),
        ("max.connections.per.ip", "0", "set max.connections.per.ip.overrides first"),
        ("max.connections.per.ip.overrides", "10.0.0.1", "max.connections.per.ip.overrides: override '10.0.0.1'"),
        ("kafka_connections_max_overrides", [5], "must be a list of ip:number"),
        ("kafka_connection_rate_limit", "0", "kafka_connection_rate_limit is 0; it must be at least 1"),
        ("kafka_connection_rate_limit_overrides", "10.0.0.1:0", "the rate of 10.0.0.1 is 0; it must be at least 1"),
        ("quota.window.num", "0", "quota.window.num is 0; it must be at least 1"),
        ("turnstile.ip.rate.recheck", "yes", "'yes'; it must be true or false"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_a_sentence(name: str, value: object, why: str) -> None:
    with pytest.raises(ValueError) as error:
        NONE_SET.with_change(name, value)
    assert why in str(error.value)


def test_a_cap_of_zero_per_address_needs_overrides_and_keeps_them() -> None:
    settings = with_changes(("max.connections.per.ip.overrides", "10.0.0.1:5"), ("max.connections.per.ip", "0"))
    assert settings.ip_cap("10.0.0.1").cap == 5
    assert settings.ip_cap("10.0.0.2").cap == 0
    with pytest.raises(ValueError, match="lets nobody in"):
        settings.with_change("max.connections.per.ip.overrides", None)


@pytest.mark.parametrize("setting", ["max.connections", "max.connection.creation.rate"])
def test_a_broker_wide_zero_is_no_matter_where_every_listener_has_its_own(setting: str) -> None:
    own = with_changes((f"listener.name.external.{setting}", 1), (f"listener.name.internal.{setting}", 1))
    assert 0 in own.with_change(setting, 0).broker
    with pytest.raises(ValueError, match=f"{setting} is -1; it must be at least 0"):
        own.with_change(setting, -1)


@pytest.mark.parametrize(
    "name", ["max.connection", "listener.name.external.max.connections.per.ip", "listener.name.x", ""]
)
def test_any_other_name_is_unknown(name: str) -> None:
    with pytest.raises(KeyError):
        NONE_SET.with_change(name, "1")
