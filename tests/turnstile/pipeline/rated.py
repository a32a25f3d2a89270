"""Many brokers under one configuration of rates: each has the arrivals of one seed, decided by the product's own
`Rates`, honest or with one planted violation.

Three phases, each long enough for the windows to hold nothing of the one before: KIP-612's rates of addresses, listeners and
broker; Redpanda's rate of a core; its overrides.
"""

import json
import random
from collections.abc import Callable
from typing import Any

from crowd import SECOND_NS, numbered
from presence import begun_and_ended, seen_by_the_coordinator
from storms import COORDINATOR

from shards.config.image import ClusterImage
from shards.limits.bucket import ConnectionBucket
from shards.rates.rates import Rates

MS = 1_000_000
LISTENERS = ("EXTERNAL", "OTHER", "INTERNAL")
NAMES = ",".join(f"{name}://:{port}" for port, name in enumerate(LISTENERS, start=1))
SHARDS = 2
IPS = tuple(f"10.0.0.{number}" for number in range(1, 5))
CHANGES: tuple[list[list[Any]], ...] = (
    [
        ["static", "/listeners", NAMES],
        ["static", "/inter.broker.listener.name", "INTERNAL"],
        ["static", "/quota.window.num", "3"],
        ["quota", json.dumps({"ip": None}), {"connection_creation_rate": 2.0}],
        ["setting", "/max.connection.creation.rate", "8"],
        ["setting", "/listener.name.external.max.connection.creation.rate", "3"],
    ],
    [
        ["quota", json.dumps({"ip": None}), None],
        ["setting", "/max.connection.creation.rate", None],
        ["setting", "/listener.name.external.max.connection.creation.rate", None],
        ["setting", "/kafka_connection_rate_limit", "5"],
    ],
    [
        ["setting", "/kafka_connection_rate_limit", None],
        ["setting", "/kafka_connection_rate_limit_overrides", "10.0.0.1:5"],
    ],
)
STORED_NS = tuple(number * 100 * SECOND_NS for number in range(1, 4))
ACKNOWLEDGED_NS = tuple(at_ns + SECOND_NS for at_ns in STORED_NS)

Event = dict[str, Any]
Plant = Callable[["RatedBroker"], None]


class RatedBroker:
    """One broker's events, in no order: `numbered` sorts them. Shard 0 is home to all rates."""

    def __init__(self, number: int, seed: int) -> None:
        self.number = number
        self.random = random.Random(seed)
        self.events: list[Event] = []
        self.version = 1
        self.conn = 0
        self.now_ns = STORED_NS[0] + 1
        self._image = ClusterImage(number)
        self._blocked_ms: dict[str, int] = {}
        self._buckets: dict[tuple[int, int], ConnectionBucket] = {}
        self.rates = Rates(
            0,
            1,
            LISTENERS,
            self._image,
            send=lambda peer, message: None,
            blocked=self._blocked_ms.__setitem__,
            journal=lambda kind, detail, version: self.add(kind, 0, detail=json.dumps(detail), version=version),
        )
        self._apply()

    def numbered(self) -> list[Event]:
        return numbered(begun_and_ended(self.events, SHARDS))

    @property
    def now_ms(self) -> int:
        return self.now_ns // MS

    def run(self, plant: Plant | None = None, phase: int = 1) -> "RatedBroker":
        """All three phases, with `plant` called at a random moment of one."""
        at_ns = ACKNOWLEDGED_NS[phase - 1] + self.random.randint(10, 20) * SECOND_NS
        for version in (1, 2, 3):
            if version > 1:
                self.now_ns, self.version = STORED_NS[version - 1] + self.random.randint(1, SECOND_NS - 1), version
                self._apply()
            if version == phase and plant is not None:
                self._steps(at_ns)
                plant(self)
            self._steps(STORED_NS[version - 1] + 40 * SECOND_NS)
        return self

    def add(self, kind: str, shard: int, **columns: Any) -> None:
        self.now_ns += 1
        event = {"kind": kind, "mono_ns": self.now_ns, "broker": self.number, "shard": shard, "epoch": 1}
        self.events.append({**event, "ts": 1_600_000_000_000_000 + self.now_ns // 1000, **columns})

    def admit(self, ip: str, listener: str, *, shard: int | None = None) -> None:
        """A connection that is admitted and closes at once; no rate is asked."""
        shard = self.random.randrange(SHARDS) if shard is None else shard
        self.conn += 1
        columns = {"conn": self.conn, "ip": ip, "port": 1000, "listener": listener}
        self.add("admitted", shard, version=self.version, **columns)
        self.add("closed", shard, reason="client", **columns)

    def record(self, key: str) -> int:
        """Records a unit at the home, not before the listener accepts again. Returns for how many ms the home says to wait."""
        self.now_ns = max(self.now_ns, self._blocked_ms.get(key.removeprefix("listener:"), 0) * MS)
        wait_ms = self.rates.record(key, None, now_ms=self.now_ms)  # type: ignore[arg-type]  # with one shard there is no answer to wait for
        assert wait_ms is not None
        return wait_ms

    def _apply(self) -> None:
        changes = CHANGES[self.version - 1]
        self._image.apply(self.version, [tuple(change) for change in changes])
        self.rates.apply(self.version, now_ms=self.now_ms)
        self.rates.flush(now_ms=self.now_ms)
        detail = json.dumps({"changes": changes, "full": self.version == 1, "acknowledged": False})
        for shard in range(SHARDS):
            self.add("config", shard, version=self.version, detail=detail)

    def _steps(self, end_ns: int) -> None:
        while self.now_ns < end_ns:
            self.now_ns += self.random.randint(1, 3 * SECOND_NS)
            for _ in range(
                self.random.choice((1, 1, 6)) if self.version == 1 else self.random.choice((1,) * 9 + (14,))
            ):
                self._arrive(self.random.choice(IPS), self.random.choice(LISTENERS))

    def refuse(self, reason: str, ip: str, listener: str, shard: int, held_ms: int) -> None:
        """A connection that came `held_ms` before now is refused by a rate."""
        limits = {1: ("connection_creation_rate", 2.0), 2: ("kafka_connection_rate_limit", 5.0)}
        limit, value = limits.get(self.version, ("kafka_connection_rate_limit_overrides", 5.0))
        self.conn += 1
        columns = {"conn": self.conn, "ip": ip, "port": 1000, "listener": listener, "version": self.version}
        self.add("refused", shard, reason=reason, limit=limit, limit_value=value, held_ms=float(held_ms), **columns)

    def quiet(self) -> None:
        """Both shards show that they are alive, and nothing else happens for seven seconds before and after."""
        self.now_ns += 7 * SECOND_NS
        for shard in range(SHARDS):
            self.admit("10.7.0.1", "OTHER", shard=shard)
        self.now_ns += 7 * SECOND_NS

    def _arrive(self, ip: str, listener: str) -> None:
        """Waits as long as it has to, and is held and refused when its address is over its quota."""
        shard = self.random.randrange(SHARDS)
        if self.version > 1 and (self.version == 2 or ip == "10.0.0.1"):
            bucket = self._buckets.setdefault((self.version, shard), ConnectionBucket(5, now_ms=self.now_ms))
            wait_ms = bucket.take(now_ms=self.now_ms)
            self.now_ns += (100 if wait_ms is None else wait_ms) * MS
            if wait_ms is None:
                self.refuse("core_rate", ip, listener, shard, 100)
                return
        if self.rates.limits_listeners:
            self.now_ns += self.record(f"listener:{listener}") * MS
        if self.rates.has_quota(f"ip:{ip}") and self.record(f"ip:{ip}"):
            self.rates.count(listener, -1, now_ms=self.now_ms)
            self.rates.flush(now_ms=self.now_ms)
            self.now_ns += SECOND_NS
            self.refuse("ip_rate", ip, listener, shard, 1000)
        else:
            self.admit(ip, listener, shard=shard)


def coordinator(events: list[Event]) -> list[Event]:
    events = seen_by_the_coordinator(events)
    for version, changes in enumerate(CHANGES, start=1):
        for at_ns, acknowledged in ((STORED_NS[version - 1], False), (ACKNOWLEDGED_NS[version - 1], True)):
            detail = json.dumps({"changes": changes, "full": version == 1, "acknowledged": acknowledged})
            place = {"broker": COORDINATOR, "shard": COORDINATOR, "epoch": 0, "ts": 1_600_000_000_000_000}
            events.append({**place, "kind": "config", "mono_ns": at_ns, "version": version, "detail": detail})
    events.append({**place, "kind": "ended", "mono_ns": 1000 * SECOND_NS})
    return numbered(events)


# ---- violations


def burst(count: int, listener: str, ip: str | None = None, shard: int | None = None) -> Plant:
    """So many at once, of one address or of many."""

    def plant(broker: RatedBroker) -> None:
        for number in range(count):
            broker.admit(ip or f"10.9.0.{number}", listener, shard=shard)

    return plant


def over_the_broker(broker: RatedBroker) -> None:
    """No listener is over its own rate."""
    burst(30, "EXTERNAL")(broker)
    for number in range(40):
        broker.admit(f"10.8.0.{number}", "OTHER")


def unit_beyond(key: str) -> Plant:
    """One more unit than Kafka would have recorded just then."""

    def plant(broker: RatedBroker) -> None:
        while not broker.record(key):
            pass
        detail = {"pool": f"rate:{key}", "to": 1, "tokens": 1, "at_ms": broker.now_ms}
        broker.add("grant", 0, detail=json.dumps(detail), version=broker.version)

    return plant


def refused_without_cause(reason: str) -> Plant:
    """A connection is refused by a rate that no client came near."""

    def plant(broker: RatedBroker) -> None:
        broker.quiet()
        broker.refuse(reason, "10.0.0.1", "OTHER", 0, 100)
        broker.quiet()

    return plant


def refused_beside_headerless(broker: RatedBroker) -> None:
    """A connection is refused by the core's rate, and all that came beside it were proxies without their PROXY header."""
    broker.quiet()
    for _ in range(20):
        broker.refuse("proxy_header", "10.0.0.9", "OTHER", 0, 10)
    broker.refuse("core_rate", "10.0.0.1", "OTHER", 0, 100)
    broker.quiet()


PLANTS: dict[str, tuple[Plant, int, str]] = {
    "address": (burst(10, "EXTERNAL", "10.0.0.1"), 1, "ip_rate"),
    "listener": (burst(38, "EXTERNAL"), 1, "listener_rate"),
    "broker": (over_the_broker, 1, "broker_rate"),
    "core": (burst(22, "EXTERNAL", shard=1), 2, "core_rate"),
    "core override": (burst(22, "EXTERNAL", "10.0.0.1", shard=1), 3, "core_rate_override"),
    "unit of an address": (unit_beyond("ip:10.0.0.1"), 1, "ip_rate_units"),
    "unit of a listener": (unit_beyond("listener:EXTERNAL"), 1, "listener_rate_units"),
    "unit of a broker": (unit_beyond("listener:OTHER"), 1, "listener_rate_units"),
    "refused by an address's rate": (refused_without_cause("ip_rate"), 1, "refused_with_cause"),
    "refused by a core's rate": (refused_without_cause("core_rate"), 2, "refused_with_cause"),
    "refused beside proxies without a header": (refused_beside_headerless, 2, "refused_with_cause"),
    "refused by an override": (refused_without_cause("core_rate"), 3, "refused_with_cause"),
}
