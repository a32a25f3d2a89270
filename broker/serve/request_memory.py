"""The bound on the memory of all unfinished requests of a shard: `queued.max.request.bytes`.

A request that arrives in pieces waits in memory for its end. Over the limit connections are not read any more, as Kafka's
selector mutes channels when its memory pool is empty; what their clients send waits in the kernel.

request_memory_is_bounded  Unfinished requests take no more than the limit, plus one request, plus one read for each connection;
    small requests are not counted. The one request: a limit must not stop a request for good, so one connection at a time,
    the one that lacks fewest bytes, is read beyond it.
stalled_holders_are_closed  While connections wait for memory, one that holds some and sends less than SMALL_BYTES within
    STALLED_S is closed: it would keep it.
small_requests_never_wait  Requests of up to SMALL_BYTES are not counted while they arrive, and never wait.
queued_requests_count  Requests of any size that wait for a request handler count until one is done with them (request_queue.py).
blocked_time_is_excused  While the shard's network thread is blocked nothing is read, and that time makes nothing stalled.
Source: Kafka's SocketServer (KIP-72), which takes the whole size of a request when its first bytes have arrived.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Protocol

SMALL_BYTES: Final = 64 << 10
STALLED_S: Final = 2.0


class Reader(Protocol):
    """A connection with an unfinished request; compared by identity."""

    def read_on(self) -> None:
        """There is memory again."""

    def close(self, why: str) -> None: ...


class _Unfinished:
    """One connection's request: bytes that are here, bytes it consists of, and when `progress` of them were here."""

    __slots__ = ("have", "progress", "since_ns", "whole")

    def __init__(self, now_ns: int) -> None:
        self.have = self.whole = self.progress = 0
        self.since_ns = now_ns


class RequestMemory:
    """The unfinished requests of one shard. `limit_bytes` -1: no limit. `soon(function)` calls it in a moment."""

    def __init__(
        self, limit_bytes: int, soon: Callable[[Callable[[], None]], object], now_ns: Callable[[], int]
    ) -> None:
        self.used = 0
        self._limit = limit_bytes if limit_bytes >= 0 else None
        self._soon = soon
        self._now_ns = now_ns
        self._requests: dict[Reader, _Unfinished] = {}
        self._waiting: dict[Reader, None] = {}
        self._beyond: Reader | None = None  # the one that is read beyond the limit
        self._resuming = False
        self._queued = 0
        self._paused_ns: int | None = None  # since when; None: it is not paused
        self._excused_ns = 0

    def grown(self, reader: Reader, have: int, whole: int) -> bool:
        """`have` bytes of a request of `whole` are here: whether the connection may be read on. If not, `read_on` follows."""
        if self._limit is None or whole <= SMALL_BYTES:
            return True
        request = self._requests.get(reader)
        if request is None:
            request = self._requests[reader] = _Unfinished(self._reading_ns())
        self.used += have - request.have
        request.have, request.whole = have, whole
        if have - request.progress >= SMALL_BYTES:
            request.progress, request.since_ns = have, self._reading_ns()
        if self.used <= self._limit or self._beyond is reader:
            return True
        self._waiting[reader] = None
        self._resume_soon()
        return False

    def finished(self, reader: Reader) -> None:
        """The request is complete, or its connection has closed. Nothing happens for one that was not counted."""
        request = self._requests.pop(reader, None)
        if request is None:
            return
        self.used -= request.have
        self._waiting.pop(reader, None)
        if self._beyond is reader:
            self._beyond = None
        if self._waiting:
            self._resume_soon()

    def tick(self) -> None:
        """stalled_holders_are_closed; to be called a few times a second."""
        if not self._waiting:
            return
        before_ns = self._reading_ns() - int(STALLED_S * 1e9)
        stalled = [
            reader
            for reader, request in self._requests.items()
            if reader not in self._waiting and request.since_ns <= before_ns
        ]
        for reader in stalled:
            reader.close("stalled")

    def queued(self, size_bytes: int) -> None:
        """A whole request waits for a handler (queued_requests_count); below 0: it is done, or dropped."""
        self.used += size_bytes
        self._queued += size_bytes
        if self._waiting and size_bytes < 0:
            self._resume_soon()

    def pause(self) -> None:
        """No connection is read until `resume` (blocked_time_is_excused)."""
        if self._paused_ns is None:
            self._paused_ns = self._now_ns()

    def resume(self) -> None:
        """Connections are read again. Those that waited for memory are read here, as far as there is memory, until one of them
        pauses this again."""
        if self._paused_ns is not None:
            self._excused_ns += self._now_ns() - self._paused_ns
            self._paused_ns = None
        if self._waiting:
            self._resume()

    def _reading_ns(self) -> int:
        """A clock that stands still while this is paused."""
        return (self._now_ns() if self._paused_ns is None else self._paused_ns) - self._excused_ns

    def _resume_soon(self) -> None:
        if not self._resuming:
            self._resuming = True
            self._soon(self._resume)

    def _resume(self) -> None:
        self._resuming = False
        assert self._limit is not None
        while self._waiting and self._paused_ns is None and (self.used <= self._limit or self._beyond is None):
            reader = min(self._waiting, key=self._lacks)
            if self.used > self._limit:
                self._beyond = reader
            del self._waiting[reader]
            self._requests[reader].since_ns = self._reading_ns()
            reader.read_on()

    def _lacks(self, reader: Reader) -> int:
        request = self._requests[reader]
        return request.whole - request.have

    def check(self) -> None:
        """Raises AssertionError when an invariant does not hold."""
        assert self.used == sum(request.have for request in self._requests.values()) + self._queued
        assert self._queued >= 0
        assert self._waiting.keys() <= self._requests.keys()
        assert self._beyond is None or self._beyond in self._requests


class Writer(Protocol):
    """A connection with an answer that its client has not read; compared by identity."""

    def close(self, why: str) -> None: ...


class AnswerMemory:
    """The memory of answers that clients of a shard have not read yet. What stays in a file takes none (answer_parts.py).

    fetches_shrink_over_the_limit  Over `limit_bytes` (-1: none) a Fetch is answered with as little as it can be: one batch.
    greediest_reader_is_closed  While all unread bytes are more than twice the limit, the connection with the most of them is
        closed.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.unsent = 0
        self._limit = limit_bytes if limit_bytes >= 0 else None
        self._most = 2 * limit_bytes if limit_bytes >= 0 else math.inf
        self._waiting: dict[Writer, int] = {}

    def most_bytes(self, wanted_bytes: int) -> int:
        """The most that a Fetch may be answered with, of `wanted_bytes`."""
        return wanted_bytes if self._limit is None else max(min(self._limit - self.unsent, wanted_bytes), 0)

    def waits(self, writer: Writer, size_bytes: int) -> None:
        """Notes how many bytes of an answer are unsent on a connection. May close connections, this one too
        (greediest_reader_is_closed)."""
        self.unsent += size_bytes - self._waiting.pop(writer, 0)
        if size_bytes:
            self._waiting[writer] = size_bytes
        while self.unsent > self._most:
            max(self._waiting, key=self._waiting.__getitem__).close("unread")

    def check(self) -> None:
        """Raises AssertionError when an invariant does not hold."""
        assert self.unsent == sum(self._waiting.values()) <= self._most
