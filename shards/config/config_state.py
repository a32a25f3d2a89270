"""The state that the coordinator stores, and what holds of every delta that is made for it. Pure: no clock, no I/O.

A delta is what a requested change really changes: acl_changes.py, fault_changes.py, quota_changes.py, setting_changes.py and the
others make one each.

delta_whole_or_refused  A function that makes a delta returns it complete or raises; it never changes the ConfigState.
delta_holds_differences_only  A delta holds only what really becomes different, in canonical spelling; an empty one needs no
    new version.
values_read_back_equal  Each value of a delta, written as JSON or msgpack and read again, is equal to itself; so is each
    setting's text, parsed.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgpack

from shards.config.stored_records import FaultRecord, TokenRecord, TopicRecord, UserRecord
from shards.settings.broker_config import EVERY_BROKER, given
from shards.settings.config_def import BROKER
from shards.settings.config_types import Value
from shards.settings.errors import ConfigInvalid

Change = tuple[str, str, Any]  # kind, key, value or None
MAX_CHANGES = 10_000
MOST_OF_A_NAME = 100
MOST_KEY_BYTES = 64 << 10
"""The longest key of a record. Clients choose the names in it (a user, an entity, a resource); a client id may have 32 KB."""
_encode = json.JSONEncoder(allow_nan=False).encode  # json.dumps would make an encoder for each value


class RequestedChanges(NamedTuple):
    """The delta that a request makes, and a result, [error name or "", message], for each record that the request names."""

    delta: list[Change]
    results: list[list[str]]


class ConfigState:
    """Everything the coordinator stores, at one version."""

    def __init__(
        self, brokers: int, static: Mapping[str, str], records: Iterable[Change] = (), version: int = 0
    ) -> None:
        self.brokers = brokers
        self.static = dict(static)
        self.version = version
        self.settings: dict[str, str] = {}
        self.quotas: dict[str, dict[str, float]] = {}
        self.topics: dict[str, TopicRecord] = {}
        self.users: dict[str, UserRecord] = {}
        self.faults: dict[str, FaultRecord] = {}
        self.acls: dict[str, bool] = {}
        self.client_metrics: dict[str, dict[str, str]] = {}
        self.group_configs: dict[str, dict[str, str]] = {}
        self.features: dict[str, int] = {}
        self.tokens: dict[str, TokenRecord] = {}
        self.advertised: dict[str, str] = {}
        self.observed: dict[str, str] = {}  # keyed as `settings`; observed, not enforced
        self.observed_quotas: dict[str, dict[str, float]] = {}  # keyed as `quotas`; observed, not enforced
        self.hosts: dict[str, list[str]] = {}  # the addresses of host names in overrides
        self._tables: dict[str, dict[str, Any]] = {
            "setting": self.settings, "quota": self.quotas, "user": self.users, "topic": self.topics,
            "fault": self.faults, "acl": self.acls, "client_metrics": self.client_metrics,
            "group_config": self.group_configs, "feature": self.features, "token": self.tokens,
            "advertised": self.advertised, "observed": self.observed, "observed_quota": self.observed_quotas,
            "host": self.hosts,
        }  # fmt: skip
        self.put(records)

    def number(self, name: str, unreadable: Callable[[ConfigInvalid], None] | None = None) -> int:
        """A setting that is a whole number, as it holds for all brokers; `unreadable` as in `given`."""
        value = given(EVERY_BROKER, self.static, self.settings, unreadable).get(name, BROKER[name].default)
        assert isinstance(value, int)
        return value

    def text(self, name: str) -> str:
        """A setting that is text and always set, as it holds for all brokers."""
        value = self.value(name)
        assert isinstance(value, str)
        return value

    def value(self, name: str) -> Value:
        """A setting as it holds for all brokers."""
        return given(EVERY_BROKER, self.static, self.settings, lambda fault: None).get(name, BROKER[name].default)

    def put(self, delta: Iterable[Change]) -> None:
        """Apply a delta that was validated."""
        for kind, key, value in delta:
            table = self._tables[kind]
            if value is None:
                table.pop(key, None)
            else:
                table[key] = value

    def find(self, kind: str, key: str) -> Any:
        """The record, or None."""
        return self._tables[kind].get(key)

    def resources(self, kind: str) -> Mapping[str, Mapping[str, str]]:
        """Configs by resource; `kind`: client_metrics or group_config."""
        return self._tables[kind]

    def dump(self) -> list[Change]:
        """All of it as one delta, the command line's settings included."""
        return [
            *(("static", key, text) for key, text in self.static.items()),
            *((kind, key, record) for kind, table in self._tables.items() for key, record in table.items()),
        ]


def bounded(changes: Sequence[object]) -> None:
    """Raises ConfigInvalid if a request has more than MAX_CHANGES changes: one push carries them all."""
    if len(changes) > MAX_CHANGES:
        raise ConfigInvalid("the request", len(changes), f"it may hold at most {MAX_CHANGES} changes")


def storable(delta: list[Change]) -> list[Change]:
    """Returns the delta. Raises ConfigInvalid if a value would not survive the store (JSON) or a push (msgpack), as
    values_read_back_equal requires, or if a new key is longer than MOST_KEY_BYTES."""
    for kind, key, value in delta:
        size = len(key.encode("utf-8", "surrogatepass"))
        if size > MOST_KEY_BYTES and value is not None:
            raise ConfigInvalid(f"{kind} {key[:MOST_OF_A_NAME]!r}...", None,
                                f"has too long a name: {size} bytes, of at most {MOST_KEY_BYTES}",
                                error="INVALID_REQUEST")  # fmt: skip
        try:
            again = json.loads(_encode([key, value]))
            pushed = msgpack.unpackb(msgpack.packb([key, value]))
        except (ValueError, TypeError, OverflowError, RecursionError):
            again = pushed = None
        if again != [key, value] or pushed != [key, value]:
            raise ConfigInvalid(f"{kind} {key!r:.200}", None, "can't be stored: it would not read back as it was written",
                                error="INVALID_REQUEST")  # fmt: skip
    return delta
