"""Observed creation rates beside the enforced ones: the same arithmetic over the same arrivals, up to the first that is held up."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shards.limits.connection_limits import ConnectionLimits
from shards.limits.observed_windows import WITHIN, ObservedWindows
from shards.limits.rate import Window
from shards.limits.rate_replay import RateQuotas
from shards.limits.replay_gate import REFUSED, IncomingConnection, ReplayGate
from shards.settings.broker_config import RATE

OF_USERS = {"a": 1, "b": None, "c": 0.5}
GAPS = st.lists(st.sampled_from([0, 1, 7, 90, 400, 1_000, 2_500, 40_000]), max_size=80)


@given(GAPS, st.integers(1, 4))
def test_a_rate_of_an_address_refuses_the_connections_that_the_enforced_one_refuses(
    gaps: list[int], quota: int
) -> None:
    enforced = ReplayGate(ConnectionLimits(), ["A"])
    enforced.ip_quotas.update(None, quota)
    observed = ObservedWindows(enforced.limits.window)
    now_ms = 0
    for gap in gaps:
        now_ms += gap
        connection = IncomingConnection(enforced.acceptors["A"], "10.0.0.1")
        enforced.connect(connection, now_ms=now_ms)
        beyond = observed.arrive_from(["10.0.0.1"], {"10.0.0.1": quota}, now_ms=now_ms)
        assert (connection.outcome == REFUSED) == bool(beyond)


@given(GAPS, st.integers(1, 4), st.integers(1, 4))
def test_a_rate_of_a_listener_delays_first_the_connection_that_the_enforced_one_delays(
    gaps: list[int], own: int, of_broker: int
) -> None:
    values: dict[str, Any] = {RATE: of_broker, f"listener.name.a.{RATE}": own}
    enforced = ReplayGate(ConnectionLimits(values), ["A"])
    observed = ObservedWindows(enforced.limits.window)
    now_ms = 0
    for gap in gaps:
        now_ms += gap
        connection = IncomingConnection(enforced.acceptors["A"], "10.0.0.1")
        enforced.connect(connection, now_ms=now_ms)
        ((answer, _),) = observed.arrive("A", RateQuotas(own, of_broker), now_ms=now_ms)
        delay_ms = answer.ms
        if connection.outcome is None:
            assert delay_ms and enforced.due[0][0] == now_ms + delay_ms
            return
        assert not delay_ms


def test_addresses_are_forgotten_when_nothing_of_them_counts() -> None:
    windows = ObservedWindows(Window(3, 1_000))
    ips = [f"10.0.{number // 250}.{number % 250}" for number in range(1_000)]
    windows.arrive_from(ips, dict.fromkeys(ips, 5), now_ms=0)
    assert len(windows) == 1_000
    for now_ms in (5_000, 10_000):
        windows.arrive_from(["10.9.9.9"], {"10.9.9.9": 5}, now_ms=now_ms)
    assert len(windows) == 1


def test_a_connection_that_its_address_refuses_is_taken_back_from_the_listener() -> None:
    windows, quotas = ObservedWindows(Window(2, 1_000)), RateQuotas(1)
    for _ in range(5):
        assert windows.arrive("A", quotas, now_ms=0) == [(WITHIN, 1)]
        windows.take_back("A", quotas, now_ms=0)
    runs = windows.arrive("A", quotas, 3, now_ms=0)
    assert [(bool(answer.ms), arrivals) for answer, arrivals in runs] == [(False, 1), (True, 2)]


@given(st.lists(st.tuples(st.sampled_from([0, 1, 300, 1_000, 2_500]), st.integers(1, 9)), max_size=40), st.booleans())
def test_arrivals_together_are_answered_as_one_by_one(bursts: list[tuple[int, int]], exempt: bool) -> None:
    together, alone = (ObservedWindows(Window(3, 1_000)) for _ in range(2))
    quotas = RateQuotas(2, None if exempt else 3, exempt)
    now_ms = 0
    for gap, arrivals in bursts:
        now_ms += gap
        runs = together.arrive("A", quotas, arrivals, now_ms=now_ms)
        one_by_one = [alone.arrive("A", quotas, now_ms=now_ms)[0][0] for _ in range(arrivals)]
        assert [answer for answer, count in runs for _ in range(count)] == one_by_one
        users = ["a", "b", "c"] * arrivals
        of_users = together.log_in(users, OF_USERS, now_ms=now_ms)
        each = [alone.log_in([name], OF_USERS, now_ms=now_ms) for name in users]
        assert of_users == [(place, told[0][1]) for place, told in enumerate(each) if told]


def test_what_an_address_refuses_does_not_count_against_it_later() -> None:
    windows = ObservedWindows(Window())
    ips, quotas = ["10.0.0.1"] * 12, {"10.0.0.1": 1.0}
    assert [place for place, _ in windows.arrive_from(ips, quotas, now_ms=0)] == [10, 11]
    assert len(windows.arrive_from(ips, quotas, now_ms=5_000)) == 12
    assert [place for place, _ in windows.arrive_from(ips, quotas, now_ms=11_000)] == [10, 11]
