"""The way of a connection while rates are set, in Kafka's order (SEMANTICS 2): one step after the other, each with its own wait.

core token     at most 100 ms, one connection after the other; without one it is refused: core_rate
listener rate  recorded together with the broker's; the larger delay, while the listener accepts nothing
slot           a token of the broker's and of the listener's pool
address rate   over it the slot is free again, what was recorded is taken back, and the connection is held: ip_rate
address token  refused, it stays recorded: ip_cap
"""

from __future__ import annotations

from functools import partial

from broker.accept.admission import Admission, Arrival
from broker.accept.core_rates import MOST_MS, CoreRates
from broker.accept.held import Held
from broker.delays import Delays
from broker.metrics import ShardCounters
from shards.poller import Poller
from shards.rates import UNAVAILABLE, Rates
from shards.settings import View
from shards.tokens import Admitted, Refused, Tokens

_LISTENER_RATE = "max.connection.creation.rate"
_IP_RATE = "connection_creation_rate"


class Rated:
    """The steps for one listener."""

    def __init__(
        self,
        admission: Admission,
        rates: Rates,
        core: CoreRates,
        held: Held,
        delays: Delays,
        tokens: Tokens,
        poller: Poller,
        view: View,
        counters: ShardCounters,
    ) -> None:
        self._admission = admission
        self._pacing = admission.pacing
        self._listener = admission.listener
        self._key = f"listener:{admission.listener}"
        self._rates = rates
        self._core = core
        self._held = held
        self._delays = delays
        self._tokens = tokens
        self._poller = poller
        self._view = view
        self._counters = counters

    def begin(self, arrival: Arrival) -> None:
        """A connection was accepted."""
        arrival.first = self._admission.first
        if self._core.active:
            wait_ms = self._core.take(arrival.ip, now_ms=self._now_ms())
            if wait_ms != 0:
                self._wait_for_core(arrival, wait_ms)
                return
        self._record(arrival)

    def let_go(self, arrival: Arrival, *, early: bool) -> None:
        """A held connection has waited long enough, or has to make room."""
        if early or not self._view.get("turnstile.ip.rate.recheck"):
            self._refuse_for_ip(arrival)
            return
        arrival.rate_then = self._rechecked
        wait_ms = self._rates.record(arrival.pools[2], arrival, now_ms=self._now_ms())
        if wait_ms is not None:
            self._rechecked(arrival, wait_ms)

    # The core's rate

    def _wait_for_core(self, arrival: Arrival, wait_ms: int | None) -> None:
        self._pacing.stopped += 1
        self._pacing.look()
        if wait_ms is None:
            self._delays.after(MOST_MS, partial(self._core_refused, arrival))
        else:
            self._counters.add("rate_waits", 1, self._listener)
            self._delays.after(wait_ms, partial(self._core_passed, arrival))

    def _core_passed(self, arrival: Arrival) -> None:
        self._pacing.stopped -= 1
        self._pacing.look()
        self._record(arrival)

    def _core_refused(self, arrival: Arrival) -> None:
        self._pacing.stopped -= 1
        self._pacing.look()
        rule = self._view.core_rate_of(arrival.ip)
        self._admission.refuse(arrival, "core_rate", rule.name, rule.rate or 0, self._tokens.version)

    # The listener's and the broker's rate

    def _record(self, arrival: Arrival) -> None:
        if not self._rates.gated:
            self._take_slot(arrival)
            return
        arrival.rate_then = self._listener_recorded
        wait_ms = self._rates.record(self._key, arrival, now_ms=self._now_ms())
        if wait_ms == 0:
            self._take_slot(arrival)
            return
        self._pacing.waiting += 1
        self._pacing.look()
        if wait_ms is not None:
            self._delay(arrival, wait_ms)

    def _listener_recorded(self, arrival: Arrival, wait_ms: int) -> None:
        if wait_ms == UNAVAILABLE:
            self._pacing.waiting -= 1
            self._pacing.look()
            self._refuse_unavailable(arrival, _LISTENER_RATE)
        elif wait_ms:
            self._delay(arrival, wait_ms)
        else:
            self._listener_passed(arrival)

    def _delay(self, arrival: Arrival, wait_ms: int) -> None:
        self._counters.accept_delayed(self._listener, wait_ms)
        self._delays.after(wait_ms, partial(self._listener_passed, arrival))

    def _listener_passed(self, arrival: Arrival) -> None:
        self._pacing.waiting -= 1
        self._pacing.look()
        self._take_slot(arrival)

    # A slot, the address's rate, the address's token

    def _take_slot(self, arrival: Arrival) -> None:
        if not (self._rates.limits_ips and self._rates.has_quota(arrival.ip)):
            self._admission.take_all(arrival)
            return
        arrival.then = self._slot_taken
        decision = self._tokens.take(arrival.pools[arrival.first : 2], arrival)
        if decision is None:
            self._admission.wait(arrival)
        else:
            self._slot_taken(arrival, decision)

    def _slot_taken(self, arrival: Arrival, decision: Refused | Admitted) -> None:
        if isinstance(decision, Refused):
            self._admission.refuse_for(arrival, decision)
            return
        arrival.rate_then = self._ip_recorded
        wait_ms = self._rates.record(arrival.pools[2], arrival, now_ms=self._now_ms())
        if wait_ms is not None:
            self._ip_recorded(arrival, wait_ms)

    def _ip_recorded(self, arrival: Arrival, wait_ms: int) -> None:
        if wait_ms == 0:
            arrival.then = self._ip_taken
            decision = self._tokens.take(arrival.pools[2:], arrival)
            if decision is None:
                self._admission.wait(arrival)
            else:
                self._ip_taken(arrival, decision)
            return
        self._tokens.release(arrival.pools[arrival.first : 2])
        if wait_ms == UNAVAILABLE:
            self._refuse_unavailable(arrival, _IP_RATE)
            return
        self._rates.count(self._listener, -1, now_ms=self._now_ms())
        self._counters.ip_delayed(self._listener, wait_ms)
        self._held.hold(Holding(self, arrival), wait_ms)

    def _ip_taken(self, arrival: Arrival, decision: Refused | Admitted) -> None:
        if isinstance(decision, Refused):
            self._tokens.release(arrival.pools[arrival.first : 2])
            self._admission.refuse_for(arrival, decision)
        else:
            self._admission.admit(arrival)

    def _rechecked(self, arrival: Arrival, wait_ms: int) -> None:
        """KIP-612's text: within its rate again, a held connection goes on, recorded but not delayed."""
        if wait_ms == 0:
            self._rates.count(self._listener, 1, now_ms=self._now_ms())
            self._admission.take_all(arrival)
        elif wait_ms == UNAVAILABLE:
            self._refuse_unavailable(arrival, _IP_RATE)
        else:
            self._refuse_for_ip(arrival)

    # Refusals

    def _refuse_for_ip(self, arrival: Arrival) -> None:
        quota = self._view.quota_for_ip(arrival.ip)
        self._admission.refuse(arrival, "ip_rate", _IP_RATE, quota or 0, self._tokens.version)

    def _refuse_unavailable(self, arrival: Arrival, limit: str) -> None:
        self._admission.refuse(arrival, "shard_unavailable", limit, 0, self._tokens.version)

    def _now_ms(self) -> int:
        return self._poller.now_ns // 1_000_000


class Holding:
    """A held connection, and whose it is."""

    __slots__ = ("_arrival", "_rated")

    def __init__(self, rated: Rated, arrival: Arrival) -> None:
        self._rated = rated
        self._arrival = arrival

    def let_go(self, *, early: bool) -> None:
        self._rated.let_go(self._arrival, early=early)
