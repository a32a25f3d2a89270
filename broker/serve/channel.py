"""The two sides of serving, each as the other sees it: a client's channel, and its server."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Protocol

from broker.serve.muted import Muted
from broker.serve.request_memory import AnswerMemory, RequestMemory
from broker.wire.answer_parts import Encoded
from shards.loop.deferred import MaybeDeferred
from shards.loop.poller import Poller
from shards.loop.timers import Timers

SASL, TOKEN = "SASL", "delegation token"


class Channel(Protocol):
    """A connection, as the modules that answer its requests see it."""

    id: int
    fd: int
    closed: bool
    ip: str
    """The address that the client counts as: of an IPv6 network with turnstile.ipv6.prefix.length its first one."""
    host: str
    """The client's own address."""
    port: int
    listener: str
    pools: tuple[str, ...]
    opened_ns: int
    bytes_moved: int
    received: bytearray | None
    """The bytes read of requests whose turn has not come."""
    client_id: str | None
    software: tuple[str, str] | None
    """The client's name and version, if it has told them (KIP-511)."""
    user: str
    authentication: Authenticator | None
    """The SASL exchange before any other request is answered; None: the listener asks for none, or it is done."""
    throttle: tuple[str, int] | None
    """The quota it exceeded, and for how many milliseconds it is muted once the answer under way is out."""
    throttled_until_ms: int
    """No request that counts for the broker's throughput is taken up before this time, by the poller's clock."""
    produce_throttled_until_ms: int
    fetch_throttled_until_ms: int
    """No Produce or Fetch is taken up before these times, by Redpanda's client quotas."""
    must_finish: bool
    """True while the request under way must be finished even if the client leaves: it waits for a handler or has one
    (request_queue.py), or its charge is not answered."""
    parting: str | None
    """The reason for which it is closed once the answer under way is out."""
    serving: ChannelServer

    @property
    def reached(self) -> str:
        """The local address, or that of a proxy which announced its client: where the client found the broker."""

    @property
    def reached_port(self) -> int | None:
        """The port of that proxy; None: there is none."""

    def close(self, why: str = ...) -> None: ...
    def hold(self, pools: tuple[str, ...]) -> None:
        """The channel holds a token of each of `pools` from here on, and gives them back when it closes."""

    def call_when_closed(self, function: Callable[[], None]) -> None:
        """Calls `function` once when the channel has closed, at once if it has; in place of one given before. What a client
        has in a share group is released then."""

    def reset_when_closed(self) -> None: ...


AnswerFrame = Callable[[Channel, bytes], MaybeDeferred[Encoded | None]]
"""The response to a frame as it goes out, or None if there is none; now or later. Raises wire.BadFrame."""


class Authenticator(Protocol):
    """`bare`: frames are tokens without Kafka headers."""

    bare: bool

    def answer(self, channel: Channel, frame: bytes) -> MaybeDeferred[Encoded | None]: ...


class ChannelServer(Protocol):
    """The part of its listener's serving.Serving that a connection needs."""

    listener: str
    logged_in_by: str | None
    """The way its clients log in: SASL, or TOKEN for a connection with a token's session; None: they do not log in."""

    @property
    def counts_networks(self) -> bool:
        """True if an IPv6 client counts as its network."""

    max_frame_bytes: int
    tls: ssl.SSLContext | None
    poller: Poller
    timers: Timers
    muted: Muted
    requests: RequestMemory
    answers: AnswerMemory
    authentication: Callable[[], Authenticator | None]
    answer: AnswerFrame
    answered: Callable[[int, int], None]
    """Counts a request: its bytes and its answer's, both with the length before them."""

    def answering_by(self, answer: AnswerFrame) -> ChannelServer:
        """A copy of this server, whose requests are answered by `answer`."""

    def malformed(self, channel: Channel, why: str) -> None: ...
    def bug(self, channel: Channel, error: Exception) -> None: ...
    def closed(self, channel: Channel, why: str) -> None: ...
