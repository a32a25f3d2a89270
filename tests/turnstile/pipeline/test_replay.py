"""Replays without Spark: every decision of the fast ones equals the plain one."""

import numpy
from hypothesis import given
from hypothesis import strategies as st
from plain import Row, replay

from turnstile.pipeline.inputs.entities import IP
from turnstile.pipeline.plan.candidates import Candidate
from turnstile.pipeline.plan.replays import caps
from turnstile.pipeline.plan.what_if import NEVER, by_entity, levels, whole, within_rate

IPS = ["10.0.0.1", "10.0.0.2", "10.1.0.1", "2001:db8::1"]
rows = st.tuples(
    st.sampled_from(IPS),
    st.integers(0, 40).map(lambda at: at * 250_000),
    st.one_of(st.integers(0, 30).map(lambda length: length * 300_000), st.just(NEVER)),
    st.sampled_from(["A", "B"]),
)
logs = st.lists(rows, min_size=1, max_size=60).map(
    lambda log: [(ip, at, NEVER if lasted == NEVER else at + lasted, name) for ip, at, lasted, name in log]
)
candidates = st.builds(
    Candidate,
    cap=st.none() | st.integers(0, 6),
    broker_cap=st.none() | st.integers(0, 8),
    rate=st.none() | st.integers(1, 3),
    by=st.just(IP),
    broker_rate=st.none() | st.integers(1, 4),
    overrides=st.sampled_from(["", "10.0.0.1:3", "10.0.0.0/8:2,10.0.0.2:0", "[2001:db8::]/32:1"]),
)


def arrays(log: list[Row]) -> tuple[list[int], numpy.ndarray, numpy.ndarray]:
    order = sorted(range(len(log)), key=lambda index: (log[index][1], index))
    return order, numpy.array([log[index][1] for index in order]), numpy.array([log[index][2] for index in order])


@given(logs)
def test_a_level_says_what_every_cap_does(log: list[Row]) -> None:
    log = [("10.0.0.1", opened, closed, "A") for _, opened, closed, _ in log]
    order, opened, closed = arrays(log)
    found = levels(opened, closed)
    for cap in range(7):
        refused = {order[place] for place, level in enumerate(found) if level > cap}
        assert refused == set(replay(log, Candidate(cap=cap))), cap


@given(logs)
def test_levels_of_many_pools_are_each_pools_own(log: list[Row]) -> None:
    order = sorted(range(len(log)), key=lambda index: (log[index][0], log[index][1], index))
    opened, closed = (numpy.array([log[index][place] for index in order]) for place in (1, 2))
    pools = numpy.array([IPS.index(log[index][0]) for index in order])
    together = levels(opened, closed, pools)
    scale = 4 * 10**11  # so long that the microseconds of all pools, one after the other, do not fit into 64 bits
    far_apart = levels(opened * scale, numpy.where(closed == NEVER, NEVER, closed * scale), pools)
    for pool in range(len(IPS)):
        mine = pools == pool
        assert together[mine].tolist() == far_apart[mine].tolist() == levels(opened[mine], closed[mine]).tolist()


@given(logs, candidates)
def test_every_address_on_its_own(log: list[Row], candidate: Candidate) -> None:
    candidate = candidate._replace(broker_cap=None, broker_rate=None)
    order = sorted(range(len(log)), key=lambda index: (log[index][0], log[index][1], index))
    opened, closed = (numpy.array([log[index][place] for index in order]) for place in (1, 2))
    addresses = numpy.array([IPS.index(log[index][0]) for index in order])
    _, found = by_entity(addresses, opened, closed, [(0, candidate)], lambda each: caps(each, IPS))
    [(number, refused)] = found
    assert number == 0
    assert {order[place] for place in refused} == set(replay(log, candidate))


@given(logs, candidates)
def test_the_whole_log_through_the_gate(log: list[Row], candidate: Candidate) -> None:
    order, opened, closed = arrays(log)
    ips = numpy.array([IPS.index(log[index][0]) for index in order])
    names = sorted({row[3] for row in log})
    listeners = numpy.array([names.index(log[index][3]) for index in order])
    found = {
        order[each.row]: "refused" if each.is_refused else "delayed"
        for each in whole(candidate, opened, closed, ips=ips, ip_names=IPS, listeners=listeners, names=names)
    }
    assert found == replay(log, candidate)


def test_a_burst_passes_a_rate_as_kafkas_window_lets_it() -> None:
    opened = numpy.arange(0, 40_000, 1000)  # 40 connects within 40 ms, at 2 per second
    assert within_rate(opened, 2).tolist() == [True] * 20 + [False] * 20


def test_a_close_comes_before_an_open_at_the_same_instant() -> None:
    assert levels(numpy.array([0, 10]), numpy.array([10, 20])).tolist() == [1, 1]


def test_a_connection_without_length_takes_no_place_from_the_next() -> None:
    assert levels(numpy.array([5, 5, 5]), numpy.array([5, 9, 5])).tolist() == [1, 1, 2]
