"""Values for the fields of Kafka's requests: likely ones, boundaries, repeated ones, and ones of unlikely length.

A name is drawn from a few words, so that requests meet in the same topics, groups and users, and the cluster does not
grow with their number. Settings and quotas that would keep the fuzzer itself or the bystander out are not drawn.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

from batches import batch

from broker.wire.shapes import FIXED, Field

TOPICS = ("a", "b", "c.d", "__consumer_offsets", "no-such-topic")
GROUPS = ("g", "h", "")
USERS = ("alice", "bob")
CONFIGS = ("retention.ms", "cleanup.policy", "max.message.bytes", "message.max.bytes", "segment.bytes", "min.insync.replicas",
           "turnstile.request.cost", "message.timestamp.type", "follower.replication.throttled.replicas")  # fmt: skip
CONFIG_VALUES = (
    "",
    "1",
    "-1",
    "compact",
    "delete,compact",
    "9" * 400,
    "Infinity",
    "nan",
    "[",
    '["x',
    "*=1us",
    "CreateTime",
    "a=b",
)
QUOTA_KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate", "nothing")
ODD = (
    "",
    "\0",
    ".",
    "..",
    "a" * 249,
    "a" * 250,
    "ä漢\U0001f600",
    "x" * 32767,
    "%s",
    "../../x",
    "\x1b[31m",
    " ",
    "a/b",
    "-",
)
INTS = (0, 1, -1, 2, 3, 5, 100, 127, 128, 255, 256, 1000, 30_000, 32_767, 65_536)
UNSIGNED = frozenset("BHI")
MOST_ITEMS = 100_000


class Values:
    """Draws from `random`; `learned` are member ids, topic ids and the like that answers told."""

    def __init__(self, rng: random.Random, learned: dict[str, list[Any]]) -> None:
        self.rng = rng
        self.learned = learned
        self._copies = 1  # the product of the lengths of the arrays around what is drawn now

    def of(self, field: Field) -> Any:
        """A value of a field that is no structure and no array."""
        if field.nullable and self.rng.random() < 0.2 and field.name != "entity_name":
            return None
        if field.name in self.learned and self.rng.random() < 0.7:
            return self.rng.choice(self.learned[field.name])
        if field.kind == "string":
            return self._text(field.name)
        if field.kind == "bytes":
            return self._bytes(field.name)
        if field.kind == "uuid":
            known = self.learned.get("topic_id", [])
            return self.rng.choice([None, UUID(int=self.rng.getrandbits(128)), *known])
        if field.kind == "bool":
            return self.rng.random() < 0.5
        if field.kind == "float64":
            return self.rng.choice((0.0, 1.0, -1.0, 1e6, 1e300, float("inf"), float("nan")))
        return self._integer(field)

    def length(self) -> int:
        """Of an array: mostly short. Arrays within arrays have MOST_ITEMS together: to encode more would keep this process busy
        for so long that its own bystander waits."""
        return min(
            self.rng.choices((0, 1, 2, 5, 40, 1500), (10, 50, 20, 15, 4, 0.3))[0], max(1, MOST_ITEMS // self._copies)
        )

    @contextmanager
    def within(self, length: int) -> Iterator[None]:
        """What is drawn meanwhile is for an array of so many items."""
        before = self._copies
        self._copies *= max(1, length)
        yield
        self._copies = before

    def _text(self, name: str) -> str:
        if self.rng.random() < 0.12:
            return self.rng.choice(ODD)
        if "entity_type" in name:
            return self.rng.choice(("user", "client-id", "ip", "zone"))
        if "entity_name" in name or name == "match":
            return self.rng.choice(("fuzz-1", "fuzz-2", "10.9.8.7"))
        if "topic" in name or name == "topic":
            return self.rng.choice(TOPICS)
        if "group" in name:
            return self.rng.choice(GROUPS)
        if name == "key":
            return self.rng.choice((*QUOTA_KEYS, *GROUPS))
        if name == "value":
            return self.rng.choice(CONFIG_VALUES)
        if name == "resource_name":
            return self.rng.choice(("0", "1", "", *TOPICS))
        words = (*TOPICS, *CONFIGS, *USERS, "range", "consumer", "PLAIN", "fuzz")
        return self.rng.choice(words)

    def _bytes(self, name: str) -> bytes:
        kind = self.rng.random()
        if name == "records" and kind < 0.8:
            made = bytearray(batch(*[b"v"] * self.rng.choice((1, 2, 30))))
            for _ in range(self.rng.choice((0, 0, 0, 1, 3))):
                made[self.rng.randrange(len(made))] = self.rng.randrange(256)
            return bytes(made[: self.rng.choice((len(made), len(made), self.rng.randrange(len(made))))])
        if kind < 0.9:  # ConsumerProtocolSubscription of one topic
            return struct.pack(">hih", 0, 1, 1) + b"a" + struct.pack(">i", 0)
        return self.rng.randbytes(self.rng.choice((0, 1, 20, 3000)))

    def _integer(self, field: Field) -> Any:
        kind = FIXED[field.kind]
        bits = struct.calcsize(">" + kind) * 8
        least, most = (0, 2**bits - 1) if kind in UNSIGNED else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if self.rng.random() < 0.1:
            value = self.rng.choice((least, most, least + 1, most - 1, self.rng.randint(least, most)))
        else:
            value = min(max(self.rng.choice(INTS[: self.rng.choice((4, len(INTS)))]), least), most)
        if field.name in ("max_wait", "session_timeout", "rebalance_timeout") and self.rng.random() < 0.98:
            value = self.rng.choice((0, 10, 6000))
        return timedelta(milliseconds=value) if field.kind.startswith("timedelta") and abs(value) < 2**31 else value
