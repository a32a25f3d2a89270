"""Rates follow from two samples, over the shards and listeners asked for."""

import pytest

from broker.admin.sampler import KEPT, Sampler
from broker.metrics.shard_counters import Layout, ShardCounters

MEMBERS = [(0, 0), (0, 1), (1, 0)]


@pytest.fixture
def counted(tmp_path):
    """A sampler under a clock that the test moves, and the counters it reads."""
    layout = Layout(["A", "B"])
    counters = {}
    for member in MEMBERS:
        path = ShardCounters.path(tmp_path, *member)
        ShardCounters.create(path, layout)
        counters[member] = ShardCounters(path, layout)
    now = [100.0]
    yield Sampler(counters, layout, wall_clock=lambda: 5000 + now[0], mono_clock=lambda: now[0]), counters, now
    for one in counters.values():
        one.close()


def test_a_point_of_the_series_is_what_happened_per_second(counted):
    sampler, counters, now = counted
    for _ in range(6):
        counters[0, 0].admitted("A")
    counters[1, 0].refused("B", "ip_cap")
    now[0] += 2.0
    sampler.sample()
    (point,) = sampler.series()
    assert (point["admitted"], point["refused"], point["connections"]) == (3.0, {"ip_cap": 0.5}, 6)
    assert sampler.series(since=point["at"]) == []


def test_half_an_hour_is_kept_in_points_of_six_seconds(counted):
    sampler, counters, now = counted
    for second in range(1, 2400):
        now[0] += 1.0
        if second % 6 == 0:
            counters[0, 0].admitted("A")
        sampler.sample()
    points = sampler.series(coarse=True)
    assert len(points) == KEPT - 1 and {point["admitted"] for point in points} == {0.2}
    assert points[-1]["at"] - points[0]["at"] == 6 * (KEPT - 2) > 29 * 60
    assert len(sampler.series()) == KEPT - 1
    assert sampler.series(since=points[-2]["at"], coarse=True) == points[-1:]


def test_a_window_is_measured_from_the_nearest_sample_to_now(counted):
    sampler, counters, now = counted
    for _ in range(20):
        now[0] += 1.0
        counters[0, 1].refused("A", "broker_cap")
        sampler.sample()
    counters[0, 1].refused("A", "broker_cap")
    now[0] += 0.5
    window = sampler.window(11.0)
    assert window[1].mono_s - window[0].mono_s == pytest.approx(11.0, abs=0.5)
    assert sampler.rise(window, "refused_broker_cap", "A", [(0, 1)]) == 12
    assert sampler.rise(window, "refused_broker_cap", "B") == 0
    assert sampler.rise(window, "refused_broker_cap", None, [(0, 0), (1, 0)]) == 0


def test_only_so_many_samples_are_kept(counted):
    sampler, _, now = counted
    for _ in range(KEPT + 50):
        now[0] += 1.0
        sampler.sample()
    assert len(sampler.samples) == KEPT
    assert len(sampler.series()) == KEPT - 1


@pytest.mark.parametrize("set_s", [3600.0, -3600.0, -1.0])
def test_seconds_follow_each_other_when_the_wall_clock_is_set(tmp_path, set_s):
    layout = Layout(["A"])
    path = ShardCounters.path(tmp_path, 0, 0)
    ShardCounters.create(path, layout)
    counters = ShardCounters(path, layout)
    now, ahead = [100.0], [5000.0]
    sampler = Sampler({(0, 0): counters}, layout, wall_clock=lambda: ahead[0] + now[0], mono_clock=lambda: now[0])

    def pass_s(seconds):
        for _ in range(seconds):
            now[0] += 1.0
            counters.admitted("A")
            sampler.sample()
        return sampler.series()[-1]["at"]

    told = pass_s(5)
    ahead[0] += set_s
    last = pass_s(3)
    instants = [point["at"] for point in sampler.series()]
    assert last == ahead[0] + now[0] and instants == [last - n for n in range(7, -1, -1)]
    assert [point["admitted"] for point in sampler.series()] == [1.0] * 8
    shown = [point["at"] for point in sampler.series(since=told)]  # of a page that was opened before
    assert shown and shown[-1] == last
    counters.close()
