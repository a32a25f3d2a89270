"""Delays of restarts: none at first, doubling, bounded, forgotten by what lives long enough."""

from shards.supervisor.restarts import FIRST_S, LIVED_S, MOST_S, Backoff, RestartBoard


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


def test_the_board_tells_how_often_and_when_next():
    board = RestartBoard(3)
    board.put(1, 7, None)
    board.put(2, 1, 1e9)
    assert [board.get(place).number for place in range(3)] == [0, 7, 1]
    assert board.get(1).due_in_s is None
    assert board.get(2).due_in_s > 0
    board.put(2, 1, 0.0)
    assert board.get(2).due_in_s == 0.0
