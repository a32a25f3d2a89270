"""Two processes' meshes in one process, over real unix sockets: order, calls, deadlines, incarnations."""

import errno
import os
import socket
from collections.abc import Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import NamedTuple

import msgpack
import pytest
import trio
import trio.testing

from shards.errors import DeadlineExceeded, PeerLost, RemoteError
from shards.loop.poller import Poller
from shards.mesh import link
from shards.mesh.mesh import Mesh
from shards.mesh.peer import CALL, CONTROL, DATA, Hello
from shards.settings.errors import ConfigInvalid


class Node:
    """One member: its mesh, and what it was told, with a way to wait for it."""

    def __init__(self, shard, epoch, nursery):
        self.poller = Poller()
        self.mistakes = []
        self.mesh = Mesh(
            Hello(0, shard, epoch, 4000 + shard, ""),
            self.poller,
            nursery,
            self.mistakes.append,
            on_up=lambda key, peer: self._tell(("up", key, peer.epoch)),
            on_down=lambda key, peer: self._tell(("down", key, peer.epoch)),
            on_dead=lambda key, peer: self.tells_deaths and self._tell(("dead", key, peer.epoch)),
            on_message=lambda key, message: self._tell((key, *message)),
        )
        self.poller.at_end_of_pass(self.mesh.flush)
        self.told = []
        self.tells_deaths = False
        self.heard = trio.Condition()
        self._woken = trio.Event()

    def _tell(self, what):
        self.told.append(what)
        self._woken.set()

    async def until(self, count):
        with trio.fail_after(60):
            while len(self.told) < count:
                self._woken = trio.Event()
                await self._woken.wait()
        return self.told[count - 1]


class Strangers(NamedTuple):
    """Two shards that do not know each other yet: `dial` begins to dial the socket at which shard 0 is to listen."""

    zero: Node
    one: Node
    listening: socket.socket
    nursery: trio.Nursery
    dial: Callable[[], None]


@asynccontextmanager
async def strangers(tmp_path, listening_class=socket.socket):
    path = str(tmp_path / "s0.sock")
    listening = listening_class(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(path)
    listening.listen()
    async with trio.open_nursery() as nursery:
        zero, one = Node(0, 1, nursery), Node(1, 2, nursery)
        dial = partial(nursery.start_soon, one.mesh.dial, path, (CONTROL, DATA))
        yield Strangers(zero, one, listening, nursery, dial)
        nursery.cancel_scope.cancel()
    for node in (zero, one):
        node.mesh.close()
        node.poller.close()
    listening.close()


@asynccontextmanager
async def pair(tmp_path):
    """Shard 1 dials shard 0, as the higher always does."""
    async with strangers(tmp_path) as (zero, one, listening, nursery, dial):
        zero.mesh.listen(listening, lambda hello: 2)
        for node in (zero, one):
            await nursery.start(node.poller.run)
        dial()
        assert await zero.until(1) == ("up", 1, 2)
        assert await one.until(1) == ("up", 0, 1)
        yield zero, one


async def test_messages_arrive_in_order(tmp_path):
    async with pair(tmp_path) as (zero, one):
        for number in range(1000):
            one.mesh.send(0, ("n", number))
        await zero.until(1001)
        assert zero.told[1:] == [(1, "n", number) for number in range(1000)]


async def test_a_call_returns_what_its_function_returns(tmp_path):
    async with pair(tmp_path) as (zero, one):
        zero.mesh.serve("add", lambda peer, a, b: [peer, a + b])

        async def slowly(peer, data):
            await trio.lowlevel.checkpoint()
            return data + b"!"

        zero.mesh.serve("slowly", slowly)
        assert await one.mesh.request(0, "add", 2, 3) == [1, 5]
        assert await one.mesh.request(0, "slowly", b"\x00\xff") == b"\x00\xff!"


async def test_a_large_answer_crosses_in_many_writes(tmp_path):
    async with pair(tmp_path) as (zero, one):
        zero.mesh.serve("echo", lambda peer, data: data)
        data = bytes(range(256)) * 40_000
        assert await one.mesh.request(0, "echo", data) == data


async def test_what_is_asked_while_a_process_ends_is_dropped_and_the_poller_goes_on(tmp_path):
    """Its nursery is closed before its poller ends (shard_process.py, serve)."""

    async def slowly(peer):
        await trio.lowlevel.checkpoint()

    path = str(tmp_path / "s0.sock")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(path)
    listening.listen()
    async with trio.open_nursery() as outer:
        async with trio.open_nursery() as meshing:
            zero, one = Node(0, 1, meshing), Node(1, 2, outer)
            zero.mesh.listen(listening, lambda hello: 2)
            for node in (zero, one):
                await outer.start(node.poller.run)
            zero.mesh.serve("slowly", slowly)
            zero.mesh.serve("add", lambda peer, a, b: a + b)
            outer.start_soon(one.mesh.dial, path, (CONTROL, DATA))
            await zero.until(1), await one.until(1)
            meshing.cancel_scope.cancel()
        answers = []
        one.mesh.call(0, "slowly").add_callback(answers.append)
        assert await one.mesh.request(0, "add", 2, 3) == 5
        assert not answers
        outer.cancel_scope.cancel()
    for node in (zero, one):
        node.mesh.close()
        node.poller.close()
    listening.close()


async def test_a_fault_comes_back_by_its_name(tmp_path):
    async with pair(tmp_path) as (zero, one):

        def refuse(peer):
            raise ConfigInvalid("kafka_connections_max", "x", "it must be a number")

        zero.mesh.serve("refuse", refuse)
        with pytest.raises(RemoteError, match="kafka_connections_max cannot be 'x'") as caught:
            await one.mesh.request(0, "refuse")
        assert caught.value.code == "ConfigInvalid"
        with pytest.raises(RemoteError, match="not served"):
            await one.mesh.request(0, "nothing")


async def test_a_mistake_in_a_served_method_is_reported_and_fails_that_call_alone(tmp_path):
    async with pair(tmp_path) as (zero, one):

        def wrong(peer):
            return {}["missing"]

        async def wrong_later(peer):
            return wrong(peer)

        zero.mesh.serve("wrong", wrong)
        zero.mesh.serve("wrong_later", wrong_later)
        zero.mesh.serve("right", lambda peer: 5)
        for method in ("wrong", "wrong_later"):
            with pytest.raises(RemoteError, match="missing") as caught:
                await one.mesh.request(0, method)
            assert caught.value.code == "KeyError"
        assert [type(each) for each in zero.mistakes] == [KeyError] * 2
        assert await one.mesh.request(0, "right") == 5


async def test_a_call_ends_at_its_deadline(tmp_path):
    async with pair(tmp_path) as (zero, one):

        async def never(peer):
            await trio.sleep_forever()

        zero.mesh.serve("never", never)
        with pytest.raises(DeadlineExceeded, match="did not answer never"):
            await one.mesh.request(0, "never", timeout_s=0.01)


async def test_a_call_that_no_task_waits_for_ends_with_a_tick(tmp_path):
    async with pair(tmp_path) as (zero, one):
        zero.mesh.serve("answer", lambda peer: 1)
        late = one.mesh.call(0, "answer", timeout_s=0)
        in_time = one.mesh.call(0, "answer")
        one.mesh.tick()
        with pytest.raises(DeadlineExceeded):
            late.result()
        assert await in_time == 1, "and its own answer, which comes as well, is dropped"
        with pytest.raises(PeerLost):
            one.mesh.call(5, "answer").result()


async def test_a_call_waits_for_room_on_its_link(tmp_path):
    async with pair(tmp_path) as (zero, one):
        asked = []
        zero.mesh.serve("answer", lambda peer, number: asked.append(number))
        link = one.mesh.peers[0].links[DATA]
        link.room = False
        waiting, too_late = one.mesh.call(0, "answer", 1), one.mesh.call(0, "answer", 2, timeout_s=0)
        one.mesh.tick()
        link.room = True
        last = one.mesh.call(0, "answer", 3)
        link._on_room()
        await waiting
        await last
        assert asked == [1, 3], "one whose time is over is not asked any more"
        with pytest.raises(DeadlineExceeded):
            too_late.result()


async def test_calls_that_waited_for_room_go_out_in_order_and_never_break_the_link(tmp_path, monkeypatch):
    """As many large calls as fill the link many times over: no call overtakes another, and the bound holds after each."""
    monkeypatch.setattr(link, "MAX_QUEUED", 1 << 20)
    monkeypatch.setattr(link, "MAX_UNREAD", 4 << 20)
    async with pair(tmp_path) as (zero, one):
        asked = []
        zero.mesh.serve("store", lambda peer, number, data: asked.append(number))
        answers = []
        for number in range(60):
            answers.append(one.mesh.call(0, "store", number, b"x" * (1 << 20)))
            if number % 3 == 0:
                await trio.lowlevel.checkpoint()
                one.mesh.flush()
        with trio.fail_after(60):
            for answer in answers:
                await answer
        assert asked == list(range(60))
        assert one.told == [("up", 0, 1)]


async def test_an_answer_or_a_call_that_is_too_long_fails_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(link, "FRAME_BYTES", 1 << 16)
    monkeypatch.setattr(link, "MAX_FRAME", 1 << 20)
    async with pair(tmp_path) as (zero, one):
        zero.mesh.serve("long", lambda peer, size: b"x" * size)
        zero.mesh.serve("size", lambda peer, data: len(data))
        calls = [one.mesh.call(0, "long", 2 << 20), one.mesh.call(0, "long", 10)]
        calls += [one.mesh.call(0, "size", b"x" * (2 << 20)), one.mesh.call(0, "size", b"xy")]
        assert await calls[1] == b"x" * 10
        assert await calls[3] == 2
        for call in (calls[0], calls[2]):
            with pytest.raises(RemoteError, match="bytes of a frame") as caught:
                await call
            assert caught.value.code == "MessageTooLarge"
        assert one.told == [("up", 0, 1)]


async def test_a_peer_is_dead_when_its_process_has_ended_and_not_when_its_links_broke(tmp_path):
    async with pair(tmp_path) as (zero, one), sleeping() as process:
        zero.tells_deaths = True
        nears = []
        for channel in (CONTROL, DATA):
            near, far = socket.socketpair()
            zero.mesh._adopt(far, None, lambda hello: 2, lambda: None)
            near.sendall(framed([Hello(0, 2, 3, process.pid, channel)]))
            nears.append(near)
        assert await zero.until(2) == ("up", 2, 3)
        nears[0].close()
        assert await zero.until(3) == ("down", 2, 3)
        one.mesh.send(0, ("still", "here"))
        assert await zero.until(4) == (1, "still", "here")
        process.kill()
        assert await zero.until(5) == ("dead", 2, 3)
        nears[1].close()


async def test_a_process_that_cannot_be_watched_for_want_of_descriptors_is_not_dead_until_it_is(tmp_path, monkeypatch):
    faults = [OSError(number, "") for number in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EMFILE)]
    open_pidfd = os.pidfd_open
    async with pair(tmp_path) as (zero, _), sleeping() as process:

        def short(pid):
            if pid == process.pid and faults:
                raise faults.pop()
            return open_pidfd(pid)

        monkeypatch.setattr(os, "pidfd_open", short)
        zero.tells_deaths = True
        pairs = [socket.socketpair() for _ in (CONTROL, DATA)]
        for channel, (near, far) in zip((CONTROL, DATA), pairs, strict=True):
            zero.mesh._adopt(far, None, lambda hello: 2, lambda: None)
            near.sendall(framed([Hello(0, 2, 3, process.pid, channel)]))
        assert await zero.until(2) == ("up", 2, 3)
        pairs[0][0].close()
        assert await zero.until(3) == ("down", 2, 3)
        while faults:
            zero.mesh.tick()
        assert len(zero.told) == 3
        zero.mesh.tick()
        process.kill()
        assert await zero.until(4) == ("dead", 2, 3)
        pairs[1][0].close()


async def test_a_link_that_cannot_be_accepted_now_is_accepted_later(tmp_path):
    faults = [OSError(number, "") for number in (errno.EMFILE, errno.ENFILE, errno.ENOMEM)]

    class Listening(socket.socket):
        def accept(self):
            if faults:
                raise faults.pop()
            return super().accept()

    async with strangers(tmp_path, Listening) as (zero, one, listening, nursery, dial):
        zero.mesh.listen(listening, lambda hello: 2)
        for node in (zero, one):
            await nursery.start(node.poller.run)
        dial()
        while faults:
            await trio.testing.wait_all_tasks_blocked(0.001)
            zero.mesh.tick()
        assert await zero.until(1) == ("up", 1, 2)


@asynccontextmanager
async def sleeping():
    """A process that does nothing until it is killed."""
    process = await trio.lowlevel.open_process(["sleep", "60"])
    try:
        yield process
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


async def test_calls_in_flight_end_with_the_peer(tmp_path):
    async with pair(tmp_path) as (zero, one):
        called = trio.Event()

        async def never(peer):
            called.set()
            await trio.sleep_forever()

        zero.mesh.serve("never", never)
        async with trio.open_nursery() as nursery:

            async def call():
                with pytest.raises(PeerLost):
                    await one.mesh.request(0, "never")

            nursery.start_soon(call)
            await called.wait()
            zero.mesh.peers[1].links[DATA].sock.shutdown(socket.SHUT_RDWR)


async def test_a_lost_peer_is_reported_once_and_dialled_again(tmp_path):
    async with pair(tmp_path) as (zero, one):
        one.mesh.peers[0].links[CONTROL].sock.shutdown(socket.SHUT_RDWR)
        await one.until(3)
        await zero.until(3)
        assert one.told == [("up", 0, 1), ("down", 0, 1), ("up", 0, 1)]
        assert zero.told == [("up", 1, 2), ("down", 1, 2), ("up", 1, 2)]


async def test_an_older_incarnation_is_turned_away(tmp_path):
    async with pair(tmp_path) as (zero, one), trio.open_nursery() as nursery:
        stale = Node(1, 1, nursery)
        await nursery.start(stale.poller.run)
        near, far = socket.socketpair()
        lost = trio.Event()
        stale.mesh.adopt(near, CONTROL, 2, lost.set)
        zero.mesh._adopt(far, None, lambda hello: 2, lambda: None)
        with trio.fail_after(60):
            await lost.wait()
        assert zero.told == [("up", 1, 2)]
        one.mesh.send(0, ("still", "here"))
        assert await zero.until(2) == (1, "still", "here")
        nursery.cancel_scope.cancel()
    stale.mesh.close()
    stale.poller.close()


async def test_a_link_that_outlives_its_round_of_dialling_does_not_spoil_the_next(tmp_path):
    """The peer died between accepting its two links: the other one waits in the backlog, and its successor finds it."""
    async with strangers(tmp_path) as (zero, one, listening, nursery, dial):
        await nursery.start(one.poller.run)
        dial()
        await trio.testing.wait_all_tasks_blocked()
        listening.accept()[0].close()
        await trio.testing.wait_all_tasks_blocked(0.01)
        zero.mesh.listen(listening, lambda hello: 2)
        await nursery.start(zero.poller.run)
        assert await one.until(1) == ("up", 0, 1)
        for number in range(20):
            await one.until(number + 1)
            zero.mesh.send(1, ("n", number))
            assert await one.until(number + 2) == (0, "n", number)


async def test_a_peer_that_reads_nothing_is_lost_after_the_pass_and_not_within_it(tmp_path, monkeypatch):
    async with pair(tmp_path) as (_, one):
        monkeypatch.setattr(link, "MAX_QUEUED", 1000)
        one.mesh.send(0, ("n", b"x" * (8 << 20)))
        assert len(one.told) == 1
        assert await one.until(2) == ("down", 0, 1)


async def test_a_peer_that_asks_and_never_reads_its_answers_is_lost(tmp_path, monkeypatch):
    async with pair(tmp_path) as (zero, _):
        monkeypatch.setattr(link, "MAX_QUEUED", 1 << 20)
        monkeypatch.setattr(link, "MAX_UNREAD", 16 << 20)
        asked = []
        zero.mesh.serve("echo", lambda peer, data: asked.append(data) or data)
        nears = []
        for channel in (CONTROL, DATA):
            near, far = socket.socketpair()
            zero.mesh._adopt(far, None, lambda hello: 2, lambda: None)
            near.sendall(framed([Hello(0, 2, 3, 4002, channel)]))
            nears.append(near)
        assert await zero.until(2) == ("up", 2, 3)
        calls = framed([(CALL, number, "echo", [b"x" * (1 << 20)]) for number in range(4)])
        deaf = trio.SocketStream(trio.socket.from_stdlib_socket(nears[1]))
        with trio.fail_after(60), suppress(trio.BrokenResourceError):
            while True:
                await deaf.send_all(calls)
        assert await zero.until(3) == ("down", 2, 3)
        assert 15 <= len(asked) <= 24
        for near in nears:
            near.close()


def framed(messages):
    body = msgpack.packb(messages)
    return len(body).to_bytes(4, "big") + body
