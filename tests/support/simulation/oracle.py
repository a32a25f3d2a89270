"""The eight invariants of docs/internals/tokens.md, asked of a World from outside. Each failure begins with the invariant's number.

After every pass, `look` checks 2, 3 (order and deadlines), 4, 6, 8 (tight pools) and each part's own check(). On every
decision, `judge` checks 1, 3 (connections refused as unavailable), 5 and 7. At the end `look_back` checks 3 for every other
refusal, which needs to know what became of every connection. On a world that is at rest `nothing_left` checks 8, and 5 (every
version got done), and `nobody_waits_in_vain` checks 3.
"""

from __future__ import annotations

from collections import defaultdict
from typing import cast

from simulation.world import DEADLINE_S, TTL_S, Node, SimulatedConnection, World

from shards.limits.caps import UNLIMITED
from shards.tokens.tokens import ADMITTED, Refused, TokensSnapshot


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
        # Connections served in this pass: (pool, instant since which the connection had waited for it, its number).
        self._served: list[tuple[str, int, int]] = []
        world.on_settled = self.judge

    # On every decision

    def judge(self, connection: SimulatedConnection) -> None:
        """1 and 5: an admission is within the loosest cap that may still be in force. 7: a refusal says why."""
        world, decision = self.world, connection.decision
        if decision is ADMITTED:
            if not connection.started_anew:
                self._served += [(pool, since, connection.number) for pool, (since, *_) in connection.asked.items()]
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
            self._unavailable(connection, decision)
            return
        require(0 <= decision.version < len(world.versions), "7", "no such version:", decision)
        rule = world.versions[decision.version].get(decision.pool)
        require(rule == decision.rule and rule is not None, "7", decision, "but the rule was", rule)
        require(decision.version >= connection.acked, "7", decision, "but all were done with", connection.acked)
        assert rule is not None
        refuses = rule.cap is not None and (connection.at_once or not rule.wait)
        require(refuses, "7", "refused by a rule that does not refuse:", decision)
        self.open_at_refusal.append(connection)

    def _unavailable(self, connection: SimulatedConnection, decision: Refused) -> None:
        """3: it waited for this very pool for the whole deadline, counted anew when its home died or came up; under a
        rule that lets wait, it is refused only while the home is not up."""
        node, home = connection.node, self.world.home(decision.pool)
        _, _, since_s = connection.asked[decision.pool]
        since_s = max(since_s, node.changed_s.get(home, 0.0))
        waited_s = self.world.now_s - since_s
        require(waited_s > DEADLINE_S - 1e-6, "3", f"unavailable after {waited_s} s")
        is_up = home == node.shard or (home in node.known and home not in node.changing)
        waits = decision.rule.wait and not connection.at_once
        require(not (waits and is_up), "3", "unavailable, but the rule lets it wait and its home is up")

    # After every pass

    def look(self, shard: int) -> None:
        """All that can be asked after each pass: of the shard that ended its pass, its own check() and the connections that it
        counts; of it and each other shard, the books between them."""
        node = self.world.nodes[shard]
        if node.alive:
            seen = node.snapshot()
            node.tokens.check()
            self._follow(node, seen)
            node.changed_s.update(dict.fromkeys(node.changing, self.world.now_s))
            node.changing.clear()
            self._in_time(node)
            if self.world.judges_order:
                node.knew = {home: dict(passes) for home, passes in node.knows.items()}
            self._counts(node, seen)
            self._loosens(node, seen)
            for other in self.world.nodes:  # what two other shards have of each other has not changed in this pass
                if other is not node:
                    self._conservation(node, other)
                    self._conservation(other, node)
        self.world.looked = self.world.instant

    def _follow(self, node: Node, seen: TokensSnapshot) -> None:
        """Notes since when each connection in flight uses which of its pools."""
        restarted = node.tokens.restarted != node.restarted
        node.restarted = node.tokens.restarted
        for connection in node.connections:
            if connection.state in ("pending", "suspended"):
                if restarted:  # it may have got a token and given it up again within the pass
                    connection.started_anew = True
                    self.world.count_all(connection)
                asked = connection.asked
                self.world.follow(connection, seen)
                if not connection.started_anew:
                    got = [(pool, since) for pool, (since, *_) in asked.items() if pool in connection.held]
                    self._served += [(pool, since, connection.number) for pool, since in got]
        latest: dict[str, int] = {}
        for pool, since, number in self._served:
            latest[pool] = max(since, latest.get(pool, 0))
            if self.world.judges_order:
                self._in_order(node, pool, self.world.everybody[number])
        self._served.clear()
        for connection in node.connections:
            for pool, (_, until, _) in connection.asked.items():
                if connection.state == "pending" and not connection.started_anew:
                    require(
                        until >= latest.get(pool, until),
                        "3",
                        f"connection {connection.number} waits for {pool} since {until} and was overtaken by one that",
                        f"came at {latest.get(pool)}",
                    )

    def _in_order(self, node: Node, pool: str, served: SimulatedConnection) -> None:
        """3: a connection is not overtaken by one of another shard that came to wait after that shard had heard that the home had
        read the first one's borrow. Asked only of pools whose rule lets connections wait: in others a refusal of the first may be
        on its way."""
        world, home, knew = self.world, self.world.home(pool), served.knew.get(pool, {})
        if not all(rules.get(pool, UNLIMITED).wait for rules in world.versions[world.acked :]):
            return
        for other in world.nodes:
            link = world.links.get((home, other.shard))
            if other is node or (link is not None and link.tokens.get(pool)):
                continue
            for connection in other.connections:
                if connection.state == "pending" and pool in connection.asked and not connection.started_anew:
                    require(
                        connection.asked[pool][1] > knew.get(other.shard, -1),
                        "3",
                        f"connection {connection.number} waits for {pool} on shard {other.shard}, and was overtaken by",
                        f"connection {served.number}",
                    )

    def _in_time(self, node: Node) -> None:
        """3: what a home does not answer within the deadline is refused by the next tick, unless the rule lets it wait."""
        for connection in node.connections:
            late = connection.late
            if late is None or connection.state != "pending" or connection.started_anew:
                continue
            until, since_s = late
            for pool, (_, asked, _) in connection.asked.items():
                if node.changed_s.get(self.world.home(pool), -1.0) >= since_s:
                    connection.late = connection.overdue = None  # counted anew since the home came or went
                require(
                    asked != until or connection.overdue != until,
                    "3",
                    f"connection {connection.number} waits for {pool} beyond the deadline",
                )

    def _counts(self, node: Node, seen: TokensSnapshot) -> None:
        """4: a shard counts every connection, capped or not."""
        expected: dict[str, int] = defaultdict(int)
        for connection in node.connections:
            for pool in connection.pools if connection.state == "open" else seen.in_flight.get(connection, ((),))[0]:
                expected[pool] += 1
        for key, in_use in seen.in_use.items():
            require(in_use == expected.get(key, 0), "4", f"{key}: {in_use} counted, {expected.get(key, 0)} open")
        require(expected.keys() <= seen.in_use.keys(), "4", "in use, but not known:", dict(expected))

    def _loosens(self, node: Node, seen: TokensSnapshot) -> None:
        """8: a pool that is half empty again is not tight at its home, and a shard that its home lets cache it is not tight
        either. After the general cap was raised the home may stay tight until the wheel next visits the pool."""
        if node.tokens.changing:
            return  # some pools may have earlier rules
        since, node.tight_since = node.tight_since, {}
        for pool, mode in seen.modes.items():
            rule = node.rule_of(pool)
            out = seen.in_use[pool] + sum(of.get(pool, 0) for of in (*seen.granted.values(), *seen.unsure.values()))
            roomy = rule.cap is None or (rule.cap > self.world.shards and 2 * out <= rule.cap)
            if mode == "tight" and roomy and pool not in seen.waited_for:
                node.tight_since[pool] = since.get(pool, self.world.now_s)
                is_due = not self.world.has_general_rules or node.ticked_s > node.tight_since[pool] + TTL_S
                require(not is_due, "8", f"{pool} is tight at its home, and half empty")
        tight = sorted(node.may_cache & seen.tight)
        require(not tight, "8", f"shard {node.shard} may cache, but does not:", tight)

    def _conservation(self, home: Node, holder: Node) -> None:
        """2: granted = held + on the way, if the two are linked. 6: the dead hold nothing."""
        if not home.alive:
            return
        mine = home.snapshot()
        granted = mine.granted[holder.shard]
        if holder.shard not in home.met:
            unsure = mine.unsure.get(holder.shard)
            require(
                not granted and not unsure,
                "6",
                f"{home.shard} has tokens of a dead shard {holder.shard} in its books: {granted} {unsure}",
            )
            return
        if not (holder.alive and self.world.linked(home.shard, holder.shard)):
            return
        links = self.world.links
        there, back = links[home.shard, holder.shard].tokens, links[holder.shard, home.shard].tokens
        held = holder.snapshot().held.get(home.shard, {})
        if granted == held and not there and not back:
            return
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

    def look_back(self) -> None:
        """3: for each refusal there was an instant since its arrival at which its cap was in use: by connections that
        were open, or in flight with that token, or that had asked by then and got it later. A connection that waited in
        vain used nothing.

        A connection that left while its token was on the way, or that was granted one before its home had read that it
        left, counts as having used the token until it left (World._leave). To the home a client that goes away and a
        deadline that passes are the same withdrawal, which it has not read when it refuses because of that grant. A
        connection of the home's own shard has no such allowance.
        """
        intervals: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for connection in self.world.everybody:
            end = connection.ended if connection.ended is not None else self.world.instant + 1
            for pool, start in connection.held.items():
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
            tokens, seen = node.tokens, node.tokens.snapshot()
            require(tokens.totals() == (0, 0, 0), "8", f"shard {node.shard} still has", tokens.describe())
            require(not seen.unsettled, "8", "revocations never end:", seen.unsettled)
            require(node.done == len(self.world.versions) - 1, "5", f"shard {node.shard} never got done: {node.done}")
            require(not any(seen.granted.values()) and not seen.unsure, "8", "granted but not known:", seen.granted)

    def nobody_waits_in_vain(self) -> None:
        """3: on a world without anything under way, connections wait only for a cap that lets wait and is in use."""
        for node in self.world.nodes:
            for connection, (_, pool) in node.tokens.snapshot().in_flight.items():
                if pool is None:
                    continue
                rule = self.world.versions[-1].get(pool)
                full = rule is not None and rule.cap is not None and self._in_use(pool) >= rule.cap
                waits = rule is not None and rule.wait and not cast(SimulatedConnection, connection).at_once
                require(full and waits, "3", f"a connection waits for {pool} in vain")

    def _in_use(self, key: str) -> int:
        return sum(node.tokens.snapshot().in_use.get(key, 0) for node in self.world.nodes)

    def cached(self, key: str) -> int:
        """Tokens cached anywhere."""
        return sum(node.tokens.snapshot().cached(key) for node in self.world.nodes if node.alive)

    def granted(self, key: str) -> int:
        """Tokens that a pool's home has granted to other shards."""
        granted = self.world.nodes[self.world.home(key)].tokens.snapshot().granted
        return sum(of.get(key, 0) for of in granted.values())


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
