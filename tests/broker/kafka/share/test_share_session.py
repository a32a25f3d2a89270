"""Share sessions: epochs, how many there may be, and which connection ends which."""

from broker.kafka.share.share_session import ShareSession, ShareSessions, TopicIdPartition
from broker.wire import codes

A, B, C = (TopicIdPartition("0" * 32, number) for number in range(3))


def test_requests_are_counted() -> None:
    sessions = ShareSessions(0, 1)
    assert sessions.next("g", "m", 1) == codes.SHARE_SESSION_NOT_FOUND
    opened = sessions.open("g", "m", (0, 7), [A], 10)
    assert sessions.next("g", "m", 2) == codes.INVALID_SHARE_SESSION_EPOCH
    assert sessions.next("g", "m", 1) is sessions.next("g", "m", 2) is opened


def test_partitions_come_first_in_turn() -> None:
    session = ShareSession("g", "m", (0, 1), [A, B, C])
    session.update([A], [B])
    orders = set()
    for epoch in range(1, 4):
        session.epoch = epoch
        orders.add(tuple(session.rotated()))
    assert orders == {(A, C), (C, A)}


def test_each_shard_has_its_part_and_one_at_least() -> None:
    for shard, most in ((0, 2), (1, 1), (2, 1)):
        sessions = ShareSessions(shard, 3)
        opened = [sessions.open("g", str(number), (0, 1), [A], 4) for number in range(4)]
        assert sum(each is not None for each in opened) == most
        assert sessions.open("g", "0", (0, 1), [A], 4) is not None
    assert ShareSessions(1, 2).open("g", "m", (0, 1), [A], 1) is not None


def test_a_connection_ends_its_own_session_alone() -> None:
    sessions = ShareSessions(0, 1)
    sessions.open("g", "m", (0, 7), [A], 10)
    opened = sessions.open("g", "m", (1, 7), [A], 10)
    assert sessions.close("g", "m", (0, 7)) is None
    assert sessions.close("g", "m", [1, 7]) is opened
    assert len(sessions) == 0
