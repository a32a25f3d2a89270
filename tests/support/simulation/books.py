"""What `turnstile audit` concludes from journaled moves of tokens, asked of a World: nothing that is honest may look wrong.

The same statements as in turnstile/pipeline/audit/grant_checks.py, one event after the other; a
World calls the verbs as shards would journal.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from simulation.world import Node, World


class Account:
    """What one holder has of a pool, by its home's moves: `of` is the home's incarnation; `over`: that holder was lost."""

    def __init__(self) -> None:
        self.tokens = 0
        self.of = 0
        self.over = False
        self.is_sure = False  # nothing that the home does not know yet was in use at the last admission


class Event(NamedTuple):
    """What a shard would journal. `what`: of a move its detail, of a connection its number and pools. `slack`: of each pool of
    another shard, how many tokens were left after this, where that is certain."""

    kind: str
    shard: int
    epoch: int
    version: int
    what: dict[str, Any]
    slack: Mapping[str, int] = MappingProxyType({})


class Books:
    """Follows every move, admission and close. `journal`: all of it; `wrong`: what an audit would call a violation, by pool."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.journal: list[Event] = []
        self.wrong: list[tuple[str, str]] = []
        self._accounts: defaultdict[tuple[str, int], Account] = defaultdict(Account)
        self._out: Counter[tuple[str, int]] = Counter()  # pool, home's epoch -> tokens of other shards
        self._open: Counter[tuple[str, int]] = Counter()  # pool, epoch -> open connections

    def started(self, node: Node) -> None:
        self._write("shard_up", node, {})

    # What a home journals

    def granted(self, home: Node, pool: str, to: int, n: int, is_reported: bool) -> None:
        if to != home.shard:
            account = self._accounts[pool, to]
            if account.of != home.epoch or account.over:
                account.tokens, account.of, account.over = 0, home.epoch, False
            account.tokens += n
            self._out[pool, home.epoch] += n
        cap = home.rule_of(pool).cap
        if not is_reported and cap is not None:
            out = self._out[pool, home.epoch] + self._open[pool, home.epoch]
            if out > cap:
                self._wrong(pool, f"{out} out after a grant, cap {cap}")
        what = {"pool": pool, "to": to, "tokens": n}
        self._write("grant", home, {**what, "reported": True} if is_reported else what)

    def reclaimed(self, home: Node, pool: str, peer: int, n: int, is_asked_for: bool) -> None:
        account = self._accounts[pool, peer]
        account.tokens -= n
        self._out[pool, home.epoch] -= n
        slack = {pool: self._slack(pool, peer)} if account.is_sure else {}
        self._write("reclaim", home, {"pool": pool, "from": peer, "tokens": n}, slack)

    def lost(self, home: Node, peer: int, pools: Mapping[str, int]) -> None:
        for pool, n in pools.items():
            self._accounts[pool, peer].over = True
            self._out[pool, home.epoch] -= n
        self._write("reclaim", home, {"from": peer, "tokens": sum(pools.values()), "lost": dict(pools)})

    # What a holder journals

    def admitted(self, node: Node, number: int, pools: tuple[str, ...]) -> None:
        slack = {}
        for pool in pools:
            self._open[pool, node.epoch] += 1
            if self.world.home(pool) != node.shard:
                caps = self.world.caps(pool, self.world.acked)[: node.version + 1 - self.world.acked]
                account = self._accounts[pool, node.shard]
                account.is_sure = bool(caps) and float("inf") not in caps
                if account.is_sure:
                    slack[pool] = self._slack(pool, node.shard)
        self._write("admitted", node, {"conn": number, "pools": pools}, slack)

    def closed(self, node: Node, number: int, pools: tuple[str, ...]) -> None:
        for pool in pools:
            self._open[pool, node.epoch] -= 1
        self._write("closed" if node.alive else "lost", node, {"conn": number, "pools": pools})

    def _slack(self, pool: str, holder: int) -> int:
        tokens, used = self._accounts[pool, holder].tokens, self._open[pool, self.world.nodes[holder].epoch]
        if used > tokens:
            self._wrong(pool, f"shard {holder} has {used} open and {tokens} tokens")
        return tokens - used

    def _wrong(self, pool: str, sentence: str) -> None:
        self.wrong.append((pool, f"at {self.world.instant}: {pool}: {sentence}"))

    def _write(self, kind: str, node: Node, what: dict[str, Any], slack: Mapping[str, int] | None = None) -> None:
        self.journal.append(Event(kind, node.shard, node.epoch, node.version, what, slack or {}))

    def look_back(self) -> list[str]:
        """What is wrong with pools that no connection was forced into."""
        return [sentence for pool, sentence in self.wrong if pool not in self.world.forced]
