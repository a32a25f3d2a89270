"""A connection that has always more to do does no more of it in a pass than fits a time slice (C8, B4)."""

import contextlib
import os
import socket
import ssl

import pytest
from certificates import make_certificate
from echoing import Echo, framed, open_connection, passes, received

from broker.serve.muted import Muted
from broker.serve.tls import server_context
from broker.wire.answer_parts import AnswerParts, FileSlice, OpenFile
from shards.loop.time_slice import MOST_BYTES, MOST_STEPS

TOO_MANY = 20 * MOST_STEPS
"""Requests in one pass: the test ends, instead of going on for ever."""
NAGGING = framed(b"x") * 40_000  # more than one read takes


class Refilled(Echo):
    """Its client sends more whenever a request is served, and reads all answers: there is always something to read."""

    more = None

    def answer(self, connection, frame):
        if frame == b"x":
            assert len(self.frames) < TOO_MANY, "it goes on for ever"
            if self.more is not None:
                self.more()
        return super().answer(connection, frame)


@pytest.fixture
def pair():
    """A serving side whose time stands still, so that slices are bounded by steps and bytes, and two of its connections, each
    as (client, connection)."""
    echo = Refilled(clock_ns=lambda: 0)
    both = [open_connection(echo) for _ in range(2)]
    yield echo, *both
    for client, connection in both:
        connection.close()
        client.close()
    echo.poller.close()


def test_beside_endless_requests_another_connection_is_served_in_the_same_pass(pair):
    echo, (greedy, connection), (other, _) = pair

    def refill():
        received(greedy)
        try:
            greedy.send(NAGGING)
        except BlockingIOError:
            return

    echo.more = refill
    greedy.send(NAGGING)
    other.sendall(framed(b"other"))
    for _ in range(5):
        echo.frames.clear()
        echo.poller.run_pass()
        assert echo.frames.count(b"x") <= MOST_STEPS
        assert received(other) == framed(b"other")
        other.sendall(framed(b"other"))
    assert not connection.closed and not echo.faults


def test_what_waits_for_the_next_pass_is_served_without_anything_new(pair):
    echo, (greedy, _), _ = pair
    greedy.sendall(framed(b"x") * 2000)
    answers = b""
    while echo.poller.run_pass():
        answers += received(greedy)
    assert answers == framed(b"x") * 2000


@pytest.mark.parametrize("frames", [2 * MOST_STEPS - 1, 2 * MOST_STEPS, 2 * MOST_STEPS + 1])
def test_what_arrives_while_the_last_slice_of_earlier_requests_is_used_up_is_read(pair, frames):
    """Its readiness was told in the pass that had no time left to read it."""
    echo, (greedy, _), _ = pair
    greedy.sendall(framed(b"x") * frames)
    echo.poller.run_pass()
    greedy.sendall(framed(b"newer"))
    passes(echo)
    assert echo.frames.count(b"x") == frames and echo.frames[-1] == b"newer"


@pytest.mark.parametrize("frames", [b"mute", b"later"])
def test_a_connection_is_called_again_that_was_muted_or_waits_for_an_answer_meanwhile(pair, frames):
    """It takes up no further request (C2)."""
    echo, (client, connection), _ = pair
    client.sendall(framed(b"x") * (MOST_STEPS - 1) + framed(frames) + framed(b"behind") * 10)
    if frames == b"mute":
        echo.muted = Muted(echo.timers)
        answer = echo.answer

        def throttling(connection, frame):
            if frame == b"mute":
                connection.throttle = "producer_byte_rate", 60_000
            return answer(connection, frame)

        echo.answer = throttling
    passes(echo)
    assert b"behind" not in echo.frames and connection.busy
    if frames == b"mute":
        echo.muted.end(connection)
    else:
        echo.laters[b"later"].resolve(b"y")
    passes(echo)
    assert echo.frames.count(b"behind") == 10


def test_a_connection_that_closes_before_it_is_called_again_is_not_called(pair):
    echo, (client, connection), _ = pair
    client.sendall(framed(b"x") * 2000)
    echo.poller.run_pass()
    served = len(echo.frames)
    connection.close("shutdown")
    passes(echo)
    assert len(echo.frames) == served and echo.ended == ["shutdown"]


@pytest.mark.parametrize("first", [b"x", b"later"])
def test_a_client_that_pipelines_and_leaves_is_served_to_its_end_in_slices(pair, first):
    """Whether it has closed before the first request is served, or while one waits for its answer (C7)."""
    echo, (client, connection), (other, _) = pair
    client.sendall(framed(first) + framed(b"x") * 2000)
    if first == b"later":
        echo.poller.run_pass()
    client.shutdown(socket.SHUT_WR)
    while not connection.closed:
        before = len(echo.frames)
        other.sendall(framed(b"other"))
        assert echo.poller.run_pass()
        assert len(echo.frames) - before <= MOST_STEPS + 1
        assert received(other) == framed(b"other")
        received(client)
    assert echo.frames.count(b"x") == 2000 + (first == b"x") and echo.ended == ["client"]


def test_what_tls_has_decrypted_is_served_though_the_socket_is_empty(pair, tmp_path):
    certificate = make_certificate(tmp_path)
    if certificate is None:
        pytest.skip("openssl is not installed")
    plain, _, (other, _) = pair
    echo = Refilled(clock_ns=lambda: 0)
    echo.poller.close()
    echo.poller = plain.poller
    echo.tls = server_context(str(certificate.cert), str(certificate.key))
    raw, connection = open_connection(echo)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    client = context.wrap_socket(raw, do_handshake_on_connect=False)
    while True:
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            passes(echo)
    client.send(framed(b"x") * 2000)
    answers = b""
    while len(answers) < 5 * 2000:
        before = len(echo.frames)
        other.sendall(framed(b"other"))
        assert echo.poller.run_pass(), "what is left is in TLS"
        assert len(echo.frames) - before <= MOST_STEPS + 1
        assert received(other) == framed(b"other")
        with contextlib.suppress(ssl.SSLWantReadError):
            answers += client.recv(1 << 20)
    assert answers == framed(b"x") * 2000
    connection.close()
    client.close()


def test_a_fast_reader_is_sent_no_more_of_a_file_in_a_pass_than_fits(pair, tmp_path, monkeypatch):
    """A socket that takes whatever it is given, as one does whose reader is faster than the disk."""
    echo, (client, _), (other, _) = pair
    size = 40 << 20
    path = tmp_path / "segment"
    with path.open("wb") as file:
        file.truncate(size)
    sent = []
    monkeypatch.setattr(os, "sendfile", lambda out, file, at, count: sent.append(count) or count)
    file = OpenFile(os.open(path, os.O_RDONLY), set())
    echo.records = AnswerParts([FileSlice(file, 0, size // 2), FileSlice(file, size // 2, size // 2)])
    answer = echo.answer
    echo.answer = lambda connection, frame: echo.records if frame == b"fetch" else answer(connection, frame)
    client.sendall(framed(b"fetch") + framed(b"x"))
    while not echo.frames.count(b"x"):
        before = sum(sent)
        other.sendall(framed(b"other"))
        assert echo.poller.run_pass()
        assert sum(sent) - before <= MOST_BYTES
        assert received(other) == framed(b"other")
    assert sum(sent) == size
    assert received(client) == framed(b"x"), "behind it"


def test_timers_that_are_due_together_take_a_slice_at_a_time(pair):
    echo, *_ = pair
    called = []
    for number in range(3 * MOST_STEPS):
        echo.timers.after(0, lambda number=number: called.append(number))
    for times in (1, 2, 3):
        echo.poller.time_slice.begin(0)
        echo.timers.call_due()
        assert called == [*range(times * MOST_STEPS)]


def test_many_that_are_unmuted_at_once_are_served_in_the_passes_that_follow(pair):
    """Their timers are one callback."""
    echo, *_ = pair
    many = [open_connection(echo) for _ in range(10)]
    echo.muted = Muted(echo.timers)
    for client, connection in many:
        connection.busy = connection.muted = True
        echo.muted.mute(connection, "producer_byte_rate", 0)
        client.sendall(framed(b"x") * MOST_STEPS)
    passes(echo)
    while len(echo.timers):
        before = len(echo.frames)
        echo.poller.time_slice.begin(0)
        echo.timers.call_due()
        assert len(echo.frames) - before <= MOST_STEPS + 1
    passes(echo)
    assert len(echo.frames) == 10 * MOST_STEPS
    for client, connection in many:
        connection.close()
        client.close()
