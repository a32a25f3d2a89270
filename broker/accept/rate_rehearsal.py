"""Creation rates that are observed instead of enforced: what each of them would have done to an admitted connection.

The order is that of an enforced rate (steps.py): the core's, the listener's and the broker's, the address's. A connection that
one of them would have refused asks no later one, and is not in the observed world (rehearsal.py).

answers_of_rates_that_are_gone_count_nothing  An answer for a rate that this shard no longer observes counts as neither a wait nor
    a refusal.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from broker.accept.core_rates import CoreRates
from broker.metrics.outcomes import Refusal
from shards.config.image import ClusterImage
from shards.limits.caps import RateRule
from shards.limits.observed_windows import RateAnswer
from shards.loop.deferred import MaybeDeferred, then
from shards.rates.observed_rates import ObservedRates

WAIT = "rate_wait"
"""The reason of a connection that a rate would have delayed."""


class RateVerdict(NamedTuple):
    """`waits`: rates that would have delayed the connection; `refusal`: the rate that would have refused it, or the home that did
    not answer; None: it would have been let in."""

    waits: tuple[RateRule, ...]
    refusal: Refusal | None


class _ObservedCoreRates:
    """A CoreRateImage of the observed rates."""

    def __init__(self, image: ClusterImage) -> None:
        self.get = image.get
        self.core_rate_of = image.observed_core_rate_of


class RateRehearsal:
    """The observed rates of one shard. `is_on`: whether any observed rate of arriving connections (core, listener, broker or
    address) differs from the enforced one."""

    def __init__(self, image: ClusterImage, rates: ObservedRates) -> None:
        self.is_on = False
        self._has_core_rates = False
        self._image = image
        self._rates = rates
        self._core = CoreRates(_ObservedCoreRates(image))

    def follow(self) -> None:
        """The image has another version."""
        self._rates.follow()
        self._has_core_rates = self._image.observes_core_rates
        if self._image.observes_rates is not self.is_on:
            self.is_on = self._image.observes_rates
            self._core.reset()

    def reset(self) -> None:
        """Back to the start of the cluster."""
        self._core.reset()
        if self._rates.is_on:
            self._rates.reset()

    def tick(self, *, now_ms: int) -> None:
        """Called a few times a second."""
        self._core.tick(now_ms=now_ms)

    def ask(self, listener: str, ip: str, *, now_ms: int) -> MaybeDeferred[RateVerdict]:
        """Asks each observed rate that applies to a connection that was admitted."""
        waits: tuple[RateRule, ...] = ()
        if self._has_core_rates:
            core = self._image.observed_core_rate_of(ip)
            wait_ms = self._core.take(ip, now_ms=now_ms)
            if wait_ms is None:
                return RateVerdict((), Refusal("core_rate", core.name, core.rate or 0, self._image.version))
            waits = (core,) if wait_ms else ()
        of_listener = self._rates.at_listener(listener)
        return then(of_listener, partial(self._at_listener, listener, ip, waits))

    @property
    def is_of_listeners(self) -> bool:
        """True if no rates but those of the broker and its listeners are observed: then `ask_later` is enough."""
        return not (self._has_core_rates or self._image.observes_ip_rates)

    def ask_later(self, listener: str, would_wait: Callable[[RateVerdict], None]) -> None:
        """As `ask` where it `is_of_listeners`, at a small part of its cost: `would_wait` is called for a connection that would
        not have been let in at once, and nothing else is."""
        self._rates.at_listener_later(listener, partial(self._come_later, listener, would_wait))

    def _come_later(self, listener: str, would_wait: Callable[[RateVerdict], None], answer: RateAnswer) -> None:
        if answer.own_ms or answer.broker_ms:
            would_wait(self._of_listener(listener, (), answer))

    def of_user(self, user: str) -> MaybeDeferred[Refusal | None]:
        """Asks the observed rate of a user for a connection that has logged in: why it would have been refused, or None."""
        return then(self._rates.of_user(user), partial(self._of_user, user))

    def _of_user(self, user: str, answer: RateAnswer) -> Refusal | None:
        return self._refusal("user_rate", self._image.observed_rate_of(f"user:{user}"), answer)

    def _at_listener(
        self, listener: str, ip: str, waits: tuple[RateRule, ...], answer: RateAnswer
    ) -> MaybeDeferred[RateVerdict]:
        verdict = self._of_listener(listener, waits, answer)
        if verdict.refusal is not None:
            return verdict
        return then(self._rates.from_address(ip), partial(self._from_address, listener, ip, verdict.waits))

    def _of_listener(self, listener: str, waits: tuple[RateRule, ...], answer: RateAnswer) -> RateVerdict:
        if answer.own_ms < 0:
            return RateVerdict(waits, self._unavailable(self._image.observed_rate_of(f"listener:{listener}")))
        if answer.own_ms or answer.broker_ms:
            pool = f"listener:{listener}" if answer.own_ms >= answer.broker_ms else "broker"
            rule = self._image.observed_rate_of(pool)
            waits = (*waits, rule) if rule.rate is not None else waits
        return RateVerdict(waits, None)

    def _from_address(self, listener: str, ip: str, waits: tuple[RateRule, ...], answer: RateAnswer) -> RateVerdict:
        refusal = self._refusal("ip_rate", self._image.observed_rate_of(f"ip:{ip}"), answer)
        if refusal is not None and answer.own_ms > 0:
            self._rates.take_back(listener)
        return RateVerdict(waits, refusal)

    def _refusal(self, reason: str, rule: RateRule, answer: RateAnswer) -> Refusal | None:
        """The refusal by the rate of an address or a user, or None."""
        if not answer.own_ms or rule.rate is None:
            return None
        return (
            self._unavailable(rule) if answer.own_ms < 0 else Refusal(reason, rule.name, rule.rate, self._image.version)
        )

    def _unavailable(self, rule: RateRule) -> Refusal:
        return Refusal("shard_unavailable", rule.name, rule.rate or 0, self._image.version)
