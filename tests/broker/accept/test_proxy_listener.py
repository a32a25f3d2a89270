"""A listener behind proxies: which connections arrive, as whom and in which order, and that those that don't leave nothing."""

import os
import socket
import stat
import struct
from collections import Counter
from types import SimpleNamespace

import pytest
from announcing import LOCAL, binary, tlv, v1, v2

from broker.accept.proxy_header import ProxyFault
from broker.accept.proxy_listener import WITHIN_MS, ProxyListener
from shards.config.advertised import Address
from shards.config.proxy_option import proxy_option
from shards.loop.poller import Poller

REQUEST = b"\0\0\0\x04ping"
RESET = struct.pack("ii", 1, 0)


class Clocks:
    """Timers that are called when told to."""

    def __init__(self):
        self.due = {}

    def after(self, delay_ms, function):
        timer = object()
        self.due[timer] = (delay_ms, function)
        return timer

    def cancel(self, timer):
        self.due.pop(timer, None)

    def pass_by(self):
        for timer in list(self.due):
            if timer in self.due:
                self.due.pop(timer)[1]()


class Admissions:
    """What the listener hands on: (ip, port) of each arrival, with its way, in order."""

    def __init__(self):
        self.arrivals, self.faults, self.shed, self.fds = [], [], [], []

    def arrived(self, fd, ip, port):
        self.fds.append(fd)
        self.arrivals.append((ip, None))

    def announced(self, fd, ip, port, via):
        self.fds.append(fd)
        self.arrivals.append((ip, port, via))

    def without_header(self, fd, ip, port, fault, waited_ms):
        os.close(fd)
        self.faults.append((ip, fault))

    def no_descriptor(self, ip, port):
        self.shed.append(ip)


class Edge:
    """A listener over a real socket, and its proxies."""

    def __init__(self, options=("proxy=required", "trusted=127.0.0.1"), most=8, fd_ceiling=10_000):
        self.poller, self.timers, self.counted = Poller(), Clocks(), Counter()
        self.admission, self.clients = Admissions(), []
        self.sock = socket.create_server(("127.0.0.1", 0))
        context = SimpleNamespace(
            poller=self.poller,
            timers=self.timers,
            counters=SimpleNamespace(add=lambda name, count: self.counted.update({name: count})),
        )
        option = proxy_option("EDGE", options)
        self.listener = ProxyListener(self.sock, context, self.admission, option, most=most, fd_ceiling=fd_ceiling)
        self.listener.start()

    def connect(self, sent=b"", ip="127.0.0.1"):
        client = socket.create_connection(self.sock.getsockname(), source_address=(ip, 0))
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.clients.append(client)
        if sent:
            client.sendall(sent)
        self.passes()
        return client

    def send(self, client, *pieces):
        for piece in pieces:
            client.sendall(piece)
            self.passes()

    def passes(self):
        while self.poller.run_pass():
            pass

    @property
    def who(self):
        return [arrival[0] for arrival in self.admission.arrivals]

    @property
    def why(self):
        return [fault for _, fault in self.admission.faults]

    def left(self):
        """The bytes that the next reader of the last arrival finds."""
        return os.read(self.admission.fds[-1], 1000)

    def close(self):
        address = self.sock.getsockname()
        self.listener.close()
        for fd in self.admission.fds:
            os.close(fd)
        for each in (*self.clients, self.sock):
            each.close()
        assert not [fd for fd in map(int, os.listdir("/proc/self/fd")) if bound_to(fd) == address]
        assert self.listener.waiting == 0 and not self.timers.due
        self.poller.close()


def bound_to(fd):
    """The local address of a descriptor: the listener's own tells its connections from all else that this process opens."""
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            return None
        with socket.socket(fileno=os.dup(fd)) as copy:
            return copy.getsockname()
    except OSError:
        return None


@pytest.fixture
def edge():
    edge = Edge()
    yield edge
    edge.close()


@pytest.mark.parametrize("header", [v1("10.1.2.3", 4711), v2("10.1.2.3", 4711, crc=True)])
def test_a_client_arrives_as_its_proxy_announces_it_and_its_bytes_are_left(edge, header):
    edge.connect(header + REQUEST)
    ((ip, port, via),) = edge.admission.arrivals
    assert (ip, port) == ("10.1.2.3", 4711)
    assert via.proxy == "127.0.0.1" and via.reached == Address("192.0.2.1", 9092) and via.endpoint is None
    assert edge.left() == REQUEST


def test_a_header_may_come_byte_by_byte(edge):
    client = edge.connect()
    header = v2("10.1.2.3", tlvs=tlv(0xEA, b"\1vpce-1"))
    edge.send(client, *(bytes([byte]) for byte in header[:-1]))
    assert edge.listener.waiting == 1 and not edge.who
    edge.send(client, header[-1:] + REQUEST)
    assert edge.who == ["10.1.2.3"] and edge.listener.waiting == 0 and not edge.timers.due
    assert edge.admission.arrivals[0][2].endpoint == "aws:vpce-1"
    assert edge.left() == REQUEST


def test_a_peer_that_is_not_trusted_is_a_client_whatever_it_sends(edge):
    edge.connect(v1("10.1.2.3", 4711), ip="127.0.0.2")
    edge.connect(ip="127.0.0.3")
    assert edge.who == ["127.0.0.2", "127.0.0.3"] and not edge.listener.waiting
    assert not edge.counted


def test_a_local_connection_is_the_proxys_own(edge):
    edge.connect(binary(LOCAL, 0, b"") + REQUEST)
    edge.connect(b"PROXY UNKNOWN\r\n")
    assert edge.who == ["127.0.0.1", "127.0.0.1"]
    assert edge.counted == {"proxy_v2": 1, "proxy_v1": 1}


def test_what_is_no_header_ends_its_connection_at_once(edge):
    for sent in (REQUEST, b"PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n", b"PROXY UDP4 \r\n"):
        client = edge.connect(sent)
        with pytest.raises(ConnectionResetError):  # it had sent more than was read, or what was read is wrong
            if client.recv(1) == b"":
                raise ConnectionResetError
    assert edge.why == [ProxyFault.NOT_HDR, ProxyFault.BAD_HDR, ProxyFault.BAD_PROTO]
    assert not edge.who and not edge.timers.due


def test_a_silent_or_slow_peer_is_ended_when_its_time_is_over(edge):
    slow, silent = edge.connect(b"PROXY TCP4 1.2"), edge.connect()
    assert [delay_ms for delay_ms, _ in edge.timers.due.values()] == [WITHIN_MS, WITHIN_MS]
    edge.timers.pass_by()
    assert edge.why == [ProxyFault.TIMEOUT, ProxyFault.TIMEOUT]
    assert slow.recv(1) == silent.recv(1) == b""


@pytest.mark.parametrize(
    ("sent", "fault"),
    [(b"", ProxyFault.EMPTY), (b"PRO", ProxyFault.TRUNCATED), (b"PROXY TCP4 1", ProxyFault.TRUNCATED)],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_peer_that_leaves_is_gone_at_once(edge, sent, fault, at_once):
    if at_once:
        client = socket.create_connection(edge.sock.getsockname())
        client.sendall(sent)
    else:
        client = edge.connect(sent)
    client.close()
    edge.passes()
    assert edge.why == [fault] and not edge.timers.due


def test_a_connection_that_breaks_is_aborted(edge):
    client = edge.connect()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    client.close()
    edge.passes()
    assert edge.why == [ProxyFault.ABORT]


def test_a_header_counts_although_its_client_has_left(edge):
    """As a connection does that waits in a backlog: its request may be served for its effect."""
    client = socket.create_connection(edge.sock.getsockname())
    client.sendall(v1("10.1.2.3", 1) + REQUEST)
    client.close()
    edge.passes()
    assert edge.who == ["10.1.2.3"]


def test_for_one_more_than_may_wait_the_one_that_waits_longest_goes(edge):
    silent = [edge.connect() for _ in range(10)]
    assert edge.listener.waiting == 8 and edge.why == [ProxyFault.TIMEOUT] * 2
    assert [each.recv(1) for each in silent[:2]] == [b"", b""]
    edge.connect(v1("10.1.2.3", 1))
    assert edge.who == ["10.1.2.3"] and edge.listener.waiting == 7


def test_without_descriptors_the_one_that_waits_longest_goes():
    edge = Edge(fd_ceiling=0)
    edge.connect()
    edge.connect()
    assert edge.listener.waiting == 1 and edge.why == [ProxyFault.TIMEOUT]
    edge.close()


def test_while_it_is_paused_whole_headers_wait_and_then_arrive_in_their_order(edge):
    first, second, third = edge.connect(), edge.connect(), edge.connect()
    edge.listener.pause()
    edge.send(second, v1("10.0.0.2", 1))
    edge.send(first, v1("10.0.0.1", 1))
    later = socket.create_connection(edge.sock.getsockname())
    later.sendall(v1("10.0.0.4", 1))
    edge.clients.append(later)
    edge.passes()
    assert not edge.who and edge.listener.waiting == 1 and len(edge.timers.due) == 1
    edge.timers.pass_by()
    assert edge.why == [ProxyFault.TIMEOUT], "of the third alone: the others' headers are there"
    edge.listener.start()
    edge.passes()
    assert edge.who == ["10.0.0.2", "10.0.0.1", "10.0.0.4"]
    assert third.recv(1) == b""


def test_an_arrival_that_pauses_the_listener_keeps_the_others_waiting(edge):
    admit = edge.admission.announced

    def pausing(*arrival):
        admit(*arrival)
        edge.listener.pause()

    clients = [edge.connect() for _ in range(3)]
    edge.listener.pause()
    for number, client in enumerate(clients, 1):
        edge.send(client, v1(f"10.0.0.{number}", 1))
    edge.admission.announced = pausing
    for number in (1, 2, 3):
        edge.listener.start()
        edge.passes()
        assert edge.who == [f"10.0.0.{each}" for each in range(1, number + 1)]


def test_what_waits_when_the_shard_ends_is_closed(edge):
    silent, paused = edge.connect(), edge.connect()
    edge.listener.pause()
    edge.send(paused, v1("10.0.0.1", 1))
    edge.listener.close()
    assert silent.recv(1) == paused.recv(1) == b"" and not edge.who


def test_where_a_header_is_allowed_a_peer_without_one_is_a_client():
    edge = Edge(("proxy=allowed", "trusted=127.0.0.1"))
    edge.connect(REQUEST)
    assert edge.left() == REQUEST
    split = edge.connect()
    edge.send(split, REQUEST[:1], REQUEST[1:])
    edge.connect(v1("10.1.2.3", 1))
    edge.connect(b"PROXY TCP4 wrong\r\n")
    edge.connect(binary(0x11, 0x11, bytes(12)))
    assert edge.who == ["127.0.0.1", "127.0.0.1", "10.1.2.3"]
    assert edge.why == [ProxyFault.BAD_HDR, ProxyFault.NOT_HDR]
    assert edge.counted == {"proxy_none": 2, "proxy_v1": 1}
    edge.close()
