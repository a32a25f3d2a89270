"""The way of a connection while rates are set, in the order of docs/semantics.md, 2: step after step, each with its own wait.

core token     at most 100 ms, one connection after the other; without one it is refused: core_rate
listener rate  recorded together with the broker's; the larger delay, while the listener accepts nothing
slot           a token of the broker's and of the listener's pool
address rate   over it the slot is free again, what was recorded is taken back, and the connection is held: ip_rate
address token  refused, it stays recorded: ip_cap
"""

from __future__ import annotations

from functools import partial

from broker.accept.admission import Admission, PendingConnection
from broker.accept.core_rates import MOST_MS, CoreRates
from broker.accept.held_connections import HeldConnections
from broker.shard_counters import ShardCounters
from broker.timers import Timers
from shards.config.image import ClusterImage
from shards.mesh.poller import Poller
from shards.rates.rates import UNAVAILABLE, Rates
from shards.tokens.tokens import Admitted, Refused, Tokens

_LISTENER_RATE = "max.connection.creation.rate"
_IP_RATE = "connection_creation_rate"


class Rated:
    """The steps for one listener."""

    def __init__(
        self,
        admission: Admission,
        rates: Rates,
        core: CoreRates,
        held: HeldConnections,
        timers: Timers,
        tokens: Tokens,
        poller: Poller,
        image: ClusterImage,
        counters: ShardCounters,
    ) -> None:
        self._admission = admission
        self._pacing = admission.pacing
        self._listener = admission.listener
        self._key = f"listener:{admission.listener}"
        self._rates = rates
        self._core = core
        self._held = held
        self._timers = timers
        self._tokens = tokens
        self._poller = poller
        self._image = image
        self._counters = counters

    def begin(self, pending: PendingConnection) -> None:
        """A connection was accepted."""
        pending.first = self._admission.first
        if self._core.active:
            wait_ms = self._core.take(pending.ip, now_ms=self._now_ms())
            if wait_ms != 0:
                self._wait_for_core(pending, wait_ms)
                return
        self._record(pending)

    def let_go(self, pending: PendingConnection, *, early: bool) -> None:
        """A held connection has waited long enough, or has to make room."""
        if early or not self._image.get("turnstile.ip.rate.recheck"):
            self._refuse_for_ip(pending)
            return
        pending.rate_then = self._rechecked
        wait_ms = self._rates.record(pending.pools[2], pending, now_ms=self._now_ms())
        if wait_ms is not None:
            self._rechecked(pending, wait_ms)

    # The core's rate

    def _wait_for_core(self, pending: PendingConnection, wait_ms: int | None) -> None:
        self._pacing.stopped += 1
        self._pacing.look()
        if wait_ms is None:
            self._timers.after(MOST_MS, partial(self._core_refused, pending))
        else:
            self._counters.add("rate_waits", 1, self._listener)
            self._timers.after(wait_ms, partial(self._core_passed, pending))

    def _core_passed(self, pending: PendingConnection) -> None:
        self._pacing.stopped -= 1
        self._pacing.look()
        self._record(pending)

    def _core_refused(self, pending: PendingConnection) -> None:
        self._pacing.stopped -= 1
        self._pacing.look()
        rule = self._image.core_rate_of(pending.ip)
        self._admission.refuse(pending, "core_rate", rule.name, rule.rate or 0, self._tokens.version)

    # The listener's and the broker's rate

    def _record(self, pending: PendingConnection) -> None:
        if not self._rates.limits_listeners:
            self._take_slot(pending)
            return
        pending.rate_then = self._listener_recorded
        wait_ms = self._rates.record(self._key, pending, now_ms=self._now_ms())
        if wait_ms == 0:
            self._take_slot(pending)
            return
        self._pacing.waiting += 1
        self._pacing.look()
        if wait_ms is not None:
            self._delay(pending, wait_ms)

    def _listener_recorded(self, pending: PendingConnection, wait_ms: int) -> None:
        if wait_ms == UNAVAILABLE:
            self._pacing.waiting -= 1
            self._pacing.look()
            self._refuse_unavailable(pending, _LISTENER_RATE)
        elif wait_ms:
            self._delay(pending, wait_ms)
        else:
            self._listener_passed(pending)

    def _delay(self, pending: PendingConnection, wait_ms: int) -> None:
        self._counters.accept_delayed(self._listener, wait_ms)
        self._timers.after(wait_ms, partial(self._listener_passed, pending))

    def _listener_passed(self, pending: PendingConnection) -> None:
        self._pacing.waiting -= 1
        self._pacing.look()
        self._take_slot(pending)

    # A slot, the address's rate, the address's token

    def _take_slot(self, pending: PendingConnection) -> None:
        if not (self._rates.limits_ips and self._rates.has_quota(pending.ip)):
            self._admission.take_all(pending)
            return
        pending.then = self._slot_taken
        decision = self._tokens.take(pending.pools[pending.first : 2], pending)
        if decision is None:
            self._admission.wait(pending)
        else:
            self._slot_taken(pending, decision)

    def _slot_taken(self, pending: PendingConnection, decision: Refused | Admitted) -> None:
        if isinstance(decision, Refused):
            self._admission.refuse_for(pending, decision)
            return
        pending.rate_then = self._ip_recorded
        wait_ms = self._rates.record(pending.pools[2], pending, now_ms=self._now_ms())
        if wait_ms is not None:
            self._ip_recorded(pending, wait_ms)

    def _ip_recorded(self, pending: PendingConnection, wait_ms: int) -> None:
        if wait_ms == 0:
            pending.then = self._ip_taken
            decision = self._tokens.take(pending.pools[2:], pending)
            if decision is None:
                self._admission.wait(pending)
            else:
                self._ip_taken(pending, decision)
            return
        self._tokens.release(pending.pools[pending.first : 2])
        if wait_ms == UNAVAILABLE:
            self._refuse_unavailable(pending, _IP_RATE)
            return
        self._rates.count(self._listener, -1, now_ms=self._now_ms())
        self._counters.ip_delayed(self._listener, wait_ms)
        self._held.hold(Holding(self, pending), wait_ms)

    def _ip_taken(self, pending: PendingConnection, decision: Refused | Admitted) -> None:
        if isinstance(decision, Refused):
            self._tokens.release(pending.pools[pending.first : 2])
            self._admission.refuse_for(pending, decision)
        else:
            self._admission.admit(pending)

    def _rechecked(self, pending: PendingConnection, wait_ms: int) -> None:
        """KIP-612's text: within its rate again, a held connection goes on, recorded but not delayed."""
        if wait_ms == 0:
            self._rates.count(self._listener, 1, now_ms=self._now_ms())
            self._admission.take_all(pending)
        elif wait_ms == UNAVAILABLE:
            self._refuse_unavailable(pending, _IP_RATE)
        else:
            self._refuse_for_ip(pending)

    # Refusals

    def _refuse_for_ip(self, pending: PendingConnection) -> None:
        quota = self._image.quota_for_ip(pending.ip)
        self._admission.refuse(pending, "ip_rate", _IP_RATE, quota or 0, self._tokens.version)

    def _refuse_unavailable(self, pending: PendingConnection, limit: str) -> None:
        self._admission.refuse(pending, "shard_unavailable", limit, 0, self._tokens.version)

    def _now_ms(self) -> int:
        return self._poller.now_ns // 1_000_000


class Holding:
    """A held connection, and whose it is."""

    __slots__ = ("_arrival", "_rated")

    def __init__(self, rated: Rated, pending: PendingConnection) -> None:
        self._rated = rated
        self._arrival = pending

    def let_go(self, *, early: bool) -> None:
        self._rated.let_go(self._arrival, early=early)
