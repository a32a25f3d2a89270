"""One link over a real unix socket: frames however they are cut, and what happens when the other end does not read."""

import socket

import msgpack
import pytest

from shards.loop.poller import Poller
from shards.loop.time_slice import MOST_STEPS
from shards.mesh import link as links
from shards.mesh.link import Link


class End:
    """A link, what it delivered, and how often it was lost."""

    def __init__(self, sock, poller):
        self.told, self.rooms, self.too_long = [], [], []
        self.lost = 0
        self.link = Link(
            sock, poller, self.told.append, self._lose,
            on_room=lambda: self.rooms.append(self.link.room),
            on_too_long=lambda message: self.too_long.append(message[0]),
        )  # fmt: skip

    def _lose(self):
        self.lost += 1


@pytest.fixture
def poller():
    poller = Poller()
    yield poller
    poller.close()


@pytest.fixture
def ends(poller):
    ends = [End(sock, poller) for sock in socket.socketpair()]
    yield ends
    for end in ends:
        end.link.close()


@pytest.fixture
def deaf(poller):
    """A link whose other end reads only when the test does, and that socket."""
    near, far = socket.socketpair()
    end = End(near, poller)
    yield end, far
    end.link.close()
    far.close()


def passes(poller):
    while poller.run_pass():
        pass


def test_what_is_queued_in_a_pass_is_one_frame_and_arrives_in_order(ends, poller):
    near, far = ends
    for number in range(3):
        near.link.queue(("n", number))
    near.link.flush()
    passes(poller)
    assert far.told == [["n", 0], ["n", 1], ["n", 2]]


def test_a_frame_larger_than_the_socket_takes_arrives_whole(ends, poller):
    near, far = ends
    data = bytes(range(256)) * 20_000
    near.link.queue((data,))
    near.link.flush()
    near.link.queue(("next",))
    near.link.flush()
    passes(poller)
    assert far.told == [[data], ["next"]]


def test_what_is_too_much_for_one_frame_goes_out_in_several(ends, poller, monkeypatch):
    monkeypatch.setattr(links, "FRAME_BYTES", 1000)
    monkeypatch.setattr(links, "MAX_FRAME", 2000)
    near, far = ends
    for number in range(100):
        near.link.queue((number, b"x" * 300))
    near.link.flush()
    passes(poller)
    assert [each[0] for each in far.told] == list(range(100))


def test_a_message_that_is_too_long_for_a_frame_is_told_and_the_others_arrive(ends, poller, monkeypatch):
    monkeypatch.setattr(links, "FRAME_BYTES", 1000)
    monkeypatch.setattr(links, "MAX_FRAME", 2000)
    near, far = ends
    for number, size in enumerate([10, 3000, 900, 1900, 1980, 1990, 1991, 10]):
        near.link.queue((number, b"x" * size))
    near.link.flush()
    near.link.queue((8, b"x" * 3000))
    near.link.flush()
    near.link.queue((9, b""))
    near.link.flush()
    passes(poller)
    assert near.too_long == [1, 6, 8]
    assert [each[0] for each in far.told] == [0, 2, 3, 4, 5, 7, 9]
    assert not near.lost and not far.lost


def test_a_longer_frame_than_there_may_be_loses_the_link_once(deaf, poller):
    end, far = deaf
    far.sendall((links.MAX_FRAME + 1).to_bytes(4, "big") + b"and more")
    passes(poller)
    end.link.lose()
    assert (end.told, end.lost, end.link.closed) == ([], 1, True)


def test_beyond_its_bound_there_is_no_room_until_all_is_written(deaf, poller, monkeypatch):
    monkeypatch.setattr(links, "MAX_QUEUED", 1000)
    end, far = deaf
    end.link.queue((b"x" * (1 << 20),))
    end.link.flush()
    assert not end.link.room and not end.lost
    far.setblocking(False)
    while not end.link.room:
        far.recv(1 << 20)
        passes(poller)
    assert end.rooms == [True] and not end.lost


@pytest.mark.parametrize(("one_way", "bound"), [(True, "MAX_QUEUED"), (False, "MAX_UNREAD")])
def test_a_peer_that_reads_nothing_is_lost(deaf, monkeypatch, one_way, bound):
    monkeypatch.setattr(links, "MAX_QUEUED", 1000)
    monkeypatch.setattr(links, bound, 2 << 20)
    end, _ = deaf
    end.link.one_way = one_way
    end.link.queue((b"x" * (1 << 20),))
    end.link.flush()
    assert not end.lost
    for _ in range(2):
        end.link.queue((b"x" * (1 << 20),))
        end.link.flush()
    assert (end.lost, end.link.closed) == (1, True)


def test_messages_without_end_are_handed_over_in_slices_and_in_order():
    """Also those of one frame, and those of many that one read takes; another link is served in each pass."""
    poller = Poller(clock_ns=lambda: 0)
    flooded, other = ([*socket.socketpair()] for _ in range(2))
    ends = [End(pair[0], poller) for pair in (flooded, other)]
    senders = [End(pair[1], Poller()) for pair in (flooded, other)]
    sent, most = 0, links.SLICES * MOST_STEPS
    for frame in (3 * most, 1, 1, 2 * most, *[5] * most):
        for _ in range(frame):
            senders[0].link.queue((sent,))
            sent += 1
        senders[0].link.flush()
    told = ends[0].told
    while len(told) < sent:
        before = len(told)
        senders[1].link.queue(("other",))
        senders[1].link.flush()
        assert poller.run_pass()
        assert len(told) - before <= most and ends[1].told == [["other"]]
        ends[1].told.clear()
        senders[0].link._poller.run_pass()  # what did not fit the socket
    assert told == [[number] for number in range(sent)]
    for end in (*ends, *senders):
        end.link.close()
    for each in (poller, *(end.link._poller for end in senders)):
        each.close()


def test_a_link_that_is_closed_by_a_message_delivers_nothing_more_of_what_waited(deaf, poller):
    end, far = deaf
    end.link._on_message = lambda message: (end.told.append(message), end.link.lose())
    far.sendall(
        b"".join(len(each).to_bytes(4, "big") + each for each in (msgpack.packb([["one"]]), msgpack.packb([["two"]])))
    )
    passes(poller)
    assert (end.told, end.lost) == ([["one"]], 1)
