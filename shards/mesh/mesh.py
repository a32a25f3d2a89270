"""The links between the processes of a broker and the coordinator: which incarnation is linked, and one-way messages.

A peer is reached over two unix stream sockets, so that a large record never delays a token: `control` carries one-way
messages (tokens, rates), `data` carries calls. The coordinator needs only one, for calls in both directions. A link
opens with the Hello of both sides; then it carries

    [ONE_WAY, message]               no answer
    [CALL, id, method, args]         answered by [RESULT, id, value] or [FAILURE, id, code, sentence]: calls.py

Invariants
channels_deliver_in_order  Messages to one peer on one channel arrive in the order they were sent, or the peer is reported
    down.
downs_follow_ups  `on_down` follows every `on_up`; nothing of an incarnation is delivered before its `on_up` or after its
    `on_down`. Links may break while both processes live: then the same incarnation comes up again, on new links. `on_dead`
    follows `on_down` when the process has ended, unless a later incarnation came up before that was noticed.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import trio

from shards.errors import DeadlineExceeded
from shards.loop.deferred import Deferred
from shards.loop.poller import Calling, Poller
from shards.mesh.calls import Calls, Mistaken, Served
from shards.mesh.dialling import SHORT, connected
from shards.mesh.link import Arrived, Link, Sent
from shards.mesh.peer import CONTROL, DATA, ONE_WAY, Hello, Peer, PeerKey

COORDINATOR = -1

PeerEvent = Callable[[PeerKey, Peer], None]
"""Told (key, peer) of an incarnation."""


class Mesh:
    """All links of one process. Peers are keyed by what `key_of` makes of their hello: the shard id inside a broker.

    `on_up(key, peer)`, `on_down(key, peer)` and `on_dead(key, peer)` tell of incarnations: linked, not linked any more,
    ended. `on_message(key, message)` gets one-way messages.
    `mistaken(fault)` is called for each mistake in what this process serves.
    `channels` is how many links make a peer complete: two between shards, one to the coordinator.
    """

    def __init__(
        self,
        me: Hello,
        poller: Poller,
        nursery: trio.Nursery,
        mistaken: Mistaken,
        *,
        key_of: Callable[[Hello], PeerKey] = lambda hello: hello.shard,
        on_up: PeerEvent = lambda key, peer: None,
        on_down: PeerEvent = lambda key, peer: None,
        on_dead: PeerEvent = lambda key, peer: None,
        on_message: Callable[[Any, Arrived], None] = lambda key, message: None,
    ) -> None:
        self.me = me
        self._poller = poller
        self._key_of = key_of
        self._dirty: set[Link] = set()
        self._links: set[Link] = set()
        self.peers: dict[PeerKey, Peer] = {}
        self._calls = Calls(self.peers, self._queue, nursery, mistaken)
        self._on_up = on_up
        self._on_down = on_down
        self._on_dead = on_dead
        self._on_message = on_message
        self._unlinked: dict[PeerKey, Peer] = {}  # lost peers whose processes may live
        self._unwatched: list[Callable[[], None]] = []  # tried again by tick(): too few descriptors

    # Sending

    def send(self, key: PeerKey, message: tuple[object, ...]) -> None:
        """Queues a one-way message on the control link; dropped when the peer is down, which `on_down` has told."""
        peer = self.peers.get(key)
        if peer is not None and peer.announced:
            link = peer.links.get(CONTROL) or peer.links[DATA]
            self._queue(link, (ONE_WAY, message))

    def call(self, key: PeerKey, method: str, *args: object, timeout_s: float = 5.0) -> Deferred[Any]:
        """Calls `method` at a peer: see Calls.call."""
        return self._calls.call(key, method, args, timeout_s)

    async def request(self, key: PeerKey, method: str, *args: object, timeout_s: float = 5.0) -> object:
        """As `call`, for a task: waits for the value, or raises; DeadlineExceeded at once after `timeout_s`."""
        with trio.move_on_after(timeout_s):
            return await self._calls.call(key, method, args, timeout_s)
        raise DeadlineExceeded(f"{key} did not answer {method} within {timeout_s} s")

    def serve(self, method: str, function: Served) -> None:
        """Answers calls of `method` with `function(peer key, *args)`: a value, a Deferred, or a coroutine, run as a task."""
        self._calls.serve(method, function)

    def tick(self) -> None:
        """Ends calls whose time is over, and tries again to watch what it could not for lack of descriptors. Call it a few times a
        second."""
        self._calls.expire(trio.current_time())
        again, self._unwatched = self._unwatched, []
        for watch in again:
            watch()

    def flush(self) -> None:
        """Writes what was queued. The owner calls it at the end of each pass, after what has to be on disk before."""
        while self._dirty:  # a message that is too long is followed by an answer that says so
            dirty, self._dirty = self._dirty, set()
            for link in dirty:
                link.flush()

    def close(self) -> None:
        """Closes every link; `on_down` and `on_dead` are not called."""
        for link in self._links:
            link.close()
        for peer in (*self.peers.values(), *self._unlinked.values()):
            self._forget_process(peer)
        self.peers.clear()
        self._unlinked.clear()

    def _queue(self, link: Link, message: Sent) -> None:
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
                sock = await connected(path)
                links.append(self.adopt(sock, channel, len(channels), lost.set))
            await lost.wait()
            for link in links:
                link.lose()  # a link whose hello is unanswered would join the next round's peer and break it

    def listen(self, sock: socket.socket, channels_of: Callable[[Hello], int]) -> None:
        """Accepts links of peers that dial."""
        sock.setblocking(False)

        def ready(events: int) -> None:
            try:
                accepted, _ = sock.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as fault:
                if fault.errno not in SHORT:
                    raise
                self._poller.unwatch(sock.fileno())  # the socket is ready all the time
                self._unwatched.append(watch)
                return
            self._adopt(accepted, None, channels_of, lambda: None)

        def watch() -> None:
            self._poller.watch(sock.fileno(), Calling(ready))

        watch()

    def adopt(self, sock: socket.socket, channel: str, channels: int, on_lost: Callable[[], None]) -> Link:
        """Takes a connected socket as the `channel` of the process at its other end."""
        return self._adopt(sock, channel, lambda hello: channels, on_lost)

    def _adopt(
        self, sock: socket.socket, channel: str | None, channels_of: Callable[[Hello], int], on_lost: Callable[[], None]
    ) -> Link:
        """Exchanges hellos on a fresh socket; the side that dialled says first which channel it is."""
        key: PeerKey = COORDINATOR  # until the hello names it
        peer: Peer | None = None

        def received(message: Arrived) -> None:
            nonlocal key, peer
            if peer is not None:
                self._received(key, peer, link, message)
                return
            if link.closed:
                return  # messages in one frame with the hello of a stale incarnation
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

        def has_room() -> None:
            if peer is not None:
                self._calls.feed(peer, link)

        def too_long(message: Sent) -> None:
            if peer is not None:
                self._calls.too_long(peer, link, message)

        link = Link(sock, self._poller, received, lost, on_room=has_room, on_too_long=too_long)
        self._links = {link, *(each for each in self._links if not each.closed)}
        if channel is not None:
            self._queue(link, self.me._replace(channel=channel))
        return link

    def _join(self, key: PeerKey, hello: Hello, link: Link, channels: int, on_lost: Callable[[], None]) -> Peer | None:
        """Adds a link to the incarnation that said hello. A newer incarnation replaces the known one. An older one is turned away:
        None."""
        peer = self.peers.get(key)
        if peer is not None and hello.epoch < peer.epoch:
            return None
        if peer is not None and (hello.epoch > peer.epoch or hello.channel in peer.links):
            self._lost(key, peer)
            peer = None
        if peer is None:
            peer = self.peers[key] = Peer(hello)
        peer.links[hello.channel] = link
        if hello.channel == CONTROL:
            link.make_one_way()
        peer.when_lost.append(on_lost)
        if len(peer.links) == channels:
            peer.announced = True
            earlier = self._unlinked.pop(key, None)
            if earlier is not None:
                self._forget_process(earlier)
            # OSError: the process has ended, or descriptors are short; `_watch_process` finds out which.
            with contextlib.suppress(OSError):
                peer.process = os.pidfd_open(hello.pid)
            self._on_up(key, peer)
            early, peer.early = peer.early, []
            for on, message in early:
                self._received(key, peer, on, message)
        return peer

    def _lost(self, key: PeerKey, peer: Peer) -> None:
        """Closes what is left of an incarnation, fails its calls, and tells once."""
        if self.peers.get(key) is peer:
            del self.peers[key]
        for link in peer.links.values():
            if not link.closed:
                link.close()
        self._calls.lost(key, peer)
        for on_lost in peer.when_lost:
            on_lost()
        if peer.announced:
            peer.announced = False
            self._on_down(key, peer)
            self._watch_process(key, peer)
            self._poller.wake()

    # Processes

    def _watch_process(self, key: PeerKey, peer: Peer) -> None:
        """Tells when the process of a lost peer has ended; at once, if it is not there. One that can't be watched may live."""
        self._unlinked[key] = peer
        if peer.process is None:
            try:
                peer.process = os.pidfd_open(peer.pid)
            except ProcessLookupError:
                del self._unlinked[key]
                self._on_dead(key, peer)
                return
            except OSError:
                self._unwatched.append(partial(self._watch_again, key, peer))
                return

        def ended(events: int) -> None:
            self._forget_process(peer)
            if self._unlinked.get(key) is peer:
                del self._unlinked[key]
                self._on_dead(key, peer)

        self._poller.watch(peer.process, Calling(ended))

    def _watch_again(self, key: PeerKey, peer: Peer) -> None:
        if self._unlinked.get(key) is peer:
            self._watch_process(key, peer)

    def _forget_process(self, peer: Peer) -> None:
        process, peer.process = peer.process, None
        if process is not None:
            self._poller.unwatch(process)
            os.close(process)

    # Receiving

    def _received(self, key: PeerKey, peer: Peer, link: Link, message: Arrived) -> None:
        if not peer.announced:
            peer.early.append((link, message))
            return
        if message[0] == ONE_WAY:
            self._on_message(key, message[1])
        else:
            self._calls.received(key, peer, link, message)
