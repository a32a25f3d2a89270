"""Accepting in batches, pausing, and what happens when there is no descriptor left."""

import errno
import itertools
import os
import socket

import pytest

from broker.accept import listener as listening
from broker.accept.listener import Listener
from shards.loop.poller import ROUND_NS, Poller


class FaultySocket:
    """A listening socket whose next accepts fail, one for each of `faults`."""

    def __init__(self, sock):
        self._sock, self.faults = sock, []

    def _accept(self):
        if self.faults:
            raise OSError(self.faults.pop(0), "")
        return self._sock._accept()

    def __getattr__(self, name):
        return getattr(self._sock, name)


class Door:
    """A listener over a real socket, with what it was told."""

    def __init__(self):
        self.poller = Poller()
        self.sock = FaultySocket(socket.create_server(("127.0.0.1", 0)))
        self.arrived, self.shed, self.clients = [], [], []
        self.listener = Listener(
            self.sock, self.poller, lambda fd, ip, port: self.arrived.append(fd), lambda ip, port: self.shed.append(ip)
        )
        self.listener.start()

    def knock(self):
        self.clients.append(socket.create_connection(self.sock.getsockname()))

    def passes(self):
        while self.poller.run_pass():
            pass

    def fail_with(self, *faults):
        """The next accepts fail, one for each of these."""
        self.sock.faults += faults

    def close(self):
        for fd in self.arrived:
            os.close(fd)
        for each in (*self.clients, self.sock):
            each.close()
        self.listener.close()
        self.poller.close()


@pytest.fixture
def door():
    door = Door()
    yield door
    door.close()


def test_while_paused_nothing_is_accepted(door):
    door.listener.pause()
    door.knock()
    door.passes()
    assert not door.arrived
    door.listener.start()
    door.passes()
    assert len(door.arrived) == 1


@pytest.mark.parametrize("fault", [errno.ECONNABORTED, errno.EHOSTUNREACH, errno.ENOBUFS, errno.ENOMEM])
def test_a_failure_that_is_not_ours_does_not_end_the_shard(door, fault):
    door.knock()
    door.fail_with(fault)
    door.passes()
    assert len(door.arrived) == 1


def test_out_of_descriptors_a_connection_is_closed_and_told(door):
    door.knock()
    door.knock()
    door.fail_with(errno.EMFILE)
    door.passes()
    assert door.shed == ["127.0.0.1"] and len(door.arrived) == 1


def test_recovering_from_exhaustion_does_not_start_what_was_paused_meanwhile(door, monkeypatch):
    def none_left():
        raise OSError(errno.EMFILE, "")

    with monkeypatch.context() as patched:
        patched.setattr(listening, "_open_spare", none_left)
        door.knock()
        door.fail_with(errno.EMFILE)
        door.passes()
    assert door.shed == ["127.0.0.1"]
    door.listener.pause()
    door.listener.resume_after_exhaustion()
    door.knock()
    door.passes()
    assert not door.arrived
    door.listener.start()
    door.passes()
    assert len(door.arrived) == 1


def test_after_slow_passes_fewer_are_accepted_at_a_time_and_more_again_after_quick_ones(door, monkeypatch):
    monkeypatch.setattr(listening, "_MOST_ACCEPTS", 8)
    door.listener._accepts = 8
    for _ in range(20):
        door.knock()
    counts = []
    for round_ns in (listening._SLOW_NS + 1, listening._SLOW_NS + 1, 0):
        door.poller.round_ns = round_ns
        before = len(door.arrived)
        door.poller.run_pass()
        counts.append(len(door.arrived) - before)
    assert counts == [4, 4, 12]


def test_accepting_ends_after_a_while_and_goes_on_in_the_next_pass(door):
    """Connections that take long to decide about, as those of TLS do."""
    times = itertools.count(0, ROUND_NS // 3)
    door.poller.clock_ns = times.__next__
    for _ in range(20):
        door.knock()
    counts = []
    while len(door.arrived) < 20:
        before = len(door.arrived)
        assert door.poller.run_pass()
        counts.append(len(door.arrived) - before)
    assert max(counts) <= 4 and min(counts) > 0
