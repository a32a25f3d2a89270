"""The borrows of one shard: it asks the home of a pool for the tokens that its connections wait for.

The home decides in home_ledger.py, `borrow`. It answers by a grant or a refusal, which connections_in_flight.py takes in (`grant`,
`refuse`).

one_borrow_for_all_that_wait  All connections that came to wait for a pool in a pass are asked for together, by one borrow for each
    run of equal `at_once`.
withdrawn_when_not_needed  A connection that was asked for, and needs no grant any more, is withdrawn: once.
"""

from typing import Final

from shards.ownership import home_of
from shards.tokens.attempt_queues import Attempt, AttemptQueues
from shards.tokens.home_ledger import HomeLedger
from shards.tokens.peers import Peers


class Borrows:
    """One shard's borrows; `sent` is their number. `lump`: the most tokens that it takes beside those that are waited for."""

    def __init__(
        self, me: int, shards: int, peers: Peers, ledger: HomeLedger, queues: AttemptQueues, *, lump: int
    ) -> None:
        self.sent = 0
        self._me: Final = me
        self._shards: Final = shards
        self._peers = peers
        self._ledger = ledger
        self._queues = queues
        self._lump: Final = lump

    def send(self, key: str) -> None:
        """Asks a pool's home for a token for each connection that it does not know of. A home that is not up is asked when it
        is (AttemptQueues.forget)."""
        home = home_of(key, self._shards)
        if not self._peers.is_up(home):
            return
        for waiting, first, last, at_once in self._queues.ask(key):
            self.sent += 1
            if home == self._me:
                self._ledger.borrow(home, key, waiting, waiting, first, last, at_once)
            else:
                self._peers.outbox.post(home, ("borrow", key, waiting, waiting + self._lump, first, last, at_once))

    def withdraw(self, attempt: Attempt) -> None:
        """Tells the home that this attempt needs no grant any more, if the home knows of it."""
        if not attempt.asked:
            return
        home = home_of(attempt.key, self._shards)
        if home == self._me:
            self._ledger.withdraw(home, attempt.key, attempt.ticket)
        else:
            self._peers.outbox.post(home, ("withdraw", attempt.key, attempt.ticket))
