"""The four meters: what is recorded, what is taken back, who shares, what stays when quotas change."""

import pytest

from shards.limits.client_quota_managers import (
    IDLE_MS,
    WITHIN,
    Charged,
    ClientRequestQuotaManager,
    ControllerMutationQuotaManager,
    FetchQuotaManager,
    ProduceQuotaManager,
)
from shards.limits.rate import Window

PER_ALICE = {"user": "alice"}


def test_before_the_first_quota_nothing_is_recorded() -> None:
    meter = ProduceQuotaManager()
    assert meter.record("alice", "app", 10**9, now_ms=0) is WITHIN
    meter.update(PER_ALICE, 10)
    assert meter.record("alice", "app", 100, now_ms=0) is WITHIN
    assert meter.record("alice", "app", 1, now_ms=0) == Charged(True, 100)


def test_clients_without_a_quota_are_recorded_and_meet_one_that_comes() -> None:
    meter = ProduceQuotaManager()
    meter.update(PER_ALICE, 10)
    assert meter.record("bob", "app", 1000, now_ms=0) is WITHIN
    meter.update({"user": None}, 10)
    assert meter.record("bob", "app", 0, now_ms=0).throttle_ms > 0


def test_what_was_produced_stays_recorded_and_its_throttle_has_no_cap() -> None:
    meter = ProduceQuotaManager()
    meter.update(PER_ALICE, 1)
    assert meter.record("alice", "app", 1000, now_ms=0).throttle_ms == 990_000
    assert meter.record("alice", "other", 0, now_ms=0).throttle_ms == 990_000  # the user's clients share it
    assert meter.rate("alice", "app", now_ms=0) == 100


def test_a_throttled_fetch_is_taken_back() -> None:
    meter = FetchQuotaManager()
    meter.update(PER_ALICE, 10)
    assert meter.most_at_once(10) == 100
    assert meter.most_at_once(None) is None
    assert meter.record("alice", "app", 101, now_ms=0).throttle_ms == 100
    assert meter.record("alice", "app", 100, now_ms=0) is WITHIN
    meter.take_back("alice", "app", 100, now_ms=0)
    assert meter.rate("alice", "app", now_ms=0) == 0


def test_request_time_is_a_percentage_of_a_thread_to_the_nanosecond_throttled_for_a_window_at_most() -> None:
    meter = ClientRequestQuotaManager(window=Window(11, 1000))
    meter.update(PER_ALICE, 1)
    assert meter.record("alice", "app", 100, now_ms=0) is WITHIN  # 100 ms in 10 s are one percent
    assert meter.record("alice", "app", 0.0000004, now_ms=0) is WITHIN  # not half a nanosecond, so nothing
    assert meter.rate("alice", "app", now_ms=0) == 1
    assert meter.record("alice", "app", 1, now_ms=0).throttle_ms == 100
    assert meter.record("alice", "app", 100_000, now_ms=0).throttle_ms == 1000
    meter.record_unthrottled("bob", "app", 50, now_ms=0)
    assert meter.rate("bob", "app", now_ms=0) == pytest.approx(0.5)


def test_strict_mutations_are_refused_only_when_the_bucket_was_empty_before() -> None:
    meter = ControllerMutationQuotaManager(window=Window(10, 1000))
    meter.update(PER_ALICE, 10)
    assert meter.record("alice", "app", 180, strict=True, now_ms=0) is WITHIN
    assert meter.tokens("alice", "app", now_ms=0) == -80
    assert meter.record("alice", "app", 1, strict=True, now_ms=0) == Charged(False, 8000)
    assert meter.record("alice", "app", 1, strict=True, now_ms=8000) is WITHIN
    assert meter.tokens("alice", "app", now_ms=8000) == -1
    assert meter.tokens("bob", "app", now_ms=0) is None


def test_permissive_mutations_are_always_recorded() -> None:
    meter = ControllerMutationQuotaManager(window=Window(10, 1000))
    assert meter.record("alice", "app", 10**6, strict=False, now_ms=0) is WITHIN
    meter.update(PER_ALICE, 10)
    assert meter.tokens("alice", "app", now_ms=0) == 100
    assert meter.record("alice", "app", 180, strict=False, now_ms=0) == Charged(True, 8000)
    assert meter.record("alice", "app", 10, strict=False, now_ms=0) == Charged(True, 9000)


def test_a_client_whose_level_changes_goes_on_with_that_keys_history() -> None:
    meter = ProduceQuotaManager()
    meter.update(PER_ALICE, 10)
    meter.record("alice", "app", 1000, now_ms=0)
    meter.update({"user": "alice", "client-id": "app"}, 10)
    assert meter.record("alice", "app", 1, now_ms=0) is WITHIN
    meter.update({"user": "alice", "client-id": "app"}, None)
    assert meter.record("alice", "app", 0, now_ms=0).throttle_ms > 0


def test_a_change_holds_for_the_very_next_record() -> None:
    meter = ProduceQuotaManager()
    meter.update(PER_ALICE, 100)
    assert meter.record("alice", "app", 500, now_ms=0) is WITHIN
    meter.update(PER_ALICE, 10)
    assert meter.record("alice", "app", 0, now_ms=0).throttle_ms == 40_000
    meter.update(PER_ALICE, None)
    assert meter.record("alice", "app", 0, now_ms=0) is WITHIN


def test_a_table_may_be_shared_with_whoever_changes_it() -> None:
    meter = ProduceQuotaManager()
    meter.table.update(PER_ALICE, 10)
    assert meter.record("alice", "app", 1000, now_ms=0).throttle_ms > 0
    meter.table.update(PER_ALICE, 10_000)
    assert meter.record("alice", "app", 0, now_ms=0) is WITHIN


def test_sensors_unused_for_an_hour_are_dropped() -> None:
    produced, mutated = ProduceQuotaManager(), ControllerMutationQuotaManager()
    for meter in (produced, mutated):
        meter.update(PER_ALICE, 10)
    produced.record("alice", "app", 1, now_ms=0)
    produced.record("bob", "app", 1, now_ms=1)
    mutated.record("alice", "app", 1, strict=True, now_ms=0)
    assert produced.expire(now_ms=IDLE_MS) == mutated.expire(now_ms=IDLE_MS) == 1
    assert list(produced.sensors) == [("bob", "")]
    assert mutated.sensors == {}
    assert produced.record("alice", "app", 101, now_ms=IDLE_MS).throttle_ms == 100


def test_however_many_names_clients_think_of_sensors_and_their_names_stay_bounded() -> None:
    meter = ProduceQuotaManager()
    meter.update({"client-id": None}, 10)
    for number in range(12_000):
        meter.record("", f"{number}-".ljust(1000, "x"), 1, now_ms=0)
    assert len(meter.sensors) <= 10_000
    assert sum(len(client_id) for _, client_id in meter.sensors) <= 200 * 10_000
