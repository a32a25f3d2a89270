"""Muted channels: counted by quota, and gone as soon as their connection is."""

import socket

import pytest
import trio
import trio.testing

from broker.serve.connection import Connection
from broker.serve.muted import Muted
from broker.serve.request_memory import AnswerMemory
from shards.loop.deferred import Spawn
from shards.loop.poller import EPOLLIN, Poller


class Timers:
    """Delays that come due when told to."""

    def __init__(self):
        self.waiting = []

    def after(self, delay_ms, function):
        self.waiting.append(function)
        return function

    def cancel(self, function):
        if function in self.waiting:
            self.waiting.remove(function)


class Channel:
    went_on = 0

    def go_on(self):
        self.went_on += 1


def test_a_channel_goes_on_when_its_delay_is_over():
    timers, channel = Timers(), Channel()
    muted = Muted(timers)
    muted.mute(channel, "producer_byte_rate", 500)
    assert (len(muted), muted.sizes["producer_byte_rate"], channel.went_on) == (1, 1, 0)
    timers.waiting.pop()()
    assert (len(muted), muted.sizes["producer_byte_rate"], channel.went_on) == (0, 0, 1)


def test_clients_that_come_back_instead_of_waiting_leave_nothing_behind():
    timers = Timers()
    muted = Muted(timers)
    for _ in range(1000):
        channel = Channel()
        muted.mute(channel, "consumer_byte_rate", 86_400_000)
        muted.forget(channel)
        assert channel.went_on == 0
    assert (len(muted), muted.sizes["consumer_byte_rate"], timers.waiting) == (0, 0, [])


def test_each_quota_has_its_own_queue():
    timers, channels = Timers(), [Channel(), Channel(), Channel()]
    muted = Muted(timers)
    for channel, kind in zip(channels, ("a", "b", "b"), strict=True):
        muted.mute(channel, kind, 100)
    assert muted.sizes == {"a": 1, "b": 2}
    muted.forget(channels[1])
    assert muted.sizes == {"a": 1, "b": 1}


def test_while_it_is_paused_channels_stay_muted_whose_delay_is_over():
    timers, channels = Timers(), [Channel(), Channel(), Channel()]
    muted = Muted(timers)
    for channel in channels:
        muted.mute(channel, "a", 100)
    muted.pause()
    for over in timers.waiting[:2]:
        over()
    muted.forget(channels[0])
    assert [each.went_on for each in channels] == [0, 0, 0] and len(muted) == 2
    muted.resume()
    assert [each.went_on for each in channels] == [0, 1, 0] and len(muted) == 1


def test_a_connection_that_pauses_it_again_when_it_goes_on_leaves_the_others_muted():
    timers, other = Timers(), Channel()
    muted = Muted(timers)

    class Pausing:
        def go_on(self):
            muted.pause()

    for channel in (Pausing(), other):
        muted.mute(channel, "a", 100)
    muted.pause()
    for over in timers.waiting[:]:
        over()
    muted.resume()
    assert (other.went_on, len(muted)) == (0, 1)
    muted.resume()
    assert (other.went_on, len(muted)) == (1, 0)


class Serving:
    """The serving side of one connection, whose every answer exceeds a quota."""

    listener = "PLAINTEXT"
    max_frame_bytes = 1000
    tls = None

    def __init__(self, nursery):
        self.poller = Poller()
        self.timers = Timers()
        self.muted = Muted(self.timers)
        self.answers = AnswerMemory(-1)
        self.spawn = Spawn(nursery.start_soon)
        self.served = 0

    def authentication(self):
        return None

    def answer(self, connection, frame):
        connection.throttle = "producer_byte_rate", 60_000
        self.served += 1
        return self.spawn(self._later()) if frame == b"slow" else b"\0\0\0\2ok"

    async def _later(self):
        await trio.lowlevel.checkpoint()
        return b"\0\0\0\2ok"

    def answered(self, bytes_in, bytes_out):
        pass

    def closed(self, connection, why):
        pass


@pytest.mark.parametrize("frame", [b"fast", b"slow"])
async def test_a_muted_connection_has_its_answer_reads_nothing_and_costs_no_task(nursery, frame):
    serving = Serving(nursery)
    client, server = socket.socketpair()
    server.setblocking(False)
    connection = Connection(serving, server.detach(), socket.AF_UNIX, 1, "127.0.0.1", 1, pools=())
    client.sendall(2 * (len(frame).to_bytes(4, "big") + frame))
    connection.ready(EPOLLIN)
    await trio.testing.wait_all_tasks_blocked()
    assert client.recv(100) == b"\0\0\0\2ok", "the response first"
    assert (serving.served, len(serving.muted)) == (1, 1)
    assert not nursery.child_tasks

    serving.timers.waiting.pop()()
    serving.poller.run_pass()
    await trio.testing.wait_all_tasks_blocked()
    assert (serving.served, len(serving.muted)) == (2, 1), "then the next request, and muted again"
    connection.close()
    assert (len(serving.muted), serving.timers.waiting) == (0, [])
    client.close()
    serving.poller.close()
