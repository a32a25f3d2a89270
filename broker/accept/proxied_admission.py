"""The admission of a listener whose proxies announce their clients: the announced address is decided about and counted.

Invariants
    announced_address_counts  Of a connection that was announced, pools, rates, journal and counters have the announced address
        alone; of any other one, that of its peer.
    headerless_hold_nothing  A connection that ends without its header has held no token, was recorded in no rate, and is refused
        as `proxy_header` under its peer's address if this shard ended it. If its peer ended it, it is not counted at all, as no
        client was behind it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from broker.accept.admission import Admission, Open, Rehearsing
from broker.accept.admission_steps import Event
from broker.accept.pacing import Pacing
from broker.accept.pending_connection import Owner, PendingConnection
from broker.accept.proxy_header import ProxyFault
from broker.accept.refused_sockets import Answering
from broker.accept.step_actions import Deciders
from broker.metrics.outcomes import Outcomes, Refusal
from broker.runtime.shard_context import ShardContext
from broker.serve.proxied_connection import Via

OpenAnnounced = Callable[[int, int, str, int, tuple[str, ...], Via], object]
"""As Open, with the way by which the client came."""
_ENDED_BY_PEER = {ProxyFault.EMPTY, ProxyFault.ABORT, ProxyFault.TRUNCATED}


class AnnouncedConnection(PendingConnection):
    """A pending connection of an announced client."""

    def __init__(
        self,
        admission: Owner,
        fd: int,
        number: int,
        ip: str,
        port: int,
        *,
        pools: tuple[str, ...],
        at_ns: int,
        via: Via,
    ) -> None:
        super().__init__(admission, fd, number, ip, port, pools=pools, at_ns=at_ns)
        self.via = via


class ProxiedAdmission(Admission):
    """The admission of one listener. `arrived` is for peers that are clients themselves."""

    def __init__(
        self,
        context: ShardContext,
        deciders: Deciders,
        outcomes: Outcomes,
        pacing: Pacing,
        open_connection: Open,
        open_announced: OpenAnnounced,
        *,
        answering: Answering,
        more_pools: tuple[str, ...] = (),
    ) -> None:
        super().__init__(
            context, deciders, outcomes, pacing, open_connection, answering=answering, more_pools=more_pools
        )
        self._serve_announced = self._open_announced = open_announced
        self._counters = context.counters
        self._log = context.log

    def follow(self, *, forced: bool, direct: bool, rehearsing: Rehearsing) -> None:
        super().follow(forced=forced, direct=direct, rehearsing=rehearsing)
        self._open_announced = rehearsing(self._serve_announced)

    def announced(self, fd: int, ip: str, port: int, via: Via) -> None:
        """Decides about the client at `ip`, whose connection the descriptor is; its steps are those of any other."""
        if ":" in ip:
            ip = self._image.limits.counted(ip)
        if fd >= self._fd_ceiling and not self._make_room():
            self.no_descriptor(ip, port)
            os.close(fd)
            return
        pending = AnnouncedConnection(
            self,
            fd,
            next(self._numbers),
            ip,
            port,
            pools=(*self._slot_pools, "ip:" + ip),
            at_ns=self._poller.now_ns,
            via=via,
        )
        pending.forced = self.forced
        self.advance(pending, Event.UNRATED if self.direct else Event.PASSED)

    def without_header(self, fd: int, ip: str, port: int, fault: ProxyFault, waited_ms: float) -> None:
        """A connection of the proxy at `ip` ends without its header."""
        self._counters.add(f"proxy_{fault}", 1)
        if fault not in _ENDED_BY_PEER:
            refusal = Refusal("proxy_header", fault, 0, 0)
            self._outcomes.refused(next(self._numbers), ip, port, refusal, waited_ms)
            self._log.warning("a proxy sent no PROXY header", ip=ip, listener=self.listener, why=str(fault))
        os.close(fd)

    def _hand_over(self, pending: PendingConnection) -> None:
        if not isinstance(pending, AnnouncedConnection):
            super()._hand_over(pending)
            return
        number, ip, port, via = pending.number, pending.ip, pending.port, pending.via
        self._outcomes.admitted_via(via.detail, number, ip, port, self._tokens.version, self._waited_ms(pending))
        self._open_announced(pending.fd, number, ip, port, pending.pools, via)

    def _count_refused(self, pending: PendingConnection) -> None:
        if not isinstance(pending, AnnouncedConnection):
            super()._count_refused(pending)
            return
        number, ip, port, waited_ms = pending.number, pending.ip, pending.port, self._waited_ms(pending)
        self._outcomes.refused_via(pending.via.detail, number, ip, port, pending.refusal, waited_ms)
