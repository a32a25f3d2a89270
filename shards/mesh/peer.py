"""A process at the other end of links: its incarnation, its links, and its calls under way."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from shards.loop.deferred import Deferred
from shards.mesh.link import Arrived, Link
from shards.ownership import BrokerShard

CONTROL, DATA = "control", "data"
"""The channels of a peer: one link each (mesh.py)."""
ONE_WAY, CALL, RESULT, FAILURE = range(4)
"""The kinds of message on a link; the first field of each."""


PeerKey: TypeAlias = int | BrokerShard
"""The address of a process in the mesh: by its number a shard of the same broker, and the coordinator; else by (broker, shard)."""


class Hello(NamedTuple):
    """The first frame on a fresh link, in both directions. `pid` and `epoch` name the incarnation that speaks."""

    broker: int
    shard: int
    epoch: int
    pid: int
    channel: str


CallMessage: TypeAlias = tuple[int, int, str, tuple[object, ...]]
"""CALL, the number of the call, the method and its arguments, as they are packed."""


class PendingCall(NamedTuple):
    """A call that waits for its answer, and until when (trio's clock)."""

    answer: Deferred[object]
    until_s: float


class Peer:
    """One incarnation of another process.

    links      by channel
    calls      {call id: the call that waits for an answer}
    waiting    calls for which the data link had no room yet
    process    a pidfd, once announced; None: the process is not there, or there was no descriptor for it
    early      messages that overtook the hello of the other channel; delivered once the peer is announced
    announced  whether all channels are linked, and `Mesh.on_up` was called
    """

    def __init__(self, hello: Hello) -> None:
        self.id = hello.shard
        self.broker = hello.broker
        self.epoch = hello.epoch
        self.pid = hello.pid
        self.links: dict[str, Link] = {}
        self.calls: dict[int, PendingCall] = {}
        self.waiting: deque[CallMessage] = deque()
        self.process: int | None = None
        self.when_lost: list[Callable[[], None]] = []
        self.early: list[tuple[Link, Arrived]] = []
        self.announced = False
