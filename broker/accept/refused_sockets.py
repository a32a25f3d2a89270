"""The end of the socket of a connection that a cap has refused: `turnstile.refuse.mode`, a setting of Turnstile's own.

    close  close(2) at once: FIN, or RST where the client has sent something already. Nothing of this module is called.
    reset  RST at once (SO_LINGER 0), whatever the client has sent.
    hold   open, and neither read nor written, for `turnstile.refuse.hold.ms`; then as close. To its client that is a
           broker that hangs, as one of an address over its rate is.
    after-api-versions, sasl-error, api-error  its first requests are answered (broker/serve/refused_connection.py), for
           `turnstile.refuse.hold.ms` at most; then as close. Where the mode has no answer, as close at once.

Refusals by caps alone end so: `ip_cap`, `broker_cap`, `listener_cap`, `ssl_cap`, `cluster_cap`. Those for a rate, for lack
of descriptors, for a header that is missing, or by a home that does not answer are closed in every mode.

Invariants
refused_hold_no_token  A socket comes here when its connection is decided about. It has no token, and is counted and
    journaled as refused then, once; what becomes of it here changes no count.
held_refused_are_bounded  At most `most` are held or answered, each for the time that was in force when it was refused. For one
    more, the one held longest is closed, and so it is when descriptors run out, before a connection held for its rate.
each_ends_once  Each descriptor is closed exactly once.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from broker.accept.held_connections import HeldConnections
from broker.accept.permit import Permit
from broker.journal.schema import BY_CAPS
from broker.metrics.outcomes import Refusal
from shards.config.image import ClusterImage
from shards.loop.timers import Timers

REFUSE_MODE: Final = "turnstile.refuse.mode"
REFUSE_HOLD_MS: Final = "turnstile.refuse.hold.ms"
_RESET: Final = struct.pack("ii", 1, 0)  # struct linger: on, and no time
_LEAST_BUFFER: Final = 1  # bytes; the kernel raises it to the least that it has (SOCK_MIN_RCVBUF)

Dismissal = Callable[[int, str, int, Refusal], None]
"""Ends the descriptor of a refused connection of an address and port, or sees to it that it ends."""


class Answered(Protocol):
    """A refused connection that answers requests."""

    def close(self, why: str = ...) -> None: ...
    def call_when_closed(self, function: Callable[[], None]) -> None: ...


class Answering(Protocol):
    """RefusedServing.open of one listener."""

    def __call__(self, fd: int, ip: str, port: int, mode: str, refusal: Refusal, /) -> Answered | None: ...


class RefusedSockets:
    """The sockets of the refused connections of one shard, of all listeners; `len` is how many are held."""

    def __init__(self, image: ClusterImage, timers: Timers, most: int) -> None:
        self._image = image
        self._held = HeldConnections(timers, most)

    def __len__(self) -> int:
        return len(self._held)

    def dismissal(self, answering: Answering) -> Dismissal | None:
        """The end of refused connections by the image; None: each is closed at once, without a call. `answering`: of the
        listener."""
        mode = self._image.get(REFUSE_MODE)
        if mode == "close":
            return None
        ends: dict[str, Dismissal] = {"reset": _reset, "hold": self._hold}
        answer = partial(self._answer, answering=answering, mode=mode)
        return partial(_dismiss, ends.get(mode, answer))

    def make_room(self) -> bool:
        """Closes the one held longest; False when there is none."""
        return self._held.make_room()

    def _hold(self, fd: int, _ip: str, _port: int, _refusal: Refusal) -> None:
        held = _HeldSocket(fd)
        held.permit = self._held.hold(held, self._image.get(REFUSE_HOLD_MS))

    def _answer(self, fd: int, ip: str, port: int, refusal: Refusal, *, answering: Answering, mode: str) -> None:
        connection = answering(fd, ip, port, mode, refusal)
        if connection is None:
            os.close(fd)
            return
        answered = _AnsweredSocket(connection)
        answered.permit = self._held.hold(answered, self._image.get(REFUSE_HOLD_MS))
        connection.call_when_closed(answered.permit.give_back)


def _dismiss(end: Dismissal, fd: int, ip: str, port: int, refusal: Refusal) -> None:
    """Refusals by caps alone end as the mode says."""
    if refusal.reason in BY_CAPS:
        end(fd, ip, port, refusal)
    else:
        os.close(fd)


def _reset(fd: int, _ip: str, _port: int, _refusal: Refusal) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, fileno=fd) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


class _AnsweredSocket:
    """A refused connection that ends by itself, or when its time is over."""

    __slots__ = ("_connection", "permit")
    permit: Permit

    def __init__(self, connection: Answered) -> None:
        self._connection = connection

    def let_go(self, *, early: bool = False) -> None:
        self.permit.give_back()
        self._connection.close()


class _HeldSocket:
    """The descriptor of a refused connection. What its client sends waits in the least buffer that there is."""

    __slots__ = ("_fd", "permit")
    permit: Permit

    def __init__(self, fd: int) -> None:
        self._fd = fd
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, fileno=fd)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _LEAST_BUFFER)
        sock.detach()

    def let_go(self, *, early: bool = False) -> None:
        self.permit.give_back()
        os.close(self._fd)
