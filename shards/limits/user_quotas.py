"""The reference: the limits of users' connections, asked when a connection has been admitted and its client logs in.

They are asked in the order of broker/serve/user_admission.py, and count as there: a login beyond its user's rate is taken back from
it, one that the cap refuses stays recorded; open connections count while no cap is set, the rate from when it is set.

Source: that module; the limits are Turnstile's own. Time is whole milliseconds and never goes back.
"""

from collections import Counter

from shards.limits.address_rates import AddressRates
from shards.limits.connection_limits import ConnectionLimits
from shards.limits.rate import Window


class UserQuotas:
    """The users of one broker."""

    def __init__(self, window: Window) -> None:
        self._limits = ConnectionLimits()
        self._rates = AddressRates(window)
        self._open: Counter[str] = Counter()

    def configure(self, limits: ConnectionLimits) -> None:
        """Other limits from now on."""
        self._limits = limits

    def login(self, user: str, *, now_ms: int) -> str | None:
        """Counts a connection of the user; or why it is refused, `user_rate` or `user_cap`, and not counted."""
        pool = f"user:{user}"
        per_s, cap = self._limits.rate_of(pool).rate, self._limits.rule_of(pool).cap
        if per_s is not None:
            rate = self._rates.take(user, now_ms=now_ms)
            if rate.charge(1, per_s, now_ms=now_ms, max_ms=self._rates.window.size_ms):
                rate.record(-1, now_ms=now_ms)
                return "user_rate"
        if cap is not None and self._open[user] >= cap:
            return "user_cap"
        self._open[user] += 1
        return None

    def close(self, user: str) -> None:
        """A connection that was counted has ended."""
        self._open[user] -= 1
