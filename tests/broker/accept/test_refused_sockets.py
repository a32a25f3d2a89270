"""The sockets of refused connections: each ends once, as the mode says that was in force, and caps alone have modes."""

import contextlib
import os
import socket

import pytest

from broker.accept.refused_sockets import RefusedSockets
from broker.metrics.outcomes import Refusal
from shards.config.image import ClusterImage

BY_IP = Refusal("ip_cap", "kafka_connections_max_per_ip", 5, 2)
BY_BROKER = Refusal("broker_cap", "kafka_connections_max", 5, 2)
OTHERS = ["ip_rate", "core_rate", "fd_limit", "shard_unavailable", "proxy_header"]


class Timers:
    """Delays that come due when the test says so."""

    def __init__(self):
        self.due = []

    def after(self, delay_ms, function):
        self.due.append((delay_ms, function))
        return self.due[-1]

    def cancel(self, timer):
        if timer in self.due:
            self.due.remove(timer)

    def fire(self):
        self.due.pop(0)[1]()


class AnsweredClient:
    """A refused connection that answers."""

    def __init__(self, fd, mode, refusal):
        self.fd, self.asked = fd, (mode, refusal)

    def call_when_closed(self, function):
        self.when_closed = function

    def close(self, why="client"):
        os.close(self.fd)
        self.when_closed()


class Refusing:
    """Refused sockets under one mode after another; `accept` makes a connection of a client over TCP."""

    def __init__(self, most=10):
        self.image, self.timers, self._version = ClusterImage(), Timers(), 0
        self.sockets = RefusedSockets(self.image, self.timers, most)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.answering, self.answers_nothing = [], False

    def answer(self, fd, ip, port, mode, refusal):
        """In place of RefusedServing.open."""
        if self.answers_nothing:
            return None
        self.answering.append(AnsweredClient(fd, mode, refusal))
        return self.answering[-1]

    def set(self, mode, hold_ms="250"):
        self._version += 1
        records = [("setting", "/turnstile.refuse.mode", mode), ("setting", "/turnstile.refuse.hold.ms", hold_ms)]
        self.image.apply(self._version, records, whole=True)

    def accept(self):
        client = socket.create_connection(self._server.getsockname(), timeout=60)
        return client, self._server.accept()[0].detach()

    def refuse(self, refusal=BY_IP):
        client, fd = self.accept()
        self.sockets.dismissal(self.answer)(fd, "127.0.0.1", client.getsockname()[1], refusal)
        return client, fd

    def close(self):
        while self.sockets.make_room():
            pass
        self._server.close()


@pytest.fixture
def refusing():
    with contextlib.closing(Refusing()) as refusing:
        yield refusing


def is_open(fd):
    with contextlib.suppress(OSError):
        return bool(os.fstat(fd))
    return False


def test_mode_close_takes_no_call(refusing):
    refusing.set("close")
    assert refusing.sockets.dismissal(refusing.answer) is None


def test_mode_reset_resets_though_nothing_was_sent(refusing):
    refusing.set("reset")
    client, fd = refusing.refuse()
    with client, pytest.raises(ConnectionResetError):
        client.recv(1)
    assert not is_open(fd) and len(refusing.sockets) == 0


@pytest.mark.parametrize("refusal", [BY_IP, BY_BROKER])
def test_mode_hold_holds_for_the_time_in_force_and_reads_nothing(refusing, refusal):
    refusing.set("hold", "700")
    client, fd = refusing.refuse(refusal)
    with client:
        client.sendall(b"garbage")
        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            client.recv(1)
        assert is_open(fd) and [delay for delay, _ in refusing.timers.due] == [700]
        refusing.timers.fire()
    assert not is_open(fd) and len(refusing.sockets) == 0 and not refusing.timers.due


def test_a_held_socket_has_the_least_receive_buffer_there_is(refusing):
    refusing.set("hold")
    client, fd = refusing.refuse()
    held = socket.socket(fileno=os.dup(fd))
    with client, held:
        assert held.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) <= 4096


ANSWERING = ["after-api-versions", "sasl-error", "api-error"]


@pytest.mark.parametrize("mode", ANSWERING)
def test_a_connection_that_answers_has_its_time_and_may_end_before(refusing, mode):
    refusing.set(mode, "700")
    (client, first), (other, second) = refusing.refuse(), refusing.refuse(BY_BROKER)
    assert [each.asked for each in refusing.answering] == [(mode, BY_IP), (mode, BY_BROKER)]
    assert [delay for delay, _ in refusing.timers.due] == [700, 700] and len(refusing.sockets) == 2
    refusing.answering[0].close()
    assert len(refusing.sockets) == len(refusing.timers.due) == 1 and not is_open(first)
    refusing.timers.fire()
    assert not refusing.timers.due and len(refusing.sockets) == 0 and not is_open(second)
    client.close()
    other.close()


def test_a_mode_that_has_no_answer_on_a_listener_closes(refusing):
    refusing.set("sasl-error")
    refusing.answers_nothing = True
    client, fd = refusing.refuse()
    with client:
        assert client.recv(1) == b""
    assert not is_open(fd) and len(refusing.sockets) == 0


@pytest.mark.parametrize("mode", ["reset", "hold", *ANSWERING])
@pytest.mark.parametrize("reason", OTHERS)
def test_refusals_by_anything_but_a_cap_are_closed_in_every_mode(refusing, mode, reason):
    refusing.set(mode)
    client, fd = refusing.refuse(Refusal(reason, "", 0, 0))
    with client:
        assert client.recv(1) == b""
    assert not is_open(fd) and len(refusing.sockets) == 0


def test_held_and_answered_ones_have_one_bound():
    with contextlib.closing(Refusing(most=3)) as refusing:
        clients = []
        for mode in ["hold", "api-error", "hold", "api-error", "api-error"]:
            refusing.set(mode)
            clients.append(refusing.refuse()[0])
        assert [client.recv(1) for client in clients[:2]] == [b"", b""]
        assert len(refusing.sockets) == len(refusing.timers.due) == 3
        for client in clients:
            client.close()


def test_beyond_the_bound_the_one_held_longest_is_closed():
    with contextlib.closing(Refusing(most=3)) as refusing:
        refusing.set("hold")
        clients = [refusing.refuse()[0] for _ in range(5)]
        for client in clients:
            client.setblocking(False)
        assert [client.recv(1) for client in clients[:2]] == [b"", b""]
        for client in clients[2:]:
            with pytest.raises(BlockingIOError):
                client.recv(1)
        assert len(refusing.sockets) == len(refusing.timers.due) == 3
        for client in clients:
            client.close()


def test_a_change_of_mode_leaves_those_that_are_held_their_time(refusing):
    refusing.set("hold", "700")
    first, _ = refusing.refuse()
    refusing.set("reset")
    second, _ = refusing.refuse()
    assert [delay for delay, _ in refusing.timers.due] == [700] and len(refusing.sockets) == 1
    refusing.timers.fire()
    with first, second:
        assert first.recv(1) == b""
        with pytest.raises(ConnectionResetError):
            second.recv(1)


def test_a_client_that_has_gone_costs_its_place_until_its_time_and_no_more(refusing):
    refusing.set("hold")
    client, fd = refusing.refuse()
    client.close()
    refusing.timers.fire()
    assert not is_open(fd) and not refusing.sockets.make_room()
