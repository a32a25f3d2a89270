"""Configs of client metrics resources (KIP-714) and of groups (KIP-848, KIP-932, KIP-1240), and what a whole resource may be.

A client metrics resource is a subscription: which metrics are pushed, how often, and by which clients. Rules and messages are
those of Kafka 4.3's ClientMetricsConfigs and GroupConfig; Python's regular expressions stand in for Java's.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from shards.settings import kafka_configs
from shards.settings.config_def import BROKER, parse
from shards.settings.config_key import ConfigKey
from shards.settings.config_types import whole, words
from shards.settings.errors import ConfigInvalid

DEFAULT_PUSH_INTERVAL_MS = 300_000
_LEAST_MS, _MOST_MS = 100, 3_600_000
ALL_METRICS = "*"
MATCHED = (
    "client_instance_id", "client_id", "client_software_name", "client_software_version", "client_source_address",
    "client_source_port",
)  # fmt: skip
"""The selectors that a client can be matched by."""

CLIENT_METRICS: dict[str, ConfigKey] = {
    row.name: row
    for row in (
        ConfigKey("metrics", words(), (), "Telemetry metric name prefix list", dynamic=True),
        ConfigKey(
            "interval.ms", whole(), DEFAULT_PUSH_INTERVAL_MS, "Metrics push interval in milliseconds", dynamic=True
        ),
        ConfigKey("match", words(), (), "Client match criteria", dynamic=True),
    )
}
_KINDS = ("consumer", "share", "streams")
_INTERVALS = tuple(f"{kind}.assignment.interval.ms" for kind in _KINDS)
GROUP: dict[str, ConfigKey] = {
    row.name: row._replace(
        broker_names=((f"group.{row.name}", 1),) if f"group.{row.name}" in BROKER else (), emulated=True
    )
    for row in kafka_configs.rows("group")
}
_BETWEEN = (
    ("consumer.heartbeat.interval.ms", "group.consumer.{}.heartbeat.interval.ms"),
    ("consumer.session.timeout.ms", "group.consumer.{}.session.timeout.ms"),
    ("share.heartbeat.interval.ms", "group.share.{}.heartbeat.interval.ms"),
    ("share.session.timeout.ms", "group.share.{}.session.timeout.ms"),
    ("share.record.lock.duration.ms", "group.share.{}.record.lock.duration.ms"),
    ("share.delivery.count.limit", "group.share.{}.delivery.count.limit"),
    ("share.partition.max.record.locks", "group.share.{}.partition.max.record.locks"),
    ("streams.heartbeat.interval.ms", "group.streams.{}.heartbeat.interval.ms"),
    ("streams.session.timeout.ms", "group.streams.{}.session.timeout.ms"),
    ("streams.num.standby.replicas", "group.streams.{}.standby.replicas"),
    *((each, f"group.{each.replace('.', '.{}.', 1)}") for each in _INTERVALS),
)
"""Configs of a group that the broker bounds, and the broker's settings that do, with min or max in their name."""


def patterns_of(match: tuple[str, ...]) -> dict[str, re.Pattern[str]]:
    """{what is matched: pattern} of a subscription's `match`. Raises ConfigInvalid."""
    found = {}
    for entry in match:
        name, *values = entry.rstrip("=").split("=")  # as Java splits
        if len(values) != 1 or name.strip() not in MATCHED:
            raise ConfigInvalid.saying(f"Illegal client matching pattern: {entry}")
        try:
            found[name.strip()] = re.compile(values[0].strip())
        except re.error:
            raise ConfigInvalid.saying(f"Illegal client matching pattern: {entry}") from None
    return found


def check_client_metrics(name: str, configs: Mapping[str, str]) -> None:
    """Raises ConfigInvalid when a subscription of this name can't have these configs."""
    if not name:
        raise ConfigInvalid.saying("Subscription name can't be empty", error="INVALID_REQUEST")
    for key in configs:
        if key not in CLIENT_METRICS:
            raise ConfigInvalid.saying(f"Unknown client metrics configuration: {key}", error="INVALID_REQUEST")
    values: dict[str, Any] = {key: parse(CLIENT_METRICS[key], key, text) for key, text in configs.items()}
    interval_ms = values.get("interval.ms", DEFAULT_PUSH_INTERVAL_MS)
    if not _LEAST_MS <= interval_ms <= _MOST_MS:
        rule = f"interval must be between {_LEAST_MS} and {_MOST_MS} (1 hour)"
        raise ConfigInvalid.saying(f"Invalid value {interval_ms} for interval.ms, {rule}", error="INVALID_REQUEST")
    patterns_of(values.get("match", ()))


def check_group(name: str, configs: Mapping[str, str], broker: Callable[[str], object]) -> None:
    """Raises ConfigInvalid when a group of this name can't have these configs. `broker(setting)`: its value in force."""
    if not name:
        raise ConfigInvalid.saying("Default group resources are not allowed.", error="INVALID_REQUEST")
    for key in configs:
        if key not in GROUP:
            raise ConfigInvalid.saying(f"Unknown group config name: {key}")
    values = {key: broker(row.broker_names[0][0]) if row.broker_names else row.default for key, row in GROUP.items()}
    values |= {key: parse(GROUP[key], key, text) for key, text in configs.items()}
    for key, bound in _BETWEEN:
        if key in configs or key not in _INTERVALS:  # as Kafka: an interval of the broker alone is not looked at
            _check_between(key, values[key], bound, broker)
    for kind in _KINDS:
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if _number(values[session]) <= _number(values[heartbeat]):
            raise ConfigInvalid.saying(f"{session} must be greater than {heartbeat}")


def _check_between(key: str, value: object, bound: str, broker: Callable[[str], Any]) -> None:
    for end, word in (("min", "greater"), ("max", "less")):
        setting = bound.format(end)
        if setting not in BROKER:
            continue
        limit = broker(setting)
        if value < limit if end == "min" else value > limit:
            raise ConfigInvalid.saying(f"{key} must be {word} than or equal to {setting}")


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value
