"""The reference for the limits on a user's connections: what becomes of a login, on a connection that was admitted before.

The user's rate is asked first, then the user's cap. A login beyond the rate is taken back from the rate; a login that the cap
refuses stays recorded in it. Open connections are counted even while no cap is set; logins are recorded only while a rate is set.

Source: broker/serve/user_admission.py; the limits are Turnstile's own. Time is whole milliseconds and never goes back.
"""

from collections import Counter

from shards.limits.connection_limits import ConnectionLimits
from shards.limits.rate import Window
from shards.limits.rates_by_key import RatesByKey


class UserQuotas:
    """The open connections and the rates of one broker's users."""

    def __init__(self, window: Window) -> None:
        self._limits = ConnectionLimits()
        self._rates = RatesByKey(window)
        self._open: Counter[str] = Counter()

    def configure(self, limits: ConnectionLimits) -> None:
        """Applies these limits from now on."""
        self._limits = limits

    def login(self, user: str, *, now_ms: int) -> str | None:
        """Counts a connection of the user, and returns None; or returns the reason of its refusal: `user_rate` or `user_cap`."""
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
