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
