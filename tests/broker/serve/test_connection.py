"""Frames however they arrive, answers in order, and connections that end while something is under way."""

import os
import socket
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from echoing import Echo, framed, open_connection, passes, received, serving
from hypothesis import given
from hypothesis import strategies as st

from broker.serve.muted import Muted
from broker.serve.request_memory import AnswerMemory, RequestMemory
from broker.wire.answer_parts import AnswerParts, FileSlice, OpenFile
from shards.errors import ClientFault
from shards.loop.deferred import Deferred


@pytest.fixture
def served():
    with serving() as all_three:
        yield all_three


@given(
    st.lists(st.binary(max_size=40).filter(lambda body: body[:3] not in (b"slo", b"bad", b"mut")), max_size=6),
    st.data(),
)
def test_frames_are_the_same_however_they_are_cut(bodies, data):
    stream = b"".join(map(framed, bodies))
    at = 0
    answers = b""
    with serving() as (echo, client, _):
        while at < len(stream):
            step = data.draw(st.integers(1, len(stream) - at))
            client.sendall(stream[at : at + step])
            at += step
            passes(echo)
            answers += received(client)
        assert echo.frames == bodies
        assert answers == stream


def test_an_oversized_frame_closes_the_connection(served):
    echo, client, _ = served
    client.sendall((1001).to_bytes(4, "big"))
    passes(echo)
    assert echo.ended == ["malformed"] and echo.faults == ["oversized"]
    assert client.recv(1) == b""


def test_an_oversized_frame_that_comes_whole_closes_the_connection(served):
    echo, client, _ = served
    client.sendall(framed(b"x" * 1001))
    passes(echo)
    assert echo.ended == ["malformed"] and echo.faults == ["oversized"] and not echo.frames


def test_an_unknown_client_gets_no_room_for_a_large_frame(served):
    echo, client, connection = served
    echo.max_frame_bytes = 100 << 20
    connection.authentication = object()
    client.sendall(((512 << 10) + 1).to_bytes(4, "big"))
    passes(echo)
    assert echo.ended == ["malformed"] and echo.faults == ["oversized"]


def test_a_negative_length_closes_the_connection(served):
    echo, client, _ = served
    client.sendall(b"\xff\xff\xff\xff")
    passes(echo)
    assert echo.ended == ["malformed"] and echo.faults == ["negative length"]


def test_a_frame_that_is_no_request_closes_the_connection(served):
    echo, client, _ = served
    client.sendall(framed(b"bad") + framed(b"never served"))
    passes(echo)
    assert echo.ended == ["malformed"] and echo.frames == [b"bad"]


def test_a_request_without_an_answer_is_followed_by_the_next(served):
    echo, client, _ = served
    client.sendall(framed(b"mute") + framed(b"one"))
    passes(echo)
    assert received(client) == framed(b"one")


def test_every_request_is_counted_with_the_bytes_it_took_on_the_wire(served):
    echo, client, _ = served
    client.sendall(framed(b"mute") + framed(b"one"))
    passes(echo)
    assert echo.counted == [(8, 0), (7, 7)]


def test_the_end_of_the_stream_is_reported_once(served):
    echo, client, connection = served
    client.close()
    passes(echo)
    connection.close()
    assert echo.ended == ["client"]


def test_what_a_closed_connection_sends_does_not_reach_the_next_with_its_descriptor(served):
    echo, _, closed = served
    descriptor = closed.fd
    closed.close()
    client, following = open_connection(echo)
    if following.fd != descriptor:  # the client's end got the number
        client.close()
        following.close()
        client, following = open_connection(echo)
    closed.send(framed(b"late"))
    client.send(framed(b"one"))
    passes(echo)
    assert received(client) == framed(b"one")
    following.close()
    client.close()


def test_an_answer_larger_than_the_socket_takes_goes_out_whole_and_first(served):
    echo, client, connection = served
    large = b"x" * 3_000_000
    connection.send(large)
    client.sendall(framed(b"next"))
    got = b""
    while len(got) < len(large) + 8:
        passes(echo)
        got += received(client)
    assert got == large + framed(b"next")


def test_one_request_at_a_time_is_under_way_and_those_behind_it_are_answered_in_order(served):
    echo, client, connection = served
    client.sendall(framed(b"later 1") + framed(b"other") + framed(b"later 2") + framed(b"last"))
    passes(echo)
    assert echo.frames == [b"later 1"] and connection.busy
    echo.laters[b"later 1"].resolve(b"one")
    assert received(client) == framed(b"one") + framed(b"other")
    assert echo.frames[1:] == [b"other", b"later 2"]
    echo.laters[b"later 2"].resolve(b"two")
    assert received(client) == framed(b"two") + framed(b"last")
    assert not connection.busy
    assert [size for size, _ in echo.counted] == [11, 9, 11, 8]


def test_an_answer_waits_for_one_before_it_that_the_socket_does_not_take(served):
    echo, client, connection = served
    client.sendall(framed(b"later 1"))
    passes(echo)
    connection.send(b"x" * (4 << 20))
    echo.laters[b"later 1"].resolve(b"y")
    found = bytearray()
    while len(found) < (4 << 20) + 5:
        found += received(client)
        passes(echo)
    assert bytes(found[-5:]) == framed(b"y")


def test_what_is_under_way_when_its_client_leaves_is_answered_to_nobody(served):
    echo, client, connection = served
    client.sendall(framed(b"later 1") + framed(b"later 2"))
    passes(echo)
    client.close()
    passes(echo)
    assert echo.ended == ["client"] and list(echo.laters) == [b"later 1", b"later 2"], "both for their effect"
    for later in echo.laters.values():
        later.resolve(b"nobody")
    assert connection.closed and echo.counted == []


def test_an_answer_that_fails_ends_its_connection(served):
    echo, client, _ = served
    client.sendall(framed(b"later 1") + framed(b"later 2"))
    passes(echo)
    echo.laters[b"later 1"].fail(ClientFault("PRODUCE_FAILED", "it failed"))
    assert list(echo.laters) == [b"later 1"]
    assert (echo.ended, echo.faults) == (["malformed"], ["it failed"])


def test_a_request_that_comes_after_an_answer_is_as_late_as_it_comes(served):
    """The client runs as soon as it has its answer, and this process may not go on before the next request has come."""
    echo, client, connection = served
    now_ns = [connection.last_used_ns]
    echo.poller.clock_ns = lambda: now_ns[0]
    client.sendall(framed(b"later"))
    passes(echo)

    def preempted(bytes_in, bytes_out):
        now_ns[0] += 3_000_000
        client.sendall(framed(b"next"))

    echo.answered = preempted
    echo.laters[b"later"].resolve(b"later")
    assert echo.frames == [b"later", b"next"] and connection.last_used_ns == now_ns[0] - 3_000_000


async def test_requests_behind_a_slow_one_wait_for_it():
    async with trio.open_nursery() as nursery:
        echo = Echo(nursery)
        client, connection = open_connection(echo)
        client.sendall(framed(b"slow") + framed(b"fast"))
        passes(echo)
        await trio.testing.wait_all_tasks_blocked()
        assert echo.frames == [b"slow"] and received(client) == b""
        echo.go.set()
        await trio.testing.wait_all_tasks_blocked()
        assert received(client) == framed(b"slow") + framed(b"fast")
        connection.close()
        client.close()
        echo.poller.close()


async def test_a_client_that_leaves_during_a_slow_request_is_closed_at_once():
    async with trio.open_nursery() as nursery:
        echo = Echo(nursery)
        client, _ = open_connection(echo)
        client.sendall(framed(b"slow"))
        passes(echo)
        client.close()
        passes(echo)
        assert echo.ended == ["client"]
        await trio.testing.wait_all_tasks_blocked()
        assert not nursery.child_tasks, "what it waited for is cancelled"
        assert echo.ended == ["client"]
        echo.poller.close()


def test_answers_that_are_there_already_take_no_stack_however_many_follow_each_other(served):
    """As those of calls to a peer that is down are."""
    echo, client, _ = served

    def answer(connection, frame):
        there = Deferred()
        there.resolve(framed(frame))
        return there

    echo.answer = answer
    client.sendall(framed(b"x") * 2000)
    got = b""
    while len(got) < len(framed(b"x")) * 2000:
        passes(echo)
        got += received(client)
    assert (echo.ended, echo.faults, got) == ([], [], framed(b"x") * 2000)


def leave(client, *frames, more=b""):
    """The client sends frames and closes, so that both arrive in one event."""
    client.sendall(b"".join(map(framed, frames)) + more)
    client.close()


@pytest.mark.parametrize("sent", [b"\0", b"\0\0\0\4ab", framed(b"mute"), framed(b"one"), framed(b"mute") + b"\0\0"])
def test_an_end_that_arrives_with_data_closes_the_connection(served, sent):
    echo, client, _ = served
    leave(client, more=sent)
    passes(echo)
    assert echo.ended == ["client"]


def test_an_end_behind_more_than_one_read_closes_the_connection(served):
    echo, client, _ = served
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    echo.max_frame_bytes = 1 << 20
    leave(client, b"mute" * 40_000)
    passes(echo)
    assert echo.ended == ["client"] and echo.frames == [b"mute" * 40_000]


def test_a_request_that_waits_when_its_client_leaves_holds_nothing_though_more_was_sent(served):
    echo, client, connection = served
    cancelled = []
    client.sendall(framed(b"later"))
    passes(echo)
    echo.laters[b"later"].on_cancel = lambda: cancelled.append("later")
    leave(client, b"mute 1", b"later 2", b"mute 3", more=b"\0\0")
    passes(echo)
    assert echo.ended == ["client"] and cancelled == ["later"]
    assert echo.frames == [b"later", b"mute 1", b"later 2", b"mute 3"], "served for their effect"
    echo.laters[b"later 2"].resolve(b"too late")
    assert connection.closed


def test_a_request_that_arrives_with_the_end_does_not_wait(served):
    echo, client, _ = served
    leave(client, b"later")
    passes(echo)
    assert echo.ended == ["client"]


def test_what_was_sent_behind_a_mute_is_served_when_that_is_over_and_then_closed(served):
    echo, client, connection = served
    echo.muted = Muted(echo.timers)
    connection.throttle = "producer_byte_rate", 1000
    leave(client, b"mute 1", b"mute 2")
    passes(echo)
    assert (echo.frames, echo.ended) == ([b"mute 1"], [])
    echo.muted.end(connection)
    assert (echo.frames, echo.ended) == ([b"mute 1", b"mute 2"], ["client"])


def test_a_muted_connection_whose_client_has_left_is_closed_at_once(served):
    echo, client, connection = served
    echo.muted = Muted(echo.timers)
    connection.throttle = "producer_byte_rate", 1000
    leave(client, b"mute 1")
    passes(echo)
    assert (echo.ended, len(echo.muted)) == (["client"], 0)


THROTTLE = "producer_byte_rate", 1000


@pytest.mark.parametrize("ahead", [(), (b"later",)])
def test_closing_while_a_charge_is_under_way_is_no_way_around_its_throttle(served, ahead):
    echo, client, connection = served
    echo.muted = Muted(echo.timers)
    leave(client, *ahead, b"charge 1", b"charge 2", b"mute 3")
    passes(echo)
    assert (echo.frames, echo.ended) == ([*ahead, b"charge 1"], []), "what it will be throttled for is not known yet"
    echo.laters[b"charge 1"].resolve(THROTTLE)
    passes(echo)
    assert (echo.frames[-1], echo.ended, len(echo.muted)) == (b"charge 1", [], 1)
    echo.muted.end(connection)
    passes(echo)
    assert (echo.frames[-1], echo.ended) == (b"charge 2", [])
    echo.laters[b"charge 2"].resolve(None)
    passes(echo)
    assert (echo.frames[-1], echo.ended) == (b"mute 3", ["client"])


def test_a_request_that_is_throttled_at_once_mutes_a_client_that_has_left_behind_one_that_waits(served):
    echo, client, connection = served
    echo.muted = Muted(echo.timers)
    answer = echo.answer

    def throttling(connection, frame):
        connection.throttle = THROTTLE if frame.startswith(b"mute") else None
        return answer(connection, frame)

    echo.answer = throttling
    leave(client, b"later", b"mute 1", b"mute 2")
    passes(echo)
    assert (echo.frames, echo.ended) == ([b"later", b"mute 1"], [])
    echo.muted.end(connection)
    passes(echo)
    assert (echo.frames, echo.ended, len(echo.muted)) == ([b"later", b"mute 1", b"mute 2"], ["client"], 0)


def test_a_client_that_leaves_with_nothing_behind_its_charge_is_closed_at_once(served):
    echo, client, _ = served
    leave(client, b"charge 1")
    passes(echo)
    assert (echo.frames, echo.ended) == ([b"charge 1"], ["client"])


def test_a_long_request_waits_for_memory_and_goes_on_with_it(served):
    echo, client, connection = served
    soon = []
    echo.requests = RequestMemory(100_000, soon.append, lambda: 0)
    echo.max_frame_bytes = 1 << 20
    other = StubReader()
    assert echo.requests.grown(other, 100_000, 200_000)
    body = b"mute" * 50_000
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    client.sendall(framed(body)[:120_000])
    passes(echo)
    assert connection.waits_for_memory
    client.sendall(framed(body)[120_000:])
    passes(echo)
    assert connection.waits_for_memory and len(connection.received) == 120_000, "nothing more was read"
    echo.requests.finished(other)
    soon.pop()()
    passes(echo)
    assert echo.frames == [body] and not connection.buffers and echo.requests.used == 0


def test_a_connection_that_closes_gives_its_memory_back(served):
    echo, client, _ = served
    echo.requests = RequestMemory(100_000, None, lambda: 0)
    echo.max_frame_bytes = 1 << 20
    client.sendall(framed(b"x" * 90_000)[:80_000])
    passes(echo)
    assert echo.requests.used == 80_000
    client.close()
    passes(echo)
    assert echo.requests.used == 0
    echo.requests.check()


def test_what_a_client_has_not_read_is_counted_until_it_is_sent_or_the_connection_ends(served):
    echo, client, connection = served
    connection.send(b"x" * 3_000_000)
    unsent = echo.answers.unsent
    assert 0 < unsent < 3_000_000
    received(client)
    passes(echo)
    assert 0 < echo.answers.unsent < unsent
    connection.close()
    assert echo.answers.unsent == 0


def test_of_an_answer_that_is_nearly_sent_only_the_rest_is_kept(served):
    echo, client, connection = served
    connection.send(b"x" * 3_000_000)
    while echo.answers.unsent > 10_000:
        client.recv(1 << 16)
        passes(echo)
    assert connection.unsent is None or memoryview(connection.unsent.obj).nbytes <= 2 * len(connection.unsent)


@pytest.fixture
def segment(tmp_path):
    path = tmp_path / "segment"
    path.write_bytes(bytes(range(256)) * 40_000)
    return path


def records_of(path):
    """An answer of which two parts are in a file, and what is to arrive of it."""
    data, file = path.read_bytes(), OpenFile(os.open(path, os.O_RDONLY), set())
    slices = FileSlice(file, 3, 5_000_000), FileSlice(file, 1_000_000, len(data) - 1_000_000)
    answer = AnswerParts([b"head", b"er", slices[0], b"between", slices[1], b"tail"])
    return answer, b"header" + data[3:5_000_003] + b"between" + data[1_000_000:] + b"tail"


def all_received(echo, client, size):
    data = b""
    while len(data) < size:
        data += received(client)
        passes(echo)
    return data


def test_an_answer_from_a_file_takes_no_memory_while_it_waits_and_keeps_its_place(served, segment):
    echo, client, connection = served
    echo.answers = AnswerMemory(1000)
    answer, expected = records_of(segment)
    assert len(answer) == len(expected)
    connection.gathered = [b"before"]
    connection.send(answer)
    connection.send_gathered()
    assert connection.unsent is not None and echo.answers.unsent < 20
    client.sendall(framed(b"behind"))
    got = all_received(echo, client, len(expected) + 16)
    assert got == b"before" + expected + framed(b"behind")
    assert echo.answers.unsent == 0 and connection.unsent is None


def test_a_client_that_leaves_in_the_middle_of_a_file_lets_it_go(served, segment):
    echo, client, connection = served
    connection.send(records_of(segment)[0])
    passes(echo)
    received(client)
    client.close()
    passes(echo)
    assert connection.closed and echo.answers.unsent == 0
    links = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
    assert not any(os.path.exists(link) and os.readlink(link) == str(segment) for link in links)


def test_a_file_that_has_become_shorter_ends_the_connection(served, segment):
    echo, client, connection = served
    connection.send(records_of(segment)[0])
    os.truncate(segment, 2_000_000)
    with pytest.raises((ConnectionResetError, AssertionError)):
        while True:
            received(client)
            passes(echo)
            assert not connection.closed
    assert connection.closed


def test_a_client_that_leaves_more_unread_than_there_may_be_is_closed(served):
    echo, _, connection = served
    echo.answers = AnswerMemory(1_000_000)
    connection.send(b"x" * 20_000_000)
    assert connection.closed and echo.ended == ["unread"] and echo.answers.unsent == 0


class StubReader:
    """Holds memory and does nothing else."""

    def read_on(self):
        raise AssertionError("it never waits")


@asynccontextmanager
async def parting(nursery, **clock):
    """A connection that has sent its last answer, which the client has not read yet."""
    echo = Echo(nursery, **clock)
    client, connection = open_connection(echo)
    client.sendall(framed(b"slow end") + framed(b"never served"))
    echo.go.set()
    passes(echo)
    await trio.testing.wait_all_tasks_blocked()
    assert echo.ended == []
    yield echo, client
    assert echo.ended == ["unauthenticated"]
    assert echo.counted == [(12, 12)]
    connection.close()
    client.close()
    echo.poller.close()


async def test_a_connection_that_ends_after_an_answer_waits_for_the_client_to_end_too(nursery):
    async with parting(nursery) as (echo, client):
        assert received(client) == framed(b"slow end")
        assert received(client) == b"", "the end of the stream, not a reset"
        client.sendall(framed(b"nor this"))
        passes(echo)
        assert echo.ended == []
        client.shutdown(socket.SHUT_WR)
        passes(echo)


async def test_a_connection_that_ends_after_an_answer_does_not_wait_for_long(nursery, autojump_clock):
    async with parting(nursery, clock_ns=lambda: int(trio.current_time() * 1e9)) as (echo, client):
        nursery.start_soon(echo.timers.run)
        await trio.sleep(1.1)
        assert received(client) == framed(b"slow end")


class Writes:
    """A socket that notes what is written at once."""

    def __init__(self, sock):
        self._sock = sock
        self.pieces = []

    def send(self, data, flags):
        self.pieces.append(bytes(data))
        return self._sock.send(data, flags)

    def __getattr__(self, name):
        return getattr(self._sock, name)


def test_answers_to_requests_that_arrive_together_leave_together(served):
    echo, client, connection = served
    connection.sock = Writes(connection.sock)
    client.sendall(framed(b"one") + framed(b"two") + framed(b"mute") + framed(b"three"))
    passes(echo)
    assert connection.sock.pieces == [framed(b"one") + framed(b"two") + framed(b"three")]


def test_answers_in_front_of_one_that_comes_later_leave_at_once(served):
    echo, client, connection = served
    connection.sock = Writes(connection.sock)
    client.sendall(framed(b"one") + framed(b"later") + framed(b"two") + framed(b"three"))
    passes(echo)
    assert connection.sock.pieces == [framed(b"one")]
    echo.laters[b"later"].resolve(b"later")
    assert connection.sock.pieces[1:] == [framed(b"later"), framed(b"two") + framed(b"three")]


def test_answers_in_front_of_a_malformed_request_leave_before_the_connection_closes(served):
    echo, client, _ = served
    client.sendall(framed(b"one") + framed(b"bad") + framed(b"two"))
    passes(echo)
    assert echo.ended == ["malformed"]
    assert received(client) == framed(b"one")


def test_gathered_answers_that_fill_the_socket_stop_the_taking_of_requests(served):
    echo, client, connection = served
    connection.sock = Writes(connection.sock)
    frame = framed(b"x" * 900)
    sent = 0
    while connection.unsent is None:
        client.sendall(frame * 40)
        sent += 40
        passes(echo)
    taken = len(echo.frames)
    assert taken <= sent and max(map(len, connection.sock.pieces)) <= 64 * len(frame)
    got = b""
    while len(got) < sent * len(frame):
        got += received(client)
        passes(echo)
    assert got == frame * sent
