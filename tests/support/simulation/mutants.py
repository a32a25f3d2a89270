"""The token protocol broken on purpose, one guard at a time: each mutant must violate an invariant within ENOUGH schedules.

The oracle has to see it: the parts' own check() is off. STOPS instead of an invariant: the part that is misled by the
mutant notices, and the process would end.

Guards that were removed because nothing needs them:
* `synced` held back while a home revokes. A home asks for what it revokes before it says `synced`, on the same link.
* A probe void after a report, or after a connection that was forced in: both are in use, so the cap is in use, too.
* A return counted for a connection that leaves a grant on its way, or for a link that breaks. Each grant of a full pool follows
  a return; and no shard answers the next probe before it has read that grant.
* `synced` owed to a peer, forgotten when it dies. It is sent once the floor is reached, and an incarnation that comes up
  has no version: the floor falls, and rises with its own `sync`, which replaces what was owed.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from simulation.crossing import (
    changed_as_the_home_dies,
    closed_under_a_wider_cap,
    cut_while_nobody_waits,
    granted_behind_the_probe,
    late_report,
    left_at_home,
    left_before_its_grant_was_read,
    nobody_to_wait_for,
    reported_as_the_home_dies,
    returned_within_a_pass,
    revoked_while_all_are_told,
    taken_of_a_dead_home_before_the_sweep,
    unanswered_at_once,
    vanished_client,
)
from simulation.oracle import Violation
from simulation.recalling import (
    cached_and_looked_at,
    cached_elsewhere,
    cached_under_a_rule_of_its_own,
    closed_after_the_wheel_met_it,
    granted_until_the_home_cuts,
    in_flight,
    tight_under_a_wider_cap,
    uncapped_of_a_dead_home,
)
from simulation.schedule import Schedule

from shards.tokens.attempt_queues import AttemptQueues
from shards.tokens.connections_in_flight import ConnectionsInFlight
from shards.tokens.full_pools import FullPools
from shards.tokens.holder_cache import HolderCache, HolderPool
from shards.tokens.home_ledger import HomeLedger
from shards.tokens.home_pool import Contention, HomePool
from shards.tokens.lent_tokens import LentTokens
from shards.tokens.outbox import Outbox
from shards.tokens.peers import Peers
from shards.tokens.pool_terms import TermsTable
from shards.tokens.recalled_in_flight import RecalledInFlight
from shards.tokens.refusals import Refusals
from shards.tokens.revocation import Revocation
from shards.tokens.rule_changes import RuleChanges
from shards.tokens.tokens import Tokens

ENOUGH = 500
STOPS = "stops"


class Mutant(NamedTuple):
    """A method that is another one. `invariant`: the number of the one that it violates. `script`: a world that is not drawn
    from a seed, and counts as the schedule before the first."""

    name: str
    cls: type
    method: str
    other: Any
    invariant: str
    script: Callable[[], object] | None = None


def leaks_a_token(lent: LentTokens, shard: int, pool: HomePool, n: int) -> None:
    original_take_back(lent, shard, pool, n)
    if n > 1:
        lent.add(shard, pool, 1)


def grants_one_too_many(ledger: HomeLedger, pool: HomePool, contention: Contention) -> None:
    cap = pool.rule.cap
    while contention.borrows and (cap is None or pool.out <= cap):
        borrow = contention.borrows[0]
        borrow.count -= 1
        if not borrow.count:
            contention.borrows.popleft()
        ledger._grant(borrow.peer, pool, 1, borrow.last)


def refuses_as_soon_as_it_is_dry(ledger: HomeLedger, pool: HomePool, contention: Contention) -> None:
    if not pool.rule.wait:
        ledger.refusals._refuse(pool, contention, ledger._arrivals, None)


def refuses_without_a_probe(refusals: Refusals, pool: HomePool, contention: Contention) -> None:
    if refusals._may_refuse(pool, contention):
        refusals._refuse(pool, contention, contention.borrows[-1].arrival, None)


def refuses_as_soon_as_the_probe_is_answered(ledger: HomeLedger, peer: int, number: int) -> None:
    original_probed(ledger, peer, number)
    ledger.end_pass()


def refuses_latecomers(in_flight: ConnectionsInFlight, peer: int, key: str, last: int, *rule: Any) -> None:
    original_refuse(in_flight, peer, key, 1 << 60, *rule)


def covers_latecomers_with_an_old_probe(refusals: Refusals, pool: HomePool, contention: Contention) -> None:
    if contention.covered and contention.borrows:
        contention.covered = contention.borrows[-1].arrival
    original_refuse_covered(refusals, pool, contention)


def ignores_reclaim(cache: HolderCache, key: str) -> int:
    return 0


def caches_while_tight(cache: HolderCache, pool: HolderPool) -> None:
    return


def forgets_use_without_a_cap(cache: HolderCache, pool: HolderPool, n: int) -> None:
    cache._hold(pool, n)


def forgets_use_at_a_new_home(cache: HolderCache, home: int) -> None:
    for pool in cache.pools_of(home):
        cache._hold(pool, -pool.held)


def believes_everybody_reported(peers: Peers) -> float:
    return float("inf")


def takes_any_session(outbox: Outbox, peer: int, message: Any) -> bool:
    return outbox.is_open(peer)


def is_done_at_once(tokens: Tokens, version: int, done: Callable[[], None], changed: Any = None) -> None:
    original_apply(tokens, version, lambda: None, changed)
    done()


def does_not_revoke(revocation: Revocation, pool: HomePool) -> None:
    return


def spares_connections_in_flight(in_flight: ConnectionsInFlight, peer: int, key: str, revoke: bool) -> None:
    original_reclaim(in_flight, peer, key, False)


def blames_another_value(in_flight: ConnectionsInFlight, peer: int, key: str, last: int, cap: int, *rest: Any) -> None:
    original_refuse(in_flight, peer, key, last, cap + 1, *rest)


def keeps_the_tokens_of_the_dead(lent: LentTokens, shard: int) -> dict[str, int]:
    return {}


def keeps_idle_tokens(cache: HolderCache, pool: HolderPool) -> bool:
    return True


def keeps_empty_pools(ledger: HomeLedger, pool: HomePool) -> bool:
    return True


def forgets_who_cancelled(ledger: HomeLedger, peer: int, key: str, ticket: int) -> None:
    return


def does_not_count_without_a_cap(cache: HolderCache, pool: HolderPool, rule: Any) -> None:
    original_change_rule(cache, pool, rule)
    if rule.cap is None:
        cache._table.vacate(pool, pool.in_use - min(pool.in_use, pool.held))


original_take_back = LentTokens.take_back
original_probed = HomeLedger.probed
original_refuse = ConnectionsInFlight.refuse
original_reclaim = ConnectionsInFlight.reclaim
original_refuse_covered = Refusals.refuse_covered
original_apply = Tokens.apply
original_change_rule = HolderCache.change_rule


def with_line(cls: type, method: str, line: str, other: str, invariant: str) -> Mutant:
    """The method of a class with one line replaced, compiled in its own module."""
    original = getattr(cls, method)
    source = textwrap.dedent(inspect.getsource(original))
    assert source.count(line) == 1, f"{cls.__name__}.{method} has no such line: {line}"
    compiled: dict[str, Any] = {}
    exec(source.replace(line, other), original.__globals__, compiled)
    return Mutant(f"{cls.__name__}.{method}: {other} for {line}", cls, method, compiled[method], invariant)


def _other(cls: type, method: str, other: Any, invariant: str) -> Mutant:
    function = other.fget if isinstance(other, property) else other
    return Mutant(function.__name__, cls, method, other, invariant)


MUTANTS = [
    _other(HomeLedger, "_serve", grants_one_too_many, "1/5"),
    _other(Revocation, "revoke_excess", does_not_revoke, "1/5"),
    _other(ConnectionsInFlight, "reclaim", spares_connections_in_flight, "1/5"),
    _other(Tokens, "apply", is_done_at_once, "1/5"),
    _other(HolderCache, "_report", forgets_use_without_a_cap, "2"),
    _other(LentTokens, "take_back", leaks_a_token, "2"),
    _other(HomeLedger, "_reclaim_or_refuse", refuses_as_soon_as_it_is_dry, "3"),
    _other(Refusals, "consider", refuses_without_a_probe, "3"),
    _other(Refusals, "refuse_covered", covers_latecomers_with_an_old_probe, "3"),
    _other(HomeLedger, "probed", refuses_as_soon_as_the_probe_is_answered, "3")._replace(script=left_at_home),
    _other(HomeLedger, "withdraw", forgets_who_cancelled, "3"),
    _other(ConnectionsInFlight, "refuse", refuses_latecomers, "3"),
    _other(HolderCache, "tighten", ignores_reclaim, "3"),
    _other(HolderCache, "return_if_tight", caches_while_tight, "3"),
    _other(HolderCache, "change_rule", does_not_count_without_a_cap, "4"),
    _other(HolderCache, "report_all", forgets_use_at_a_new_home, "1/5"),
    _other(Peers, "applied_everywhere", property(believes_everybody_reported), "1/5")._replace(
        script=reported_as_the_home_dies
    ),
    _other(Outbox, "is_of_session", takes_any_session, "2"),
    _other(LentTokens, "pop_shard", keeps_the_tokens_of_the_dead, "6"),
    _other(ConnectionsInFlight, "refuse", blames_another_value, "7"),
    _other(HolderCache, "sweep", keeps_idle_tokens, "8"),
    _other(HomeLedger, "sweep", keeps_empty_pools, "8"),
    with_line(
        Tokens,
        "_confirm_versions",
        "min(self._changes.version, self._peers.applied_everywhere)",
        "self._changes.version",
        "1/5",
    )._replace(script=reported_as_the_home_dies),
    with_line(
        Peers, "have_confirmed", " and all(confirmed >= version for confirmed in self.confirmed.values())", "", "1/5"
    )._replace(script=revoked_while_all_are_told),
    with_line(Peers, "is_ahead", "any(applied > version for applied in self.applied.values())", "False", "1/5"),
    with_line(Peers, "__init__", "self.unheard = set(others)", "self.unheard = set()", "1/5"),
    with_line(Peers, "mark_up", "if epoch > self._epoch:", "if True:", "1/5"),
    with_line(Refusals, "_may_refuse", "return not self._lent.is_unsure(pool.key)", "return True", "3"),
    with_line(AttemptQueues, "forget", "attempt.deadline_s = None", "pass", "3"),
    with_line(AttemptQueues, "join", "attempt.deadline_s = None", "pass", "3"),
    with_line(
        ConnectionsInFlight,
        "refuse_overdue",
        "if not (waits and self._peers.is_up(self._home(attempt.key))):",
        "if True:",
        "3",
    ),
    with_line(
        ConnectionsInFlight, "refuse_overdue", "self.version, True)", "self.version, not attempt.at_once)", "3"
    )._replace(script=unanswered_at_once),
    with_line(
        ConnectionsInFlight, "refuse_overdue", "pool.rule.wait and not attempt.at_once", "pool.rule.wait", "3"
    )._replace(script=unanswered_at_once),
    with_line(ConnectionsInFlight, "refuse", "at_once=wait", "at_once=False", "7"),
    with_line(AttemptQueues, "ask", "if count and attempt.at_once is not mark:", "if False:", "3"),
    with_line(Contention, "refusable", "not rule.wait or any(borrow.at_once for borrow in self.borrows)", "True", "8"),
    with_line(Contention, "refusable", " or any(borrow.at_once for borrow in self.borrows)", "", "3")._replace(
        script=nobody_to_wait_for
    ),
    with_line(Refusals, "_refuse", "if rule.wait and not borrow.at_once:", "if False:", "3"),
    with_line(HomeLedger, "_loosen", "pool.enter(PoolMode.OPEN)", "pass", "8"),
    with_line(
        HolderCache, "add_granted", "pool.tight = not may_cache", "pool.tight = pool.tight or not may_cache", "8"
    ),
    with_line(ConnectionsInFlight, "restart_revoked", "self._suspended[waiter] = (pools, False)", "continue", "1/5"),
    with_line(ConnectionsInFlight, "has_any", "self._attempts or self._suspended", "self._attempts", "1/5")._replace(
        script=late_report
    ),
    with_line(Revocation, "ask_again", "contention.awaiting[peer] = 1", "continue", "3"),
    with_line(Tokens, "peer_lost", "self._ledger.peer_lost(peer)", "self._ledger.peer_dead(peer)", "1/5"),
    with_line(HomeLedger, "withdraw", "contention.covered = 0", "pass", "3")._replace(script=vanished_client),
    with_line(Refusals, "consider", "self._alone[pool.key] = None", "self._cover(pool.key)", "3")._replace(
        script=left_before_its_grant_was_read
    ),
    with_line(ConnectionsInFlight, "_refused_here", "(alone and not self._peers.outbox.local)", "alone", "3"),
    with_line(Outbox, "report", "self._gives.pop((peer, key), None)", "pass", STOPS),
    with_line(ConnectionsInFlight, "home_changed", "peer if peer != home else None", "peer", STOPS)._replace(
        script=returned_within_a_pass
    ),
    with_line(Tokens, "peer_dead", "if self._unconfirmed or self._changes.under_way:", "if False:", "1/5")._replace(
        script=partial(changed_as_the_home_dies, dead_before=False)
    ),
    with_line(Tokens, "apply", "filter(self._peers.is_dead, range(self.shards))", "()", "1/5")._replace(
        script=partial(changed_as_the_home_dies, dead_before=True)
    ),
    with_line(Tokens, "peer_dead", "self._unconfirmed or self._changes.under_way", "self._unconfirmed", "1/5")._replace(
        script=partial(changed_as_the_home_dies, dead_before=False, piece=1)
    ),
    with_line(Tokens, "apply", "self._in_flight.recall(home)", "pass", "1/5")._replace(
        script=taken_of_a_dead_home_before_the_sweep
    ),
    with_line(RuleChanges, "_refresh_plain", " or pool.level <= rule.cap", " or True", "1/5")._replace(
        script=cut_while_nobody_waits
    ),
    with_line(RuleChanges, "_change_general", "if before.cap is None or rule.cap is None:", "if False:", STOPS),
    with_line(RuleChanges, "_change_general", "self._recall(kind)", "pass", "1/5")._replace(script=cached_elsewhere),
    with_line(RuleChanges, "_recall", 'self._peers.outbox.post_all(("recall", kind))', "pass", "1/5")._replace(
        script=granted_until_the_home_cuts
    ),
    with_line(RuleChanges, "_recall", "self._in_flight.recall(self._peers.me, kind)", "pass", "1/5")._replace(
        script=partial(in_flight, at_home=True)
    ),
    with_line(RuleChanges, "_enforce_contended", "self._ledger.enforce(pool)", "pass", "3"),
    with_line(TermsTable, "change", " and terms.rule == before", " and terms.rule == before and not terms.tight", "7"),
    with_line(
        TermsTable, "change", " and terms.rule == before", " and terms.rule == before and terms.home != HERE", "7"
    ),
    with_line(TermsTable, "change", " and terms.rule == before", "", "8"),
    with_line(TermsTable, "recall", "terms.limit = -NO_LIMIT", "pass", "1/5")._replace(script=cached_elsewhere),
    with_line(TermsTable, "forget_unseen", "terms.seen >= since", "False", "1/5"),
    with_line(ConnectionsInFlight, "recall", "if self.has_any():", "if False:", "1/5")._replace(
        script=partial(in_flight, at_home=False)
    ),
    with_line(RecalledInFlight, "take", "held.update(", "list(", "1/5")._replace(
        script=partial(in_flight, at_home=False)
    ),
    with_line(RecalledInFlight, "take", "for attempt in waiting for", "for attempt in () for", "1/5")._replace(
        script=partial(in_flight, at_home=False, queued=True)
    ),
    with_line(RecalledInFlight, "_is_recalled", " or (terms.home, None) in self.kinds", "", "1/5")._replace(
        script=partial(changed_as_the_home_dies, dead_before=True)
    ),
    with_line(
        RecalledInFlight,
        "_is_recalled",
        "(self._me, terms.kind) in self.kinds and pool.level > terms.limit",
        "False",
        "1/5",
    )._replace(script=partial(in_flight, at_home=True)),
    with_line(ConnectionsInFlight, "pool_of", "if pool.terms.recalled and", "if False and", "3")._replace(
        script=uncapped_of_a_dead_home
    ),
    with_line(HolderCache, "pool_of", "if pool.terms.recalled:", "if False:", "3"),
    with_line(HolderCache, "return_recalled", "self._give(pool, pool.cached)", "pass", "1/5")._replace(
        script=cached_elsewhere
    ),
    with_line(
        HolderCache, "return_recalled", "PoolMode.TIGHT if pool.held else PoolMode.OPEN", "pool.terms.mode", "1/5"
    )._replace(script=closed_after_the_wheel_met_it),
    with_line(
        HolderCache,
        "change_rule",
        "self.return_recalled(pool)",
        "pool.terms = pool.terms.with_mode(pool.terms.mode)",
        "1/5",
    )._replace(script=cached_under_a_rule_of_its_own),
    with_line(
        HolderCache, "sweep", "self.return_recalled(pool)", "pool.terms = pool.terms.with_mode(pool.terms.mode)", "1/5"
    )._replace(script=cached_and_looked_at),
    with_line(HomeLedger, "report", "if more or key not in self.revocation.revoking:", "if more:", "1/5")._replace(
        script=partial(in_flight, at_home=False, cut_off=True)
    ),
    with_line(HomeLedger, "sweep", "self._loosen(pool)", "pass", "8")._replace(script=tight_under_a_wider_cap),
    with_line(HomeLedger, "_loosen", "self._full.returned(pool.key)", "pass", "3")._replace(
        script=closed_under_a_wider_cap
    ),
    with_line(RuleChanges, "_sweep", "self._table.begin_change(self.refresh_rule)", "pass", "7"),
    with_line(RuleChanges, "continue_sweep", "if len(piece) == self._piece:", "if False:", "1/5"),
    with_line(ConnectionsInFlight, "returned", "self._full.returned(pool.key)", "pass", "3"),
    with_line(ConnectionsInFlight, "refuse", " and version >= self.version", "", "7"),
    with_line(Tokens, "apply", "self._full.forget_all()", "pass", "7"),
    with_line(HomeLedger, "_serve", "contention.returns = None", "pass", "3")._replace(script=granted_behind_the_probe),
    with_line(Refusals, "refuse_covered", "contention.returns)", "self._full.returns(pool.key))", "3"),
    with_line(FullPools, "refusal", "known.returns != self._counts.of(key)", "False", "3"),
]


@contextmanager
def broken(mutant: Mutant) -> Iterator[None]:
    patched = [(Tokens, "check", lambda tokens: None), mutant[1:4]]
    originals = [(cls, name, vars(cls)[name]) for cls, name, _ in patched]
    try:
        for cls, name, function in patched:
            setattr(cls, name, function)
        yield
    finally:
        for cls, name, function in originals:
            setattr(cls, name, function)


SEEN = {
    "grants_one_too_many": 0,
    "does_not_revoke": 264,
    "spares_connections_in_flight": 160,
    "is_done_at_once": 2,
    "forgets_use_without_a_cap": 0,
    "leaks_a_token": 0,
    "refuses_as_soon_as_it_is_dry": 0,
    "refuses_without_a_probe": 1,
    "covers_latecomers_with_an_old_probe": 50,
    "forgets_who_cancelled": 7,
    "refuses_latecomers": 1,
    "ignores_reclaim": 3,
    "caches_while_tight": 1,
    "does_not_count_without_a_cap": 165,
    "forgets_use_at_a_new_home": 16,
    "takes_any_session": 19,
    "keeps_the_tokens_of_the_dead": 15,
    "blames_another_value": 0,
    "keeps_idle_tokens": 0,
    "keeps_empty_pools": 0,
    "Peers.is_ahead: False for any(applied > version for applied in self.applied.values())": 156,
    "Peers.__init__: self.unheard = set() for self.unheard = set(others)": 219,
    "Peers.mark_up: if True: for if epoch > self._epoch:": 219,
    "Refusals._may_refuse: return True for return not self._lent.is_unsure(pool.key)": 8,
    "AttemptQueues.forget: pass for attempt.deadline_s = None": 206,
    "AttemptQueues.join: pass for attempt.deadline_s = None": 0,
    "ConnectionsInFlight.refuse_overdue: if True: for if not (waits and self._peers.is_up(self._home(attempt.key))):": 0,
    "ConnectionsInFlight.refuse: at_once=False for at_once=wait": 92,
    "AttemptQueues.ask: if False: for if count and attempt.at_once is not mark:": 92,
    "Contention.refusable: True for not rule.wait or any(borrow.at_once for borrow in self.borrows)": 6,
    "Refusals._refuse: if False: for if rule.wait and not borrow.at_once:": 92,
    "HomeLedger._loosen: pass for pool.enter(PoolMode.OPEN)": 0,
    "HolderCache.add_granted: pool.tight = pool.tight or not may_cache for pool.tight = not may_cache": 0,
    "ConnectionsInFlight.restart_revoked: continue for self._suspended[waiter] = (pools, False)": 160,
    "Revocation.ask_again: continue for contention.awaiting[peer] = 1": 16,
    "Tokens.peer_lost: self._ledger.peer_dead(peer) for self._ledger.peer_lost(peer)": 8,
    "ConnectionsInFlight._refused_here: alone for (alone and not self._peers.outbox.local)": 3,
    "Outbox.report: pass for self._gives.pop((peer, key), None)": 194,
    "RuleChanges._sweep: pass for self._table.begin_change(self.refresh_rule)": 299,
    "RuleChanges.continue_sweep: if False: for if len(piece) == self._piece:": 86,
    "RuleChanges._change_general: if False: for if before.cap is None or rule.cap is None:": 9,
    "RuleChanges._enforce_contended: pass for self._ledger.enforce(pool)": 109,
    "TermsTable.change:  and terms.rule == before and not terms.tight for  and terms.rule == before": 17,
    "TermsTable.change:  and terms.rule == before and terms.home != HERE for  and terms.rule == before": 17,
    "TermsTable.change:  for  and terms.rule == before": 100,
    "TermsTable.forget_unseen: False for terms.seen >= since": 44,
    "HolderCache.pool_of: if False: for if pool.terms.recalled:": 303,
    "ConnectionsInFlight.returned: pass for self._full.returned(pool.key)": 1,
    "ConnectionsInFlight.refuse:  for  and version >= self.version": 264,
    "Tokens.apply: pass for self._full.forget_all()": 264,
    "Refusals.refuse_covered: self._full.returns(pool.key)) for contention.returns)": 70,
    "FullPools.refusal: False for known.returns != self._counts.of(key)": 1,
}
"""Where each mutant without a script is seen first, as `run.py --mutants` prints it: so the tests need one schedule each."""


def seed_that_sees(mutant: Mutant, seeds: range = range(ENOUGH)) -> int | None:
    """The first seed whose schedule violates the mutant's invariant, -1 for its script; None: it survives."""
    with broken(mutant):
        if mutant.script is not None:
            return -1 if mutant.invariant == _what_fails(mutant.script) else None
        for seed in seeds:
            if mutant.invariant == what_fails(seed):
                return seed
    return None


def what_fails(seed: int) -> str:
    """The number of the invariant that a schedule violates first, STOPS when a shard would have ended; "": all held."""
    return _what_fails(Schedule(seed).run)


def _what_fails(world: Callable[[], object]) -> str:
    try:
        world()
    except Violation as violation:
        return str(violation).partition(":")[0].removeprefix("invariant ")
    except Exception:
        return STOPS
    return ""
