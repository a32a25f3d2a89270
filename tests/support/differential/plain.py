"""An answer as plain values that two brokers can agree on: ids, times and hosts are told as what they are, not as how they read.

An id is told by its kind and by its order in the conversation, "uuid 1", so that the same id at two places stays the same id.
Numbers that mean "none" (-1, and 0 where an id starts at 1) stay numbers, as their absence is part of the answer. Of an error
message counts whether there is one. What is listed by name is sorted by name: Kafka's order is often that of a hash table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from batches import records_of

from broker.wire.codec import Message

IDS = {
    "member_id": "member",
    "leader": "member",
    "producer_id": "producer",
    "cluster_id": "cluster",
    "session_id": "session",
    "subscription_id": "subscription",
}
"""Fields that hold ids, and of what."""
TOKENS = ("token_id",)
HOSTS = ("host", "port")
PLACES = ("log_dir", "path")
AMOUNTS = ("total_bytes", "usable_bytes")
"""Fields whose values are the machine's."""
BATCHES = ("records",)
SECRETS = ("hmac",)
VERSIONS = ("finalized_features_epoch",)
TIMES = (
    "last_timestamp", "last_fetch_timestamp", "last_caught_up_timestamp",
    "issue_timestamp", "expiry_timestamp", "max_timestamp",
)  # fmt: skip
BEGAN_MS = 1_750_000_000_000
"""Timestamps after this are the broker's; conversations choose earlier ones."""
TEXTS = ("error_message",)
NAMES = (
    "group_id", "name", "topic", "topic_name", "transactional_id", "feature", "user", "key", "mechanism", "entity_type",
    "principal_name", "producer_id", "resource_type", "resource_name", "pattern_type",
    "host", "operation", "permission_type", "api_key", "partition_index", "partition", "partition_id", "index",
)  # fmt: skip
"""Fields by which the entries of a list are told apart."""


class Plain:
    """The answers of one conversation. An id that the conversation chose is told as it is."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, object], object] = {}
        self._counts: dict[str, int] = {}

    def chose(self, fields: Any) -> None:
        """Remembers the ids in what is asked that no answer has told."""
        if isinstance(fields, Mapping):
            for name, value in fields.items():
                if name in IDS and isinstance(value, (str, int)):
                    self._ids.setdefault((IDS[name], value), value)
                self.chose(value)
        elif isinstance(fields, (list, tuple)):
            for each in fields:
                self.chose(each)

    def of(self, message: Message) -> Any:
        return agreed(self._raw(message))

    def _raw(self, message: Message) -> dict[str, Any]:
        return {name: self._value(name, getattr(message, name)) for name in message.field_names}

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, Message):
            return self._raw(value)
        if isinstance(value, tuple):
            return [self._value(name, each) for each in value]
        if isinstance(value, UUID):
            return self._id("uuid", value)
        if isinstance(value, datetime):
            return "time" if value.timestamp() * 1000 > BEGAN_MS else round(value.timestamp() * 1000)
        if isinstance(value, timedelta):
            return round(value.total_seconds() * 1000)
        if isinstance(value, (bytes, bytearray, memoryview)):
            if name in SECRETS:
                return f"{len(value)} bytes"
            return batches(bytes(value)) if name in BATCHES else bytes(value).hex()
        return self._scalar(name, value)

    def _scalar(self, name: str, value: Any) -> Any:
        if value in (None, "", -1, 0) or isinstance(value, bool):
            return value
        if name in IDS and not (name == "leader" and isinstance(value, int)):
            return self._id(IDS[name], value)
        if name in HOSTS:
            return "host"
        if name in PLACES:
            return "path"
        if name in TOKENS:
            return "token"
        return "amount" if name in AMOUNTS else value

    def _id(self, kind: str, value: object) -> object:
        told = self._ids.get((kind, value))
        if told is None:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            told = self._ids[kind, value] = f"{kind} {self._counts[kind]}"
        return told


def agreed(plain: Any) -> Any:
    """Without the words of error messages, and without the order of what is listed by name."""
    if isinstance(plain, list):
        return sorted(map(agreed, plain), key=named)
    if isinstance(plain, dict):
        return {name: _agreed_field(name, value) for name, value in plain.items()}
    return plain


def _agreed_field(name: str, value: Any) -> Any:
    if name in TEXTS and value:
        return "text"
    if name in VERSIONS and value not in (-1, 0):
        return "version"
    return "time" if name in TIMES and isinstance(value, int) and value > BEGAN_MS else agreed(value)


def named(entry: Any) -> tuple[str, ...]:
    """By which an entry of a list is told from the others: its names and numbers, else its topic's id; nothing for a value."""
    if not isinstance(entry, dict):
        return ()
    names = tuple(f"{entry[name]!s:>12}" for name in NAMES if name in entry)
    return names or tuple(entry[name] or "" for name in ("topic_id",) if name in entry)


def batches(data: bytes) -> list[Any]:
    """Of whole batches: base offset, leader epoch, attributes, base sequence, and the offset and value of each record."""
    found, at = [], 0
    while at + 61 <= len(data) and (end := at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")) <= len(data):
        head = [_number(data, at + start, size) for start, size in ((0, 8), (12, 4), (21, 2), (53, 4))]
        found.append([*head, _records(data[at:end])])
        at = end
    return found


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big", signed=True)


def _records(batch: bytes) -> list[list[Any]] | str:
    if batch[22] & 7:
        return "compressed"
    return [[each.offset, each.value.hex()] for each in records_of(batch)]


def codes_in(plain: Any) -> Iterable[int]:
    """All error codes in a plain answer."""
    if isinstance(plain, list):
        for each in plain:
            yield from codes_in(each)
    elif isinstance(plain, dict):
        for name, value in plain.items():
            if name.endswith("error_code"):
                yield value or 0
            else:
                yield from codes_in(value)
