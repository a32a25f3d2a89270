"""Windows of creation rates that are observed instead of enforced: Kafka's arithmetic over arrivals that nothing holds up.

delayed_arrivals_stay_recorded  An arrival that a broker's or a listener's rate would have delayed stays recorded, as in Kafka,
    where it goes on after its delay. Nothing is delayed here, so each arrival is recorded when it comes.
refused_arrivals_are_taken_back  An arrival that the rate of its address would have refused is taken back, as in Kafka; so is a
    login that the rate of its user would have refused.

Addresses and users are kept as long as they count (rates_by_key.py, windows_are_forgotten).
Times are ms, quotas connections a second, None: no quota. The same windows run at their home and in the audit.
Source: SocketServer.ConnectionQuotas (KIP-612).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from shards.limits.rate import PartlyAdmitted, Rate, Window
from shards.limits.rate_replay import RateQuotas
from shards.limits.rates_by_key import RatesByKey

LISTENER, BACK, ADDRESS, USER = "listener", "back", "ip", "user"
"""The kinds of questions to a home: an arrival at a listener, that it is taken back, one from an address, a login of a user."""


class RateAnswer(NamedTuple):
    """The delays that an arrival would have had: by the rate of the listener or the address, and by the broker's."""

    own_ms: int
    broker_ms: int = 0

    @property
    def ms(self) -> int:
        """The longer one counts."""
        return max(self)


WITHIN: Final = RateAnswer(0)


class ObservedWindows:
    """The windows of one home."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self._broker = Rate(window)
        self._listeners: dict[str, Rate] = {}
        self._ips = RatesByKey(window)
        self._users = RatesByKey(window)

    def arrive(
        self, listener: str, quotas: RateQuotas, arrivals: int = 1, *, now_ms: int
    ) -> list[tuple[RateAnswer, int]]:
        """Connections at a listener, one after the other: the answers in turn, with delays of one window at most, and how many
        got each."""
        together = self._charge(listener, quotas, arrivals, now_ms)
        if together is WITHIN or arrivals == 1:
            return [(together, arrivals)]  # arrivals that are within a rate together are so one by one
        self.take_back(listener, quotas, arrivals, now_ms=now_ms)
        each = groupby(self._charge(listener, quotas, 1, now_ms) for _ in range(arrivals))
        return [(answer, sum(1 for _ in alike)) for answer, alike in each]

    def _charge(self, listener: str, quotas: RateQuotas, arrivals: int, now_ms: int) -> RateAnswer:
        size_ms = self.window.size_ms
        broker_ms = 0 if quotas.exempt else self._broker.charge(arrivals, quotas.broker, now_ms=now_ms, max_ms=size_ms)
        own_ms = self._listener(listener).charge(arrivals, quotas.own, now_ms=now_ms, max_ms=size_ms)
        return RateAnswer(own_ms, broker_ms) if own_ms or broker_ms else WITHIN

    def take_back(self, listener: str, quotas: RateQuotas, arrivals: int = 1, *, now_ms: int) -> None:
        """The connections would have been refused by the rates of their addresses."""
        self._listener(listener).record(-arrivals, now_ms=now_ms)
        if not quotas.exempt:
            self._broker.record(-arrivals, now_ms=now_ms)

    def arrive_from(
        self, ips: Sequence[str], quotas: Mapping[str, float | None], *, now_ms: int
    ) -> list[tuple[int, int]]:
        """Connections of addresses, with the quota of each, one after the other: the places of those that would have been held
        before they were refused, and for how long."""
        return self._arrive_of(self._ips, ips, quotas, now_ms)

    def log_in(self, users: Sequence[str], quotas: Mapping[str, float | None], *, now_ms: int) -> list[tuple[int, int]]:
        """Connections of users that log in: the places of those that would have been refused, and how long it is until one would
        not have been."""
        return self._arrive_of(self._users, users, quotas, now_ms)

    def _arrive_of(
        self, rates: RatesByKey, names: Sequence[str], quotas: Mapping[str, float | None], now_ms: int
    ) -> list[tuple[int, int]]:
        """The order among different names does not matter: they share no window."""
        arrivals, size_ms = Counter(names), self.window.size_ms
        limited: dict[str, PartlyAdmitted] = {}
        for (name, count), rate in zip(arrivals.items(), rates.take_each(arrivals, now_ms=now_ms), strict=True):
            admitted = rate.admit(count, quotas[name], now_ms=now_ms, max_ms=size_ms)
            if admitted is not None:
                limited[name] = admitted
        if not limited:
            return []
        beyond = []
        for place, name in enumerate(names):
            if name in limited:
                within, delay_ms = limited[name]
                if within:
                    limited[name] = PartlyAdmitted(within - 1, delay_ms)
                else:
                    beyond.append((place, delay_ms))
        return beyond

    def __len__(self) -> int:
        """Addresses and users that are remembered."""
        return len(self._ips) + len(self._users)

    def _listener(self, name: str) -> Rate:
        found = self._listeners.get(name)
        if found is None:
            found = self._listeners[name] = Rate(self.window)
        return found
