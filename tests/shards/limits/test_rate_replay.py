"""What the windows say of a list of units that were recorded."""

import pytest

from shards.limits.rate import Window
from shards.limits.rate_replay import RateQuotas, RateReplay

WINDOW = Window(3, 1000)
IP, EXTERNAL = "rate:ip:10.0.0.1", "rate:listener:EXTERNAL"


def beyond(*details, own=10.0, broker=None, exempt=False):
    home = RateReplay(WINDOW)
    return [home.event(detail, lambda key: RateQuotas(own, broker, exempt), WINDOW) for detail in details]


def grant(pool, tokens, at_ms, **more):
    return {"pool": pool, "to": 1, "tokens": tokens, "at_ms": at_ms, **more}


def unused(pool, tokens, at_ms):
    return {"pool": pool, "from": 1, "tokens": tokens, "at_ms": at_ms}


def test_a_window_of_three_samples_holds_two_windows_worth_at_once_and_not_one_more():
    assert beyond(grant(IP, 20, 1000)) == [0]
    assert beyond(grant(IP, 21, 1000)) == [1]
    assert beyond(grant(IP, 12, 1000), grant(IP, 12, 1001)) == [0, 4]
    assert beyond(grant(IP, 20, 1000), {**grant(IP, 1, 1500), "pool": "rate:ip:10.0.0.2"}) == [0, 0]


def test_without_a_quota_nothing_is_beyond():
    assert beyond(grant(IP, 1000, 1000), grant(EXTERNAL, 1000, 1000), own=None) == [0, 0]


def test_what_was_taken_back_makes_room_again():
    assert beyond(grant(IP, 20, 1000), unused(IP, 5, 1000), grant(IP, 6, 1001)) == [0, 0, 1]


def test_a_violation_leaves_nothing_but_that_the_window_was_looked_at():
    assert beyond(grant(IP, 20, 1000, violated=True), grant(IP, 0, 1001, violated=True), grant(IP, 1, 1002)) == [
        0,
        0,
        1,
    ]


def test_a_violation_of_a_quota_that_has_room_is_unfounded():
    home = RateReplay(WINDOW)
    for units, at_ms in ((20, 1000), (0, 1001), (0, 3000)):  # by 3000 the rate has fallen to 20 units in 2 seconds
        home.event(grant(IP, units, at_ms, violated=True), lambda key: RateQuotas(10.0), WINDOW)
    assert home.unfounded == 0
    home.event(grant(IP, 0, 4100, violated=True), lambda key: RateQuotas(10.0), WINDOW)
    assert home.unfounded == 1


def test_a_listener_records_nothing_while_a_delay_of_it_runs():
    # The 21st is over the quota by 1: (21/2 - 10) / 10 * 2 s of delay.
    assert beyond(grant(EXTERNAL, 21, 1000)) == [0]
    assert beyond(grant(EXTERNAL, 22, 1000)) == [1]
    assert beyond(grant(EXTERNAL, 21, 1000), grant(EXTERNAL, 1, 1099)) == [0, 1]
    assert beyond(grant(EXTERNAL, 21, 1000), grant(EXTERNAL, 1, 1100)) == [0, 0]


def test_the_brokers_rate_counts_all_listeners_but_an_exempt_one():
    internal = "rate:listener:INTERNAL"
    units = grant(EXTERNAL, 20, 1000), grant(internal, 2, 1000), grant(internal, 1, 1010)
    assert beyond(*units, own=None, broker=10.0) == [0, 1, 1]
    assert beyond(*units, own=None, broker=10.0, exempt=True) == [0, 0, 0]


def test_what_is_counted_unasked_may_be_beyond_and_leaves_less():
    late = {"pool": "rate:", "started": True, "remembered": [[999, "ip:10.0.0.1", 19], [999, "listener:EXTERNAL", 25]]}
    assert beyond(late, grant(IP, 2, 1000), grant(EXTERNAL, 1, 1000), grant(EXTERNAL, 1, 1001)) == [0, 1, 0, 1]
    taken_back = grant(EXTERNAL, -15, 1000, charged=False)
    assert beyond(late, taken_back, grant(EXTERNAL, 10, 1001), grant(EXTERNAL, 1, 1002)) == [0, 0, 0, 0]


@pytest.mark.parametrize(("what", "left"), [("rate:", 0), ("rate:listener:", 1)])
def test_windows_that_start_anew_know_only_what_is_remembered(what, left):
    anew = {"pool": what, "started": True, "remembered": []}
    more = {"pool": what, "started": False, "remembered": [[1001, "listener:EXTERNAL", 20]]}
    found = beyond(grant(IP, 20, 1000), grant(EXTERNAL, 30, 1000, charged=False), anew, more,
                   grant(EXTERNAL, 1, 1002), grant(EXTERNAL, 1, 1003), grant(IP, 1, 1004))  # fmt: skip
    assert found == [0, 0, 0, 0, 0, 1, left]
