"""Connection rates (KIP-612) done again from a list of the units that were recorded: which of them no broker would have let in?

The shard that decided wrote down every change of its windows, in order: units it recorded, units it took back, and that it
started anew. Fed with these, the windows here go through the same states, by Kafka's arithmetic (rate.py), and

  - a unit of an address is *beyond* when its rate is over the quota with it (Kafka takes it back and closes);
  - a unit of a listener is *beyond* when the delay that an earlier one of that listener caused has not passed;
  - a violation that the home wrote down is *unfounded* when one unit more would have been within the quota.

Times are whole milliseconds that never go back; quotas are units per second, None: no quota.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from shards.limits.caps import OF_CLUSTER
from shards.limits.rate import Rate, Window


class RateQuotas(NamedTuple):
    """Units a second that a pool may have: its own quota, and for a listener its broker's."""

    own: float | None
    broker: float | None = None
    exempt: bool = False  # the broker's rate does not count this listener


class RateReplay:
    """All windows of one home, from the `detail` of its `grant` and `reclaim` events about `rate:` pools
    (docs/internals/journal.md).

    `unfounded`: how many of the violations so far were none.
    """

    def __init__(self, window: Window) -> None:
        self.unfounded = 0
        self._begin(window)

    def event(self, detail: Mapping[str, Any], quotas: Callable[[str], RateQuotas], window: Window) -> int:
        """The next event, and what is in force then: how many of its units are beyond."""
        key = detail["pool"].removeprefix("rate:")
        if "remembered" in detail:
            if detail["started"]:
                self._start(key, window)
            for at_ms, each, units in detail["remembered"]:
                for rate in self._rates_of(each, quotas(each)):
                    rate.record(units, now_ms=at_ms)
            return 0
        units, at_ms, limits = detail["tokens"], detail["at_ms"], quotas(key)
        rates = self._rates_of(key, limits)
        if detail.get("charged", True) and "from" not in detail:
            if key.startswith("listener:"):
                return self._charge_listener(key, rates, units, limits, at_ms)
            return self._charge_address(rates[0], units, limits.own, at_ms, is_violated=detail.get("violated", False))
        for rate in rates:
            if "from" in detail:
                rate.undo(units, at_ms=at_ms)
            else:
                rate.record(units, now_ms=at_ms)
        return 0

    def _begin(self, window: Window) -> None:
        self._window = window
        self._rates: dict[str, Rate] = {}  # by key; the broker's is "listener:", which no listener is called
        self._blocked_until_ms: dict[str, int] = {}

    def _start(self, what: str, window: Window) -> None:
        """Empties the windows whose key begins with `what`. Each window of the cluster is emptied only if `what` is its key."""
        others = {
            key: rate
            for key, rate in self._rates.items()
            if not key.startswith(what) or (key in OF_CLUSTER and key != what)
        }
        self._begin(window)
        self._rates.update(others)

    def _rates_of(self, key: str, quotas: RateQuotas) -> list[Rate]:
        """The rates in which a unit of a pool counts: its own, and for a listener that is not exempt its broker's."""
        keys = [key, "listener:"] if key.startswith("listener:") and not quotas.exempt else [key]
        for each in keys:
            if each not in self._rates:
                self._rates[each] = Rate(self._window)
        return [self._rates[each] for each in keys]

    def _charge_address(
        self, rate: Rate, units: int, quota_per_s: float | None, at_ms: int, *, is_violated: bool
    ) -> int:
        size_ms = self._window.size_ms
        beyond = sum(rate.charge(1, quota_per_s, now_ms=at_ms, max_ms=size_ms) > 0 for _ in range(units))
        if is_violated:  # one more unit was recorded and taken back, which may have begun a sample
            self.unfounded += rate.charge(1, quota_per_s, now_ms=at_ms, max_ms=size_ms) == 0
            rate.record(-1, now_ms=at_ms)
        return beyond

    def _charge_listener(self, key: str, rates: list[Rate], units: int, quotas: RateQuotas, at_ms: int) -> int:
        """One after the other."""
        beyond, size_ms = 0, self._window.size_ms
        for _ in range(units):
            beyond += at_ms < self._blocked_until_ms.get(key, 0)
            delay_ms = max(
                rate.charge(1, quota, now_ms=at_ms, max_ms=size_ms)
                for rate, quota in zip(rates, (quotas.own, quotas.broker), strict=False)
            )
            if delay_ms:
                self._blocked_until_ms[key] = at_ms + delay_ms
        return beyond
