"""Lent tokens: of the pools at home here, what each other shard was granted and has not given back.

An address mostly has its connections on one other shard. So a pool notes its only holder itself, and the tables by shard are
for pools that several have tokens of: a million addresses have no entry in them.

lent_is_the_sum  pool.lent is the sum of what all shards have. pool.holder has all of it, unless that is SEVERAL: then the
    tables say which shard has how much.
one_holder_until_another  A pool has one holder from the first grant while none was out, until another shard gets some, or
    the links to the holder are lost.
"""

from collections.abc import Iterable, Mapping

from shards.tokens.home_pool import SEVERAL, HomePool
from shards.tokens.pool import Pool


class LentTokens:
    """The lent tokens of the pools at home here; `pools` are all that this shard knows. `others` are the other shards.

    `unsure` are the tokens of a shard whose links were lost: an upper bound of what it holds, until it has reported.
    """

    def __init__(self, others: Iterable[int], pools: Mapping[str, Pool]) -> None:
        self._pools = pools
        self._of: dict[int, dict[str, int]] = {shard: {} for shard in others}
        self._unsure: dict[int, dict[str, int]] = {}

    def add(self, shard: int, pool: HomePool, n: int) -> None:
        """n more tokens are out to a shard."""
        if not pool.lent:
            pool.holder = shard
        elif pool.holder != shard:
            self._share(pool)
            of = self._of[shard]
            of[pool.key] = of.get(pool.key, 0) + n
        pool.lend(n)

    def take_back(self, shard: int, pool: HomePool, n: int) -> None:
        """A shard gave n tokens back; more than it was granted is a bug."""
        had = self._share_of(shard, pool)
        if n > had:
            raise RuntimeError(f"{pool.key}: shard {shard} gives back {n - had} tokens more than it was granted")
        if pool.holder == SEVERAL:
            if n < had:
                self._of[shard][pool.key] = had - n
            else:
                del self._of[shard][pool.key]
        pool.lend(-n)

    def mark_unsure(self, shard: int) -> None:
        """The links to a shard were lost, and with them what was on its way in either direction."""
        unsure = self._unsure.setdefault(shard, {})
        for pool in self._pools.values():
            if isinstance(pool, HomePool) and pool.holder == shard and pool.lent:
                self._share(pool)
        for key, n in self._of[shard].items():
            unsure[key] = unsure.get(key, 0) + n
        self._of[shard] = {}

    def reported(self, shard: int, pool: HomePool, n: int) -> int:
        """A shard reports n tokens in use; returns how many of them were not granted here."""
        unsure = self._unsure.get(shard, {})
        sure = min(n, unsure.get(pool.key, 0))
        if sure:
            unsure[pool.key] -= sure
            pool.lend(-sure)
        self.add(shard, pool, n)
        return n - sure

    def pop_unsure(self, shard: int) -> dict[str, int]:
        """A shard has reported all its use, or is dead: returns {pool: unsure tokens that it does not hold}, which the caller
        subtracts from its pools."""
        return self._unsure.pop(shard, {})

    def is_unsure(self, key: str) -> bool:
        """True if a shard whose links were lost may have tokens of a pool."""
        return any(key in unsure for unsure in self._unsure.values())

    def pop_shard(self, shard: int) -> dict[str, int]:
        """Forgets a dead shard; returns {pool: tokens it had}, which the caller subtracts from its pools."""
        self.mark_unsure(shard)
        return self.pop_unsure(shard)

    def holds(self, shard: int, pool: HomePool) -> bool:
        """True if a shard surely has tokens of a pool."""
        return self._share_of(shard, pool) > 0

    def holders(self, key: str) -> list[int]:
        """The shards that may have tokens of a pool."""
        return list(self.by_shard(key))

    def by_shard(self, key: str) -> dict[int, int]:
        """Tokens of a pool, by shard; of a lost shard, the most that it may have."""
        pool = self._pools.get(key)
        if not isinstance(pool, HomePool) or not pool.lent:
            return {}
        if pool.holder != SEVERAL:
            return {pool.holder: pool.lent}
        found = {shard: of.get(key, 0) + self._unsure.get(shard, {}).get(key, 0) for shard, of in self._of.items()}
        return {shard: n for shard, n in found.items() if n}

    def sure(self) -> dict[int, dict[str, int]]:
        """{shard: {pool: tokens}} of all shards but for what is unsure; a copy."""
        found = {shard: dict(of) for shard, of in self._of.items()}
        for key, pool in self._pools.items():
            if isinstance(pool, HomePool) and pool.lent and pool.holder != SEVERAL:
                found[pool.holder][key] = pool.lent
        return found

    def unsure(self) -> dict[int, dict[str, int]]:
        """{shard: {pool: tokens}} of shards whose links were lost and that have not reported since; a copy."""
        return {shard: dict(of) for shard, of in self._unsure.items()}

    def _share_of(self, shard: int, pool: HomePool) -> int:
        if pool.holder == SEVERAL:
            return self._of[shard].get(pool.key, 0)
        return pool.lent if pool.holder == shard else 0

    def _share(self, pool: HomePool) -> None:
        """From now on the tables have the shards that have tokens of a pool."""
        if pool.holder != SEVERAL:
            self._of[pool.holder][pool.key] = pool.lent
            pool.holder = SEVERAL

    def check(self) -> None:
        """Raises AssertionError unless lent_is_the_sum holds, and every share is of a known pool."""
        shares: dict[str, int] = {}
        for of in (*self._of.values(), *self._unsure.values()):
            for key, n in of.items():
                assert n >= 0, key
                shares[key] = shares.get(key, 0) + n
        assert all(n > 0 for of in self._of.values() for n in of.values())
        pools = {key: pool for key, pool in self._pools.items() if isinstance(pool, HomePool)}
        assert shares.keys() <= pools.keys()
        for key, pool in pools.items():
            assert pool.lent >= 0, key
            alone = pool.lent and pool.holder != SEVERAL
            assert shares.get(key, 0) == (0 if alone else pool.lent), key
