"""The simulation can fail: each invariant is broken on purpose, and the oracle (not a check() of the broken part) sees it."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from simulation.oracle import Violation
from simulation.schedule import Schedule

from shards.tokens.attempts import Queues
from shards.tokens.cache import Cache, HolderPool
from shards.tokens.home_pool import Contention, Grants, HomePool
from shards.tokens.ledger import Ledger
from shards.tokens.peers import Peers
from shards.tokens.refusals import Refusals
from shards.tokens.tokens import Tokens
from shards.tokens.waiting import Waiting

ENOUGH = 500
Patch = tuple[type, str, Any]


def leaks_a_token(grants: Grants, shard: int, pool: HomePool, n: int) -> None:
    original_take_back(grants, shard, pool, n)
    if n > 1:
        grants.add(shard, pool, 1)


def grants_one_too_many(ledger: Ledger, pool: HomePool, contention: Contention) -> None:
    cap = pool.rule.cap
    while contention.borrows and (cap is None or pool.out <= cap):
        borrow = contention.borrows[0]
        borrow.count -= 1
        if not borrow.count:
            contention.borrows.popleft()
        ledger._grant(borrow.peer, pool, 1, borrow.last)


def refuses_as_soon_as_it_is_dry(ledger: Ledger, pool: HomePool, contention: Contention) -> None:
    if not pool.rule.wait:
        ledger.refusals._refuse(pool, contention, ledger._arrivals)


def refuses_without_a_probe(refusals: Refusals, pool: HomePool, contention: Contention) -> None:
    if refusals._may_refuse(pool):
        refusals._refuse(pool, contention, contention.borrows[-1].arrival)


def refuses_latecomers(waiting: Waiting, peer: int, key: str, last: int, cap: int, name: str, version: int) -> None:
    original_refuse(waiting, peer, key, 1 << 60, cap, name, version)


def covers_latecomers_with_an_old_probe(refusals: Refusals, pool: HomePool, contention: Contention) -> None:
    if contention.covered and contention.borrows:
        contention.covered = contention.borrows[-1].arrival
    original_confirmed(refusals, pool, contention)


def ignores_reclaim(cache: Cache, key: str) -> int:
    return 0


def caches_while_tight(cache: Cache, pool: HolderPool) -> None:
    return


def forgets_use_without_a_cap(cache: Cache, pool: HolderPool, n: int) -> None:
    cache._hold(pool, n)


def forgets_use_at_a_new_home(cache: Cache, home: int) -> None:
    for pool in cache.pools_of(home):
        cache._hold(pool, -pool.held)


def believes_everybody_reported(peers: Peers) -> float:
    return float("inf")


def takes_any_session(peers: Peers, peer: int, message: Any) -> bool:
    return peers.is_up(peer)


def is_done_at_once(tokens: Tokens, version: int, done: Callable[[], None], changed: Any = None) -> None:
    original_apply(tokens, version, lambda: None, changed)
    done()


def does_not_revoke(ledger: Ledger, pool: HomePool) -> None:
    return


def spares_connections_in_flight(waiting: Waiting, peer: int, key: str, revoke: bool) -> None:
    original_reclaim(waiting, peer, key, False)


def blames_another_value(waiting: Waiting, peer: int, key: str, last: int, cap: int, name: str, version: int) -> None:
    original_refuse(waiting, peer, key, last, cap + 1, name, version)


def keeps_the_tokens_of_the_dead(grants: Grants, shard: int) -> dict[str, int]:
    return {}


def keeps_idle_tokens(cache: Cache, pool: HolderPool) -> bool:
    return True


def keeps_empty_pools(ledger: Ledger, pool: HomePool) -> bool:
    return True


def forgets_who_cancelled(ledger: Ledger, peer: int, key: str, ticket: int) -> None:
    return


def does_not_count_without_a_cap(cache: Cache, pool: HolderPool, rule: Any) -> None:
    original_change(cache, pool, rule)
    if rule.cap is None:
        cache._table.vacate(pool, pool.in_use - min(pool.in_use, pool.held))


original_take_back = Grants.take_back
original_refuse = Waiting.refuse
original_reclaim = Waiting.reclaim
original_confirmed = Refusals.confirmed
original_apply = Tokens.apply
original_change = Cache.change

# What is broken, the invariant that it violates, and a seed from which it does not take long to happen.
MUTANTS: list[tuple[Patch, str, int]] = [
    ((Ledger, "_serve", grants_one_too_many), "1/5", 0),
    ((Ledger, "_revoke_excess", does_not_revoke), "1/5", 0),
    ((Waiting, "reclaim", spares_connections_in_flight), "1/5", 0),
    ((Tokens, "apply", is_done_at_once), "1/5", 0),
    ((Cache, "_report", forgets_use_without_a_cap), "2", 0),
    ((Grants, "take_back", leaks_a_token), "2", 0),
    ((Ledger, "_press", refuses_as_soon_as_it_is_dry), "3", 0),
    ((Refusals, "consider", refuses_without_a_probe), "3", 0),
    ((Refusals, "confirmed", covers_latecomers_with_an_old_probe), "3", 0),
    ((Ledger, "withdraw", forgets_who_cancelled), "3", 0),
    ((Waiting, "refuse", refuses_latecomers), "3", 0),
    ((Cache, "tighten", ignores_reclaim), "3", 0),
    ((Cache, "settle", caches_while_tight), "3", 0),
    ((Cache, "change", does_not_count_without_a_cap), "4", 0),
    ((Cache, "rejoin", forgets_use_at_a_new_home), "1/5", 0),
    ((Peers, "floor", property(believes_everybody_reported)), "1/5", 500),
    ((Peers, "fresh", takes_any_session), "2", 0),
    ((Grants, "drop", keeps_the_tokens_of_the_dead), "6", 0),
    ((Waiting, "refuse", blames_another_value), "7", 0),
    ((Cache, "sweep", keeps_idle_tokens), "8", 0),
    ((Ledger, "sweep", keeps_empty_pools), "8", 0),
]

# One line of a method that is another one: class, method, the line and what stands there instead, the invariant, a seed.
LINES: list[tuple[type, str, str, str, str, int]] = [
    (Tokens, "_agree", "min(self.version, self._peers.floor)", "self.version", "1/5", 500),
    (Peers, "agreed", " and all(acked >= version for acked in self.acked.values())", "", "1/5", 0),
    (Peers, "__init__", "self.unheard = set(others)", "self.unheard = set()", "1/5", 500),
    (Peers, "up", "if epoch > self._epoch:", "if True:", "1/5", 0),
    (Refusals, "_may_refuse", "return not self._grants.is_unsure(pool.key)", "return True", "3", 0),
    (Queues, "forget", "attempt.deadline_s = None", "pass", "3", 0),
    (Queues, "join", "attempt.deadline_s = None", "pass", "3", 0),
    (Waiting, "expire", "if not (pool.rule.wait and self._peers.is_up(self._home(attempt.key))):", "if True:", "3", 0),
    (Ledger, "_settle", "pool.enter(HomePoolMode.OPEN)", "pass", "8", 0),
    (Cache, "granted", "pool.tight = not loose", "pool.tight = pool.tight or not loose", "8", 0),
    (Waiting, "revoke", "self._suspended[waiter] = (pools, False)", "continue", "1/5", 0),
    (Waiting, "in_flight", "self._attempts or self._suspended", "self._attempts", "1/5", 0),
    (Ledger, "returned", "contention.awaiting[peer] = 1", "continue", "3", 0),
    (Tokens, "peer_lost", "self._ledger.lost(peer)", "self._ledger.down(peer)", "1/5", 0),
]


def with_another_line(cls: type, method: str, line: str, other: str) -> Any:
    """The method of a class with one line replaced, compiled in its own module."""
    original = getattr(cls, method)
    source = textwrap.dedent(inspect.getsource(original))
    assert source.count(line) == 1, f"{cls.__name__}.{method} has no such line: {line}"
    compiled: dict[str, Any] = {}
    exec(source.replace(line, other), original.__globals__, compiled)
    return compiled[method]


def violations(start: int) -> Iterator[str]:
    """The invariants that schedules violate, one after the other; a part that stops itself counts as none."""
    for seed in range(start, start + ENOUGH):
        try:
            Schedule(seed).run()
        except Violation as violation:
            yield str(violation)
        except RuntimeError:
            continue


@pytest.mark.parametrize(
    ("patch", "invariant", "start"), MUTANTS, ids=[getattr(m[0][2], "__name__", m[0][1]) for m in MUTANTS]
)
def test_the_oracle_sees_it(patch: Patch, invariant: str, start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tokens, "check", lambda tokens: None)
    monkeypatch.setattr(*patch)
    require_violation(invariant, start)


@pytest.mark.parametrize(
    "line", LINES, ids=[f"{each[0].__name__}.{each[1]}-{number}" for number, each in enumerate(LINES)]
)
def test_every_guard_is_needed(line: tuple[type, str, str, str, str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    cls, method, text, other, invariant, start = line
    monkeypatch.setattr(Tokens, "check", lambda tokens: None)
    monkeypatch.setattr(cls, method, with_another_line(cls, method, text, other))
    require_violation(invariant, start)


def require_violation(invariant: str, start: int) -> None:
    """Some schedule violates this invariant."""
    for seen in violations(start):
        if seen.startswith(f"invariant {invariant}:"):
            return
    pytest.fail(f"{ENOUGH} schedules with a broken invariant {invariant}, and the oracle did not see it")
