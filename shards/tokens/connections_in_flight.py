"""Connections in flight, which could not be decided at once: their way through their pools, one answer after the other.

pools_taken_in_order  A connection takes its pools in the order given. It holds a token of each pool before the one it waits
    for, and nothing else; refused, withdrawn or restarted, it gives all of them back.
refused_by_a_later_borrow_only  A waiter is refused only by an answer to a borrow sent after it came to wait: it has a
    ticket, and the answer names the last ticket it covers. Tokens held here are handed out first. The home is told of each
    ticket that no longer waits, also where a token that was here served it.
cuts_revoke_in_flight  When a cap was cut, the home also revokes tokens of connections in flight: a connection that waits
    for another pool starts anew, and a suspended one takes all its pools again when it resumes. So a connection that is
    admitted after a change was done has all its tokens under that change.
one_deadline_per_home  A connection waits at most the deadline for one home's answer, in each of its pools anew.
at_once_never_waits  A connection that asked `at_once` is answered as if no rule let it wait: refused by the home as soon as
    that has proven that all of the cap is in use (refused_after_a_probe_only), or as unavailable after the deadline. Those
    that wait keep their places.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from shards.limits.caps import CapRule
from shards.ownership import home_of
from shards.tokens.attempt_queues import Attempt, AttemptQueues
from shards.tokens.borrows import Borrows
from shards.tokens.full_pools import FullPools
from shards.tokens.holder_cache import HolderCache, HolderPool
from shards.tokens.home_ledger import HomeLedger
from shards.tokens.home_pool import HomePool
from shards.tokens.peers import Peers
from shards.tokens.pool import ADMITTED, Pool, PoolTable, Refused, TokenWaiter
from shards.tokens.pool_terms import NO_LIMIT
from shards.tokens.recalled_in_flight import RecalledInFlight


class ConnectionsInFlight:
    """All connections in flight on one shard. `decided` are the attempts whose waiters have to be told.

    `on_wait(waiter, pool, rule)` is called whenever a connection comes to wait for a pool; it must not call back.
    """

    def __init__(
        self,
        me: int,
        shards: int,
        table: PoolTable,
        peers: Peers,
        cache: HolderCache,
        ledger: HomeLedger,
        *,
        full: FullPools,
        lump: int,
        version: int,
        on_wait: Callable[[object, str, CapRule], None] | None,
    ) -> None:
        self.version = version
        self.decided: deque[Attempt] = deque()
        self.revoked: list[tuple[str, int | None, int]] = []  # pool, home to answer, cached tokens returned with it
        self.recalled = RecalledInFlight(me, table.pools)
        self.queues = AttemptQueues()
        self.borrows = Borrows(me, shards, peers, ledger, self.queues, lump=lump)
        self._on_wait = on_wait
        self._me: Final = me
        self._shards: Final = shards
        self._table = table
        self._peers = peers
        self._cache = cache
        self._ledger = ledger
        self._full = full
        self._attempts: dict[TokenWaiter, Attempt] = {}
        self._suspended: dict[TokenWaiter, tuple[tuple[str, ...], bool]] = {}  # pools, and whether it still holds them
        self.restarted = 0

    # Connections

    def take_in_order(self, pools: tuple[str, ...], start: int) -> tuple[int, Refused | None]:
        """Takes a token of pools[start] and each later pool while this shard has one. Returns how many pools the connection
        holds a token of, and its refusal if no shard needs to be asked for that."""
        for index in range(start, len(pools)):
            pool = self.pool_of(pools[index])
            if pool.level < pool.terms.limit:
                self._table.occupy(pool)
            else:
                return index, self._refused_here(pool)
        return len(pools), None

    def wait(
        self, pools: tuple[str, ...], index: int, waiter: TokenWaiter, at_once: bool = False, observed: bool = False
    ) -> None:
        """A connection that holds pools[:index] waits for the next."""
        attempt = self._attempts[waiter] = Attempt(pools, waiter, at_once=at_once, observed=observed)
        self._join(attempt, index)

    def cancel(self, waiter: TokenWaiter) -> Attempt | None:
        """Forgets a waiter. Returns its attempt if it was admitted and not yet told: the caller releases its tokens."""
        pools, held = self._suspended.pop(waiter, ((), False))
        if held:
            self.give_back(pools)
        attempt = self._attempts.pop(waiter, None)
        if attempt is None or attempt.decision is not None:
            return attempt if attempt is not None and attempt.decision is ADMITTED else None
        self._leave_queue(attempt)
        return None

    def has_any(self) -> bool:
        """True if any connection of this shard is in flight."""
        return bool(self._attempts or self._suspended)

    def suspend(self, pools: tuple[str, ...], waiter: TokenWaiter) -> None:
        """A connection that holds a token of each of `pools` waits for something other than tokens, and is in flight
        meanwhile."""
        self._suspended[waiter] = (pools, True)

    def resume(self, waiter: TokenWaiter) -> tuple[tuple[str, ...], bool]:
        """The pools of a suspended connection, and whether it still holds a token of each; it is forgotten."""
        return self._suspended.pop(waiter)

    def take_decided(self, attempt: Attempt) -> bool:
        """Forgets a decided attempt; True if its waiter is still to be told."""
        if self._attempts.get(attempt.waiter) is not attempt:
            return False
        del self._attempts[attempt.waiter]
        return True

    def give_back(self, pools: tuple[str, ...]) -> None:
        """A connection in flight gives its tokens of these pools back."""
        for key in reversed(pools):
            pool = self._table.pools[key]
            self._table.vacate(pool)
            if pool.terms.tight:
                self.returned(pool)

    def returned(self, pool: Pool) -> None:
        """A token of a pool was given back here: reports it to the pool's home if the pool is tight."""
        if pool.terms.tight:
            self._full.returned(pool.key)
            if isinstance(pool, HolderPool):
                self._cache.return_if_tight(pool)
            elif isinstance(pool, HomePool):
                self._ledger.freed(pool)

    def refuse_overdue(self, now_s: float, deadline_s: float) -> None:
        """Refuses as unavailable the connections that have waited for the deadline, but for those that wait for others to
        close while the home is up."""
        late = []
        for attempt in self.queues:
            if attempt.deadline_s is None:
                attempt.deadline_s = now_s + deadline_s
            elif now_s >= attempt.deadline_s:
                late.append(attempt)
        for attempt in late:
            pool = self.pool_of(attempt.key)
            waits = pool.rule.wait and not attempt.at_once
            if not (waits and self._peers.is_up(self._home(attempt.key))):
                refused = Refused(attempt.key, pool.rule, self.version, True)
                self._leave_queue(attempt)
                self._decide(attempt, refused)

    # Messages of homes

    def grant(self, peer: int, key: str, n: int, may_cache: bool, last: int) -> None:
        """The home granted n tokens, for tickets up to `last`. The first in the queue are served, also with later tickets."""
        if peer != self._me:
            held = self._cache.add_granted(key, n, may_cache)
            self.serve_waiting(held, last, n)
            self._cache.return_if_tight(held)
            return
        served: list[Attempt] = []
        while len(served) < n and (attempt := self.queues.pop(key)) is not None:
            served.append(attempt)  # its token is counted as in use since it was granted
        if len(served) < n:
            pool = self._ledger.pool_of(key)
            self._table.vacate(pool, n - len(served))
            self.returned(pool)
        self._go_on(served, last)

    def refuse(
        self, peer: int, key: str, last: int, cap: int, name: str, version: int, wait: bool, returns: int | None
    ) -> None:
        """The home refuses the attempts with tickets up to `last`: no token was free. If the rule lets connections `wait`, it
        refuses only those that asked at once. `returns`: the pool is full while the number of its returns is this one."""
        self.serve_waiting(self.pool_of(key), last)
        refused = Refused(key, CapRule(cap, name, wait), version)
        if returns is not None and not wait and version >= self.version:
            self._full.note(key, returns, refused)
        for attempt in self.queues.pop_up_to(key, last, at_once=wait):
            self._decide(attempt, refused)

    def reclaim(self, peer: int, key: str, revoke: bool) -> None:
        """The home reclaims cached tokens; with `revoke` also the tokens of connections in flight, at the end of the pass."""
        spare = 0 if peer == self._me else self._cache.tighten(key)
        if revoke and self.has_any():
            self.revoked.append((key, peer, spare))
        else:
            self._peers.outbox.post(peer, ("reclaimed", key, spare))

    def recall(self, home: int, kind: str | None = None) -> None:
        """A home recalls what is cached of its pools of a kind, and at the end of the pass what connections in flight hold. With
        `kind` None this shard recalls all pools of a dead home itself, as that home can't revoke tokens beyond a changed cap."""
        if home != self._me:
            self._table.terms.recall(home, kind)
        if self.has_any():
            self.recalled.add(home, kind)

    def serve_waiting(self, pool: Pool, last: int = 0, meant: int = NO_LIMIT) -> None:
        """Serves waiting attempts in order with the tokens held here. The home knows already that `meant` of the tickets up
        to `last` need no grant. All are served before the first goes on to its next pool: if that pool refuses it, its
        token is given back to the home, and with it every cached token, also those that the others wait for."""
        served: list[Attempt] = []
        while pool.level < pool.terms.limit and (attempt := self.queues.pop(pool.key)) is not None:
            self._table.occupy(pool)
            served.append(attempt)
        if served:
            self._go_on(served, last, meant)

    def home_changed(self, home: int) -> None:
        """A home died or came up: it knows of no attempt of this shard, and expects no answer."""
        self.revoked = [(key, peer if peer != home else None, spare) for key, peer, spare in self.revoked]
        self.queues.forget([key for key in self.queues.pools() if self._home(key) == home])

    # At the end of a pass

    def send_borrows(self) -> None:
        """Serves the attempts that joined a queue, and sends a borrow for those that still wait (borrows.py)."""
        for key in self.queues.take_unasked():
            self.serve_waiting(self.pool_of(key))
            self.borrows.send(key)

    def restart_revoked(self) -> None:
        """A connection in flight that holds a token of a revoked pool gives back all it holds, and starts anew
        (cuts_revoke_in_flight)."""
        revoked, self.revoked = self.revoked, []
        keys = {key for key, _, _ in revoked} | self.recalled.take(self.queues, self._suspended.values())
        for waiter, (pools, held) in self._suspended.items():
            if held and not keys.isdisjoint(pools):
                self._suspended[waiter] = (pools, False)
                self.give_back(pools)
                self.restarted += 1
        restarting = [attempt for attempt in self.queues if not keys.isdisjoint(attempt.taken)]
        self.restarted += len(restarting)
        for attempt in restarting:
            self._leave_queue(attempt)
        for key, peer, spare in revoked:
            if peer is not None:
                self._peers.outbox.post(peer, ("reclaimed", key, spare))
        for attempt in restarting:
            attempt.index = -1
            self._take_next(attempt)

    # Steps

    def pool_of(self, key: str) -> Pool:
        """This shard's part of a pool; the pool is known from now on."""
        pool = self._table.pools.get(key)
        if pool is not None:
            if self._table.changing is not None:
                self._table.changing(pool)
            if pool.terms.recalled and isinstance(pool, HolderPool):
                self._cache.return_recalled(pool)
            return pool
        return self._ledger.pool_of(key) if self._home(key) == self._me else self._cache.pool_of(key)

    def _home(self, key: str) -> int:
        return home_of(key, self._shards)

    def _refused_here(self, pool: Pool) -> Refused | None:
        """The refusal, if no shard needs to be asked: the cap is 0, or this shard is the home, no other shard has tokens,
        and no grant to itself is unread (its waiter may be gone); or the pool is known to be full (full_pools.py)."""
        if pool.rule.wait:
            return None  # a connection that asked at once is refused later, by the home
        alone = isinstance(pool, HomePool) and not pool.lent and pool.key not in self._ledger.blocked
        sure = pool.rule.cap == 0 or (alone and not self._peers.outbox.local)
        return Refused(pool.key, pool.rule, self.version) if sure else self._full.refusal(pool.key)

    def _go_on(self, served: list[Attempt], last: int, meant: int = NO_LIMIT) -> None:
        """Served attempts go on to their next pools. The home knows that `meant` of the tickets up to `last` need no grant;
        it is told of the others."""
        for attempt in served:
            if attempt.asked:
                if attempt.ticket <= last and meant > 0:
                    meant -= 1
                else:
                    self.borrows.withdraw(attempt)
        for attempt in served:
            self._take_next(attempt)

    def _take_next(self, attempt: Attempt) -> None:
        """The attempt got the token it waited for: on to its next pools."""
        index, refused = self.take_in_order(attempt.pools, attempt.index + 1)
        if refused is not None:
            attempt.index = index
            self._decide(attempt, refused)
        elif index == len(attempt.pools):
            attempt.decision = ADMITTED
            self.decided.append(attempt)
        else:
            self._join(attempt, index)

    def _join(self, attempt: Attempt, index: int) -> None:
        self.queues.join(attempt, index)
        if self._on_wait is not None:
            key = attempt.pools[index]
            self._on_wait(attempt.waiter, key, self._table.pools[key].rule)

    def _decide(self, attempt: Attempt, refused: Refused) -> None:
        attempt.decision = refused
        self.give_back(attempt.taken)
        self.decided.append(attempt)

    def _leave_queue(self, attempt: Attempt) -> None:
        """The attempt leaves its queue and gives all its tokens back."""
        self.queues.leave(attempt)
        self.borrows.withdraw(attempt)
        self.give_back(attempt.taken)
        attempt.index = 0

    def snapshot(self) -> dict[TokenWaiter, tuple[tuple[str, ...], str | None]]:
        """The pools of which each connection in flight holds a token, and the one that it waits for, if any."""
        found: dict[TokenWaiter, tuple[tuple[str, ...], str | None]] = {}
        for waiter, attempt in self._attempts.items():
            if attempt.decision is None:
                found[waiter] = (attempt.taken, attempt.key)
            else:
                found[waiter] = (attempt.pools if attempt.decision is ADMITTED else (), None)
        for waiter, (pools, held) in self._suspended.items():
            found[waiter] = (pools if held else (), None)
        return found

    def check(self) -> None:
        """Raises AssertionError when an invariant does not hold; at the end of a pass."""
        self.queues.check()
        assert not self.decided and not self.revoked and not self.recalled.kinds
        assert set(self.queues) == set(self._attempts.values())
        assert self._attempts.keys().isdisjoint(self._suspended)
