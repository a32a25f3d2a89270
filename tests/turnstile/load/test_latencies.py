import json

from hypothesis import given
from hypothesis import strategies as st

from turnstile.load.latencies import EXACT_US, Latencies

VALUES = st.lists(st.integers(0, 1 << 40) | st.integers(0, 2 * EXACT_US))


def of(values):
    made = Latencies()
    for value in values:
        made.record(value)
    return made


@given(st.lists(VALUES))
def test_the_sum_of_parts_is_the_histogram_of_the_whole(parts):
    total = Latencies()
    for part in parts:
        total.add(Latencies.load(json.loads(json.dumps(of(part).dump()))))
    whole = of(value for part in parts for value in part)
    assert total == whole
    assert total.percentiles_ms() == whole.percentiles_ms()
    assert len(total) == sum(map(len, parts))


@given(VALUES.filter(bool))
def test_a_percentile_is_its_ranks_value_or_little_more(values):
    ordered = sorted(values)
    found = of(values).percentiles_ms()
    for name, share in (("p50", 0.50), ("p99", 0.99)):
        exact_ms = ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1000
        assert exact_ms <= found[name] <= exact_ms * (1 + 1 / 1024)
    assert found["max"] == ordered[-1] / 1000


@given(st.lists(st.integers(0, EXACT_US), min_size=1))
def test_small_values_are_exact(values):
    ordered = sorted(values)
    assert of(values).percentiles_ms()["p50"] == ordered[len(ordered) // 2] / 1000


def test_its_size_is_bounded_by_the_range_of_values():
    wide = of(range(0, 60_000_000, 997))
    assert len(wide.dump()[1]) < 20_000 < len(wide)


def test_nothing_measured_has_no_percentiles():
    assert Latencies().percentiles_ms() == {"p50": None, "p99": None, "max": None}


def test_percentiles_are_by_nearest_rank():
    assert of(range(1, 101)).percentiles_ms() == {"p50": 0.051, "p99": 0.1, "max": 0.1}
