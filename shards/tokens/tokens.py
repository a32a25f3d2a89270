"""Tokens for new connections: what the accept path asks, and what travels between shards to answer it (docs/internals/tokens.md).

It joins the pools at home here (home_ledger.py) and those at home elsewhere (holder_cache.py); what connections take and give
back is in connection_tokens.py. Everything is a plain call; only `flush` sends, tells waiters and calls back, so no call is
entered while another is half done.

done_when_all_peers_confirm  A version is done here when every peer that is not dead has applied it, and has confirmed
    (`synced`) that it has heard from all others what they use. What a home has to revoke for a version it asks for before it
    confirms, on the same link; so when all shards are done, tokens beyond a cap are held by open connections only, and none
    is admitted beyond it. What a home that died can't revoke any more, its holders discard.
silent_homes_refuse_as_unavailable  A connection that waits for a home which does not answer within the deadline is refused
    as `unavailable`. Under a rule that lets connections wait (KIP-402) there is no deadline while the home is up, but for
    one that asked `at_once`: it is never refused as by a cap without the proof of refusals.py.
no_asking_behind_a_peer  No connection asks for a token before a version is done here while no peer is known to be ahead of it
    (`peer_is_ahead`): the broker opens its listeners then. So nothing is used under a version that is older than one
    which another shard is done with, or has confirmed: a shard that applies the newer one after it met this shard waits for the
    report of this shard. Otherwise a holder that is done could admit a connection in flight before it reads what its home
    revokes because of that report.
"""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from shards.limits.caps import CapRule
from shards.tokens.attempt_queues import Attempt
from shards.tokens.connection_tokens import ConnectionTokens
from shards.tokens.connections_in_flight import ConnectionsInFlight
from shards.tokens.describe import TokensSnapshot, describe, snapshot
from shards.tokens.full_pools import ASKING, FullPools, NoReturnCounts, ReturnCounts
from shards.tokens.fullest_pools import FullestPools
from shards.tokens.holder_cache import HolderCache, HolderPool
from shards.tokens.home_ledger import HomeLedger, Lost, Returned
from shards.tokens.home_pool import HomePool
from shards.tokens.home_pools import OnGrant
from shards.tokens.outbox import TokenMessage
from shards.tokens.peers import Peers
from shards.tokens.pool import ADMITTED, Admitted, Pool, PoolTable, Refused, TokenTotals, TokenWaiter
from shards.tokens.rule_changes import PIECE, RuleChanges

__all__ = ["ADMITTED", "Admitted", "Refused", "TokenTotals", "TokenWaiter", "Tokens", "TokensSnapshot"]


class Tokens(ConnectionTokens):
    """The tokens of one shard, `me` of `shards`, in its incarnation `epoch` (rising with every start of any shard).

    `send(peer, message)` hands over a message; messages to a peer arrive in order until `peer_lost`. On both sides
    `peer_up` comes before the first message is received. `rule_of(pool)` is the rule of the version last applied.
    `on_wait(waiter, pool, rule)` is called whenever a connection comes to wait for a pool, from take() and flush(); it must
    not call back. `returns`, `asking`: see full_pools.py.
    Counted since the start, beside what connection_tokens.py counts: `borrows`, `reclaims` (of pools at home here), and the waiters
    that were told their decision (`decisions_told`).
    """

    def __init__(
        self,
        me: int,
        shards: int,
        *,
        epoch: int,
        send: Callable[[int, TokenMessage], None],
        rule_of: Callable[[str], CapRule],
        version: int = 0,
        ttl_s: float = 10.0,
        deadline_s: float = 1.0,
        lump: int = 16,
        piece: int = PIECE,
        on_grant: OnGrant | None = None,
        on_return: Returned | None = None,
        on_loss: Lost | None = None,
        on_wait: Callable[[Any, str, CapRule], None] | None = None,
        returns: ReturnCounts | None = None,
        asking: int = ASKING,
    ) -> None:
        self.me: Final = me
        self.shards: Final = shards
        self.version = version
        self.decisions_told = 0
        self._send = send
        self._turn_s = ttl_s / 2  # between one and two turns of the wheel after its last use, a token goes home
        self._deadline_s = deadline_s
        table = PoolTable(rule_of)
        self._peers = Peers(me, shards, epoch)
        cache = HolderCache(shards, table, self._peers)
        full = self._full = FullPools(returns or NoReturnCounts(), asking)
        ledger = HomeLedger(
            me,
            shards,
            table,
            self._peers,
            full,
            has_in_flight=lambda: self._in_flight.has_any(),
            version=version,
            on_grant=on_grant,
            on_return=on_return,
            on_loss=on_loss,
        )
        in_flight = ConnectionsInFlight(
            me, shards, table, self._peers, cache, ledger, full=full, lump=lump, version=version, on_wait=on_wait
        )
        super().__init__(table, cache, ledger, in_flight)
        self._changes = RuleChanges(
            version, table, cache, ledger, in_flight, self._peers, piece=piece, on_applied=self._announce_applied
        )
        self.fullest = FullestPools(table)
        self._unconfirmed: deque[tuple[int, Callable[[], None]]] = deque()
        self._to_confirm: dict[int, int] = {}  # versions whose sync each peer wants confirmed
        self._handlers = self._list_handlers()

    def _list_handlers(self) -> dict[str, Callable[..., None]]:
        """The handlers of an item of a message, by its first field."""
        return {
            "borrow": self._ledger.borrow,
            "withdraw": self._ledger.withdraw,
            "give": self._ledger.give,
            "report": self._ledger.report,
            "reclaimed": self._ledger.reclaimed,
            "probed": self._ledger.probed,
            "grant": self._in_flight.grant,
            "refuse": self._in_flight.refuse,
            "reclaim": self._in_flight.reclaim,
            "recall": self._in_flight.recall,
            "probe": self._answer_probe,
            "sync": self._sync,
            "synced": self._synced,
        }

    @property
    def borrows(self) -> int:
        """The number of times a home was asked for tokens: once per pool and pass, for all connections that had come to wait."""
        return self._in_flight.borrows.sent

    @property
    def restarted(self) -> int:
        """The number of connections in flight whose tokens a change revoked, and which start anew."""
        return self._in_flight.restarted

    @property
    def reclaims(self) -> int:
        """The number of times pools at home here ran dry and had their cached tokens called in."""
        return self._ledger.revocation.reclaims

    def cap_of(self, key: str) -> int | None:
        """A pool's cap in the version that this shard has applied; None: it has none."""
        return self._table.rule_of(key).cap

    def excess(self, key: str, allowed: int = 0) -> int | None:
        """The excess of a pool at home here: see HomeLedger.excess."""
        return self._ledger.excess(key, allowed)

    # Configuration, peers, time

    @property
    def peer_is_ahead(self) -> bool:
        """True if a peer that lives has told of a later version than this shard has applied; asked by `done`
        (no_asking_behind_a_peer)."""
        return self._peers.is_ahead(self._changes.version)

    def apply(self, version: int, done: Callable[[], None], changed: Collection[str] | None = None) -> None:
        """`rule_of` speaks for `version` from now on; `done` follows from flush(), when done_when_all_peers_confirm holds.

        `changed`: the pools ("ip:10.0.0.1") or kinds of pool ("ip") that may have another rule; None for any. It is
        what keeps a change of something else from visiting every pool. Where many have to be visited, continue_change() does.
        GENERAL and a kind ("general/ip"): of that kind the pools that no setting names have another rule, all the same; of the
        others, those whose rule is another one or may look so are among `changed`.
        """
        self.version = self._ledger.refusals.version = self._in_flight.version = version
        self._full.forget_all()
        for home in filter(self._peers.is_dead, range(self.shards)):
            self._in_flight.recall(home)  # it may have granted tokens under a later version, by another rule
        self._changes.begin(version, done, changed)

    @property
    def changing(self) -> bool:
        """True if some pools may still have an earlier rule; continue_change() follows."""
        return self._changes.under_way

    def continue_change(self) -> bool:
        """Goes on with a change that visits many pools, for a few milliseconds; once per pass, before flush(). True: it is
        not over, and another pass should follow at once."""
        return self._changes.continue_sweep()

    def receive(self, peer: int, message: Sequence[Any]) -> None:
        """A message from a peer, as it gave it to its `send`; tuples may have become lists."""
        if self._peers.outbox.is_of_session(peer, message):
            for item in message[1]:
                self._handlers[item[0]](peer, *item[1:])

    def peer_up(self, peer: int, epoch: int) -> None:
        """An incarnation of a peer can be sent to: it is told what is used here of its pools. A lost peer that is up again
        under the same epoch is the same process; under a higher epoch, its process had ended."""
        known = self._peers.epoch_of(peer)
        if known is not None and known != epoch:
            self.peer_dead(peer)
        elif self._peers.is_up(peer):
            self.peer_lost(peer)
        self._peers.mark_up(peer, epoch)
        self._cache.report_all(peer)
        if known == epoch:
            self._ledger.peer_back(peer)
        self._peers.outbox.post(peer, ("sync", self._changes.version))
        self._in_flight.home_changed(peer)

    def peer_lost(self, peer: int) -> None:
        """The links to a peer broke, and its process may live: what it was granted stays out, what it granted stays here,
        and versions wait, until it is up again or dead."""
        self._peers.mark_lost(peer)
        self._ledger.peer_lost(peer)
        self._in_flight.home_changed(peer)

    def peer_dead(self, peer: int) -> None:
        """A peer's process has ended. What it held is free; what is cached of its pools stays good, unless a change is under
        way."""
        self._full.forget_all()  # where the kernel does not tell deaths
        self._peers.mark_dead(peer)
        self._ledger.peer_dead(peer)
        self._in_flight.home_changed(peer)
        if self._unconfirmed or self._changes.under_way:
            self._in_flight.recall(peer)

    def tick(self, now_s: float) -> None:
        """Deadlines, and idle tokens; about four times a second, with any clock that does not jump."""
        kept: list[Pool] = []
        for pool in self._table.due(now_s, self._turn_s):
            if pool.key in self._in_flight.queues or self._sweep(pool):
                self._table.keep(pool)
                kept.append(pool)
            else:
                self._table.forget(pool)
                self._full.forget(pool.key)
        self._table.visited()
        self.fullest.visited(kept)
        self._in_flight.refuse_overdue(now_s, self._deadline_s)

    def flush(self) -> None:
        """Ends a pass of the loop; call it once per pass, after everything else the pass did, also when it was only a
        tick or a message.

        Sends the messages of the pass, one per peer, with one borrow per pool for all connections that came to wait for it.
        Tells waiters their decisions, and calls the `done` of versions that are done (done_when_all_peers_confirm); both
        may call back.
        """
        in_flight, outbox, terms = self._in_flight, self._peers.outbox, self._table.terms
        while True:
            if outbox.local:
                item = outbox.local.popleft()
                self._handlers[item[0]](self.me, *item[1:])
            elif (
                in_flight.decided
            ):  # before restart_revoked(): a connection that was admitted may be suspended now, and in flight
                self._tell_decision(in_flight.decided.popleft())
            elif in_flight.revoked or in_flight.recalled.kinds:
                in_flight.restart_revoked()
            elif in_flight.queues.unasked:
                in_flight.send_borrows()
            elif not ((self._unconfirmed or self._to_confirm or terms.blocked) and self._confirm_versions()):
                self._ledger.end_pass()
                if not outbox.local:
                    break
        outbox.flush(self._send)

    def totals(self) -> TokenTotals:
        """Tokens in use and cached here, and the pools this shard knows; cheap."""
        return self._table.totals()

    def snapshot(self) -> TokensSnapshot:
        """All of this shard's tokens; for simulations and tests, at the end of a pass."""
        return snapshot(self._table, self._ledger, self._in_flight)

    def describe(self, named: Sequence[str] | None = None, limit: int = 1000) -> dict[str, Any]:
        """See describe.py."""
        return describe(self._table, self._ledger, self.version, limit, named)

    # Steps

    def _tell_decision(self, attempt: Attempt) -> None:
        if attempt.decision is not None and self._in_flight.take_decided(attempt):
            self.decisions_told += 1
            if not attempt.observed:
                self.decided_rpc += 1
                self.refused += attempt.decision is not ADMITTED
            attempt.waiter.decided(attempt.decision)

    def _sweep(self, pool: Pool) -> bool:
        if isinstance(pool, HomePool):
            return self._ledger.sweep(pool)
        return isinstance(pool, HolderPool) and self._cache.sweep(pool)

    def _announce_applied(self, version: int, done: Callable[[], None]) -> None:
        self._peers.outbox.post_all(("sync", version))
        self._unconfirmed.append((version, done))

    def _answer_probe(self, peer: int, number: int) -> None:
        self._peers.outbox.post(peer, ("probed", number))

    def _sync(self, peer: int, version: int) -> None:
        self._peers.note_applied(peer, version)
        self._ledger.peer_reported(peer)
        self._to_confirm[peer] = version

    def _synced(self, peer: int, version: int) -> None:
        self._peers.confirmed[peer] = version

    def _confirm_versions(self) -> bool:
        """Does what waited for peers to apply a version; True if there was anything to do."""
        if self._table.terms.blocked and not self._peers.unheard:
            self._ledger.unblock()
            return True
        known = min(self._changes.version, self._peers.applied_everywhere)
        for peer in [peer for peer, version in self._to_confirm.items() if version <= known]:
            self._peers.outbox.post(peer, ("synced", self._to_confirm.pop(peer)))
        if self._unconfirmed and self._peers.have_confirmed(self._unconfirmed[0][0]):
            _, done = self._unconfirmed.popleft()
            done()  # the callback that was given to `apply`
            return True
        return False

    def check(self) -> None:
        """Raises AssertionError when an invariant of any part does not hold; at the end of a pass."""
        self._table.check()
        self._cache.check()
        self._ledger.check()
        self._in_flight.check()
        self._full.check(self._table.pools)
        assert not self._peers.outbox.local
