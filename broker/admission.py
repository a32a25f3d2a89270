"""One new connection: admitted, refused with a reason, or waiting for another shard to say.

A decision that needs no other shard is taken inside the callback that accepted the connection; a refused one never
becomes more than a descriptor. Refusing is closing, before anything is read from the socket or written to it.

Invariants
A1  Every accepted descriptor is admitted or refused exactly once, and counted and journaled as what it was.
A2  `admitted` is journaled after the tokens are taken; a refused connection holds none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from shards.tokens import ADMITTED, Refused, Tokens

from broker.metrics import ShardCounters, Talkers
from journal.writer import Journal
from limits.overrides import normalise_ip
from shards.poller import Poller

Admit = Callable[[int, int, str, int, tuple[str, ...], int, float], None]
"""Takes over an admitted descriptor: fd, number, ip, port, the pools of which it holds a token each, the configuration
version it was decided under, and the milliseconds from its arrival to the decision."""


class Admission:
    """Decides about the connections of one listener; `fd_ceiling` is the first descriptor number too many."""

    def __init__(
        self,
        listener: str,
        tokens: Tokens,
        poller: Poller,
        journal: Journal,
        counters: ShardCounters,
        talkers: Talkers,
        admit: Admit,
        numbers: Iterator[int],
        *,
        fd_ceiling: int,
    ) -> None:
        self.listener = listener
        self._tokens = tokens
        self._poller = poller
        self._journal = journal
        self._counters = counters
        self._talkers = talkers
        self._admit = admit
        self._numbers = numbers
        self._fd_ceiling = fd_ceiling
        self._listener_pool = f"listener:{listener}"

    def arrived(self, fd: int, ip: str, port: int) -> None:
        """Decides about a fresh connection, now or when its home has answered."""
        if ":" in ip:
            ip = normalise_ip(ip)
        if fd >= self._fd_ceiling:
            os.close(fd)
            self.no_descriptor(ip, port)
            return
        pools = ("broker", self._listener_pool, "ip:" + ip)
        arrival = Arrival(self, fd, next(self._numbers), ip, port, pools, self._poller.now_ns)
        decision = self._tokens.take(pools, arrival)
        if decision is ADMITTED:
            self._admit(fd, arrival.number, ip, port, pools, self._tokens.version, 0.0)
        elif decision is not None:
            self._refuse(arrival, decision)

    def decided(self, arrival: Arrival, decision: Refused | object) -> None:
        """The home has answered for a connection that had to wait."""
        if isinstance(decision, Refused):
            self._refuse(arrival, decision)
        else:
            waited_ms = (self._poller.now_ns - arrival.at_ns) / 1e6
            self._admit(
                arrival.fd, arrival.number, arrival.ip, arrival.port, arrival.pools, self._tokens.version, waited_ms
            )

    def _refuse(self, arrival: Arrival, refused: Refused) -> None:
        os.close(arrival.fd)
        rule = refused.rule
        waited_ms = (self._poller.now_ns - arrival.at_ns) / 1e6
        self._count(
            arrival.number,
            arrival.ip,
            arrival.port,
            reason_of(refused),
            rule.name,
            rule.cap or 0,
            refused.version,
            waited_ms,
        )

    def no_descriptor(self, ip: str, port: int) -> None:
        """A connection was closed because this process has no descriptors left for it."""
        self._count(next(self._numbers), ip, port, "fd_limit", "RLIMIT_NOFILE", self._fd_ceiling, 0, 0.0)

    def _count(
        self, number: int, ip: str, port: int, reason: str, limit: str, value: float, version: int, waited_ms: float
    ) -> None:
        self._counters.refused(self.listener, reason)
        self._talkers.add(ip, reason)
        self._journal.refused(number, ip, port, self.listener, reason, limit, value, version, waited_ms)


class Arrival:
    """A connection while it waits for its tokens."""

    __slots__ = ("_admission", "at_ns", "fd", "ip", "number", "pools", "port")

    def __init__(
        self, admission: Admission, fd: int, number: int, ip: str, port: int, pools: tuple[str, ...], at_ns: int
    ) -> None:
        self._admission = admission
        self.fd = fd
        self.number = number
        self.ip = ip
        self.port = port
        self.pools = pools
        self.at_ns = at_ns

    def decided(self, decision: Refused | object) -> None:
        """Called by the tokens when the home has answered."""
        self._admission.decided(self, decision)


def reason_of(refused: Refused) -> str:
    """The reason's name in counters, journal and reports."""
    if refused.unavailable:
        return "shard_unavailable"
    return refused.pool.partition(":")[0] + "_cap"
