"""What observed caps would have done, counted on each shard and summed."""

from __future__ import annotations

from broker.metrics.observed_counts import MOST_LIMITS, ObservedCounts, summed

PER_IP = "kafka_connections_max_per_ip"


def test_shards_are_summed_by_cap_and_by_address() -> None:
    one, other = ObservedCounts(), ObservedCounts()
    for counts in (one, other):
        counts.add("10.0.0.1", "ip_cap", PER_IP, 5)
    one.add("10.0.0.2", "broker_wait", "max.connections", 9)
    other.add("10.0.0.2", "shard_unavailable", PER_IP, 5)
    found = summed([one.describe(), other.describe()])
    assert (found.refused, found.waited, found.undecided, found.addresses, found.more) == (2, 1, 1, 2, False)
    assert found.caps == [
        {"limit": PER_IP, "value": 5, "waits": False, "count": 2},
        {"limit": "max.connections", "value": 9, "waits": True, "count": 1},
    ]
    assert found.by_ip[0] == ("10.0.0.1", 2, 0, {"ip_cap": 2})


def test_a_change_of_the_caps_counts_anew() -> None:
    counts = ObservedCounts()
    counts.add("10.0.0.1", "ip_cap", PER_IP, 5)
    counts.clear()
    assert counts.describe() == ObservedCounts().describe()


def test_observed_names_are_bounded() -> None:
    counts = ObservedCounts()
    for number in range(MOST_LIMITS + 50):
        counts.add(f"10.0.{number // 250}.{number % 250}", "ip_cap", PER_IP, number)
    counts.add("10.0.0.1", "broker_wait", "max.connections", 1)
    found = summed([counts.describe()])
    assert len(found.caps) == MOST_LIMITS
    assert found.more
    assert (found.refused, found.waited) == (MOST_LIMITS + 50, 1), "each decision counts, apart or not"


def test_nothing_is_summed_where_no_shard_answers() -> None:
    assert summed([]).refused == 0
