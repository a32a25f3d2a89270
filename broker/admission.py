"""One new connection: admitted, refused with a reason, or waiting for another shard to say.

A decision that needs no other shard is taken inside the callback that accepted the connection; a refused one never
becomes more than a descriptor. Refusing is closing, before anything is read from the socket or written to it.

Invariants
A1  Every accepted descriptor is admitted or refused exactly once, and counted and journaled as what it was.
A2  `admitted` is journaled after the tokens are taken; a refused connection holds none.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from broker.metrics import ShardCounters, Talkers
from journal.writer import Journal
from limits.overrides import normalise_ip
from shards.poller import Poller
from shards.tokens import ADMITTED, Refused, Tokens

Admit = Callable[[int, str, int, tuple[str, ...]], None]
"""Takes over an admitted descriptor: fd, ip, port, the pools of which it holds a token each."""


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
        arrival = Arrival(self, fd, ip, port, pools, self._poller.now_ns)
        decision = self._tokens.take(pools, arrival)
        if decision is ADMITTED:
            self._admit(fd, ip, port, pools)
        elif decision is not None:
            self.refuse(arrival, decision)

    def admit(self, arrival: Arrival) -> None:
        self._admit(arrival.fd, arrival.ip, arrival.port, arrival.pools)

    def refuse(self, arrival: Arrival, refused: Refused) -> None:
        reason = reason_of(refused)
        now_ns = self._poller.now_ns
        os.close(arrival.fd)
        self._counters.refused(self.listener, reason)
        self._talkers.add(arrival.ip)
        self._journal.refused(
            now_ns,
            arrival.ip,
            arrival.port,
            self.listener,
            reason,
            (now_ns - arrival.at_ns) / 1e6,
            refused.rule.name,
            refused.rule.cap,
            refused.version,
        )

    def no_descriptor(self, ip: str, port: int) -> None:
        """A connection that was closed because this process has no descriptors left for it."""
        self._counters.refused(self.listener, "fd_limit")
        self._talkers.add(ip)
        self._journal.refused(self._poller.now_ns, ip, port, self.listener, "fd_limit", 0.0, "RLIMIT_NOFILE", self._fd_ceiling, 0)


class Arrival:
    """A connection while it waits for its tokens."""

    __slots__ = ("at_ns", "fd", "ip", "pools", "port", "_admission")

    def __init__(self, admission: Admission, fd: int, ip: str, port: int, pools: tuple[str, ...], at_ns: int) -> None:
        self._admission = admission
        self.fd = fd
        self.ip = ip
        self.port = port
        self.pools = pools
        self.at_ns = at_ns

    def decided(self, decision: object) -> None:
        """Called by the tokens when the home has answered."""
        if isinstance(decision, Refused):
            self._admission.refuse(self, decision)
        else:
            self._admission.admit(self)


def reason_of(refused: Refused) -> str:
    """The reason's name in counters, journal and reports."""
    if refused.unavailable:
        return "shard_unavailable"
    return refused.pool.partition(":")[0] + "_cap"
