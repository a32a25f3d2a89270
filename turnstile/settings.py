"""Settings and quota entities as Python programs and configuration files write them -> as the cluster takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from turnstile.entities import DEFAULT, ENTITY_TYPES, entity_name

SHORT = {
    "connections": "kafka_connections_max",
    "per_ip": "kafka_connections_max_per_ip",
    "overrides": "kafka_connections_max_overrides",
    "core_rate": "kafka_connection_rate_limit",
    "slots": "max.connections",
    "rate": "max.connection.creation.rate",
}
"""Short names of the limits that tests set most; every setting has its full name, too."""
REDPANDAS = frozenset(
    (
        "controller_log_accummulation_rps_capacity_acls_and_users_operations",
        "controller_log_accummulation_rps_capacity_configuration_operations",
        "controller_log_accummulation_rps_capacity_move_operations",
        "controller_log_accummulation_rps_capacity_topic_operations",
        "enable_controller_log_rate_limiting",
        "rps_limit_acls_and_users_operations",
        "rps_limit_configuration_operations",
        "rps_limit_move_operations",
        "rps_limit_topic_operations",
        "group_max_session_timeout_ms",
        "group_min_session_timeout_ms",
        "max_kafka_throttle_delay_ms",
        "max_transactions_per_coordinator",
        "storage_min_free_bytes",
        "topic_memory_per_partition",
        "topic_partitions_memory_allocation_percent",
        "topic_partitions_per_shard",
        "topic_partitions_reserve_shard0",
    )
)
"""Redpanda's settings whose names don't begin with kafka_: they have underscores of their own."""
Quota = tuple[dict[str, str | None], dict[str, float]]
"""An entity, of which None is the default one, and its rates by name."""


def as_setting(name: str) -> str:
    """The setting that a name means: a short one, its own, or Kafka's with underscores (`max_connections_per_ip`)."""
    if name in SHORT:
        return SHORT[name]
    if name.startswith("kafka_") or name in REDPANDAS or "." in name:
        return name
    return name.replace("_", ".")


def as_text(value: object) -> str:
    """A value in the text a setting is given in: lists and mappings ({address: count}) with commas, lists of mappings as JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ",".join(f"{_bracketed(str(key))}:{count}" for key, count in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        if any(isinstance(each, Mapping) for each in value):
            return json.dumps(list(value))
        return ",".join(map(str, value))
    return str(value)


def as_entity(text: str | Mapping[str, str | None]) -> dict[str, str | None]:
    """`user=alice,client-id=app` -> {"user": "alice", "client-id": "app"}; <default> is None. Raises ValueError."""
    if isinstance(text, Mapping):
        return dict(text)
    found: dict[str, str | None] = {}
    for word in text.split(","):
        kind, equals, name = word.strip().partition("=")
        if not equals:
            raise ValueError(f"{text!r} is not a quota entity, such as user=alice,client-id=app or ip={DEFAULT}")
        found[kind] = entity_name(name)
    return found


def as_settings(table: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    """Settings of a TOML table, which reads an unquoted max.connections = 5 as a table of a table: both spellings count."""
    found: dict[str, str] = {}
    for name, value in table.items():
        if isinstance(value, Mapping) and not name.endswith("overrides"):
            found |= as_settings(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = as_text(value)
    return found


def as_quota(entry: Mapping[str, object]) -> Quota:
    """An entity and its rates of a [[quota]] of TOML. Raises ValueError."""
    entity = {kind: entity_name(str(entry[kind])) for kind in ENTITY_TYPES if kind in entry}
    rates: dict[str, float] = {}
    for name, value in entry.items():
        if name in ENTITY_TYPES:
            continue
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise ValueError(f"[[quota]] {name} must be a number")
        rates[name] = float(value)
    if not entity or not rates:
        raise ValueError("[[quota]] needs a user, client-id or ip, and a rate such as producer_byte_rate")
    return entity, rates


def _bracketed(address: str) -> str:
    """An IPv6 address or network as an override has it."""
    if ":" not in address or address.startswith("["):
        return address
    plain, slash, length = address.partition("/")
    return f"[{plain}]{slash}{length}"
