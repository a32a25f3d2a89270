"""Settings and quota entities as Python programs and configuration files write them -> as the cluster takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHORT = {
    "connections": "kafka_connections_max",
    "per_ip": "kafka_connections_max_per_ip",
    "overrides": "kafka_connections_max_overrides",
    "core_rate": "kafka_connection_rate_limit",
    "slots": "max.connections",
    "rate": "max.connection.creation.rate",
}
"""Short names of the limits that tests set most; every setting has its full name, too."""
DEFAULT = "<default>"


def as_setting(name: str) -> str:
    """The setting that a name means: a short one, its own, or Kafka's with underscores (`max_connections_per_ip`)."""
    if name in SHORT:
        return SHORT[name]
    if name.startswith("kafka_") or "." in name:
        return name
    return name.replace("_", ".")


def as_text(value: Any) -> str:
    """A value in the text a setting is given in: lists and mappings ({address: count}) are comma-separated."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ",".join(f"{_bracketed(str(key))}:{count}" for key, count in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
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
            raise ValueError(f"{text!r} is no quota entity, such as user=alice,client-id=app or ip={DEFAULT}")
        found[kind] = None if name == DEFAULT else name
    return found


def _bracketed(address: str) -> str:
    """An IPv6 address or network as an override has it."""
    if ":" not in address or address.startswith("["):
        return address
    plain, slash, length = address.partition("/")
    return f"[{plain}]{slash}{length}"
