"""One new connection: admitted, refused with a reason, or waiting for another shard to say.

A decision that needs no other shard is taken inside the callback that accepted the connection; a refused one never
becomes more than a descriptor. Refusing is closing, before anything is read from the socket or written to it. While
rates are set a connection goes through `rated.py` first.

Invariants
A1  Every accepted descriptor is admitted or refused exactly once, and counted and journaled as what it was.
A2  `admitted` is journaled after the tokens are taken; a refused connection holds none.
A3  While a connection waits for a slot (KIP-402), its listener accepts no other on this shard.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from broker.accept.held_connections import HeldConnections
from broker.accept.pacing import Pacing
from broker.journal.writer import JournalWriter
from broker.shard_counters import ShardCounters, TopTalkers
from shards.limits.overrides import normalise_ip
from shards.mesh.poller import Poller
from shards.tokens.tokens import ADMITTED, Admitted, Refused, Tokens

Admit = Callable[[int, int, str, int, tuple[str, ...], int, float], None]
"""Takes over an admitted descriptor: fd, number, ip, port, the pools of which it holds a token each, the configuration
version it was decided under, and the milliseconds from its arrival to the decision."""


class Admission:
    """Decides about the connections of one listener; `fd_ceiling` is the first descriptor number too many.

    `rated`: what connections go through while a rate is set; None while none is. `slots_wait`: whether a full pool makes
    a connection wait instead of refusing it. `first`: the first pool that may do either: 1 for the inter-broker listener
    under `max.connections`, which takes its token of the broker's pool in any case, by `force`. With it, `rated` is set.
    """

    def __init__(
        self,
        listener: str,
        tokens: Tokens,
        poller: Poller,
        journal: JournalWriter,
        counters: ShardCounters,
        top_talkers: TopTalkers,
        admit: Admit,
        numbers: Iterator[int],
        pacing: Pacing,
        held: HeldConnections,
        force: Callable[[], None],
        *,
        fd_ceiling: int,
        more_pools: tuple[str, ...] = (),
    ) -> None:
        self.listener = listener
        self.pacing = pacing
        self.rated: Callable[[PendingConnection], None] | None = None
        self.slots_wait = False
        self.first = 0
        self.pending = 0
        self._tokens = tokens
        self._poller = poller
        self._journal = journal
        self._counters = counters
        self._top_talkers = top_talkers
        self._admit = admit
        self._numbers = numbers
        self._held = held
        self._force = force
        self._fd_ceiling = fd_ceiling
        self._listener_pool = f"listener:{listener}"
        self._more_pools = more_pools

    def arrived(self, fd: int, ip: str, port: int) -> None:
        """Decides about a fresh connection, now or when its home has answered."""
        if ":" in ip:
            ip = normalise_ip(ip)
        if fd >= self._fd_ceiling and not self._held.make_room():
            os.close(fd)
            self.no_descriptor(ip, port)
            return
        pools = ("broker", self._listener_pool, "ip:" + ip, *self._more_pools)
        pending = PendingConnection(self, fd, next(self._numbers), ip, port, pools, self._poller.now_ns)
        if self.rated is not None:
            self.rated(pending)
            return
        decision = self._tokens.take(pools, pending)
        if decision is ADMITTED:
            self._admit(fd, pending.number, ip, port, pools, self._tokens.version, 0.0)
        elif isinstance(decision, Refused):
            self.refuse_for(pending, decision)
        else:
            self.wait(pending)

    def take_all(self, pending: PendingConnection) -> None:
        """A token of each pool: admits, refuses, or waits for an answer."""
        pending.then = None
        decision = self._tokens.take(pending.pools[pending.first :], pending)
        if decision is None:
            self.wait(pending)
        else:
            self.decided(pending, decision)

    def wait(self, pending: PendingConnection) -> None:
        """Its tokens were asked for; `done_waiting` follows with the answer."""
        self.pending += 1
        pending.stops = self.slots_wait
        if pending.stops:
            self.pacing.stopped += 1
            self.pacing.look()

    def done_waiting(self, pending: PendingConnection) -> None:
        """The answer has come; called before it is acted on."""
        self.pending -= 1
        if not pending.stops:
            self._counters.borrowed(self._poller.now_ns - pending.at_ns)
        if pending.stops:
            pending.stops = False
            self.pacing.stopped -= 1
            self.pacing.look()

    def decided(self, pending: PendingConnection, decision: Refused | Admitted) -> None:
        """The last tokens were granted or refused."""
        if isinstance(decision, Refused):
            self.refuse_for(pending, decision)
        else:
            self.admit(pending)

    def admit(self, pending: PendingConnection) -> None:
        """The connection holds a token of each of its pools, but for one that it takes in any case."""
        if pending.first:
            self._force()
        waited_ms = (self._poller.now_ns - pending.at_ns) / 1e6
        self._admit(
            pending.fd,
            pending.number,
            pending.ip,
            pending.port,
            pending.pools,
            self._tokens.version,
            waited_ms,
        )

    def refuse_for(self, pending: PendingConnection, refused: Refused) -> None:
        """A pool refused it; it holds no token."""
        rule = refused.rule
        self.refuse(pending, reason_of(refused), rule.name, rule.cap or 0, refused.version)

    def refuse(self, pending: PendingConnection, reason: str, limit: str, value: float, version: int) -> None:
        """Closes a connection that holds no token."""
        os.close(pending.fd)
        waited_ms = (self._poller.now_ns - pending.at_ns) / 1e6
        self._count(
            pending.number,
            pending.ip,
            pending.port,
            reason,
            limit,
            value,
            version,
            waited_ms,
        )

    def no_descriptor(self, ip: str, port: int) -> None:
        """A connection was closed because this process has no descriptors left for it."""
        self._count(next(self._numbers), ip, port, "fd_limit", "RLIMIT_NOFILE", self._fd_ceiling, 0, 0.0)

    def _count(
        self, number: int, ip: str, port: int, reason: str, limit: str, value: float, version: int, waited_ms: float
    ) -> None:
        self._counters.refused(self.listener, reason)
        self._top_talkers.add(ip, reason)
        self._journal.refused(number, ip, port, self.listener, reason, limit, value, version, waited_ms)


class PendingConnection:
    """A connection before it is decided. `first` is as its admission's was when it came; `then` follows the tokens it waits
    for (None: Admission.decided), and `stops` says whether its listener waits with it; `rate_then` follows the answer
    about its rate."""

    rate_then: Callable[[PendingConnection, int], None]

    __slots__ = ("admission", "at_ns", "fd", "first", "ip", "number", "pools", "port", "rate_then", "stops", "then")

    def __init__(
        self, admission: Admission, fd: int, number: int, ip: str, port: int, pools: tuple[str, ...], at_ns: int
    ) -> None:
        self.admission = admission
        self.fd = fd
        self.number = number
        self.ip = ip
        self.port = port
        self.pools = pools
        self.at_ns = at_ns
        self.first = 0
        self.then: Callable[[PendingConnection, Refused | Admitted], None] | None = None
        self.stops = False

    def decided(self, decision: Refused | Admitted) -> None:
        """Called by the tokens when the home has answered."""
        self.admission.done_waiting(self)
        (self.then or self.admission.decided)(self, decision)

    def recorded(self, key: str, wait_ms: int) -> None:
        """Called by the rates when the home has answered."""
        self.rate_then(self, wait_ms)


def reason_of(refused: Refused) -> str:
    """The reason's name in counters, journal and reports."""
    if refused.unavailable:
        return "shard_unavailable"
    return refused.pool.partition(":")[0] + "_cap"
