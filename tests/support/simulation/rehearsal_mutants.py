"""What is broken on purpose in accepting, for its schedules to see: in the rehearsal of caps (broker/accept/observed_world.py),
and in which pools a connection over TLS is."""

from __future__ import annotations

from simulation.accept_schedule import AcceptSchedule
from simulation.mutants import Mutant, broken, with_line

from broker.accept.observed_world import ObservedWorld
from broker.accept.shard_listeners import ShardListeners
from broker.accept.user_rehearsal import UserRehearsal
from shards.tokens.connection_tokens import ConnectionTokens

REHEARSAL_MUTANTS = [
    with_line(ObservedWorld, "_settle", "self._observed_tokens.release(of.pools)", "pass", "4"),
    with_line(ObservedWorld, "_begin", "self._tokens.force(pool, tokens)", "pass", "4"),
    with_line(ObservedWorld, "_end", "leave(connection, self._observed_tokens.release)", "pass", "4"),
    with_line(ObservedWorld, "_end", "self._observed_tokens.cancel(attempt)", "pass", "4"),
    with_line(UserRehearsal, "decided", "self._tokens.release((login.pool,))", "pass", "4"),
    with_line(UserRehearsal, "_turned_away", "leave(connection, self._world.release)", "pass", "4"),
    with_line(UserRehearsal, "end", "self._tokens.cancel(login)", "pass", "4"),
    with_line(UserRehearsal, "came_in", "if pools[-1].startswith(OBSERVED):", "if True:", "4"),
    with_line(ObservedWorld, "_settle", "self.users.came_in(connection)", "pass", "4"),
    with_line(ConnectionTokens, "observe_rest", "self._in_flight.give_back(pools[:index])", "pass", "4"),
    with_line(ConnectionTokens, "force", "self._cache.report_forced(pool, beyond)", "pass", "1/5"),
    with_line(ShardListeners, "_more_pools", "of_all + _OVER_TLS if listener in self._ssl else of_all", "of_all", "4"),
]
"""Each with a number of docs/internals/tokens.md, of the invariant that it is expected to break."""


SEEN = {
    "ObservedWorld._settle: pass for self._observed_tokens.release(of.pools)": 1,
    "ObservedWorld._begin: pass for self._tokens.force(pool, tokens)": 15,
    "ObservedWorld._end: pass for leave(connection, self._observed_tokens.release)": 52,
    "ObservedWorld._end: pass for self._observed_tokens.cancel(attempt)": 56,
    "UserRehearsal.decided: pass for self._tokens.release((login.pool,))": 1,
    "UserRehearsal._turned_away: pass for leave(connection, self._world.release)": 9,
    "UserRehearsal.end: pass for self._tokens.cancel(login)": 11,
    "UserRehearsal.came_in: if True: for if pools[-1].startswith(OBSERVED):": 23,
    "ObservedWorld._settle: pass for self.users.came_in(connection)": 23,
    "ConnectionTokens.observe_rest: pass for self._in_flight.give_back(pools[:index])": 6,
    "ConnectionTokens.force: pass for self._cache.report_forced(pool, beyond)": 155,
    "ShardListeners._more_pools: of_all for of_all + _OVER_TLS if listener in self._ssl else of_all": 0,
}
"""A schedule of accepting that sees it."""


def breaks(mutant: Mutant, seed: int) -> bool:
    """Whether the schedule of accepting of this seed fails with the mutant in place."""
    with broken(mutant):
        try:
            AcceptSchedule(seed).run()
        except Exception:
            return True
    return False
