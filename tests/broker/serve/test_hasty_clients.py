"""Clients that pipeline, dawdle and leave at random, before a clock that ends time slices after any step.

Nothing that is read, unsent or due may be left without a future call: after each of its bursts everything that a client has sent
is answered, in order, without another byte of its own. TURNSTILE_ALL_SEEDS=1 (`make seeds`) takes a hundred seeds.
"""

import contextlib
import os
import random
import socket
import ssl
from collections import deque
from functools import partial

import pytest
from certificates import make_certificate
from echoing import Echo, framed

from broker.serve.connection import Connection
from broker.serve.muted import Muted
from broker.serve.request_memory import RequestMemory
from broker.serve.tls import server_context
from broker.wire.answer_parts import AnswerParts, FileSlice, OpenFile
from shards.loop.deferred import Deferred

SEEDS = range(100 if "TURNSTILE_ALL_SEEDS" in os.environ else 40)
FILE_BYTES = 3 << 20
KINDS = (b"echo",) * 12 + (b"none", b"mute", b"later", b"later", b"wake", b"file", b"big", b"long", b"longer")


class Server(Echo):
    """Answers each kind of request in its way; its clock advances by chance whenever it is asked."""

    max_frame_bytes = 1 << 20

    def __init__(self, draw, file):
        self.draw = draw
        self.clock = 0
        super().__init__(clock_ns=self._clock_ns)
        self.requests = RequestMemory(150_000, partial(self.timers.after, 0), self._clock_ns)
        self.muted = Muted(self.timers)
        self.file = file
        self.waiting = []
        self.served = {}

    def _clock_ns(self):
        self.clock += self.draw.choice((0, 0, 0, 0, 1_000, 100_000, 1_100_000))
        return self.clock

    def answer(self, connection, frame):
        self.served[connection].append(frame)
        if frame.startswith(b"mute"):
            connection.throttle = "producer_byte_rate", self.draw.choice((1, 50))
        elif frame.startswith(b"wake"):
            self.wake_some()
        answer = answer_of(frame, self.file)
        if not frame.startswith(b"later"):
            return answer
        later = Deferred()
        self.waiting.append((later, answer))
        if self.draw.random() < 0.3:
            connection.throttle = "request_percentage", 1
        return later

    def wake_some(self):
        """As a record does for which fetches of other connections wait."""
        while self.waiting and self.draw.random() < 0.7:
            later, answer = self.waiting.pop(self.draw.randrange(len(self.waiting)))
            later.resolve(answer)

    def call_timers(self):
        self.poller.now_ns = self._clock_ns()
        if self.draw.random() < 0.7:  # else in the slice of what tasks have done before
            self.poller.time_slice.begin(self.poller.now_ns)
        self.timers.call_due()


def answer_of(frame, file):
    """None for a request without an answer."""
    if frame.startswith(b"none"):
        return None
    if frame.startswith(b"file"):
        size = FILE_BYTES // 3
        slices = [FileSlice(file, 0, size), FileSlice(file, size, size)]
        return AnswerParts([(2 * size + len(frame)).to_bytes(4, "big") + frame, *slices])
    if frame.startswith(b"big"):
        return framed(frame * (1_500_000 // len(frame)))
    return framed(frame)


class Client:
    """One that sends `stream` in pieces and reads when it likes to; over TLS with a `context`."""

    def __init__(self, server, draw, context):
        self.draw = draw
        self.sock, far = socket.socketpair()
        self.sock.setblocking(False)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context and context.wrap_bio(self.incoming, self.outgoing)
        self.connection = Connection(server, far.detach(), socket.AF_UNIX, 1, "127.0.0.1", 1, pools=())
        server.served[self.connection] = []
        self.sent, self.unsent, self.answers = [], bytearray(), bytearray()

    def add(self, frames):
        self.sent += frames
        plain = b"".join(map(framed, frames))
        if self.tls:
            while plain:
                plain = plain[self.tls.write(plain) :]
            self.unsent += self.outgoing.read()
        else:
            self.unsent += plain

    def write(self, most):
        if not self.unsent:
            return
        try:
            del self.unsent[: self.sock.send(self.unsent[:most])]
        except BlockingIOError:
            return

    def read(self, most):
        try:
            data = self.sock.recv(most)
        except (BlockingIOError, ConnectionResetError):
            return 0
        if self.tls and data:
            self.incoming.write(data)
            try:
                while plain := self.tls.read(1 << 16):
                    self.answers += plain
            except ssl.SSLWantReadError:
                pass
        else:
            self.answers += data
        return len(data)

    def say_farewell(self):
        """TLS has a last word. Without it nothing can be answered any more."""
        if self.tls:
            with contextlib.suppress(ssl.SSLWantReadError):
                self.tls.unwrap()
            self.unsent += self.outgoing.read()

    def shake_hands(self, server):
        while self.tls:
            try:
                self.tls.do_handshake()
                return
            except ssl.SSLWantReadError:
                self.sock.send(self.outgoing.read() or b"")
                while server.poller.run_pass():
                    pass
                self.incoming.write(self.sock.recv(1 << 16))


def frames_of(draw, number):
    """A burst of requests, with what makes each its own."""
    for index in range(draw.choice((1, 3, 40, 300))):
        kind = draw.choice(KINDS) if draw.random() < 0.3 else b"echo"
        size = {b"long": 100_000, b"longer": 400_000}.get(kind, draw.choice((0, 10, 2_000)))
        yield b"%s %d.%d " % (kind, number, index) + b"." * size


def act(server, clients, draw):
    """Anything that may happen next."""
    client = draw.choice(clients)
    deed = draw.randrange(7)
    if deed < 2:
        client.write(draw.choice((1, 5, 1_000, 70_000, 1 << 20)))
    elif deed == 2:
        client.read(draw.choice((1, 1_000, 1 << 20)))
    elif deed == 3:
        server.call_timers()
    elif deed == 4:
        server.wake_some()
    else:
        server.poller.run_pass()


def settle(server, clients):
    """Until nothing happens any more: all is sent and read, woken and due."""
    quiet = 0
    while quiet < 3:
        before = (
            [(len(client.unsent), len(client.answers)) for client in clients],
            sum(map(len, server.served.values())),
        )
        for client in clients:
            client.write(1 << 20)
            while client.read(1 << 20):
                pass
        while server.poller.run_pass():
            pass
        server.wake_some()
        server.clock += 100_000_000
        server.call_timers()
        after = [(len(client.unsent), len(client.answers)) for client in clients], sum(map(len, server.served.values()))
        quiet = quiet + 1 if before == after and not server.waiting and not len(server.timers) else 0


@pytest.fixture(scope="module")
def contexts(tmp_path_factory):
    certificate = make_certificate(tmp_path_factory.mktemp("certificate"))
    if certificate is None:
        pytest.skip("openssl is not installed")
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    return server_context(str(certificate.cert), str(certificate.key)), client


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "segment"
    path.write_bytes(os.urandom(FILE_BYTES))
    return OpenFile(os.open(path, os.O_RDONLY), set())


@pytest.fixture(params=SEEDS)
def seed(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def meet(request, seed, contexts, file):
    """Makes a server and so many clients of it, or one or three: what draws what they do, the server, the clients."""
    made = []

    def make(count):
        draw = random.Random(seed)
        server = Server(draw, file)
        server.tls, context = contexts if request.param else (None, None)
        clients = [Client(server, draw, context) for _ in range(count or draw.choice((1, 3)))]
        made.append((server, clients))
        for client in clients:
            client.shake_hands(server)
        return draw, server, clients

    yield make
    for server, clients in made:
        for client in clients:
            client.connection.close()
            client.sock.close()
        server.poller.close()


def test_whatever_was_sent_is_answered_in_order_without_anything_more(meet, file):
    draw, server, clients = meet(None)
    for number in range(3):
        for client in clients:
            client.add([*frames_of(draw, number)])
        for _ in range(draw.choice((0, 30, 400))):
            act(server, clients, draw)
        settle(server, clients)
        for client in clients:
            assert server.served[client.connection] == client.sent
            answers = [answer for frame in client.sent if (answer := answer_of(frame, file)) is not None]
            assert bytes(client.answers) == b"".join(map(bytes, answers))
        server.requests.check()
        server.answers.check()
        assert not server.requests.used and not server.answers.unsent and not server.ended and not server.faults


def test_a_client_that_leaves_is_served_to_its_end_and_closed(meet, file):
    """Whole requests have their effect, unless a mute or an answer that it doesn't read stands before them (C7)."""
    draw, server, clients = meet(3)
    for client in clients:
        client.add([*frames_of(draw, 0)])
    leaving = deque(clients)
    while leaving:
        for _ in range(draw.choice((0, 30, 400))):
            act(server, clients, draw)
        client = leaving.popleft()
        client.say_farewell()
        while client.unsent:
            act(server, clients, draw)
        client.sock.shutdown(socket.SHUT_WR)
    settle(server, clients)
    for client in clients:
        assert client.connection.closed
        assert server.served[client.connection] == client.sent
    assert not server.requests.used and not server.answers.unsent and server.ended == ["client"] * 3
