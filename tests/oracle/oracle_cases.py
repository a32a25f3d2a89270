"""Kafka's own test cases as scenarios, one per test: ConnectionQuotasTest here, the client quotas' beside it.

Its tests call `inc` from one thread per listener, sleeping between the calls; here every connect has the time at which
that thread would make it if nothing held it up, and waits behind its acceptor as the thread would.
"""

import json
from typing import Any

from oracle_cases_quotas import QUOTA_CASES
from oracle_scenarios import Scenario

EXTERNAL, ADMIN, REPLICATION = "EXTERNAL", "ADMIN", "REPLICATION"
LISTENERS = (EXTERNAL, REPLICATION, ADMIN)
IP_OF = {EXTERNAL: "192.168.1.1", ADMIN: "192.168.1.2", REPLICATION: "192.168.1.3"}
KNOWN, UNKNOWN = "192.168.10.0", "192.168.2.0"


class Story:
    """A scenario under the settings of ConnectionQuotasTest: two samples of one second, three listeners."""

    def __init__(self, *, samples: int = 2, **settings: int) -> None:
        self._events: list[tuple[int, dict[str, Any]]] = []
        self._opened: dict[str, list[str]] = {}
        self.add(0, "setup", listeners=list(LISTENERS), inter_broker=REPLICATION)
        self.set(0, "quota.window.num", samples)
        for name, value in settings.items():
            self.set(0, name.replace("_", "."), value)

    def add(self, at: int, do: str, **fields: Any) -> None:
        self._events.append((at, {"at": at, "do": do, **fields}))

    def set(self, at: int, name: str, value: object) -> None:
        self.add(at, "set", name=name, value=None if value is None else str(value))

    def each_listener(self, at: int, name: str, value: object) -> None:
        for listener in LISTENERS:
            self.set(at, f"listener.name.{listener.lower()}.{name}", value)

    def ip_rate(self, at: int, ip: str | None, value: int | None) -> None:
        self.add(at, "quota", entity={"ip": ip}, key="connection_creation_rate", value=value)

    def accept(self, at: int, listener: str, count: int, *, every: int = 0, ip: str | None = None) -> None:
        """`count` connects, named by listener and number."""
        ids = self._opened.setdefault(listener, [])
        for number in range(count):
            ids.append(f"{listener.lower()}-{len(ids)}")
            self.add(at + number * every, "connect", id=ids[-1], ip=ip or IP_OF[listener], listener=listener)

    def close(self, at: int, listener: str, *numbers: int) -> None:
        for number in numbers:
            self.add(at, "close", id=f"{listener.lower()}-{number}")

    def lines(self) -> Scenario:
        ordered = sorted(self._events, key=lambda event: event[0])
        return [json.dumps(event, separators=(",", ":")) for _, event in ordered]


def no_connection_limits_by_default() -> Story:
    """2,000 connections on each listener at once (the test makes 10,000)."""
    story = Story()
    for listener in LISTENERS:
        story.accept(0, listener, 2_000)
    return story


def max_connections_per_ip() -> Story:
    """17 get in, 2 more do not, another address does; after two closes two more get in."""
    story = Story(max_connections_per_ip=17)
    story.accept(0, EXTERNAL, 19)
    story.accept(1, EXTERNAL, 17, ip=KNOWN)
    story.close(2, EXTERNAL, 0, 1, 17, 18)
    story.accept(3, EXTERNAL, 3)
    return story


def max_broker_wide_connection_limit() -> Story:
    """All 800 on one listener; one more waits for a close; the inter-broker listener gets in all the same.

    The test needs three closes for the last one to get in, as no thread runs the processors that close the connection
    idle longest. Here each of the two inter-broker connections has closed one, and a single close is enough.
    """
    story = Story(max_connections=800)
    story.accept(0, EXTERNAL, 801)
    story.close(100, EXTERNAL, 799)
    story.accept(200, REPLICATION, 1)
    story.accept(300, ADMIN, 1)
    story.accept(1300, REPLICATION, 1)
    story.close(1400, EXTERNAL, 0, 1)  # those the broker has closed
    story.close(1500, EXTERNAL, 2)
    return story


def max_listener_connection_limits() -> Story:
    """200 on each listener, the inter-broker one included; the 201st of each waits for a close there."""
    story = Story(max_connections=800)
    story.each_listener(0, "max.connections", 200)
    for listener in LISTENERS:
        story.accept(0, listener, 201)
        story.close(1000, listener, 0)
    return story


def broker_rate_when_below_limit() -> Story:
    """120/s in all under a broker rate of 125/s: no connection waits."""
    story = Story(max_connection_creation_rate=125)
    for listener in LISTENERS:
        story.accept(0, listener, 200, every=25)
    return story


def broker_rate_when_above_limit() -> Story:
    """300/s in all over a broker rate of 90/s: all but the inter-broker listener are held up."""
    story = Story(max_connection_creation_rate=90)
    story.each_listener(0, "max.connection.creation.rate", 2**31 - 1)  # the test's listeners don't take the broker's
    for listener in LISTENERS:
        story.accept(0, listener, 400, every=10)
    return story


def listener_rate_when_below_limit() -> Story:
    """40/s on each listener, under 50/s: no connection waits."""
    story = Story(max_connection_creation_rate=125)
    story.each_listener(0, "max.connection.creation.rate", 50)
    for listener in LISTENERS:
        story.accept(0, listener, 200, every=25)
    return story


def listener_rate_when_above_limit() -> Story:
    """40/s on each listener, over 30/s: 600 take 20 s."""
    story = Story(max_connection_creation_rate=125)
    story.each_listener(0, "max.connection.creation.rate", 30)
    for listener in LISTENERS:
        story.accept(0, listener, 600, every=25)
    return story


def ip_rate_when_below_limit() -> Story:
    """25/s from an address limited to 30/s, 50/s from one without a quota: no connection is refused."""
    story = Story()
    story.ip_rate(0, IP_OF[EXTERNAL], 30)
    story.accept(0, EXTERNAL, 200, every=40)
    story.accept(8000, ADMIN, 200, every=20)
    return story


def ip_rate_when_above_limit() -> Story:
    """40/s from addresses limited to 20/s, the second one by the default quota: half of them get in."""
    story = Story()
    story.ip_rate(0, IP_OF[EXTERNAL], 20)
    story.accept(0, EXTERNAL, 80, every=25)
    story.ip_rate(2000, None, 20)
    story.accept(2000, ADMIN, 80, every=25)
    return story


def ip_rate_with_listener_rate() -> Story:
    """Two addresses at 25/s each on a listener of 35/s: one meets its own limit, then the listener blocks."""
    story = Story()
    story.ip_rate(0, None, 25)
    story.each_listener(0, "max.connection.creation.rate", 35)
    for _ in range(35):
        story.accept(0, EXTERNAL, 1, ip=KNOWN)
    for _ in range(35):
        story.accept(0, EXTERNAL, 1, ip=UNKNOWN)
    return story


def rejected_ip_is_unrecorded_from_rates() -> Story:
    """A spent address rate refuses; at rates of 1/s the next ones show that no rate kept a record of the refused.

    Kafka's test gives the addresses a rate of 0, which its controller never lets a broker have. Here it is 1, spent before
    through a listener whose records are in none of the rates that are looked at.
    """
    story = Story(max_connection_creation_rate=1)
    story.ip_rate(0, IP_OF[EXTERNAL], 1)
    story.ip_rate(0, IP_OF[REPLICATION], 1)
    story.set(0, "listener.name.replication.max.connection.creation.rate", 1000)
    story.accept(0, REPLICATION, 1, ip=IP_OF[EXTERNAL])
    story.accept(0, EXTERNAL, 1)
    story.accept(0, EXTERNAL, 3, ip=KNOWN)
    story.set(10_000, "listener.name.replication.max.connection.creation.rate", 1)
    story.accept(10_000, ADMIN, 1, ip=IP_OF[REPLICATION])
    story.accept(10_000, REPLICATION, 1)
    story.accept(10_000, REPLICATION, 3, ip=UNKNOWN)
    return story


def listener_rate_must_be_above_zero() -> Story:
    """A live listener rate of 0 is refused: the old one stays."""
    story = Story()
    story.each_listener(0, "max.connection.creation.rate", 2)
    story.accept(0, EXTERNAL, 1)
    story.set(1, "listener.name.external.max.connection.creation.rate", 0)
    story.accept(2, EXTERNAL, 5)
    return story


def listener_rate_reconfiguration() -> Story:
    """A rate is removed: 1,000 at once. Then one of 10/s is set: the next 200 are held up by it."""
    story = Story()
    story.set(0, "listener.name.external.max.connection.creation.rate", 20)
    story.set(0, "listener.name.external.max.connection.creation.rate", None)
    story.accept(0, EXTERNAL, 1000)
    story.set(10, "listener.name.external.max.connection.creation.rate", 10)
    story.accept(10, EXTERNAL, 200, every=5)
    return story


def broker_rate_reconfiguration() -> Story:
    """A broker rate of 50/s set live: 400 connects at 200/s take about 8 s."""
    story = Story()
    story.accept(0, EXTERNAL, 1)
    story.set(1, "max.connection.creation.rate", 50)
    story.accept(1, EXTERNAL, 400, every=5)
    return story


def ip_rate_metric_update() -> Story:
    """Default 50, an override 30, default 20, none, and no override: bursts show which quota each address has."""
    story = Story()
    changes: tuple[tuple[str | None, int | None], ...] = (
        (None, 50), (IP_OF[EXTERNAL], 30), (None, 20), (None, None), (IP_OF[EXTERNAL], None),
    )  # fmt: skip
    for step, (ip, value) in enumerate(changes):
        story.ip_rate(step * 10_000, ip, value)
        story.accept(step * 10_000, EXTERNAL, 60)
        story.accept(step * 10_000, ADMIN, 60)
    return story


def enforced_ip_rate_update() -> Story:
    """20 of 40 get in; 30 in all once the quota is 30; all once it is gone; 20 of another address by a default."""
    story = Story()
    story.ip_rate(0, IP_OF[EXTERNAL], 20)
    story.accept(0, EXTERNAL, 40)
    story.ip_rate(0, IP_OF[EXTERNAL], 30)
    story.accept(0, EXTERNAL, 40)
    story.ip_rate(0, IP_OF[EXTERNAL], None)
    story.accept(0, EXTERNAL, 40)
    story.accept(0, ADMIN, 40)
    story.ip_rate(0, None, 20)
    story.accept(0, ADMIN, 40)
    return story


def count_limit_and_rate_limit() -> Story:
    """25/s until 350 are there, after 14 s; one more waits for a close."""
    story = Story(max_connections=350, max_connection_creation_rate=25)
    story.accept(0, EXTERNAL, 351, every=10)
    story.close(20_000, EXTERNAL, 0)
    return story


CONNECTION_CASES = {
    "ConnectionQuotasTest.testNoConnectionLimitsByDefault": no_connection_limits_by_default,
    "ConnectionQuotasTest.testMaxConnectionsPerIp": max_connections_per_ip,
    "ConnectionQuotasTest.testMaxBrokerWideConnectionLimit": max_broker_wide_connection_limit,
    "ConnectionQuotasTest.testMaxListenerConnectionLimits": max_listener_connection_limits,
    "ConnectionQuotasTest.testBrokerConnectionRateLimitWhenActualRateBelowLimit": broker_rate_when_below_limit,
    "ConnectionQuotasTest.testBrokerConnectionRateLimitWhenActualRateAboveLimit": broker_rate_when_above_limit,
    "ConnectionQuotasTest.testListenerConnectionRateLimitWhenActualRateBelowLimit": listener_rate_when_below_limit,
    "ConnectionQuotasTest.testListenerConnectionRateLimitWhenActualRateAboveLimit": listener_rate_when_above_limit,
    "ConnectionQuotasTest.testIpConnectionRateWhenActualRateBelowLimit": ip_rate_when_below_limit,
    "ConnectionQuotasTest.testIpConnectionRateWhenActualRateAboveLimit": ip_rate_when_above_limit,
    "ConnectionQuotasTest.testIpConnectionRateWithListenerConnectionRate": ip_rate_with_listener_rate,
    "ConnectionQuotasTest.testRejectedIpConnectionUnrecordedFromConnectionRateQuotas": rejected_ip_is_unrecorded_from_rates,
    "ConnectionQuotasTest.testMaxListenerConnectionListenerMustBeAboveZero": listener_rate_must_be_above_zero,
    "ConnectionQuotasTest.testMaxListenerConnectionRateReconfiguration": listener_rate_reconfiguration,
    "ConnectionQuotasTest.testMaxBrokerConnectionRateReconfiguration": broker_rate_reconfiguration,
    "ConnectionQuotasTest.testIpConnectionRateMetricUpdate": ip_rate_metric_update,
    "ConnectionQuotasTest.testEnforcedIpConnectionRateQuotaUpdate": enforced_ip_rate_update,
    "ConnectionQuotasTest.testNonDefaultConnectionCountLimitAndRateLimit": count_limit_and_rate_limit,
}

CASES: dict[str, Scenario] = {name: case().lines() for name, case in CONNECTION_CASES.items()} | QUOTA_CASES
