import math

import pytest

from turnstile.load.lanes import Lane
from turnstile.load.sources import Sources
from turnstile.load.spec import UNTIL_THE_END, ClientGroup, RecordedConnection


def started(lane, now_s):
    """Every client that may start by now, as an engine without answers would take them."""
    clients = []
    while (client := lane.take(now_s)) is not None:
        clients.append(client)
        lane.in_flight += 1
    return clients


def test_as_many_as_may_be_without_an_answer():
    lane = Lane(ClientGroup(clients=10, concurrency=4))
    assert started(lane, 0.0) == [0, 1, 2, 3]
    lane.in_flight -= 2
    assert started(lane, 0.0) == [4, 5]


def test_a_rate_spaces_clients_evenly_whatever_is_unanswered():
    lane = Lane(ClientGroup(clients=1000, rate=100, concurrency=1))
    assert started(lane, 0.0) == [0]
    assert lane.next_s() == pytest.approx(0.01)
    assert started(lane, 0.055) == [1, 2, 3, 4, 5]


def test_how_late_a_start_was_is_remembered():
    lane = Lane(ClientGroup(clients=3, rate=10))
    started(lane, 0.1)
    started(lane, 0.5)
    assert lane.tally.late_s == pytest.approx(0.3)


def test_processes_share_the_clients_and_their_times():
    group = ClientGroup(clients=6, rate=1)
    assert [started(Lane(group, process=p, processes=2), 3.0) for p in (0, 1)] == [[0, 2], [1, 3]]


def test_a_group_starts_late_and_ends():
    lane = Lane(ClientGroup(clients=100, rate=10, start_s=1, duration_s=2))
    assert started(lane, 0.9) == []
    assert started(lane, 1.0) == [0]
    assert started(lane, 3.0) == []
    assert lane.over(3.0)


def test_refused_clients_stay_away_unless_the_group_reconnects():
    lane = Lane(ClientGroup(clients=1))
    started(lane, 0.0)
    lane.refused(0, 0.0)
    assert lane.next_s() == math.inf


def test_the_back_off_doubles_up_to_its_maximum_and_starts_anew_once_admitted():
    lane = Lane(ClientGroup(clients=1, reconnect=True, duration_s=1000, backoff_s=0.1, backoff_max_s=0.5))
    waits = []
    for _ in range(5):
        lane.take(1000 - 1e-9)
        lane.refused(0, 0.0)
        waits.append(lane.next_s())
    for wait, nominal in zip(waits, [0.1, 0.2, 0.4, 0.5, 0.5], strict=True):
        assert nominal * 0.8 <= wait <= nominal * 1.2
    lane.take(999.0)
    lane.admitted(0)
    lane.refused(0, 0.0)
    assert lane.next_s() <= 0.12


def test_a_client_that_repeats_comes_back_after_its_pause():
    lane = Lane(ClientGroup(clients=1, repeat=True, duration_s=10, pause_s=0.5))
    started(lane, 0.0)
    lane.left(0, 2.0)
    assert lane.next_s() == 2.5


def test_a_client_this_machine_could_not_connect_is_put_off_not_lost():
    lane = Lane(ClientGroup(clients=1))
    started(lane, 0.0)
    lane.in_flight = 0
    lane.put_off(0, 0.05)
    assert not lane.settled(0.0)
    assert started(lane, 0.05) == [0]


def test_a_log_decides_when_how_long_and_from_where():
    recorded = RecordedConnection(at_s=[0.0, 1.5, 1.5], hold_s=[9.0, 0.0, 2.0], address=[0, 1, 0])
    lane = Lane(ClientGroup(clients=3, sources=Sources("127.1.0.0/24"), recorded=recorded))
    assert started(lane, 0.0) == [0]
    assert started(lane, 1.5) == [1, 2]
    assert [lane.hold_s(client) for client in range(3)] == [9.0, 0.0, 2.0]
    assert [lane.source(client) for client in range(3)] == ["127.1.0.0", "127.1.0.1", "127.1.0.0"]


@pytest.mark.parametrize(
    ("hold_s", "duration_s", "settled"),
    [(UNTIL_THE_END, None, True), (5.0, None, False), (UNTIL_THE_END, 60.0, False)],
    ids=["held for the others", "held for its own time", "held until the group is over"],
)
def test_a_lane_with_open_connections_is_settled_only_if_it_holds_them_for_the_others(hold_s, duration_s, settled):
    lane = Lane(ClientGroup(clients=1, hold_s=hold_s, duration_s=duration_s))
    started(lane, 0.0)
    lane.in_flight, lane.held = 0, 1
    assert lane.settled(1.0) is settled
