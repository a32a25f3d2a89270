from hypothesis import given
from hypothesis import strategies as st

from turnstile.fleet.clocks import Offset, Reading, offset

WAYS = st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10)), min_size=1)


@given(st.floats(-1e6, 1e6), WAYS)
def test_the_distance_of_two_clocks_is_within_its_bound_whatever_the_ways_take(ahead_s, ways):
    readings, now_s = [], 100.0
    for there_s, back_s in ways:
        readings.append(Reading(now_s, now_s + there_s + ahead_s, now_s + there_s + back_s))
        now_s += there_s + back_s + 1
    found = offset(readings)
    assert abs(found.ahead_s - ahead_s) <= found.within_s + 1e-6
    assert found.within_s <= min(map(sum, ways)) / 2 + 1e-6


def test_the_shortest_way_decides():
    assert offset([Reading(0.0, 9.0, 4.0), Reading(10.0, 15.5, 11.0)]) == Offset(5.0, 0.5)
