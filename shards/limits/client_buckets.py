"""The buckets of client quotas by Redpanda's arithmetic: one for each key of a rule (redpanda_precedence.py). Pure.

begins_full       A bucket is made when it is first used, full. Its quota, of a fraction the whole part and at least 1, is its rate
    and what it holds at most: a second's worth.
change_begins_anew  A changed quota makes another bucket, full; one that stays keeps its tokens.
forgotten_idle    A bucket that was not used for IDLE_MS is forgotten, whatever it owes, as Redpanda's.
bounded           There are at most `most` of a kind; for one more, that goes which was used least recently. Redpanda has no bound.
mutations_are_looked_at_before  Of partitions the delay is that before they are taken, and they are taken in any case.

Source: quota_manager (Redpanda 24.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from shards.limits.atomic_token_bucket import AtomicTokenBucket
from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE
from shards.limits.quota_entities import Entity
from shards.limits.redpanda_precedence import BucketKey, RedpandaMatch, RedpandaQuotaTable

KINDS: Final = (PRODUCE, FETCH, MUTATION)
IDLE_MS: Final = 100_000
"""Ten times `default_num_windows` of `default_window_sec`."""
MOST_BUCKETS: Final = 10_000
Quotas = Mapping[Entity, Mapping[str, float]]


class _Used:
    __slots__ = ("bucket", "used_ms")

    def __init__(self, bucket: AtomicTokenBucket, used_ms: int) -> None:
        self.bucket = bucket
        self.used_ms = used_ms


class ClientBuckets:
    """The quotas in force, and the buckets of clients that used one of late."""

    def __init__(self, *, most: int = MOST_BUCKETS) -> None:
        self._most = most
        self._tables = {kind: RedpandaQuotaTable() for kind in KINDS}
        self._used: dict[str, dict[BucketKey, _Used]] = {kind: {} for kind in KINDS}  # least recently used first

    def set_quotas(self, quotas: Quotas) -> None:
        """Other quotas (change_begins_anew)."""
        for kind in KINDS:
            of_kind = ((entity, values[kind]) for entity, values in quotas.items() if kind in values)
            table = self._tables[kind] = RedpandaQuotaTable(of_kind)
            kept = self._used[kind]
            for key in [key for key, used in kept.items() if _rate(table.limit(key)) != used.bucket.rate]:
                del kept[key]

    def reset(self) -> None:
        """No client has used any of a quota yet."""
        for kept in self._used.values():
            kept.clear()

    def in_use(self, kind: str) -> bool:
        """True while any client has a quota of the kind."""
        return self._tables[kind].in_use

    def match(self, kind: str, user: str, client_id: str) -> RedpandaMatch:
        """The rule that holds for a client."""
        return self._tables[kind].match(user, client_id)

    def charge(self, kind: str, key: BucketKey, amount: int, *, now_ms: int) -> int:
        """Takes bytes or partitions of a bucket; the delay in milliseconds. 0 for one that has no quota now."""
        rate = _rate(self._tables[kind].limit(key))
        if rate is None:
            return 0
        bucket = self._bucket(kind, key, rate, now_ms)
        if kind != MUTATION:
            return bucket.use(amount, now_ms=now_ms)
        delay_ms = bucket.use(0, now_ms=now_ms)
        bucket.use(amount, now_ms=now_ms)
        return delay_ms

    def expire(self, *, now_ms: int) -> None:
        """Forgets buckets that are idle (forgotten_idle)."""
        for kept in self._used.values():
            for key in _idle(kept, now_ms):
                del kept[key]

    def __len__(self) -> int:
        return sum(map(len, self._used.values()))

    def _bucket(self, kind: str, key: BucketKey, rate: int, now_ms: int) -> AtomicTokenBucket:
        kept = self._used[kind]
        used = kept.pop(key, None)
        if used is None:
            if len(kept) >= self._most:
                del kept[next(iter(kept))]
            used = _Used(AtomicTokenBucket(rate, now_ms=now_ms, full=True), now_ms)
        used.used_ms = now_ms
        kept[key] = used
        return used.bucket


def _rate(limit: float | None) -> int | None:
    return None if limit is None else max(int(limit), 1)


def _idle(kept: Mapping[BucketKey, _Used], now_ms: int) -> Iterable[BucketKey]:
    """The idle buckets, which are at the front: the least recently used come first."""
    idle = []
    for key, used in kept.items():
        if now_ms - used.used_ms < IDLE_MS:
            break
        idle.append(key)
    return idle
