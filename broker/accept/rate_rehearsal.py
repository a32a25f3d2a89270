"""Creation rates that are observed instead of enforced: what each of them would have done to an admitted connection.

The order is that of an enforced rate (admission_steps.py): the core's, the cluster's, the listener's and the broker's, the
address's. A connection that one of them would have refused asks no later one, and is not in the observed world
(observed_world.py). Nothing waits for an answer, so the questions of many connections go together
(shards/rates/observed_rates.py).

answers_of_rates_that_are_gone_count_nothing  An answer for a rate that this shard no longer observes counts as neither a wait nor
    a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import NamedTuple

from broker.accept.core_rates import CoreRates
from broker.accept.observed_outcomes import ObservedOutcomes
from broker.metrics.outcomes import Refusal
from broker.runtime.shard_context import ShardContext
from shards.config.image import ClusterImage
from shards.limits.caps import CLUSTER, RateRule
from shards.limits.observed_windows import ADDRESS, LISTENER, WITHIN, RateAnswer
from shards.rates.observed_rates import Asker, Beyond, ObservedRates

WAIT = "rate_wait"
"""The reason of a connection that a rate would have delayed."""


class Arrival(NamedTuple):
    """A connection that was admitted, at `at_ns`. In the observed world `pools` are its observed ones, and `asked` those of which
    it asks for a token; outside of it, none."""

    listener: str
    number: int
    ip: str
    port: int
    at_ns: int
    pools: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()

    @property
    def user(self) -> None:
        """None: an arrival is not a login (observed_outcomes.py)."""


ArrivalFields = tuple[str, int, str, int, int, tuple[str, ...], tuple[str, ...]]
"""The fields of an Arrival. On the short way a connection stays a plain tuple; an Arrival is made only where one is needed."""


class _ObservedCoreRates:
    """A CoreRateImage of the observed rates."""

    def __init__(self, image: ClusterImage) -> None:
        self.get = image.get
        self.core_rate_of = image.observed_core_rate_of


class RateRehearsal:
    """The observed rates of one shard. `is_on`: whether any observed rate of arriving connections (core, cluster, listener,
    broker or address) differs from the enforced one. `decided` is called with each arrival in the observed world, and why a rate
    would have refused it, or None."""

    def __init__(
        self,
        context: ShardContext,
        rates: ObservedRates,
        outcomes: ObservedOutcomes,
        decided: Callable[[Arrival, Refusal | None], None],
    ) -> None:
        self.is_on = False
        self._has_core_rates = self._has_ip_rates = self._asks_after_cluster = False
        self._image = context.image
        self._poller = context.poller
        self._mistaken = context.log.call_mistaken
        self._rates = rates
        self._outcomes = outcomes
        self._decided = decided
        self._core = CoreRates(_ObservedCoreRates(context.image))
        self._ask_cluster = rates.asking(
            CLUSTER, Asker(lambda fields: CLUSTER, self._cluster_answered, self._at_listener)
        )
        self._ask_listener = rates.asking(LISTENER, Asker(itemgetter(0), self._listeners_answered, self._at_address))
        self._ask_address = rates.asking(ADDRESS, Asker(itemgetter(2), self._addresses_answered, self._within))

    def follow(self) -> None:
        """The image has another version."""
        self._rates.follow()
        self._core.read_settings()
        self._has_core_rates, self._has_ip_rates = self._image.observes_core_rates, self._image.observes_ip_rates
        self._asks_after_cluster = self._has_ip_rates or self._image.observes_listener_rates
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

    def first_question(self, listener: str) -> Callable[[ArrivalFields], object]:
        """The function that asks each observed rate that applies to a connection that was admitted there, in this version."""
        if self._has_core_rates:
            return self._at_core
        asks_cluster = self._image.observed_rate_of(CLUSTER).rate is not None
        return self._ask_cluster[CLUSTER] if asks_cluster else self._ask_listener[listener]

    def _at_core(self, fields: ArrivalFields) -> None:
        arrival = Arrival._make(fields)
        core = self._image.observed_core_rate_of(arrival.ip)
        wait_ms = self._core.take(arrival.ip, now_ms=self._poller.now_ns // 1_000_000)
        if wait_ms is None:
            self._end(arrival, Refusal("core_rate", core.name, core.rate or 0, self._image.version))
            return
        if wait_ms:
            self._would_wait(arrival, core)
        self._ask_cluster[CLUSTER](arrival)

    def _at_listener(self, fields: ArrivalFields) -> None:
        self._ask_listener[fields[0]](fields)

    def _at_address(self, fields: ArrivalFields) -> None:
        self._ask_address[fields[2]](fields)

    def _within(self, fields: ArrivalFields) -> None:
        """No further rate is to be asked, and none would have refused the connection."""
        if fields[5]:
            self._decided(Arrival._make(fields), None)

    def _end(self, arrival: Arrival, refusal: Refusal | None) -> None:
        if arrival.pools:
            self._decided(arrival, refusal)
        elif refusal is not None:
            self._outcomes.turned_away(arrival, refusal)

    def _would_wait(self, arrival: Arrival, rule: RateRule) -> None:
        self._outcomes.count(arrival, WAIT, rule.name, rule.rate or 0)

    # Answers of homes

    def _cluster_answered(self, arrivals: Sequence[ArrivalFields], beyond: Beyond) -> None:
        if beyond or self._asks_after_cluster or self._image.has_observed_world:
            self._each(arrivals, beyond, self._from_cluster)

    def _listeners_answered(self, arrivals: Sequence[ArrivalFields], beyond: Beyond) -> None:
        if beyond or self._has_ip_rates or self._image.has_observed_world:
            self._each(arrivals, beyond, self._from_listener)

    def _addresses_answered(self, arrivals: Sequence[ArrivalFields], beyond: Beyond) -> None:
        if beyond or self._image.has_observed_world:
            self._each(arrivals, beyond, self._from_address)

    def _each(
        self, arrivals: Sequence[ArrivalFields], beyond: Beyond, go_on: Callable[[Arrival, RateAnswer], None]
    ) -> None:
        for place, fields in enumerate(arrivals):
            try:
                go_on(Arrival._make(fields), beyond.get(place, WITHIN))
            except Exception as mistake:  # the others are to hear their answers
                self._mistaken(mistake)

    def _from_cluster(self, arrival: Arrival, answer: RateAnswer) -> None:
        refusal = self.refusal("cluster_rate", CLUSTER, answer)
        if refusal is None:
            self._at_listener(arrival)
        else:
            self._end(arrival, refusal)

    def _from_listener(self, arrival: Arrival, answer: RateAnswer) -> None:
        if answer is not WITHIN:
            is_lost = answer.own_ms < 0
            rule = self._image.observed_rate_of(f"listener:{arrival.listener}")
            is_of_broker = rule.rate is None if is_lost else answer.own_ms < answer.broker_ms
            if is_of_broker:
                rule = self._image.observed_rate_of("broker")
            if rule.rate is not None:
                if is_lost:
                    self._end(arrival, self._unavailable(rule))
                    return
                self._would_wait(arrival, rule)
        self._at_address(arrival)

    def _from_address(self, arrival: Arrival, answer: RateAnswer) -> None:
        refusal = self.refusal("ip_rate", f"ip:{arrival.ip}", answer)
        if refusal is not None and answer.own_ms > 0:
            self._rates.take_back(arrival.listener)
        self._end(arrival, refusal)

    def refusal(self, reason: str, pool: str, answer: RateAnswer) -> Refusal | None:
        """The refusal by the rate of an address, a user or the cluster, or None."""
        rule = self._image.observed_rate_of(pool)
        if answer is WITHIN or rule.rate is None:
            return None
        return (
            self._unavailable(rule) if answer.own_ms < 0 else Refusal(reason, rule.name, rule.rate, self._image.version)
        )

    def _unavailable(self, rule: RateRule) -> Refusal:
        return Refusal("shard_unavailable", rule.name, rule.rate or 0, self._image.version)
