"""The two sides of serving, each as the other sees it: a client's channel, and what serves it."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Protocol

from broker.serve.muted import Muted
from broker.timers import Timers
from shards.mesh.deferred import MaybeDeferred
from shards.mesh.poller import Poller


class Channel(Protocol):
    """A connection, to those who answer its requests."""

    id: int
    ip: str
    port: int
    listener: str
    pools: tuple[str, ...]
    opened_ns: int
    bytes_moved: int
    client_id: str | None
    user: str
    authentication: Authenticator | None
    """What it has to go through before anything is answered; None: nothing, or it has."""
    throttle: tuple[str, int] | None
    """The quota it exceeded, and for how many milliseconds to read nothing once the answer under way is out."""
    parting: str | None
    """Why it is to end once the answer under way is out."""


class Authenticator(Protocol):
    """`bare`: frames are tokens without Kafka headers."""

    bare: bool

    def answer(self, channel: Channel, frame: bytes) -> MaybeDeferred[bytes | None]: ...


class ChannelServer(Protocol):
    """What a connection needs of its listener's serving.Serving."""

    listener: str
    max_frame_bytes: int
    tls: ssl.SSLContext | None
    poller: Poller
    timers: Timers
    muted: Muted
    authentication: Callable[[], Authenticator | None]
    answered: Callable[[int, int], None]
    """Counts a request: its bytes and its answer's, both with the length before them."""
    follows: Callable[[bytes], bool]
    """Whether this request may be served beside earlier ones of which this is true as well."""

    def answer(self, channel: Channel, frame: bytes) -> MaybeDeferred[bytes | None]:
        """The response as it goes out, or None if there is none; now or later. Raises wire.BadFrame."""

    def malformed(self, channel: Channel, why: str) -> None: ...
    def bug(self, channel: Channel, error: Exception) -> None: ...
    def closed(self, channel: Channel, why: str) -> None: ...
