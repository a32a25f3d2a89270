"""Counts by address are exact, bounded, and say when they began anew."""

from broker.metrics.source_counts import SourceCounts, summed


def test_outcomes_are_counted_by_address_and_added_up_over_shards():
    one, other = SourceCounts(), SourceCounts()
    for ip, outcome in (("10.0.0.1", "admitted"), ("10.0.0.1", "admitted"), ("10.0.0.1", "ip_cap")):
        one.add(ip, outcome)
    other.add("10.0.0.1", "admitted")
    other.add("::1", "ip_rate")
    assert summed([one.describe(), other.describe()]) == {
        "shards": 2,
        "forgotten": 0,
        "sources": {"10.0.0.1": {"admitted": 3, "ip_cap": 1}, "::1": {"ip_rate": 1}},
    }


def test_one_address_too_many_and_all_are_forgotten_which_is_said():
    counts = SourceCounts(most=3)
    for number in range(4):
        counts.add(f"10.0.0.{number}", "admitted")
    assert counts.describe() == {"forgotten": 1, "outcomes": {}}
    counts.add("10.0.0.9", "admitted")
    assert counts.describe() == {"forgotten": 1, "outcomes": {"admitted": {"10.0.0.9": 1}}}
