"""The top talkers stay bounded, and their errors too."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from broker.metrics.top_talkers import TopTalkers, merge_top


@given(st.lists(st.integers(0, 40), max_size=600), st.integers(1, 12))
def test_talkers_keep_every_heavy_key_and_bound_each_error(keys, capacity):
    top_talkers = TopTalkers(capacity)
    true = Counter(str(key) for key in keys)
    for key in keys:
        top_talkers.add(str(key), "ip_cap")
    top = {key: (count, error) for key, count, error, _ in top_talkers.top(capacity)}
    assert len(top_talkers) <= capacity
    for key, (count, error) in top.items():
        assert count - error <= true[key] <= count
    for key, count in true.items():
        if count > len(keys) / capacity:
            assert key in top


def test_tops_of_several_shards_add_up():
    merged = merge_top([[("a", 3, 0, {"ip_cap": 3})], [("b", 4, 1, {"ip_cap": 4}), ("a", 2, 0, {"ip_rate": 2})]])
    assert merged == [("a", 5, 0, {"ip_cap": 3, "ip_rate": 2}), ("b", 4, 1, {"ip_cap": 4})]
