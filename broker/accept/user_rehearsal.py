"""Limits of a user's connections that are observed instead of enforced: what they would have done to those that have logged in.

after_the_login  A connection in the observed world (observed_world.py) is asked about when it holds the token of its user's
    pool; its login is answered whatever is decided here. Where its own decision is under way, that comes first.
rate_before_cap_there  As of the enforced ones (user_admission.py): a login beyond the observed rate is not recorded in it, and
    asks for no token; one that the observed cap refuses stays recorded.
turned_away_is_out  A connection that a limit of its user would have refused would be closed: it gives back all of its observed
    tokens.
rate_without_a_world  Where nothing else that refuses is observed there is no observed world: each login asks the rate of its user,
    and only what that would have refused is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple, Protocol

from broker.accept.observed_outcomes import CLOSED, ENDED, ObservedOutcomes, refused_or_would_wait
from broker.accept.observed_tokens import ObservedTokens
from broker.accept.rate_rehearsal import RateRehearsal
from broker.metrics.outcomes import Refusal
from broker.runtime.shard_context import ShardContext
from shards.limits.caps import OBSERVED, CapRule
from shards.limits.observed_windows import USER, WITHIN
from shards.rates.observed_rates import Asker, Beyond, ObservedRates
from shards.tokens.tokens import ADMITTED, Admitted, Refused

_USER = "user:"


class TokenHolder(Protocol):
    """An open connection, as far as it holds tokens: a Connection. Its user's pool is the first, observed pools are the last."""

    id: int
    ip: str
    port: int
    listener: str
    pools: tuple[str, ...]

    def hold(self, pools: tuple[str, ...]) -> None: ...


class UserRehearsal:
    """The observed logins of one shard. `connections`: those that are open, by number."""

    def __init__(
        self,
        context: ShardContext,
        connections: Mapping[int, TokenHolder],
        rates: ObservedRates,
        refusals: RateRehearsal,
        outcomes: ObservedOutcomes,
        *,
        world: ObservedTokens,
    ) -> None:
        self._is_without_world = False  # and a rate is observed
        self._tokens = context.tokens
        self._poller = context.poller
        self._mistaken = context.log.call_mistaken
        self._connections = connections
        self._rates = rates
        self._refusals = refusals
        self._outcomes = outcomes
        self._world = world
        self._under_way: dict[int, ObservedLogin] = {}
        self._ask = rates.asking(USER, Asker(attrgetter("user"), self._answered, self._unasked))

    def follow(self, *, has_world: bool) -> None:
        """The image has another version; the rates have followed it."""
        self._is_without_world = self._rates.is_on and not has_world

    def came_in(self, connection: TokenHolder) -> None:
        """A connection has logged in, or has come to be in the observed world: it is asked about once it is both, or once it has
        logged in if there is no such world."""
        pools = connection.pools
        if not pools[0].startswith(_USER):
            return
        user = pools[0][len(_USER) :]
        if pools[-1].startswith(OBSERVED):
            login = self._under_way[connection.id] = ObservedLogin(self, connection, user, self._poller.now_ns)
            self._ask[user](login)
        elif self._is_without_world:
            at_ns = self._poller.now_ns
            fields = connection.id, connection.ip, connection.port, connection.listener, at_ns, user
            self._ask[user](tuple.__new__(OutsideLogin, fields))  # the same as OutsideLogin(...) at half its cost

    def end(self) -> None:
        """Nothing is observed any more; the connections give back their tokens elsewhere."""
        for login in self._under_way.values():
            self._tokens.cancel(login)
            self._outcomes.note(login, ENDED)
        self._under_way.clear()

    def _answered(self, logins: Sequence[ObservedLogin | OutsideLogin], beyond: Beyond) -> None:
        if self._is_without_world and not beyond:
            return
        for place, login in enumerate(logins):
            try:
                refusal = self._refusals.refusal("user_rate", f"user:{login.user}", beyond.get(place, WITHIN))
                if isinstance(login, ObservedLogin):
                    login.is_late = True
                    self._rated(login, refusal)
                elif refusal is not None:
                    self._turned_away(login, refusal)
            except Exception as mistake:  # the others are to hear their answers
                self._mistaken(mistake)

    def _unasked(self, login: ObservedLogin | OutsideLogin) -> None:
        if isinstance(login, ObservedLogin):
            self._rated(login, None)

    def _rated(self, login: ObservedLogin, refusal: Refusal | None) -> None:
        """The observed rate has answered; the cap is asked next (rate_before_cap_there)."""
        if self._under_way.get(login.number) is not login:
            return
        if refusal is not None:
            del self._under_way[login.number]
            self._turned_away(login, refusal)
            return
        pools = (login.pool,)
        taken = self._tokens.observe_at_hand(pools)
        decision = ADMITTED if taken else self._tokens.observe_rest(pools, taken, login)
        if decision is None:
            login.is_late = True
        else:
            self.decided(login, decision)

    def decided(self, login: ObservedLogin, decision: Admitted | Refused) -> None:
        """The home of the observed pool has answered."""
        del self._under_way[login.number]
        if isinstance(decision, Refused):
            self._turned_away(login, refused_or_would_wait(decision))
            return
        connection = self._connections.get(login.number)
        if connection is None:
            self._outcomes.note(login, CLOSED)
            self._tokens.release((login.pool,))
            return
        connection.hold((*connection.pools, login.pool))
        if login.is_late:
            self._outcomes.note(login)

    def _turned_away(self, login: ObservedLogin | OutsideLogin, refusal: Refusal) -> None:
        self._outcomes.turned_away(login, refusal)
        connection = self._connections.get(login.number)
        if connection is not None:
            leave(connection, self._world.release)


def leave(connection: TokenHolder, release: Callable[[tuple[str, ...]], None]) -> None:
    """A connection leaves the observed world, and gives back what it holds there."""
    observed = tuple(pool for pool in connection.pools if pool.startswith(OBSERVED))
    if observed:
        connection.hold(connection.pools[: -len(observed)])
        release(observed)


class OutsideLogin(NamedTuple):
    """A login that the observed rate of its user is asked about where there is no observed world. `at_ns`: when that began."""

    number: int
    ip: str
    port: int
    listener: str
    at_ns: int
    user: str


class ObservedLogin:
    """A login of the observed world that limits of its user are asked about: the TokenWaiter of the observed pool. `at_ns`: when
    that began. `is_late`: its decision did not come at once."""

    __slots__ = ("_rehearsal", "at_ns", "ip", "is_late", "listener", "number", "pool", "port", "user")

    def __init__(self, rehearsal: UserRehearsal, connection: TokenHolder, user: str, at_ns: int) -> None:
        self._rehearsal = rehearsal
        self.number = connection.id
        self.ip = connection.ip
        self.port = connection.port
        self.listener = connection.listener
        self.user = user
        self.pool = OBSERVED + connection.pools[0]
        self.at_ns = at_ns
        self.is_late = False

    def decided(self, decision: Admitted | Refused) -> None:
        """Called by the tokens when the home has answered."""
        self._rehearsal.decided(self, decision)

    def began_to_wait(self, pool: str, rule: CapRule) -> None:
        """Called by the tokens when the attempt comes to wait for a pool: nothing is to be stopped for it."""
