"""The processes of a broker, and the coordinator, to each other: incarnations, messages, calls and their deadlines.

A peer is reached over two unix stream sockets, so that a large record never delays a token: `control` carries one-way
messages (tokens, rates), `data` carries calls. The coordinator needs only one, for calls in both directions. A link
opens with the Hello of both sides; then it carries

    [ONE_WAY, message...]            answered by nobody
    [CALL, id, method, args]         answered by [RESULT, id, value] or [FAILURE, id, code, sentence]

Invariants
M1  Messages to one peer on one channel arrive in the order they were sent, or the peer is reported down.
M2  `on_down` follows every `on_up`; nothing of an incarnation is delivered before its `on_up` or after its `on_down`. Links
    may break while both processes live: then the same incarnation comes up again, on new links. `on_dead` follows
    `on_down` when the process has ended, unless a later incarnation came up before that was noticed.
M3  A call ends: with its result, its failure, PeerLost when the peer goes away, or DeadlineExceeded.
M4  What waits for a peer is bounded by its links (K3): while a link has no room, calls wait in one queue, first in, first
    out, and the bound is looked at after each. Answers do not wait, because the process that waits for an answer may be
    the one that has to make room; a peer that reads none of them is lost.
M5  A call or an answer that is too long for a frame fails that call alone.
"""

from __future__ import annotations

import errno
import inspect
import itertools
import os
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import trio

from shards.errors import DeadlineExceeded, PeerLost, RemoteError
from shards.limits.errors import TurnstileError
from shards.mesh.deferred import Deferred
from shards.mesh.link import MAX_FRAME, Link
from shards.mesh.poller import Poller

COORDINATOR = -1

ONE_WAY, CALL, RESULT, FAILURE = range(4)
CONTROL, DATA = "control", "data"

# Accepting may fail for these for a while; the listening socket stays ready until it does not.
_LATER = (errno.EAGAIN, errno.ECONNABORTED, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

Served = Callable[..., Any]


class Hello(NamedTuple):
    """Who speaks: the first frame on a fresh link, in both directions. `pid` and `epoch` name the incarnation."""

    broker: int
    shard: int
    epoch: int
    pid: int
    channel: str


class Peer:
    """One incarnation of another process: its links by channel and the calls that wait for its answers."""

    def __init__(self, hello: Hello) -> None:
        self.id = hello.shard
        self.broker = hello.broker
        self.epoch = hello.epoch
        self.pid = hello.pid
        self.links: dict[str, Link] = {}
        self.calls: dict[int, _Call] = {}
        self.waiting: deque[tuple[Any, ...]] = deque()  # calls for which the link had no room yet
        self.process: int | None = None  # a pidfd, once announced; None: the process is not there
        self.when_lost: list[Callable[[], None]] = []
        # Messages that overtook the hello of the other channel; delivered once the peer is announced.
        self.early: list[tuple[Link, list[Any]]] = []
        self.announced = False


class _Call(NamedTuple):
    """A call that waits for its answer, and until when (trio's clock)."""

    answer: Deferred[Any]
    until_s: float


class Mesh:
    """All links of one process. Peers are keyed by what `key_of` makes of their hello: the shard id inside a broker.

    `on_up(key, peer)`, `on_down(key, peer)` and `on_dead(key, peer)` tell of incarnations: linked, not linked any more,
    ended. `on_message(key, message)` gets one-way messages.
    `channels` is how many links make a peer complete: two between shards, one to the coordinator.
    """

    def __init__(
        self,
        me: Hello,
        poller: Poller,
        nursery: trio.Nursery,
        *,
        key_of: Callable[[Hello], Any] = lambda hello: hello.shard,
    ) -> None:
        self.me = me
        self._poller = poller
        self._nursery = nursery
        self._key_of = key_of
        self._served: dict[str, Served] = {}
        self._ids = itertools.count(1)
        self._dirty: set[Link] = set()
        self._links: set[Link] = set()
        self.peers: dict[Any, Peer] = {}
        self.on_up: Callable[[Any, Peer], None] = lambda key, peer: None
        self.on_down: Callable[[Any, Peer], None] = lambda key, peer: None
        self.on_dead: Callable[[Any, Peer], None] = lambda key, peer: None
        self.on_message: Callable[[Any, Sequence[Any]], None] = lambda key, message: None
        self._unlinked: dict[Any, Peer] = {}  # lost peers whose processes may live

    # Sending

    def send(self, key: Any, message: tuple[Any, ...]) -> None:
        """Queues a one-way message on the control link; dropped when the peer is down, which `on_down` has told."""
        peer = self.peers.get(key)
        if peer is not None and peer.announced:
            link = peer.links.get(CONTROL) or peer.links[DATA]
            self._queue(link, (ONE_WAY, message))

    def call(self, key: Any, method: str, *args: Any, timeout_s: float = 5.0) -> Deferred[Any]:
        """Calls `method` at a peer: its value, later.

        Or an error: PeerLost when the peer is or goes down, DeadlineExceeded some time after `timeout_s`, RemoteError(code,
        sentence) when the other side raised.
        """
        answer: Deferred[Any] = Deferred()
        peer = self.peers.get(key)
        if peer is None or not peer.announced:
            answer.fail(PeerLost(f"{key} is down"))
            return answer
        call_id = next(self._ids)
        peer.calls[call_id] = _Call(answer, trio.current_time() + timeout_s)
        link = peer.links[DATA]
        if link.room and not peer.waiting:
            self._queue(link, (CALL, call_id, method, args))
        else:
            peer.waiting.append((CALL, call_id, method, args))
        return answer

    async def request(self, key: Any, method: str, *args: Any, timeout_s: float = 5.0) -> Any:
        """The same for a task: waits for the value, or raises; DeadlineExceeded at once after `timeout_s`."""
        with trio.move_on_after(timeout_s):
            return await self.call(key, method, *args, timeout_s=timeout_s)
        raise DeadlineExceeded(f"{key} did not answer {method} within {timeout_s} s")

    def _feed(self, peer: Peer, link: Link) -> None:
        """A link has room again: the calls that waited for it go out, one by one, as long as it has (M4)."""
        while peer.waiting and link.room and not link.closed:
            message = peer.waiting.popleft()
            if message[1] in peer.calls:
                link.queue(message)
                link.flush()

    def _too_long(self, peer: Peer, link: Link, message: tuple[Any, ...]) -> None:
        """M5."""
        code, sentence = "MessageTooLarge", f"more than the {MAX_FRAME} bytes of a frame"
        if message[0] == RESULT:
            self._queue(link, (FAILURE, message[1], code, f"the answer has {sentence}"))
        elif message[0] == CALL and (call := peer.calls.pop(message[1], None)) is not None:
            call.answer.fail(RemoteError(code, f"the call of {message[2]} has {sentence}"))

    def tick(self) -> None:
        """Ends calls whose time is over; to be called a few times a second."""
        now_s = trio.current_time()
        for key, peer in list(self.peers.items()):
            for call_id, call in [each for each in peer.calls.items() if each[1].until_s <= now_s]:
                del peer.calls[call_id]
                call.answer.fail(DeadlineExceeded(f"{key} did not answer in time"))

    def serve(self, method: str, function: Served) -> None:
        """Answers calls of `method` with `function(peer key, *args)`: a value, a Deferred, or a coroutine, run as a task."""
        self._served[method] = function

    def flush(self) -> None:
        """Writes what was queued. The owner calls it at the end of each pass, after what has to be on disk before."""
        while self._dirty:  # a message that is too long is followed by an answer that says so
            dirty, self._dirty = self._dirty, set()
            for link in dirty:
                link.flush()

    def close(self) -> None:
        """Closes every link, without telling anybody here."""
        for link in self._links:
            link.close()
        for peer in (*self.peers.values(), *self._unlinked.values()):
            self._forget_process(peer)
        self.peers.clear()
        self._unlinked.clear()

    def _queue(self, link: Link, message: tuple[Any, ...]) -> None:
        link.queue(message)
        self._dirty.add(link)
        self._poller.touch()

    # Links

    async def dial(self, path: str, channels: Sequence[str]) -> None:
        """Keeps a peer connected: dials its listening socket, which outlives it, and dials again whenever it is lost."""
        while True:
            lost = trio.Event()
            links = []
            for channel in channels:
                sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                await _connect(sock, path)
                links.append(self.adopt(sock, channel, len(channels), lost.set))
            await lost.wait()
            for link in links:
                link.lose()  # one that was not answered yet would become half of the next round's peer, and end that

    def listen(self, sock: socket.socket, channels_of: Callable[[Hello], int]) -> None:
        """Accepts links of peers that dial."""
        sock.setblocking(False)

        def ready(events: int) -> None:
            try:
                accepted, _ = sock.accept()
            except OSError as fault:
                if fault.errno in _LATER:
                    return
                raise
            self._adopt(accepted, None, channels_of, lambda: None)

        self._poller.watch(sock.fileno(), ready)

    def adopt(self, sock: socket.socket, channel: str, channels: int, on_lost: Callable[[], None]) -> Link:
        """Takes a connected socket as `channel` of whoever answers at its other end."""
        return self._adopt(sock, channel, lambda hello: channels, on_lost)

    def _adopt(
        self, sock: socket.socket, channel: str | None, channels_of: Callable[[Hello], int], on_lost: Callable[[], None]
    ) -> Link:
        """Exchanges hellos on a fresh socket; the side that dialled says first which channel it is."""
        key: Any = None
        peer: Peer | None = None

        def received(message: list[Any]) -> None:
            nonlocal key, peer
            if peer is not None:
                self._received(key, peer, link, message)
                return
            if link.closed:
                return  # what came in one frame with the hello of a stale incarnation
            hello = Hello(*message)
            key = self._key_of(hello)
            if channel is None:
                link.queue(self.me._replace(channel=hello.channel))
                self._dirty.add(link)
            peer = self._join(key, hello, link, channels_of(hello), on_lost)
            if peer is None:
                link.close()
                on_lost()

        def lost() -> None:
            if peer is not None:
                self._lost(key, peer)
            else:
                on_lost()

        link = Link(sock, self._poller, received, lost)
        self._links = {link, *(each for each in self._links if not each.closed)}
        if channel is not None:
            self._queue(link, self.me._replace(channel=channel))
        return link

    def _join(self, key: Any, hello: Hello, link: Link, channels: int, on_lost: Callable[[], None]) -> Peer | None:
        """Adds a link to the incarnation that said hello: None for a stale one, while a newer one replaces the older."""
        peer = self.peers.get(key)
        if peer is not None and hello.epoch < peer.epoch:
            return None
        if peer is not None and (hello.epoch > peer.epoch or hello.channel in peer.links):
            self._lost(key, peer)
            peer = None
        if peer is None:
            peer = self.peers[key] = Peer(hello)
        peer.links[hello.channel] = link
        link.one_way = hello.channel == CONTROL
        link.on_room = partial(self._feed, peer, link)
        link.on_too_long = partial(self._too_long, peer, link)
        peer.when_lost.append(on_lost)
        if len(peer.links) == channels:
            peer.announced = True
            earlier = self._unlinked.pop(key, None)
            if earlier is not None:
                self._forget_process(earlier)
            peer.process = _open_process(hello.pid)
            self.on_up(key, peer)
            early, peer.early = peer.early, []
            for on, message in early:
                self._received(key, peer, on, message)
        return peer

    def _lost(self, key: Any, peer: Peer) -> None:
        """Closes what is left of an incarnation, fails its calls, and tells once."""
        if self.peers.get(key) is peer:
            del self.peers[key]
        for link in peer.links.values():
            if not link.closed:
                link.close()
        calls, peer.calls = peer.calls, {}
        peer.waiting.clear()
        for call in calls.values():
            call.answer.fail(PeerLost(f"{key} went down", asked=True))
        for add_callback in peer.when_lost:
            add_callback()
        if peer.announced:
            peer.announced = False
            self.on_down(key, peer)
            self._watch_process(key, peer)
            self._poller.wake()

    # Processes

    def _watch_process(self, key: Any, peer: Peer) -> None:
        """Tells when the process of a lost peer has ended; at once, if it is not there."""
        if peer.process is None:
            self.on_dead(key, peer)
            return
        self._unlinked[key] = peer

        def ended(events: int) -> None:
            self._forget_process(peer)
            if self._unlinked.get(key) is peer:
                del self._unlinked[key]
                self.on_dead(key, peer)

        self._poller.watch(peer.process, ended)

    def _forget_process(self, peer: Peer) -> None:
        process, peer.process = peer.process, None
        if process is not None:
            self._poller.unwatch(process)
            os.close(process)

    # Receiving

    def _received(self, key: Any, peer: Peer, link: Link, message: list[Any]) -> None:
        if not peer.announced:
            peer.early.append((link, message))
            return
        kind = message[0]
        if kind == ONE_WAY:
            self.on_message(key, message[1])
        elif kind == CALL:
            self._serve(key, link, message[1], message[2], message[3])
        else:
            call = peer.calls.pop(message[1], None)
            if call is None:
                return  # its time was over
            if kind == RESULT:
                call.answer.resolve(message[2])
            else:
                call.answer.fail(RemoteError(message[2], message[3]))

    def _serve(self, key: Any, link: Link, call_id: int, method: str, args: list[Any]) -> None:
        function = self._served.get(method)
        if function is None:
            self._queue(link, (FAILURE, call_id, "UnknownMethod", f"{method} is not served here"))
            return
        try:
            value = function(key, *args)
        except TurnstileError as fault:
            self._queue(link, (FAILURE, call_id, _code(fault), str(fault)))
            return
        if type(value) is Deferred or inspect.iscoroutine(value):
            self._nursery.start_soon(self._serve_slowly, link, call_id, value)
        else:
            self._queue(link, (RESULT, call_id, value))

    async def _serve_slowly(self, link: Link, call_id: int, answer: Awaitable[Any]) -> None:
        try:
            value = await answer
        except TurnstileError as fault:
            self._queue(link, (FAILURE, call_id, _code(fault), str(fault)))
        else:
            self._queue(link, (RESULT, call_id, value))


def _open_process(pid: int) -> int | None:
    """A descriptor that is readable when the process has ended; None: there is none, or it can't be watched."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


async def _connect(sock: socket.socket, path: str) -> None:
    """Connects to a listening socket which is always there; its backlog may be full for a moment while its owner restarts."""
    sock.setblocking(False)
    while True:
        try:
            sock.connect(path)
            return
        except BlockingIOError:
            await trio.sleep(0.005)


def _code(fault: TurnstileError) -> str:
    """What names an error on its way through several processes: its class, as it was first raised."""
    return fault.code if isinstance(fault, RemoteError) else type(fault).__name__
