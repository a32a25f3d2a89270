"""Points of curves: told in any order, twice, with gaps and by several shards, each amount is counted once and never early."""

import random

import pytest

from shards.quotas.charge_history import MOST_POINTS, ChargeHistory, CurvePart, MeterKey

PLACE = MeterKey("producer_byte_rate", "alice", "")
KEEP = {PLACE.kind: 11_000}


def rows_of(history, number=1):
    return list(history.since(PLACE, number))


def over_the_wire(row):
    place, shard, began_ms, points = row
    return CurvePart.read([list(place), shard, began_ms, [list(point) for point in points]])


def test_what_is_recorded_is_untold_until_it_is_published():
    history = ChargeHistory(0, KEEP)
    assert history.record(PLACE, 300, now_ms=5) == 300
    assert history.record(PLACE, -100, now_ms=6) == 200
    assert not rows_of(history)
    assert history.publish(PLACE, now_ms=7) == rows_of(history)[0].points[-1].number
    assert history.record(PLACE, 50, now_ms=8) == 50


@pytest.mark.parametrize("seed", range(20))
def test_lost_repeated_and_reordered_tells_count_each_amount_once_and_never_early(seed):
    chance = random.Random(seed)
    teller, between, hears = ChargeHistory(0, KEEP), ChargeHistory(1, KEEP), ChargeHistory(2, KEEP)
    recorded, told, now_ms = [], [], 0
    for turn in range(200):
        now_ms += chance.randint(0, 40)
        amount = chance.randint(1, 100)
        teller.record(PLACE, amount, now_ms=now_ms)
        recorded.append((now_ms, amount))
        number = teller.publish(PLACE, now_ms=now_ms)
        if not turn or chance.random() < 0.5:
            for row in rows_of(teller, chance.randint(1, number)):
                for hearer in chance.sample([between, hears], 2 if not turn else chance.randint(1, 2)):
                    told += [each for each in hearer.merge(over_the_wire(row)) if hearer is hears]
        if chance.random() < 0.2:
            told += [each for row in between.whole(PLACE) for each in hears.merge(over_the_wire(row))]
        for history in (teller, between, hears):
            history.check()
        for at_ms in (each.at_ms for each in told):
            early = sum(each.amount for each in told if each.at_ms <= at_ms)
            assert early <= sum(amount for at, amount in recorded if at <= at_ms)
    told += [each for row in rows_of(teller) for each in hears.merge(over_the_wire(row))]
    assert sum(each.amount for each in told) == sum(amount for _, amount in recorded)
    assert not [each for row in teller.whole(PLACE) for each in hears.merge(over_the_wire(row))]


def test_a_shard_that_starts_again_learns_what_its_predecessor_recorded():
    first, other = ChargeHistory(0, KEEP), ChargeHistory(1, KEEP)
    first.record(PLACE, 700, now_ms=5)
    first.publish(PLACE, now_ms=5)
    for row in rows_of(first):
        other.merge(row)
    second = ChargeHistory(0, KEEP)
    second.record(PLACE, 1, now_ms=6)
    assert [each.amount for row in other.whole(PLACE) for each in second.merge(row)] == [700]


def test_what_counts_no_more_is_forgotten_and_a_total_goes_on():
    history, other = ChargeHistory(0, KEEP), ChargeHistory(1, KEEP)
    for at_ms in (0, 6000, 12_000, 18_000):
        history.record(PLACE, 10, now_ms=at_ms)
        history.publish(PLACE, now_ms=at_ms)
    (row,) = history.whole(PLACE)
    assert [each.at_ms for each in other.merge(row)] == [12_000, 18_000], "a window's worth, and no more"
    history.expire(PLACE, now_ms=29_000)
    other.expire(PLACE, now_ms=29_000)
    assert len(history) == len(other) == 0


def test_many_points_are_thinned_and_their_amounts_count_a_little_later():
    history, other = ChargeHistory(0, KEEP), ChargeHistory(1, KEEP)
    for at_ms in range(0, 10_000, 5):
        history.record(PLACE, 1, now_ms=at_ms)
        history.publish(PLACE, now_ms=at_ms)
        history.check()
    (row,) = history.whole(PLACE)
    assert len(row.points) <= MOST_POINTS
    told = other.merge(row)
    assert sum(each.amount for each in told) == 2000
    for at_ms in range(0, 10_000, 100):
        by_then = sum(each.amount for each in told if each.at_ms <= at_ms)
        assert at_ms / 5 - 2 * 11_000 / 64 / 5 - 2 <= by_then <= at_ms / 5 + 1


def test_a_number_of_an_earlier_curve_asks_for_all_of_the_next():
    history = ChargeHistory(0, KEEP)
    for at_ms in range(20):
        history.record(PLACE, 1, now_ms=at_ms)
        number = history.publish(PLACE, now_ms=at_ms)
    history.forget(PLACE)
    history.record(PLACE, 5, now_ms=30)
    history.publish(PLACE, now_ms=30)
    assert [point.total for row in history.since(PLACE, number) for point in row.points] == [0, 5]


def test_what_was_told_and_forgotten_since_is_not_counted_again():
    history, other = ChargeHistory(0, KEEP), ChargeHistory(1, KEEP)
    for at_ms in (0, 100, 200):
        history.record(PLACE, 10, now_ms=at_ms)
        number = history.publish(PLACE, now_ms=at_ms)
    other.forget(PLACE)
    assert [each.amount for row in history.since(PLACE, number) for each in other.merge(row)] == [10]
