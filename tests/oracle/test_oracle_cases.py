"""What Kafka's own tests assert, asserted of Turnstile's answers to the same cases."""

import json
from collections import Counter
from typing import Any

import pytest
from oracle_cases import ADMIN, CASES, CONNECTION_CASES, EXTERNAL, IP_OF, KNOWN, LISTENERS, REPLICATION, UNKNOWN
from oracle_cases_quotas import QUOTA_CASES

from turnstile.replay.stream import replay

PREFIX = "ConnectionQuotasTest.test"


class Answered:
    """A connection case with its answers: each connect event, and what became of it."""

    def __init__(self, name: str) -> None:
        lines = CASES[PREFIX + name]
        events = [event for event in map(json.loads, lines) if event["do"] == "connect"]
        self.pairs = list(zip(events, map(json.loads, replay(lines)), strict=True))

    def of(self, **fields: Any) -> "Answered":
        """Only the connects whose event has these values."""
        chosen = Answered.__new__(Answered)
        chosen.pairs = [pair for pair in self.pairs if all(pair[0][key] == value for key, value in fields.items())]
        return chosen

    def slice(self, start: int, stop: int | None = None) -> "Answered":
        chosen = Answered.__new__(Answered)
        chosen.pairs = self.pairs[start:stop]
        return chosen

    @property
    def outcomes(self) -> Counter[str]:
        return Counter(answer["reason"] or answer["outcome"] for _, answer in self.pairs)

    @property
    def longest_delay_ms(self) -> int:
        return max(answer["at"] - event["at"] for event, answer in self.pairs)

    @property
    def per_s(self) -> float:
        """Admitted per second, from the first connect to the last admission."""
        admitted = [answer["at"] for _, answer in self.pairs if answer["outcome"] == "admitted"]
        return len(admitted) * 1000 / (admitted[-1] - self.pairs[0][0]["at"])


def test_no_connection_limits_by_default() -> None:
    answered = Answered("NoConnectionLimitsByDefault")
    assert answered.outcomes == {"admitted": 6000}
    assert answered.longest_delay_ms == 0


def test_max_connections_per_ip() -> None:
    answered = Answered("MaxConnectionsPerIp")
    assert answered.slice(0, 19).outcomes == {"admitted": 17, "ip_cap": 2}
    assert answered.slice(19, 36).outcomes == {"admitted": 17}
    assert answered.slice(36).outcomes == {"admitted": 2, "ip_cap": 1}


def test_max_broker_wide_connection_limit() -> None:
    answered = Answered("MaxBrokerWideConnectionLimit")
    assert answered.of(listener=EXTERNAL).outcomes == {"admitted": 801}
    assert answered.of(id="external-800").longest_delay_ms == 100
    assert answered.of(listener=REPLICATION).longest_delay_ms == 0
    assert answered.of(listener=ADMIN).pairs[0][1]["at"] == 1500


def test_max_listener_connection_limits() -> None:
    answered = Answered("MaxListenerConnectionLimits")
    for listener in LISTENERS:
        assert answered.of(listener=listener).slice(0, 200).longest_delay_ms == 0
        assert answered.of(listener=listener).slice(200).longest_delay_ms == 1000


@pytest.mark.parametrize("level", ["Broker", "Listener"])
def test_rate_below_its_limit_delays_nothing(level: str) -> None:
    assert Answered(f"{level}ConnectionRateLimitWhenActualRateBelowLimit").longest_delay_ms == 0


def test_broker_rate_above_limit() -> None:
    answered = Answered("BrokerConnectionRateLimitWhenActualRateAboveLimit")
    assert answered.outcomes == {"admitted": 1200}
    assert answered.of(listener=REPLICATION).longest_delay_ms == 0
    assert answered.of(listener=EXTERNAL).longest_delay_ms > 0
    both = answered.of(listener=EXTERNAL).per_s + answered.of(listener=ADMIN).per_s
    assert 90 < both < 90 * 1.2  # for 8 s, of which the first one's worth passes at once


def test_listener_rate_above_limit() -> None:
    answered = Answered("ListenerConnectionRateLimitWhenActualRateAboveLimit")
    for listener in LISTENERS:
        assert answered.of(listener=listener).per_s == pytest.approx(30, abs=7)


def test_ip_rate_below_limit() -> None:
    answered = Answered("IpConnectionRateWhenActualRateBelowLimit")
    assert answered.outcomes == {"admitted": 400}
    assert answered.longest_delay_ms == 0


def test_ip_rate_above_limit() -> None:
    answered = Answered("IpConnectionRateWhenActualRateAboveLimit")
    assert answered.longest_delay_ms == 0  # an address's rate blocks no acceptor
    for listener in (EXTERNAL, ADMIN):
        outcomes = answered.of(listener=listener).outcomes
        assert outcomes["admitted"] == pytest.approx(20 * 2, abs=2)  # in 2 s
        assert outcomes["admitted"] + outcomes["ip_rate"] == 80


def test_ip_rate_with_listener_rate() -> None:
    answered = Answered("IpConnectionRateWithListenerConnectionRate")
    throttled = [ip for ip in (KNOWN, UNKNOWN) if answered.of(ip=ip).outcomes["ip_rate"]]
    assert len(throttled) == 1
    assert answered.longest_delay_ms > 0


def test_rejected_ip_is_unrecorded_from_rates() -> None:
    answered = Answered("RejectedIpConnectionUnrecordedFromConnectionRateQuotas")
    for listener in (EXTERNAL, REPLICATION):
        assert answered.of(ip=IP_OF[listener], listener=listener).outcomes == {"ip_rate": 1}
    for ip, start in ((KNOWN, 0), (UNKNOWN, 10_000)):
        assert [answer["at"] for _, answer in answered.of(ip=ip).pairs][:2] == [start, start + 1000]


def test_listener_rate_must_be_above_zero() -> None:
    rejected: list[str] = []
    lines = CASES[f"{PREFIX}MaxListenerConnectionListenerMustBeAboveZero"]
    list(replay(lines, lambda line, why: rejected.append(why)))
    assert rejected == [
        "listener.name.external.max.connection.creation.rate cannot be '0': it must be at least 1 while the cluster runs."
    ]
    assert Answered("MaxListenerConnectionListenerMustBeAboveZero").longest_delay_ms > 0


def test_lowered_listener_rate_holds_from_then_on() -> None:
    answered = Answered("MaxListenerConnectionRateReconfiguration")
    assert answered.slice(0, 1000).longest_delay_ms == 0
    assert answered.slice(1000).per_s == pytest.approx(10, abs=3)


def test_changed_broker_rate_is_kept() -> None:
    assert Answered("MaxBrokerConnectionRateReconfiguration").slice(1).per_s == pytest.approx(50, abs=20)


def test_ip_rate_metric_update() -> None:
    answered = Answered("IpConnectionRateMetricUpdate")
    for step, (external, admin) in enumerate([(50, 50), (30, 50), (30, 20), (30, 60), (60, 60)]):
        at = answered.of(at=step * 10_000)
        assert at.of(listener=EXTERNAL).outcomes["admitted"] == external
        assert at.of(listener=ADMIN).outcomes["admitted"] == admin


def test_enforced_ip_rate_update() -> None:
    answered = Answered("EnforcedIpConnectionRateQuotaUpdate")
    external, admin = answered.of(listener=EXTERNAL), answered.of(listener=ADMIN)
    assert [external.slice(n, n + 40).outcomes["admitted"] for n in (0, 40, 80)] == [20, 10, 40]
    assert [admin.slice(n, n + 40).outcomes["admitted"] for n in (0, 40)] == [40, 20]


def test_count_limit_and_rate_limit() -> None:
    answered = Answered("NonDefaultConnectionCountLimitAndRateLimit")
    assert answered.slice(0, 350).per_s == pytest.approx(25, abs=8)
    assert answered.slice(350).pairs[0][1]["at"] == 20_000


@pytest.mark.parametrize("name", QUOTA_CASES)
def test_client_quotas_throttle_as_kafkas_classes_do(name: str) -> None:
    lines = QUOTA_CASES[name]
    events = [event for event in map(json.loads, lines) if event["do"] == "record"]
    for event, answer in zip(events, map(json.loads, replay(lines)), strict=True):
        assert answer["throttle_ms"] == event.get("throttle_ms", answer["throttle_ms"]), event
        assert (answer["throttle_ms"] > 0) == event.get("throttled", answer["throttle_ms"] > 0), event
        assert (answer["outcome"] == "refused") == event.get("refused", False), event


def test_every_named_case_has_a_scenario() -> None:
    assert len(CONNECTION_CASES) == 18  # of 20: two ask for what a scenario can't hold (tests/unit/test_replay.py)
    assert all(CASES.values())
