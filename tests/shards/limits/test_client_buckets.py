"""The buckets of Redpanda's client quotas: the figures of its quota_manager_test, changes, idle ones, and a model beside them."""

import math

from hypothesis import example, given
from hypothesis import strategies as st

from shards.limits.client_buckets import IDLE_MS, ClientBuckets
from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE

APP = (("client-id", "app"),)
ANY = (("client-id", None),)


class Played:
    """Buckets and their clock. `charge` answers the delay of a client of the id `app`."""

    def __init__(self, values, **how):
        self.now_ms = 5_000
        self.buckets = ClientBuckets(**how)
        self.set(values)

    def set(self, values, entity=ANY):
        self.buckets.set_quotas({entity: values})

    def charge(self, kind, amount, after_ms=0, client="app"):
        self.now_ms += after_ms
        key = self.buckets.match(kind, "", client).key
        return 0 if key is None else self.buckets.charge(kind, key, amount, now_ms=self.now_ms)


def test_the_figures_of_quota_manager_test():
    """LIMITS.md, B1.1: a fetch quota of 100; a produce quota of 4096."""
    fetch = Played({FETCH: 100.0})
    assert fetch.charge(FETCH, 99) == 0
    assert fetch.charge(FETCH, 10) > 0
    assert fetch.charge(FETCH, 10, after_ms=1000) == 0
    produce = Played({PRODUCE: 4096.0})
    assert [produce.charge(PRODUCE, 8192), produce.charge(PRODUCE, 1)] == [1000, 1000]


def test_of_partitions_the_delay_is_that_before_them_and_they_count_in_any_case():
    played = Played({MUTATION: 10.0})
    assert [played.charge(MUTATION, 25), played.charge(MUTATION, 5), played.charge(MUTATION, 1)] == [0, 1500, 2000]
    assert played.charge(MUTATION, 1, after_ms=2100) == 0


def test_each_kind_has_a_bucket_of_its_own_and_none_without_a_quota():
    played = Played({PRODUCE: 10.0, FETCH: 10.0})
    assert [played.charge(PRODUCE, 20), played.charge(FETCH, 0), played.charge(MUTATION, 99)] == [1000, 0, 0]


def test_a_changed_quota_begins_full_again_and_one_that_stays_keeps_what_is_owed():
    played = Played({PRODUCE: 10.0})
    played.charge(PRODUCE, 60)
    played.set({PRODUCE: 10.0, FETCH: 1.0})
    assert played.charge(PRODUCE, 0) == 5000
    played.set({PRODUCE: 10.0}, APP)
    assert played.charge(PRODUCE, 0) == 5000, "under another rule, the same bucket"
    played.set({PRODUCE: 20.0}, APP)
    played.set({PRODUCE: 10.0}, APP)
    assert played.charge(PRODUCE, 10) == 0


def test_of_a_fraction_the_whole_part_counts_and_at_least_one():
    played = Played({MUTATION: 2.9})
    assert [played.charge(MUTATION, 4), played.charge(MUTATION, 0)] == [0, 1000]
    played = Played({MUTATION: 0.1})
    assert [played.charge(MUTATION, 4), played.charge(MUTATION, 0)] == [0, 3000]


def test_a_bucket_that_is_idle_is_forgotten_with_what_it_owes():
    played = Played({PRODUCE: 1.0})
    played.charge(PRODUCE, 1_000)
    played.charge(PRODUCE, 1, client="other", after_ms=IDLE_MS - 1)
    played.buckets.expire(now_ms=played.now_ms)
    assert len(played.buckets) == 2
    played.buckets.expire(now_ms=played.now_ms + 1)
    assert len(played.buckets) == 1
    assert played.charge(PRODUCE, 1) == 0


def test_buckets_are_bounded_and_the_one_used_least_recently_goes():
    played = Played({PRODUCE: 10.0}, most=2)
    for client in ("a", "b", "a", "c"):
        played.charge(PRODUCE, 20, client=client)
    assert len(played.buckets) == 2
    assert [played.charge(PRODUCE, 0, client=client) for client in "ac"] == [3000, 1000]
    assert played.charge(PRODUCE, 0, client="b") == 0


STEPS = st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 300)), max_size=40)


@given(st.integers(1, 200), STEPS, st.sampled_from([PRODUCE, FETCH, MUTATION]))
@example(1, [(1, 1), (499, 1)], PRODUCE)
def test_generated_charges_are_delayed_as_a_model_with_whole_tokens_says(rate, steps, kind):
    """The model keeps the instant of its last whole tokens and their number, written by the description of seastar's rovers."""
    played = Played({kind: float(rate)})
    head, tail, since_ms = rate, 0, None
    for after_ms, amount in steps:
        delay_ms = played.charge(kind, amount, after_ms)
        since_ms = played.now_ms if since_ms is None else since_ms  # a bucket begins with its first charge
        due = math.floor(rate * ((played.now_ms - since_ms) / 1000) + 0.5)
        if due >= 1:
            head += min(due, tail + rate - head)
            since_ms = played.now_ms
        before = tail
        tail += amount
        owed = max((before if kind == MUTATION else tail) - head, 0)
        assert delay_ms == int(owed / rate * 1000)
