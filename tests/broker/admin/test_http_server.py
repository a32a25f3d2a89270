"""The HTTP server of the admin API on real sockets: what clients that are right, slow, wrong or gone cost it."""

import json
import os
import re
import resource
import socket
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import trio
from starlette.requests import Request
from starlette.responses import JSONResponse

from broker.admin import http_connection, http_server, requests
from broker.admin.http_server import serve_http

ASK = b"GET /it HTTP/1.1\r\nHost: localhost\r\n\r\n"
CLOSE_WAIT = "08"  # of /proc/net/tcp


class App:
    """Echoes what it was asked; `gate` holds requests for /slow until it is set."""

    def __init__(self):
        self.gate = trio.Event()
        self.asked = []

    async def __call__(self, scope, receive, send):
        request = Request(scope, receive)
        self.asked.append(scope["path"])
        if scope["path"] == "/slow":
            await self.gate.wait()
        if scope["path"] == "/mistake":
            raise ZeroDivisionError
        body = b"" if scope["path"] == "/unread" else await request.body()
        size = int(request.query_params.get("size", 0))
        told = {"method": scope["method"], "path": scope["path"], "body": body.decode("latin-1"), "more": "x" * size}
        await JSONResponse(told)(scope, receive, send)


class Served:
    def __init__(self, app, port):
        self.app = app
        self.port = port

    async def connect(self):
        return await trio.open_tcp_stream("127.0.0.1", self.port)

    async def exchange(self, sent):
        """All that comes back on a connection of its own until the server closes it, which the client never does."""
        async with await self.connect() as stream:
            await stream.send_all(sent)
            return b"".join([part async for part in stream])


@pytest.fixture
async def served(nursery):
    listening = socket.create_server(("127.0.0.1", 0))
    app = App()
    nursery.start_soon(serve_http, app, listening)
    yield Served(app, listening.getsockname()[1])
    nursery.cancel_scope.cancel()


async def answer(stream, body=True):
    """The status, headers and JSON of the next answer."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += await stream.receive_some(1 if not received else 4096) or pytest.fail(f"closed after {received}")
    head, _, rest = received.partition(b"\r\n\r\n")
    size = int(re.search(rb"content-length: (\d+)", head)[1])
    while body and len(rest) < size:
        rest += await stream.receive_some(65536) or pytest.fail("closed in the middle of an answer")
    return int(head.split()[1]), head, json.loads(rest[:size]) if rest else None


def half_closed(port):
    """Connections of the server that their clients have closed and the server has not."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[3] == CLOSE_WAIT and int(row[1].partition(":")[2], 16) == port for row in rows)


async def until(condition):
    with trio.fail_after(60):
        while not condition():  # noqa: ASYNC110 - the kernel's, and the server's, to become true
            await trio.sleep(0.005)


@pytest.mark.parametrize(
    "sent", [b"", b"GET /it HT", ASK, ASK + ASK[:20], b"PUT /it HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"]
)
async def test_a_connection_that_its_client_closes_is_closed_at_once(served, sent):
    async with await served.connect() as other:
        for _ in range(20):
            async with await served.connect() as stream:
                await stream.send_all(sent)
                if sent.startswith(ASK):
                    await answer(stream)
        await other.send_all(ASK)  # accepted before those
        await answer(other)
        await until(lambda: half_closed(served.port) == 0)


async def test_requests_of_one_connection_are_answered_in_order_pipelined_or_not(served):
    async with await served.connect() as stream:
        await stream.send_all(ASK + ASK.replace(b"/it", b"/second") + ASK.replace(b"/it", b"/third"))
        received = b""
        while received.count(b'"method"') < 3:
            received += await stream.receive_some(65536)
        assert re.findall(rb'"path":"(\S*?)"', received) == [b"/it", b"/second", b"/third"]
        await stream.send_all(ASK)
        assert (await answer(stream))[0] == 200


@pytest.mark.parametrize(
    ("framing", "body"),
    [(b"Content-Length: 5", b"hello"), (b"Transfer-Encoding: chunked", b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n")],
)
async def test_a_body_may_be_chunked_and_arrive_byte_by_byte(served, framing, body):
    async with await served.connect() as stream:
        for byte in b"PUT /it HTTP/1.1\r\nHost: localhost\r\n" + framing + b"\r\n\r\n" + body:
            await stream.send_all(bytes([byte]))
        assert (await answer(stream))[2]["body"] == "hello"


async def test_a_client_that_waits_for_100_continue_is_told_to_when_its_body_is_wanted(served):
    async with await served.connect() as stream:
        await stream.send_all(b"PUT /it HTTP/1.1\r\nHost: l\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert await stream.receive_some(4096) == b"HTTP/1.1 100 \r\n\r\n"
        await stream.send_all(b"ok")
        assert (await answer(stream))[2]["body"] == "ok"
        await stream.send_all(b"PUT /unread HTTP/1.1\r\nHost: l\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert (await answer(stream))[0] == 200
        assert await stream.receive_some(1) == b"", "a body may follow, or not: so the connection ends"


async def test_head_has_the_headers_alone(served):
    async with await served.connect() as stream:
        await stream.send_all(ASK.replace(b"GET", b"HEAD"))
        status, head, told = await answer(stream, body=False)
        assert (status, int(re.search(rb"content-length: (\d+)", head)[1]) > 40, told) == (200, True, None)
        await stream.send_all(ASK)
        assert (await answer(stream))[0] == 200


async def test_the_oldest_http_gets_its_answer_and_the_end(served):
    said = await served.exchange(b"GET /it HTTP/1.0\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 200") and b'"path":"/it"' in said


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500, 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 100_000, 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0" * 100, 505),
    ],
)
async def test_what_is_no_request_is_answered_and_ends_the_connection(served, sent, status):
    with trio.fail_after(60):
        said = await served.exchange(sent)
    head, _, body = said.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d" % status), said
    assert json.loads(body)["code"] == status
    assert served.app.asked == []


@pytest.mark.parametrize("upgrade", [b"h2c", b"websocket"])
async def test_an_upgrade_is_ignored(served, upgrade):
    async with await served.connect() as stream:
        await stream.send_all(
            ASK[:-2] + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: " + upgrade + b"\r\n\r\n" + ASK
        )
        assert [(await answer(stream))[0]] == [200]


async def test_a_body_that_is_not_read_does_not_take_the_answer_along(served):
    head = b"PUT /unread HTTP/1.1\r\nHost: l\r\nContent-Length: "
    async with await served.connect() as stream:
        await stream.send_all(head + b"3\r\n\r\nabc" + ASK)
        received = b""
        while received.count(b'"method"') < 2:
            received += await stream.receive_some(65536)
    async with await served.connect() as stream, trio.open_nursery() as nursery:
        nursery.start_soon(_send_in_vain, stream, head + b"3000000\r\n\r\n" + b"x" * 3_000_000)
        assert (await answer(stream))[0] == 200
        nursery.cancel_scope.cancel()


async def _send_in_vain(stream, data):
    with suppress(trio.BrokenResourceError):
        await stream.send_all(data)


async def test_a_mistake_of_the_application_ends_one_request(served, capsys):
    with trio.fail_after(60):
        said = await served.exchange(b"GET /mistake HTTP/1.1\r\nHost: l\r\nConnection: close\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 500")
    assert "ZeroDivisionError" in capsys.readouterr().err
    async with await served.connect() as stream:
        await stream.send_all(ASK)
        assert (await answer(stream))[0] == 200


@pytest.mark.parametrize("sent", [b"", b"GET /it HT", b"PUT /it HTTP/1.1\r\nHost: l\r\nContent-Length: 9\r\n\r\n{"])
async def test_beyond_the_bound_the_one_whose_step_began_first_makes_room(served, monkeypatch, sent):
    streams = [await served.connect() for _ in range(http_server.MOST_CONNECTIONS)]
    for stream in streams:
        await stream.send_all(sent)
    streams += [await served.connect() for _ in range(10)]
    with trio.fail_after(60):
        assert [await _ends(stream) for stream in streams[:10]] == [True] * 10
    async with await served.connect() as stream:
        await stream.send_all(ASK)
        assert (await answer(stream))[0] == 200
    for stream in streams:
        await trio.aclose_forcefully(stream)


async def _ends(stream):
    try:
        return await stream.receive_some(1) == b""
    except trio.BrokenResourceError:
        return True


async def test_a_request_that_is_worked_on_is_not_ended_by_others(served):
    slow = [await served.connect() for _ in range(5)]
    for stream in slow:
        await stream.send_all(ASK.replace(b"/it", b"/slow"))
    await until(lambda: len(served.app.asked) == 5)
    others = [await served.connect() for _ in range(2 * http_server.MOST_CONNECTIONS)]
    for stream in others[-3:]:
        await stream.send_all(ASK)
        assert (await answer(stream))[0] == 200
    served.app.gate.set()
    assert [(await answer(stream))[0] for stream in slow] == [200] * 5
    for stream in slow + others:
        await trio.aclose_forcefully(stream)


async def test_answers_that_are_not_taken_make_room_for_those_that_are(served, monkeypatch):
    size = http_server.MOST_HELD_BYTES // 4
    ask = ASK.replace(b"/it", b"/it?size=%d" % size)
    deaf = [await served.connect() for _ in range(12)]
    for place, stream in enumerate(deaf):
        await stream.send_all(ask)
        await until(lambda place=place: len(served.app.asked) > place)
    async with await served.connect() as stream:
        await stream.send_all(ask)
        status, _, told = await answer(stream)
        assert (status, len(told["more"])) == (200, size)
    cut = 0
    for stream in deaf:
        with trio.fail_after(60):
            cut += await _taken(stream) < size
    assert 8 <= cut < 12


async def _taken(stream):
    """Bytes that come until the answer is whole, or cut."""
    received = 0
    async with stream:
        try:
            while part := await stream.receive_some(1 << 20):
                received += len(part)
                if part.endswith(b'"}'):
                    break
        except trio.BrokenResourceError:
            pass
    return received


@pytest.mark.parametrize(
    ("constant", "sent"),
    [
        ("QUIET_S", b""),
        ("QUIET_S", ASK),
        ("HEAD_WITHIN_S", b"GET /it HT"),
        ("TAKEN_WITHIN_S", ASK.replace(b"/it", b"/it?size=30000000")),
    ],
)
async def test_each_wait_for_a_client_ends(served, monkeypatch, constant, sent):
    monkeypatch.setattr(http_connection, constant, 0.05)
    async with await served.connect() as stream:
        await stream.send_all(sent)
        if sent == ASK:
            await answer(stream)
        if constant == "TAKEN_WITHIN_S":
            await until(lambda: served.app.asked)
            await trio.testing.wait_all_tasks_blocked(0.2)
            assert await _taken(stream) < 30_000_000
        else:
            with trio.fail_after(60):
                assert await _ends(stream)


async def test_when_descriptors_run_out_the_oldest_connection_makes_room(served):
    idle = await served.connect()
    await idle.send_all(ASK)
    await answer(idle)
    with trio.socket.socket() as late, no_more_descriptors():
        await late.connect(("127.0.0.1", served.port))
        await late.send(ASK)
        with trio.fail_after(60):
            assert (await answer(trio.SocketStream(late)))[0] == 200
            assert await _ends(idle)
    await trio.aclose_forcefully(idle)


@contextmanager
def no_more_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 1, hard))
    fillers = []
    with suppress(OSError):
        while True:
            fillers.append(os.open(os.devnull, os.O_RDONLY))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in fillers:
            os.close(each)


async def test_a_body_that_says_it_is_too_long_is_not_sent(api):
    address = ("127.0.0.1", int(api.url.rpartition(":")[2]))
    async with await trio.open_tcp_stream(*address) as stream:
        size = requests.MAX_BODY + 1
        head = (
            b"PUT /v1/quotas HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % size
        )
        await stream.send_all(head)
        status, _, told = await answer(stream)
        assert (status, told["message"]) == (413, f"a body may have at most {requests.MAX_BODY} bytes.")
