"""Windows of creation rates that are observed instead of enforced: Kafka's arithmetic over arrivals that nothing holds up.

delayed_arrivals_stay_recorded  An arrival that a broker's or a listener's rate would have delayed stays recorded, as in Kafka,
    where it goes on after its delay. Nothing is delayed here, so each arrival is recorded when it comes.
refused_arrivals_are_taken_back  An arrival that the rate of its address would have refused is taken back, as in Kafka; so is a
    login that the rate of its user would have refused.

Addresses and users are kept as long as they count (address_rates.py, windows_are_forgotten).
Times are ms, quotas connections a second, None: no quota. The same windows run at their home and in the audit.
Source: SocketServer.ConnectionQuotas (KIP-612).
"""

from typing import NamedTuple

from shards.limits.address_rates import AddressRates
from shards.limits.rate import Rate, Window
from shards.limits.rate_replay import RateQuotas


class RateAnswer(NamedTuple):
    """The delays that an arrival would have had: by the rate of the listener or the address, and by the broker's."""

    own_ms: int
    broker_ms: int = 0

    @property
    def ms(self) -> int:
        """The longer one counts."""
        return max(self)


class ObservedWindows:
    """The windows of one home."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self._broker = Rate(window)
        self._listeners: dict[str, Rate] = {}
        self._ips = AddressRates(window)
        self._users = AddressRates(window)

    def arrive(self, listener: str, quotas: RateQuotas, *, now_ms: int) -> RateAnswer:
        """One connection at a listener; its delays, each at most one window."""
        size_ms = self.window.size_ms
        broker_ms = 0 if quotas.exempt else self._broker.charge(1, quotas.broker, now_ms=now_ms, max_ms=size_ms)
        return RateAnswer(self._listener(listener).charge(1, quotas.own, now_ms=now_ms, max_ms=size_ms), broker_ms)

    def take_back(self, listener: str, quotas: RateQuotas, arrivals: int = 1, *, now_ms: int) -> None:
        """The connections would have been refused by the rates of their addresses."""
        self._listener(listener).record(-arrivals, now_ms=now_ms)
        if not quotas.exempt:
            self._broker.record(-arrivals, now_ms=now_ms)

    def arrive_from(self, ip: str, quota: float | None, *, now_ms: int) -> int:
        """One connection of an address: 0, or how long it would have been held before it was refused."""
        return self._arrive_of(self._ips, ip, quota, now_ms)

    def log_in(self, user: str, quota: float | None, *, now_ms: int) -> int:
        """One connection of a user that logs in: 0, or how long it is until one would not have been refused."""
        return self._arrive_of(self._users, user, quota, now_ms)

    def _arrive_of(self, rates: AddressRates, name: str, quota: float | None, now_ms: int) -> int:
        rate = rates.take(name, now_ms=now_ms)
        delay_ms = rate.charge(1, quota, now_ms=now_ms, max_ms=self.window.size_ms)
        if delay_ms:
            rate.record(-1, now_ms=now_ms)
        return delay_ms

    def __len__(self) -> int:
        """Addresses and users that are remembered."""
        return len(self._ips) + len(self._users)

    def _listener(self, name: str) -> Rate:
        found = self._listeners.get(name)
        if found is None:
            found = self._listeners[name] = Rate(self.window)
        return found
