"""Limits of connections that are observed instead of enforced (shadow mode, dry run): decided as enforced ones, never acted on.

While a cap is observed there is an observed world beside the real one: it has each open connection that the observed caps
would have admitted, too. Its pools are those of the real world under keys of their own (`observed/ip:10.0.0.1`), with the
same homes, messages and proofs. The decision about a connection is asked for when the real one has admitted it, and changes
nothing for its client. A connection that would be refused holds none of these tokens: it is not in the observed world.

real_decision_first  A connection is admitted, and its descriptor handed over, whatever becomes of it in the observed world.
    While nothing is observed, no connection calls this module.
rates_before_caps  Observed rates are asked first (rate_rehearsal.py). A connection that one would have refused asks for no token;
    one that a rate would only have delayed is counted as that, and goes on at once.
each_wait_ends_in_the_journal  A decision that is not taken at once is journaled when it is taken, when observing ends, or when
    the process ends in order. So an admitted connection without an `observed` event was in the observed world from its admission.
members_hold_each_pool  An open connection holds a token of each of its observed pools, or of none: then it was refused there,
    or its decision is under way.
users_last  A connection that logs in asks the observed limits of its user then (user_rehearsal.py).
all_begin_as_members  When a first cap is observed, every open connection is in the observed world, also beyond its caps;
    when none is observed any more, all of that world's tokens have been given back.
the_observed_world_has_no_backlog  Where a rule lets connections wait (KIP-402), one that would wait is counted as that, and does
    not enter the observed world later, when others close. An eviction for the inter-broker listener is not rehearsed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from broker.accept.observed_outcomes import CLOSED, ENDED, ObservedOutcomes, refused_or_would_wait
from broker.accept.observed_tokens import ObservedTokens
from broker.accept.rate_rehearsal import Arrival, RateRehearsal
from broker.accept.user_rehearsal import TokenHolder, UserRehearsal, leave
from broker.metrics.outcomes import Refusal
from broker.runtime.shard_context import ShardContext
from shards.limits.caps import OBSERVED, CapRule
from shards.rates.observed_rates import ObservedRates
from shards.tokens.tokens import ADMITTED, Admitted, Refused

OpenT = TypeVar("OpenT", bound=Callable[..., object])
"""An Open, or an OpenAnnounced: takes over an admitted descriptor."""
_BROKER = f"{OBSERVED}broker"


class ObservedWorld:
    """The observed world of one shard. `connections`: those that are open, by number. `is_on`: there are observed pools
    (shards/limits/observed_limits.py)."""

    def __init__(self, context: ShardContext, connections: Mapping[int, TokenHolder], rates: ObservedRates) -> None:
        self.is_on = False
        self._outcomes = ObservedOutcomes(context)
        self.counts = self._outcomes.counts
        self._observed_tokens = ObservedTokens(context.tokens, context.cluster)
        self.rates = RateRehearsal(context, rates, self._outcomes, self._rated)
        self.users = UserRehearsal(context, connections, rates, self.rates, self._outcomes, world=self._observed_tokens)
        self._image = context.image
        self._tokens = context.tokens
        self._cluster = context.cluster
        self._poller = context.poller
        self._connections = connections
        self._observed: dict[str, str] = {}
        self._quotas: Mapping[str | None, float] = {}
        self._unrated: dict[int, Arrival] = {}  # in the observed world, by number; rates have not answered
        self._under_way: set[ObservedAttempt] = set()

    def follow(self) -> None:
        """The image has another version; the tokens have not applied it yet."""
        quotas = self._image.observed_ip_quotas
        if self._image.observed != self._observed or quotas != self._quotas:
            self._observed, self._quotas = dict(self._image.observed), quotas
            self.counts.clear()
        self.rates.follow()
        is_on = self._image.has_observed_world
        self.users.follow(has_world=is_on)
        was_on, self.is_on = self.is_on, is_on
        if is_on and not was_on:
            self._begin()
        self._cluster.follow_observed(self._members)
        if was_on and not is_on:
            self._end()

    def reset(self) -> None:
        """Back to the start of the cluster: nothing counted, and the windows of observed rates are empty."""
        self.counts.clear()
        self.rates.reset()

    def close(self) -> None:
        """The process ends, and no connection is open any more (each_wait_ends_in_the_journal)."""
        if self.is_on:
            self._end()

    def opener(self, listener: str, slot_pools: tuple[str, ...], open_connection: OpenT, *, forced: bool) -> OpenT:
        """The function that a listener gives its admitted descriptors to: `open_connection` itself while nothing is observed.

        `slot_pools`: the pools of its connections without that of the address, which comes last. `forced`: they are in the broker's
        pool in any case (KIP-402). `via`: what comes with an announced client.
        """
        if not (self.is_on or self.rates.is_on):
            return open_connection
        slots = tuple(OBSERVED + pool for pool in slot_pools) if self.is_on else ()
        asked_slots = tuple(pool for pool in slots if pool != _BROKER) if forced else slots
        if self.rates.is_on:
            return cast(OpenT, self._open_rated(listener, slots, asked_slots, open_connection))
        return cast(OpenT, self._open_capped(listener, slots, asked_slots, open_connection))

    def _open_capped(
        self, listener: str, slots: tuple[str, ...], asked_slots: tuple[str, ...], open_connection: OpenT
    ) -> Callable[..., None]:
        tokens, world, poller, is_forced = self._tokens, self._observed_tokens, self._poller, asked_slots != slots
        take_at_hand = world.take_at_hand

        def open_observed(fd: int, number: int, ip: str, port: int, pools: tuple[str, ...], *via: object) -> None:
            of_ip = OBSERVED + pools[-1]
            asked = (*asked_slots, of_ip)
            taken = take_at_hand(asked)
            if taken <= len(asked):
                attempt = ObservedAttempt(
                    self, Arrival(listener, number, ip, port, poller.now_ns, (*slots, of_ip), asked)
                )
                decision = world.take_rest(asked, taken, attempt)
                if decision is not ADMITTED:
                    open_connection(fd, number, ip, port, pools, *via)
                    if isinstance(decision, Refused):
                        self._outcomes.turned_away(attempt.of, refused_or_would_wait(decision))
                    else:
                        attempt.is_late = True
                        self._under_way.add(attempt)
                    return
            if is_forced:
                tokens.force(_BROKER)
            open_connection(fd, number, ip, port, (*pools, *slots, of_ip), *via)

        return open_observed

    def _open_rated(
        self, listener: str, slots: tuple[str, ...], asked_slots: tuple[str, ...], open_connection: OpenT
    ) -> Callable[..., None]:
        ask, unrated, poller = self.rates.first_question(listener), self._unrated, self._poller

        def open_rated(fd: int, number: int, ip: str, port: int, pools: tuple[str, ...], *via: object) -> None:
            if via:
                open_connection(fd, number, ip, port, pools, *via)
            else:  # the same, in half the time
                open_connection(fd, number, ip, port, pools)
            ask((listener, number, ip, port, poller.now_ns, (), ()))

        def open_in_the_world(fd: int, number: int, ip: str, port: int, pools: tuple[str, ...], *via: object) -> None:
            open_connection(fd, number, ip, port, pools, *via)
            of_ip = OBSERVED + pools[-1]
            arrival = Arrival(listener, number, ip, port, poller.now_ns, (*slots, of_ip), (*asked_slots, of_ip))
            unrated[number] = arrival
            ask(arrival)

        return open_in_the_world if slots else open_rated

    def _rated(self, arrival: Arrival, refusal: Refusal | None) -> None:
        """The observed rates have answered about a connection of the observed world; the caps come next (rates_before_caps)."""
        if self._unrated.pop(arrival.number, None) is None:
            return
        if refusal is not None:
            self._outcomes.turned_away(arrival, refusal)
            return
        attempt = ObservedAttempt(self, arrival)
        attempt.is_late = True
        decision = self._observed_tokens.take(arrival.asked, attempt)
        if decision is not None:
            self._settle(attempt, decision)
        else:
            self._under_way.add(attempt)

    def decided(self, attempt: ObservedAttempt, decision: Admitted | Refused) -> None:
        """Homes have answered."""
        answer = self._observed_tokens.answered(attempt.of.asked, attempt, decision)
        if answer is not None:
            self._settle(attempt, answer)

    def _settle(self, attempt: ObservedAttempt, decision: Admitted | Refused) -> None:
        """The attempt is decided. A connection that has closed meanwhile was in the observed world until now."""
        self._under_way.discard(attempt)
        of = attempt.of
        if isinstance(decision, Refused):
            self._outcomes.turned_away(of, refused_or_would_wait(decision))
            return
        if of.asked != of.pools:
            self._tokens.force(_BROKER)
        connection = self._connections.get(of.number)
        if connection is None:
            self._outcomes.note(of, CLOSED)
            self._observed_tokens.release(of.pools)
        else:
            connection.hold(connection.pools + of.pools)
            if attempt.is_late:
                self._outcomes.note(of)
            self.users.came_in(connection)

    def _members(self) -> int:
        """The connections that are in the observed world."""
        return sum(connection.pools[-1].startswith(OBSERVED) for connection in self._connections.values())

    def _begin(self) -> None:
        taken: Counter[str] = Counter()
        for connection in self._connections.values():
            observed = tuple(OBSERVED + pool for pool in connection.pools)
            connection.hold(connection.pools + observed)
            taken.update(observed)
        for pool, tokens in taken.items():
            self._tokens.force(pool, tokens)

    def _end(self) -> None:
        for arrival in self._unrated.values():
            self._outcomes.note(arrival, ENDED)
        self._unrated.clear()
        for attempt in self._under_way:
            self._observed_tokens.cancel(attempt)
            self._outcomes.note(attempt.of, ENDED)
        self._under_way.clear()
        self.users.end()
        for connection in self._connections.values():
            leave(connection, self._observed_tokens.release)


class ObservedAttempt:
    """A connection whose observed decision is asked for: the TokenWaiter of its observed pools.

    `of`: the connection. `is_late`: its decision did not come at once (each_wait_ends_in_the_journal).
    """

    __slots__ = ("_world", "is_late", "of")

    def __init__(self, world: ObservedWorld, of: Arrival) -> None:
        self._world = world
        self.of = of
        self.is_late = False

    def decided(self, decision: Admitted | Refused) -> None:
        """Called by the tokens when homes have answered."""
        self._world.decided(self, decision)

    def began_to_wait(self, pool: str, rule: CapRule) -> None:
        """Called by the tokens when the attempt comes to wait for a pool: nothing is to be stopped for it."""
