"""Connections over real sockets whose serving side answers each frame with itself."""

from __future__ import annotations

import socket
import time
from contextlib import contextmanager

import trio

from broker.serve.connection import Connection
from broker.serve.request_memory import AnswerMemory, RequestMemory
from broker.wire import wire
from shards.loop.deferred import Deferred, Spawn
from shards.loop.poller import Poller
from shards.loop.timers import Timers


class Echo:
    """The serving side of a connection, which answers each frame with itself; `slow` frames only when told to."""

    listener = "PLAINTEXT"
    max_frame_bytes = 1000
    tls = None

    def __init__(self, nursery=None, clock_ns=time.monotonic_ns):
        self.poller = Poller(clock_ns=clock_ns)
        self.ended = []
        self.faults = []
        self.frames = []
        self.counted = []
        self.laters = {}
        self.timers = Timers(self.poller)
        self.answers = AnswerMemory(-1)
        self.requests = RequestMemory(-1, None, None)
        self.go = trio.Event()
        if nursery is not None:
            self.spawn = Spawn(nursery.start_soon)

    def answer(self, connection, frame):
        self.frames.append(frame)
        if frame.startswith(b"slow"):
            return self.spawn(self._later(connection, frame), cancellable=True)
        if frame.startswith(b"later"):
            answer = self.laters[frame] = Deferred()
            return answer.then(framed)
        if frame.startswith(b"charge"):
            connection.must_finish = True
            answer = self.laters[frame] = Deferred()
            return answer.then(lambda throttle: setattr(connection, "throttle", throttle))
        if frame.startswith(b"bad"):
            raise wire.BadFrame("bad")
        if frame.startswith(b"mute"):
            return None
        return framed(frame)

    async def _later(self, connection, frame):
        await self.go.wait()
        if frame == b"slow end":
            connection.parting = "unauthenticated"
        return framed(frame)

    def authentication(self):
        return None

    def answered(self, bytes_in, bytes_out):
        self.counted.append((bytes_in, bytes_out))

    def malformed(self, connection, why):
        self.faults.append(why)

    def closed(self, connection, why):
        self.ended.append(why)


def framed(body):
    return len(body).to_bytes(4, "big") + body


@contextmanager
def serving():
    echo = Echo()
    client, connection = open_connection(echo)
    try:
        yield echo, client, connection
    finally:
        client.close()
        connection.close()
        echo.poller.close()


def open_connection(echo):
    client, server = socket.socketpair()
    client.setblocking(False)
    return client, Connection(echo, server.detach(), socket.AF_UNIX, 1, "127.0.0.1", 1, pools=())


def passes(echo):
    while echo.poller.run_pass():
        pass


def received(client):
    try:
        return client.recv(1 << 20)
    except BlockingIOError:
        return b""
