"""Redpanda's client quotas across the shards of a broker: each bucket is at home in one shard, where the others charge.

one_bucket      while the home of a key is there, all shards charge its bucket: what passes is what one bucket lets pass
bucket_a_shard  while it is away (redpanda_home_calls.py), each shard charges a bucket of its own, which begins full and
    knows nothing of the others: a burst of one second and the rate on each shard at most
other_version   while a change of quotas is under way, the home charges by the quotas that it knows
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from shards.limits.client_buckets import KINDS, ClientBuckets, Quotas
from shards.limits.client_quota_managers import PRODUCE
from shards.limits.redpanda_precedence import BucketKey, RedpandaMatch
from shards.limits.short_names import LONGEST_KNOWN
from shards.loop.deferred import MaybeDeferred
from shards.loop.timers import Timers
from shards.ownership import home_of
from shards.quotas.history_replication import Call
from shards.quotas.redpanda_home_calls import RedpandaHomeCalls

_CHARGE: Final = "charge_bucket"
_MOST_KNOWN: Final = 10_000


class SharedBuckets:
    """The buckets of a broker as its shard `me` of `shards` charges them."""

    def __init__(self, me: int, shards: int, *, call: Call, now_ms: Callable[[], int], timers: Timers) -> None:
        self._me = me
        self._shards = shards
        self._now_ms = now_ms
        self._here = ClientBuckets()
        self._quotas: Quotas = {}
        self._known: dict[tuple[str, str, str], RedpandaMatch] = {}  # by kind, user and client id
        self._calls: RedpandaHomeCalls[int] = RedpandaHomeCalls(
            _CHARGE, call=call, timers=timers, read=int, probe=(PRODUCE, BucketKey(None, None, None), 0)
        )
        self.peer_up = self._calls.peer_up
        self.peer_lost = self._calls.peer_lost
        self.reset = self._here.reset

    def serve_on(self, serve: Callable[[str, Callable[..., object]], None]) -> None:
        """Lets the other shards charge here."""
        serve(_CHARGE, lambda peer, kind, key, amount: self._charge_here(kind, BucketKey(*key), amount))

    def set_quotas(self, quotas: Quotas) -> None:
        """The quotas in force, by entity and kind."""
        if quotas != self._quotas:
            self._quotas = {entity: dict(values) for entity, values in quotas.items()}
            self._here.set_quotas(self._quotas)
            self._known.clear()

    def in_use(self, kind: str) -> bool:
        """True while any client has a quota of the kind."""
        return self._here.in_use(kind)

    def match(self, kind: str, user: str, client_id: str) -> RedpandaMatch:
        """The rule that holds for a client; remembered until a quota changes."""
        found = self._known.get((kind, user, client_id))
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._here.match(kind, user, client_id)
            if len(client_id) <= LONGEST_KNOWN:
                self._known[kind, user, client_id] = found
        return found

    def charge(self, kind: str, key: BucketKey, amount: int) -> MaybeDeferred[int]:
        """Takes bytes or partitions; the delay in milliseconds, later if the home is another shard. It is not to be cancelled."""
        home = self.home(kind, key)
        here = partial(self._charge_here, kind, key, amount)
        return here() if home == self._me else self._calls.ask(home, kind, key, amount, decide=here)

    def home(self, kind: str, key: BucketKey) -> int:
        """The shard at which a bucket is charged."""
        return home_of("\0".join((kind, *("\1" if name is None else name for name in key))), self._shards)

    def expire(self) -> None:
        """Forgets buckets that are idle."""
        self._here.expire(now_ms=self._now_ms())

    def _charge_here(self, kind: str, key: BucketKey, amount: int) -> int:
        return self._here.charge(kind, key, amount, now_ms=self._now_ms()) if kind in KINDS else 0
