"""Links whose time slices end after any message: everything that was queued arrives, in order, without anything more."""

import random
import socket
from itertools import count

import pytest

from shards.loop.poller import Poller
from shards.mesh.link import Link


class Clock:
    """One that advances by chance whenever it is asked."""

    def __init__(self, draw):
        self._draw = draw
        self._now_ns = 0

    def __call__(self):
        self._now_ns += self._draw.choice((0, 0, 0, 1_000, 1_100_000, 6_000_000))
        return self._now_ns


@pytest.fixture(params=range(60))
def draw(request):
    return random.Random(request.param)


@pytest.fixture
def poller(draw):
    poller = Poller(clock_ns=Clock(draw))
    yield poller
    poller.close()


def test_all_messages_arrive_in_order(draw, poller):
    told = [], []
    numbers = count()
    ends = [Link(sock, poller, told[side].append, lambda: None) for side, sock in enumerate(socket.socketpair())]
    queued = [], []

    def queue(side):
        message = ["n", next(numbers), "." * draw.choice((0, 0, 10, 3_000, 300_000, 1_000_000))]
        queued[side].append(message)
        ends[side].queue(tuple(message))

    for _ in range(draw.choice((1, 10, 60))):
        side = draw.randrange(2)
        for _ in range(draw.choice((1, 30, 600))):
            if draw.random() < 0.02 or not queued[side]:
                queue(side)
            else:
                queued[side].append(["s", next(numbers)])
                ends[side].queue(tuple(queued[side][-1]))
        if draw.random() < 0.8:
            ends[side].flush()
        if draw.random() < 0.3:
            poller.run_pass()
    for end in ends:
        end.flush()
    while poller.run_pass():
        pass
    assert (told[1], told[0]) == queued
    for end in ends:
        end.close()
