"""Limits that let no connection in are named, and those that let somebody in are not."""

import pytest

from shards.limits.connection_limits import ConnectionLimits
from shards.limits.lockouts import lockouts
from shards.settings.broker_config import given


def said(**settings: str) -> list[str]:
    static = {f"/{name.replace('__', '.')}": text for name, text in settings.items()}
    return lockouts(ConnectionLimits(given(-1, static, {})), ["EXTERNAL"], at=" --admin URL")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"kafka_connections_max": "0"}, "kafka_connections_max=0 refuses every connection; to let them in: "
         "turnstile config set kafka_connections_max 100 --admin URL"),
        ({"kafka_connections_max_per_ip": "0"}, "kafka_connections_max_per_ip=0 refuses every connection; to let them in: "
         "turnstile config set kafka_connections_max_per_ip 100 --admin URL"),
        ({"kafka_connections_max_per_ip": "0", "kafka_connections_max_overrides": "10.0.0.1:0"},
         "kafka_connections_max_per_ip=0 refuses every connection"),
        ({"kafka_connections_max_overrides": "0.0.0.0/0:0"}, "kafka_connections_max_overrides refuses every connection over "
         "IPv4; to let them in: turnstile config set kafka_connections_max_overrides '' --admin URL"),
        ({"max__connections__per__ip": "0", "max__connections__per__ip__overrides": "10.0.0.1:0"},
         "max.connections.per.ip=0 refuses every connection"),
        ({"max__connections": "0"}, "max.connections=0 lets no connection of listener EXTERNAL in: each waits for a slot"),
        ({"turnstile__max__connections__per__user": "0", "turnstile__max__connections__per__user__overrides": "bob:0"},
         "turnstile.max.connections.per.user=0 refuses every login; to let them in: "
         "turnstile config set turnstile.max.connections.per.user 100 --admin URL"),
        ({"turnstile__cluster__max__connections": "0"}, "turnstile.cluster.max.connections=0 refuses every connection; to let "
         "them in: turnstile config set turnstile.cluster.max.connections 100 --admin URL"),
        ({"turnstile__max__ssl__connections": "0"}, "turnstile.max.ssl.connections=0 refuses every connection "
         "over TLS; to let them in: turnstile config set turnstile.max.ssl.connections 100 --admin URL"),
        ({"listener__name__external__max__connections": "0"}, "listener.name.external.max.connections=0 lets no connection"),
    ],
)  # fmt: skip
def test_a_limit_that_lets_no_connection_in_is_named(settings: dict[str, str], sentence: str) -> None:
    [found] = said(**settings)
    assert found.startswith(sentence)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"turnstile__max__connections__per__user": "0", "turnstile__max__connections__per__user__overrides": "bob:1"},
        {"kafka_connections_max_per_ip": "1"},
        {"kafka_connections_max_per_ip": "0", "kafka_connections_max_overrides": "10.0.0.1:2"},
        {"kafka_connections_max_per_ip": "0", "kafka_connections_max_overrides": "10.0.0.0/8:2"},
        {"kafka_connections_max_overrides": "10.0.0.1:0"},
        {"max__connections__per__ip": "0", "max__connections__per__ip__overrides": "10.0.0.1:1"},
        {"max__connections": "0", "listener__name__external__max__connections": "5"},
    ],
)
def test_a_limit_that_lets_somebody_in_is_not(settings: dict[str, str]) -> None:
    assert said(**settings) == []
