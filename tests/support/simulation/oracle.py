"""The eight invariants of DESIGN section 3, asked of a World from outside. Each failure begins with the invariant's number.

After every pass, `look` checks 1, 2, 4, 5, 6 and each part's own check(); on every decision, `judge` checks 1, 5 and 7;
at the end `look_back` checks 3 of every refusal, for which one has to know what became of everybody; `nothing_left`
checks 8 on a world that is at rest.
"""

from __future__ import annotations

from collections import defaultdict

from simulation.world import DEADLINE_S, Node, SimulatedConnection, World

from shards.tokens.cache import HolderPool
from shards.tokens.home_pool import HomePool
from shards.tokens.tokens import ADMITTED, Refused


class Violation(AssertionError):
    """An invariant does not hold."""


def require(holds: bool, invariant: str, *words: object) -> None:
    """Raises Violation unless `holds`."""
    if not holds:
        raise Violation(f"invariant {invariant}: " + " ".join(str(word) for word in words))


class Oracle:
    """Watches one world; knows what is open, not what the protocol believes."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.open_at_refusal: list[SimulatedConnection] = []
        world.on_settled = self.judge

    # On every decision

    def judge(self, connection: SimulatedConnection) -> None:
        """1 and 5: an admission is within the loosest cap that may still be in force. 7: a refusal says why."""
        world, decision = self.world, connection.decision
        if decision is ADMITTED:
            for pool in connection.pools:
                if pool in world.forced:
                    continue
                cap = max(world.caps(pool, world.acked))
                require(
                    world.open[pool] <= cap,
                    "1/5",
                    f"{world.open[pool]} open in {pool} with a cap of {cap}, version {world.acked} acknowledged",
                )
            return
        assert isinstance(decision, Refused)
        require(decision.pool in connection.pools, "7", "refused by a pool that is not its own:", decision)
        if decision.unavailable:
            waited_s = world.now_s - connection.arrived_s
            require(waited_s > DEADLINE_S - 1e-6, "3", f"unavailable after {waited_s} s")
            return
        require(0 <= decision.version < len(world.versions), "7", "no such version:", decision)
        rule = world.versions[decision.version].get(decision.pool)
        require(rule == decision.rule and rule is not None, "7", decision, "but the rule was", rule)
        assert rule is not None
        require(rule.cap is not None and not rule.wait, "7", "refused by a rule that does not refuse:", decision)
        self.open_at_refusal.append(connection)

    # After every pass

    def look(self, shard: int) -> None:
        """Everything that holds at every instant, and of the shard that ended its pass, what it says of itself."""
        node = self.world.nodes[shard]
        if node.alive:
            node.tokens.check()
            self._follow_claims(node)
            self._counts(node)
        for home in self.world.nodes:
            if home.alive:
                self._conservation(home)
        self.world.looked = self.world.instant

    def _counts(self, node: Node) -> None:
        """4: a shard counts every connection, capped or not."""
        expected: dict[str, int] = defaultdict(int)
        attempts = node.tokens._waiting._attempts
        for connection in node.connections:
            held = connection.pools if connection.state == "open" else attempts[connection].taken
            for pool in held:
                expected[pool] += 1
        for key, pool in node.tokens._table.pools.items():
            require(
                pool.in_use == expected.get(key, 0), "4", f"{key}: {pool.in_use} counted, {expected.get(key, 0)} open"
            )
        require(expected.keys() <= node.tokens._table.pools.keys(), "4", "in use, but not known:", dict(expected))

    def _conservation(self, home: Node) -> None:
        """2: granted = held + on the way, for every pair that has heard of each other. 6: the dead hold nothing."""
        links, grants = self.world.links, home.tokens._ledger._grants._of
        for holder in self.world.nodes:
            if holder is home:
                continue
            granted = grants[holder.shard]
            if home.known.get(holder.shard) is None:
                require(
                    not granted, "6", f"{home.shard} has tokens of a dead shard {holder.shard} in its books: {granted}"
                )
                continue
            if (
                not holder.alive
                or home.known[holder.shard] != holder.epoch
                or holder.known.get(home.shard) != home.epoch
            ):
                continue
            there, back = links[home.shard, holder.shard].tokens, links[holder.shard, home.shard].tokens
            pools = holder.tokens._table.pools
            held = {
                key: pool.held
                for key, pool in pools.items()
                if isinstance(pool, HolderPool) and pool.home == home.shard
            }
            for key in granted.keys() | held.keys() | there.keys() | back.keys():
                if self.world.home(key) != home.shard:
                    continue
                on_the_way = there.get(key, 0) + back.get(key, 0)
                require(
                    granted.get(key, 0) == held.get(key, 0) + on_the_way,
                    "2",
                    f"{key}: {home.shard} granted {granted.get(key, 0)} to {holder.shard}, which holds",
                    f"{held.get(key, 0)}, and {on_the_way} are on the way",
                )

    # Invariant 3

    def _follow_claims(self, node: Node) -> None:
        """Notes since when each connection in flight asks for or holds which of its pools."""
        attempts = node.tokens._waiting._attempts
        now = self.world.instant
        for connection in node.connections:
            if connection.state != "pending":
                continue
            attempt = attempts[connection]
            claimed = connection.pools[: attempt.index + 1]
            if attempt.index < connection.held:  # it started anew
                for pool in connection.pools[: connection.held]:
                    connection.past.append((pool, connection.claims.pop(pool), now))
            for pool in claimed:
                connection.claims.setdefault(pool, max(connection.arrived, self.world.looked + 1))
            connection.held = attempt.index

    def look_back(self) -> None:
        """3: for each refusal there was an instant since its arrival at which its cap was in use: by connections that
        were open, or in flight with that token, or that got it later although they had asked by then."""
        intervals: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for connection in self.world.everybody:
            end = connection.ended if connection.ended is not None else self.world.instant + 1
            for pool, start in connection.claims.items():
                intervals[pool].append((start, end))
            for pool, start, until in connection.past:
                intervals[pool].append((start, until))
        for connection in self.open_at_refusal:
            refused, ended = connection.decision, connection.ended
            assert isinstance(refused, Refused) and ended is not None and refused.rule.cap is not None
            most = _most(intervals[refused.pool], connection.arrived, ended)
            require(
                most >= refused.rule.cap,
                "3",
                f"connection {connection.number} arrived at {connection.arrived} and was refused at {ended}: {refused},",
                f"but at no instant between were more than {most} in use",
            )

    # At rest

    def nothing_left(self) -> None:
        """8: when nothing is in use and the TTL has passed, no pool takes memory, no token is anywhere but at home."""
        for node in self.world.nodes:
            tokens = node.tokens
            require(tokens.totals() == (0, 0, 0), "8", f"shard {node.shard} still has", tokens.describe())
            require(not tokens._ledger.revoking and not tokens._ledger.blocked, "8", "revocations never end")
            require(node.done == len(self.world.versions) - 1, "5", f"shard {node.shard} never got done: {node.done}")
            books = tokens._ledger._grants._of
            require(not any(books.values()), "8", "granted but not known:", books)

    def nobody_waits_in_vain(self) -> None:
        """Nobody waits but for a cap that lets wait and is in use."""
        for node in self.world.nodes:
            for attempt in node.tokens._waiting.queues:
                rule = self.world.versions[-1].get(attempt.key)
                full = rule is not None and rule.cap is not None and self._in_use(attempt.key) >= rule.cap
                require(full and rule is not None and rule.wait, "3", f"somebody waits for {attempt.key} in vain")

    def _in_use(self, key: str) -> int:
        pools = [node.tokens._table.pools.get(key) for node in self.world.nodes]
        return sum(pool.in_use for pool in pools if pool is not None)

    def cached(self, key: str) -> int:
        """Tokens cached anywhere."""
        pools = [node.tokens._table.pools.get(key) for node in self.world.nodes if node.alive]
        return sum(pool.cached for pool in pools if isinstance(pool, HolderPool))

    def home_pool(self, key: str) -> HomePool:
        """A pool at its home."""
        return self.world.nodes[self.world.home(key)].tokens._ledger.pool_of(key)


def _most(intervals: list[tuple[int, int]], start: int, end: int) -> int:
    """The highest number of [from, until) intervals over one instant in [start, end]."""
    changes = []
    for begin, until in intervals:
        if until > start and begin <= end:
            changes.append((max(begin, start), 1))
            changes.append((until, -1))
    changes.sort()
    most = now = 0
    for at, change in changes:
        if at > end:
            break
        now += change
        most = max(most, now)
    return most
