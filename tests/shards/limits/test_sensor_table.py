"""However many names clients choose: memory is bounded, and no quota becomes more generous."""

import random
from collections import Counter

import pytest

from shards.limits.bucket import TokenBucket
from shards.limits.client_quota_managers import ControllerMutationQuotaManager, ProduceQuotaManager
from shards.limits.precedence import QuotaTable
from shards.limits.rate import DEFAULT_WINDOW, Rate
from shards.limits.sensor_table import SHARED, SWEPT_EVERY_MS, SensorTable

DEFAULT = {"client-id": None}
WINDOW_MS = DEFAULT_WINDOW.samples * DEFAULT_WINDOW.size_ms


def meter(most, quota=10):
    made = ProduceQuotaManager(most_sensors=most)
    made.update(DEFAULT, quota)
    return made


def test_the_number_of_sensors_is_bounded() -> None:
    produce = meter(100)
    for number in range(5000):
        produce.record("", f"client-{number}", 1, now_ms=number)
    assert len(produce.sensors) == 100
    assert produce.places.is_sharing
    assert len(produce.places._shared) <= SHARED


def test_a_sensor_makes_room_when_its_history_counts_no_more() -> None:
    produce = meter(2)
    for name in ("a", "b"):
        produce.record("", name, 100, now_ms=0)
    produce.record("", "b", 0, now_ms=5000)
    produce.record("", "c", 1, now_ms=WINDOW_MS)
    assert list(produce.sensors) == [("", "b"), ("", "c")]
    assert produce.places.evicted == 1


def test_clients_that_find_no_place_share_a_quota_and_take_its_history_along_to_a_sensor_of_their_own() -> None:
    produce = meter(1)
    produce.record("", "first", 1, now_ms=0)
    assert produce.record("", "late", 90, now_ms=1).throttle_ms == 0
    assert ("", "late") not in produce.sensors
    assert produce.record("", "late", 60, now_ms=2).throttle_ms > 0
    produce.record("", "late", 0, now_ms=9000)
    throttle_ms = produce.record("", "late", 0, now_ms=WINDOW_MS).throttle_ms
    assert list(produce.sensors) == [("", "late")]
    assert throttle_ms > 0, "its 150 bytes are not forgotten"


def test_a_client_that_a_quota_names_always_has_a_sensor_of_its_own() -> None:
    produce = meter(3)
    produce.update({"client-id": "named"}, 10)
    for number in range(50):
        produce.record("", f"flood-{number}", 10_000, now_ms=number)
    assert produce.record("", "named", 100, now_ms=50).throttle_ms == 0
    assert produce.record("", "named", 10, now_ms=50).throttle_ms == 1000


def test_clients_without_a_quota_take_half_of_the_places_at_most() -> None:
    produce = ProduceQuotaManager(most_sensors=10)
    produce.update({"user": "alice", "client-id": None}, 10)
    for number in range(50):
        produce.record("bob", f"flood-{number}", 10_000, now_ms=number)
    assert len(produce.sensors) == 5
    assert produce.record("alice", "app", 100, now_ms=50).throttle_ms == 0
    assert ("alice", "app") in produce.sensors


def test_a_bucket_below_zero_keeps_its_place_until_it_is_full_again() -> None:
    mutation = ControllerMutationQuotaManager(most_sensors=1)
    mutation.update(DEFAULT, 1)
    mutation.record("", "greedy", 31, strict=True, now_ms=0)
    for now_ms, kept in ((WINDOW_MS, "greedy"), (30_999, "greedy"), (31_010, "other")):
        mutation.record("", "other", 0, strict=True, now_ms=now_ms)
        assert list(mutation.sensors) == [("", kept)], now_ms


def test_a_sweep_looks_at_all_sensors_in_turn_and_not_at_every_call() -> None:
    looked = Counter()

    class Looked(Rate):
        def is_spent(self, quota_per_s, *, now_ms):
            looked[id(self)] += 1
            return False

    quotas = QuotaTable()
    quotas.update(DEFAULT, 1)
    table = SensorTable(Looked, DEFAULT_WINDOW, quotas, lambda key: None, most=1200)
    for number in range(1200):
        table.take(("", str(number)), now_ms=0)
    for now_ms in range(3 * SWEPT_EVERY_MS):
        table.take(("", "another"), now_ms=now_ms)
    assert len(looked) == 1200
    assert sum(looked.values()) == 1500


@pytest.mark.parametrize("seed", range(30))
def test_a_bounded_table_throttles_each_client_at_least_as_long_as_an_unbounded_one(seed) -> None:
    chance = random.Random(seed)
    bounded, unbounded = meter(chance.randint(1, 8), 50), meter(10**9, 50)
    for each in (bounded, unbounded):
        each.update({"client-id": "client-0"}, 20)
    now_ms = 0
    shorter = []
    for _ in range(600):
        now_ms += chance.choice([0, 1, 15, 400, 400, 1500, 3000, 11_000])
        name = f"client-{min(chance.randint(0, 30), chance.randint(0, 30))}"
        amount = chance.choice([1, 20, 200, 900])
        said, kept = (each.record("", name, amount, now_ms=now_ms).throttle_ms for each in (bounded, unbounded))
        limit = bounded.table.limit(("", name))
        if said < min(kept, WINDOW_MS + 1000 * amount // limit):
            shorter.append((now_ms, name, said, kept))
        assert name != "client-0" or said == kept
        assert len(bounded.sensors) <= 9
        for each in (bounded, unbounded):
            each.places.drop_shared(now_ms=now_ms)
    assert not shorter


@pytest.mark.parametrize("seed", range(30))
def test_a_bounded_table_of_buckets_leaves_no_client_more_tokens(seed) -> None:
    """Than buckets of their own that owe a window at most, as a shared one does."""
    chance = random.Random(seed)
    bounded, unbounded = (ControllerMutationQuotaManager(most_sensors=most) for most in (chance.randint(1, 8), 10**9))
    for each in (bounded, unbounded):
        each.update(DEFAULT, 5)
    now_ms = 0
    for _ in range(600):
        now_ms += chance.choice([0, 1, 15, 400, 1500, 11_000])
        name = f"client-{min(chance.randint(0, 30), chance.randint(0, 30))}"
        amount = chance.choice([1, 20, 200])
        for bucket in unbounded.sensors.values():
            bucket.forgive(5, now_ms=now_ms)
        said, kept = (
            each.record("", name, amount, strict=False, now_ms=now_ms).throttle_ms for each in (bounded, unbounded)
        )
        assert said >= kept
        bounded.places.drop_shared(now_ms=now_ms)


@pytest.mark.parametrize("strict", [True, False])
def test_after_a_flood_a_new_client_waits_for_a_window_and_for_what_it_asks_itself(strict) -> None:
    mutation = ControllerMutationQuotaManager(most_sensors=1)
    mutation.update(DEFAULT, 1)
    mutation.record("", "first", 1, strict=False, now_ms=0)
    for number in range(50 * SHARED):
        mutation.record("", f"flood-{number}", 1000, strict=False, now_ms=1)
    said = mutation.record("", "late", 5, strict=strict, now_ms=1)
    assert said.accepted is not strict
    assert WINDOW_MS <= said.throttle_ms <= WINDOW_MS + 5000
    assert mutation.record("", "late", 5, strict=True, now_ms=said.throttle_ms + 1).accepted


def test_after_a_flood_of_bytes_a_new_client_is_muted_for_a_window_and_for_what_it_sends_itself() -> None:
    produce = meter(1, quota=100)
    produce.record("", "first", 1, now_ms=0)
    for number in range(50 * SHARED):
        produce.record("", f"flood-{number}", 1_000_000, now_ms=1)
    assert produce.record("", "late", 500, now_ms=2).throttle_ms == WINDOW_MS + 5000
    assert produce.record("", "late", 500, now_ms=3 * WINDOW_MS).throttle_ms == 0


def test_a_copy_goes_on_by_itself() -> None:
    rate = Rate()
    rate.record(100, now_ms=0)
    twin = rate.copy()
    twin.record(100, now_ms=10)
    assert (rate.units(now_ms=10), twin.units(now_ms=10)) == (100, 200)
    assert Rate().copy().charge(1, 1, now_ms=0) == 0
    bucket = TokenBucket()
    bucket.record(50, 10, now_ms=0)
    twin_bucket = bucket.copy()
    twin_bucket.record(10, 10, now_ms=0)
    assert (bucket.peek(10, now_ms=0), twin_bucket.peek(10, now_ms=0)) == (60, 50)
