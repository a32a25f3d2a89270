"""Counters survive their process, and each is where the layout says."""

import pytest

from broker.metrics.shard_counters import BUCKETS, Layout, ShardCounters


@pytest.fixture
def counters(tmp_path):
    layout = Layout(["EXTERNAL", "INTERNAL"])
    ShardCounters.create(tmp_path / "counters", layout)
    opened = ShardCounters(tmp_path / "counters", layout)
    yield opened
    opened.close()


def test_a_second_reader_sees_what_was_counted(counters, tmp_path):
    counters.admitted("EXTERNAL")
    counters.refused("INTERNAL", "ip_cap")
    counters.request(100, 30)
    counters.request(10, 0)
    counters.flush()
    reader = ShardCounters(tmp_path / "counters", Layout(["EXTERNAL", "INTERNAL"]))
    assert reader.value("admitted", "EXTERNAL") == reader.value("open", "EXTERNAL") == 1
    assert reader.value("refused_ip_cap", "INTERNAL") == 1
    assert reader.value("refused_ip_cap", "EXTERNAL") == 0
    assert [reader.value(name) for name in ("requests", "bytes_in", "bytes_out")] == [2, 110, 30]
    reader.close()


def test_what_a_killed_shard_had_open_is_lost_and_every_count_stays(counters):
    for _ in range(3):
        counters.admitted("EXTERNAL")
    counters.closed("EXTERNAL")
    counters.set("tokens_in_use", 2)
    counters.take_over(epoch=7)
    values = {name: counters.value(name, "EXTERNAL") for name in ("admitted", "closed", "lost", "open")}
    assert values == {"admitted": 3, "closed": 1, "lost": 2, "open": 0}
    assert counters.value("tokens_in_use") == 0
    assert counters.value("epoch") == 7


@pytest.mark.parametrize(("took_us", "bucket"), [(0, 0), (1, 1), (80, 7), (500, 9), (10**9, BUCKETS - 1)])
def test_a_latency_goes_into_the_bucket_below_the_next_power_of_two(counters, took_us, bucket):
    counters.borrowed(took_us * 1000)
    first = counters.layout.at["rpc"]
    assert counters.snapshot()[first : first + BUCKETS].index(1) == bucket
    assert counters.snapshot()[first + BUCKETS] == took_us * 1000
