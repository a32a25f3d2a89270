"""Delays of restarts: none at first, doubling, bounded, forgotten by what lives long enough."""

from shards.supervisor.backoff import FIRST_S, LIVED_S, MOST_S, Backoff


def test_delays_double_up_to_a_bound():
    backoff = Backoff()
    backoff.started(now_s=0.0)
    delays = [backoff.delay_s(now_s=1.0) for _ in range(60)]
    assert delays[:4] == [0.0, FIRST_S, 2 * FIRST_S, 4 * FIRST_S]
    assert delays == sorted(delays) and delays[-1] == MOST_S


def test_having_lived_for_long_is_a_fresh_start():
    backoff = Backoff()
    for _ in range(5):
        backoff.started(now_s=100.0)
        backoff.delay_s(now_s=100.0)
    backoff.started(now_s=100.0)
    assert backoff.delay_s(now_s=100.0 + LIVED_S) == 0.0
