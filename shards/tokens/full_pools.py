"""Pools that this shard knows to be full, so that it refuses a connection without asking the pool's home.

A *return* is a token of a tight pool that a connection of any shard stops using. All shards that may have tokens of a pool
count its returns in memory that they share (ReturnCounts). A home that refuses proves that all of the cap is in use
(refused_after_a_probe_only), and tells the number of returns that it read before the proof began.

full_until_a_return  While the number of returns of a pool is the one that came with a refusal, all of its cap is still in use,
    and a connection that arrives is refused at once. When that number was read, every holder was tight; nothing was granted
    since, and earlier grants were read before the probe was answered. So every token was with a connection, and each that gives
    one up is counted.
clients_in_a_hurry_are_asked_for  The first connections after a return ask the home all the same (`asking` of each shard). A client
    that closes a connection and opens another one at once may arrive before the shard of the old connection has read that it is
    closed. Asking the home takes a probe, which gives that shard time to read it. A few such connections are enough: in a storm
    the token goes to another client anyhow.
returned_before_it_is_seen  A return is counted before anything of it can be seen elsewhere: before its shard sends a message,
    and before it closes a socket.
deaths_are_returns  The connections of a shard that dies stop using their tokens: nothing is known to be full while a shard is
    dead, and its next start counts as a return of every pool. A broken link is not a return. A grant that is lost with it was
    sent after the probe, and a home that has granted after a probe sends the refusals of that probe without a number of returns
    (`Contention.returns` is None), so no shard takes the pool for full.
opening_is_a_return  A home that lets a tight pool be cached again counts that as a return: from then on tokens that come back are
    not counted. And if the cap was raised, shards that have yet to apply that version would go on refusing, though the pool is
    half empty.
known_under_the_newest_version  What is known is forgotten when a version is applied, and a refusal under an earlier version than
    the one applied here tells nothing.
known_while_the_pool_is  What is known of a pool is forgotten with it, and all that is known when it would be more than _MOST pools.
"""

from collections.abc import Container
from typing import Final, Protocol

from shards.tokens.pool import Refused

ASKING: Final = 32
"""The connections of a shard that ask after a return: clients_in_a_hurry_are_asked_for."""
_MOST: Final = 4096


class ReturnCounts(Protocol):
    """The returns of all pools of some shards, counted by all of them: shards/supervisor/return_counts.py."""

    def of(self, key: str) -> int | None:
        """The number of returns of a pool, which only rises. None while a shard is dead (deaths_are_returns)."""

    def add(self, key: str) -> None:
        """Counts a return of a pool."""


class NoReturnCounts:
    """The return counts of a shard that shares no memory with others: no pool is known to be full."""

    def of(self, key: str) -> int | None:
        return None

    def add(self, key: str) -> None:
        pass


class Full:
    """A pool is full while its number of returns is `returns`. The next `asking` connections ask the home all the same; each one
    after them gets `refused`."""

    __slots__ = ("asking", "refused", "returns")

    def __init__(self, returns: int, refused: Refused, asking: int) -> None:
        self.returns = returns
        self.refused = refused
        self.asking = asking


class FullPools:
    """The pools that one shard knows to be full; after each return the first `asking` connections ask all the same."""

    def __init__(self, counts: ReturnCounts, asking: int) -> None:
        self._counts = counts
        self._asking: Final = asking
        self._known: dict[str, Full] = {}

    def note(self, key: str, returns: int, refused: Refused) -> None:
        """The pool's home refused a connection, and had read this number of returns before it proved that the pool is full."""
        known = self._known.get(key)
        if known is not None and known.returns == returns:
            return
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[key] = Full(returns, refused, self._asking)

    def refusal(self, key: str) -> Refused | None:
        """The refusal of a connection that arrives now, if the pool is known to be full (full_until_a_return)."""
        known = self._known.get(key)
        if known is None:
            return None
        if known.returns != self._counts.of(key):
            del self._known[key]
            return None
        if known.asking:
            known.asking -= 1
            return None
        return known.refused

    def returns(self, key: str) -> int | None:
        """The number of returns of a pool; None: it can't be told now."""
        return self._counts.of(key)

    def returned(self, key: str) -> None:
        """A connection of this shard stops using its token of a tight pool."""
        self._counts.add(key)

    def forget(self, key: str) -> None:
        """The pool is not known here any more."""
        self._known.pop(key, None)

    def forget_all(self) -> None:
        """Another version is applied (known_under_the_newest_version)."""
        self._known.clear()

    def check(self, pools: Container[str]) -> None:
        """Raises AssertionError when known_while_the_pool_is does not hold; `pools` are those that are known here."""
        assert all(key in pools for key in self._known)
