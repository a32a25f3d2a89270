"""Calls between processes, in both directions, over the data link of a peer.

Invariants
every_call_ends  A call ends: with its result, its failure, PeerLost when the peer goes away, or DeadlineExceeded.
waiting_calls_are_bounded  What waits for a peer is bounded by its links (link.py, unwritten_bytes_are_bounded): while a
    link has no room, calls wait in one queue, first in, first out, and the bound is looked at after each. Answers do not
    wait, because the process that waits for an answer may be the one that has to make room; a peer that reads none of them
    is lost.
long_calls_fail_alone  A call or an answer that is too long for a frame fails that call alone.
mistakes_fail_their_call  A mistake in a served method is reported and fails that call, not the process: what a client sent
    may have led to it.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Awaitable, Callable, Mapping

import trio

from shards.errors import DeadlineExceeded, PeerLost, RemoteError
from shards.loop.deferred import Deferred
from shards.loop.starting import starting_in
from shards.mesh.link import MAX_FRAME, Arrived, Link, Sent
from shards.mesh.peer import CALL, DATA, FAILURE, RESULT, Peer, PeerKey, PendingCall
from shards.settings.errors import TurnstileError

Served = Callable[..., object]
Mistaken = Callable[[Exception], None]
"""The message about an error that no served method means to raise."""


class Calls:
    """The calls of one process to its `peers`, and the methods that it serves to them.

    `queue(link, message)` has a message written at the end of the pass; `nursery` runs answers that take a while.
    """

    def __init__(
        self,
        peers: Mapping[PeerKey, Peer],
        queue: Callable[[Link, Sent], None],
        nursery: trio.Nursery,
        mistaken: Mistaken,
    ) -> None:
        self._peers = peers
        self._queue = queue
        self._start_soon = starting_in(nursery)
        self._mistaken = mistaken
        self._served: dict[str, Served] = {}
        self._ids = itertools.count(1)

    # Calls made here

    def call(self, key: PeerKey, method: str, args: tuple[object, ...], timeout_s: float) -> Deferred[object]:
        """Calls `method` at a peer: its value, later.

        Or an error: PeerLost when the peer is or goes down, DeadlineExceeded some time after `timeout_s`, RemoteError(code,
        sentence) when the other side raised.
        """
        answer: Deferred[object] = Deferred()
        peer = self._peers.get(key)
        if peer is None or not peer.announced:
            answer.fail(PeerLost(f"{key} is down"))
            return answer
        call_id = next(self._ids)
        peer.calls[call_id] = PendingCall(answer, trio.current_time() + timeout_s)
        link = peer.links[DATA]
        if link.room and not peer.waiting:
            self._queue(link, (CALL, call_id, method, args))
        else:
            peer.waiting.append((CALL, call_id, method, args))
        return answer

    def feed(self, peer: Peer, link: Link) -> None:
        """A link has room again: the calls that waited for it go out, one by one, as long as it has (waiting_calls_are_bounded)."""
        while peer.waiting and link.room and not link.closed:
            message = peer.waiting.popleft()
            if message[1] in peer.calls:
                link.queue(message)
                link.flush()

    def too_long(self, peer: Peer, link: Link, message: Sent) -> None:
        """Fails the call whose message is too long for a frame (long_calls_fail_alone)."""
        code, sentence = "MessageTooLarge", f"more than the {MAX_FRAME} bytes of a frame"
        if message[0] == RESULT:
            self._queue(link, (FAILURE, message[1], code, f"the answer has {sentence}"))
        elif message[0] == CALL and (call := peer.calls.pop(message[1], None)) is not None:
            call.answer.fail(RemoteError(code, f"the call of {message[2]} has {sentence}"))

    def expire(self, now_s: float) -> None:
        """Ends calls whose time is over."""
        for key, peer in list(self._peers.items()):
            for call_id, call in [each for each in peer.calls.items() if each[1].until_s <= now_s]:
                del peer.calls[call_id]
                call.answer.fail(DeadlineExceeded(f"{key} did not answer in time"))

    def lost(self, key: PeerKey, peer: Peer) -> None:
        """A peer went away: its calls fail."""
        calls, peer.calls = peer.calls, {}
        peer.waiting.clear()
        for call in calls.values():
            call.answer.fail(PeerLost(f"{key} went down"))

    # Calls served here

    def serve(self, method: str, function: Served) -> None:
        """Answers calls of `method` with `function(peer key, *args)`: a value, a Deferred, or a coroutine, run as a task."""
        self._served[method] = function

    def received(self, key: PeerKey, peer: Peer, link: Link, message: Arrived) -> None:
        """A call, or the answer to one."""
        kind = message[0]
        if kind == CALL:
            self._answer(key, link, message[1], message[2], message[3])
            return
        call = peer.calls.pop(message[1], None)
        if call is None:
            return  # the call's time was over
        if kind == RESULT:
            call.answer.resolve(message[2])
        else:
            call.answer.fail(RemoteError(message[2], message[3]))

    def _answer(self, key: PeerKey, link: Link, call_id: int, method: str, args: list[object]) -> None:
        function = self._served.get(method)
        if function is None:
            self._queue(link, (FAILURE, call_id, "UnknownMethod", f"{method} is not served here"))
            return
        try:
            value = function(key, *args)
        except Exception as fault:
            self._queue(link, self._failure(call_id, fault))
            return
        if type(value) is Deferred or inspect.iscoroutine(value):
            self._start_soon(self._answer_slowly, link, call_id, value)
        else:
            self._queue(link, (RESULT, call_id, value))

    async def _answer_slowly(self, link: Link, call_id: int, answer: Awaitable[object]) -> None:
        try:
            value = await answer
        except Exception as fault:
            self._queue(link, self._failure(call_id, fault))
        else:
            self._queue(link, (RESULT, call_id, value))

    def _failure(self, call_id: int, fault: Exception) -> Sent:
        """The answer that carries an error to another process: named by its class, as it was first raised
        (mistakes_fail_their_call)."""
        if not isinstance(fault, TurnstileError):
            self._mistaken(fault)
        code = fault.code if isinstance(fault, RemoteError) else type(fault).__name__
        return FAILURE, call_id, code, str(fault)
