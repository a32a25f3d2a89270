"""A schedule: what happens in a World, in an order drawn from a seed. The same seed gives the same run, step by step."""

from __future__ import annotations

import random
from collections.abc import Callable

from simulation.general_rule import GeneralRule
from simulation.logins import Logins
from simulation.oracle import Oracle, require
from simulation.world import ALL, TTL_S, Rules, World, piece_of

from shards.limits.caps import CapRule
from shards.tokens.tokens import Tokens

SETTINGS = {"broker": "kafka_connections_max", "listener": "max.connections", "ip": "kafka_connections_max_per_ip"}
SHARD_COUNTS = [1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 8, 16]


class Schedule:
    """One seeded run. Most passes only let the world move; some bring connections, changes, crashes, the clock."""

    def __init__(
        self, seed: int, tokens: Callable[..., Tokens] = Tokens, log: Callable[[str], None] | None = None
    ) -> None:
        self.draw = draw = random.Random(seed)
        shards = draw.choice(SHARD_COUNTS)
        self.passes = draw.randrange(40, 120)
        self.ips = [f"ip:10.0.{draw.randrange(256)}.{draw.randrange(256)}" for _ in range(draw.randrange(1, 4))]
        self.listener = draw.choice(["listener:A", "listener:B", "listener:EXTERNAL"])
        self.caps = draw.choice([[0, 1, 2, 3], [2, 4, 6, 8, 12], [4, 10, 20, 40], [0, 1, 3, 5, 10, 30]])
        self.no_cap_share = draw.choice([0.0, 0.2, 0.4])
        self.wait_share = draw.choice([0.0, 0.0, 0.3])
        self.changes = draw.choice([0.0, 0.03, 0.1])
        self.crashes = draw.choice([0.0, 0.0, 0.02, 0.05]) if shards > 1 else 0.0
        self.clock = draw.choice([0.0, 0.02, 0.1])
        self.cancels = draw.choice([0.0, 0.1])
        self.arrivals = draw.choice([0.3, 0.6])
        self.closes = draw.choice([0.2, 0.5])
        self.forced = draw.choice([0.0, 0.0, 0.05, 0.2])
        self.haste = draw.choice([1, 3, 10])  # events a shard reads in one pass, at most
        self.cuts = draw.choice([0.0, 0.0, 0.03, 0.1]) if shards > 1 else 0.0
        self.stalls = draw.choice([0.0, 0.0, 0.03])
        self.rated = draw.choice([0.0, 0.0, 0.5])  # of the arrivals, how many wait for a rate before their last pool
        self.resumes = draw.choice([0.02, 0.3])
        self.slow = {draw.randrange(shards)} if draw.random() < 0.2 else set()  # shards that read one event in a pass
        self.woken: set[int] = set()  # shards that stood still until now
        self.slow_links = {
            (draw.randrange(shards), draw.randrange(shards)) for _ in range(draw.choice([0, 0, 0, shards]))
        }
        self.overlooks = 0.9  # how often a shard does not look at its slow links
        self.then_slow: set[tuple[int, int]] = set()  # the slow links after these
        self.races = 0.0  # how often three connections move at once on three shards
        self.blinks = 0.0  # how many of the crashes are over at once, so that peers read of both in one pass
        self.started = -1  # the shard that started last, and is to come to the next version late
        self.again = draw.choice([0.0, 0.0, 0.02])  # how often a version is sent twice
        self.patience_s = draw.choice(
            [0.5, 2.0, 1000.0]
        )  # of the coordinator, before it kills who has not acknowledged
        self.hurry = random.Random(f"at once {seed}")  # of its own, as an answer that comes sooner changes little else
        self.at_once = self.hurry.choice([0.0, 0.0, 0.3])  # of the arrivals, how many wait for no other to close
        kind = draw.choice(["any", "calm", "scarce", "changes", "links", "homes die"])
        if kind in ("calm", "scarce", "changes", "links"):  # only connections and changes
            self.crashes = self.cuts = self.stalls = self.again = 0.0
            self.slow, self.slow_links, self.patience_s = set(), set(), 1000.0
        if kind == "scarce":  # few tokens, and clients that come and go at once
            shards, self.caps, self.ips = draw.choice([2, 3]), [1, 1, 2], self.ips[:1]
            self.cancels, self.arrivals, self.closes = draw.choice([0.0, 0.2, 0.5]), 0.8, 1.0
            self.haste, self.passes = draw.choice([1, 2, 10]), 250
            self.changes, self.no_cap_share, self.wait_share = 0.0, 0.0, 0.0
            self.forced, self.races = draw.choice([0.0, 0.0, 0.0, 0.3]), draw.choice([0.0, 0.3])
        if (
            kind == "changes"
        ):  # caps that come and go over connections that are open or in flight, and are heard of late
            shards, self.caps, self.ips = draw.choice([3, 4]), [1, 2, 3, 10], self.ips[:1]
            self.changes, self.no_cap_share, self.wait_share = 0.2, 0.4, draw.choice([0.0, 0.3])
            self.rated, self.resumes, self.closes = draw.choice([0.0, 0.5]), 0.1, 0.1
            self.arrivals, self.forced, self.cancels, self.haste = 0.6, 0.0, 0.0, draw.choice([1, 3])
            self.slow_links = {(draw.randrange(shards), draw.randrange(shards)) for _ in range(2)}
            self.passes = 150
        if kind == "links":  # links that break and come back
            shards, self.caps, self.ips = draw.choice([2, 3, 4]), [1, 2, 4], self.ips[:1]
            self.cuts, self.changes, self.wait_share, self.forced = 0.15, draw.choice([0.0, 0.05]), 0.0, 0.0
            self.closes, self.arrivals = 0.3, 0.6
        if kind == "homes die":  # caches full of tokens, caps that are cut, and homes that die and return
            shards, self.caps, self.ips = draw.choice([2, 3, 4]), [1, 2, 3, 40], self.ips[:1]
            self.slow, self.slow_links, self.haste = set(), set(), draw.choice([1, 3])
            self.changes, self.crashes, self.blinks = 0.3, 0.15, draw.choice([0.0, 0.9])
            self.rated, self.resumes, self.closes = draw.choice([0.0, 0.5]), 0.02, 0.1
            self.arrivals, self.forced = 0.6, 0.0
            if draw.random() < 0.3:  # a shard is far from the others: a new home hears late what it uses
                far = draw.randrange(shards)
                self.slow_links = {link for each in range(shards) for link in ((far, each), (each, far))}
                self.changes, self.crashes = 0.02, 0.03
        self.rare = random.Random(f"rare {seed}").random()
        if (
            0.08 < self.rare < 0.12
        ):  # connections that wait for others to close, for longer than the deadline of those that don't
            kind, self.caps, self.no_cap_share, self.wait_share = "waits", [1, 2, 4], 0.0, 0.8
            self.clock, self.arrivals, self.closes = 0.1, 0.6, 0.1
        if self.rare < 0.08:  # shards that start under one version while the others come to the next
            kind = "late starts"
            shards, self.caps, self.ips = 3, [1, 1, 2], self.ips[:1]
            self.crashes = self.cuts = self.stalls = self.again = self.forced = self.cancels = 0.0
            self.slow, self.patience_s, self.haste, self.passes = set(), 1000.0, 3, 250
            self.changes, self.no_cap_share, self.wait_share, self.overlooks = 0.0, 0.0, 0.0, 0.98
            self.rated, self.resumes, self.closes, self.arrivals = 0.2, 0.04, 0.1, 0.6
        self.general_kind = random.Random(f"rule cut {seed}").choice([*[None] * 6, "any", "cuts"])
        if kind == "late starts":
            self.general_kind = None  # its versions are drawn one by one
        if self.general_kind == "cuts":  # of all addresses, whose tokens are cached or held in flight elsewhere
            shards, self.caps, self.ips = draw.choice([2, 3]), [1, 3, 12, 40], self.ips[:2]
            self.changes, self.no_cap_share, self.wait_share, self.forced = 0.0, 0.05, 0.0, 0.0
            self.arrivals, self.closes, self.passes = 0.6, draw.choice([0.1, 0.5]), 200
            self.rated, self.resumes = draw.choice([0.0, 0.5]), draw.choice([0.02, 0.1])
            self.haste = draw.choice([3, 10])
            self.slow, self.slow_links = set(), set()
        self.kind = kind
        self.stalled: dict[int, int] = {}  # shard -> passes for which it still stands still
        self.piece = piece_of(seed)
        self.world = World(shards, tokens, log, piece=self.piece)
        self.oracle = Oracle(self.world)
        self.logins = Logins(seed, self.world, self.caps)
        self.world.has_general_rules = self.general_kind is not None
        self.general = GeneralRule(seed, self.world, self._rule, self.ips)

    def run(self) -> None:
        """Runs to the end and to rest; raises Violation, or the exception of a shard that failed."""
        calm = self.kind != "late starts" and not (self.crashes or self.cuts or self.stalls) and self.patience_s > 100.0
        # A token that was granted to one who left is the next one's on his shard, whoever waits elsewhere.
        all_stay = not (self.cancels or self.races or self.at_once or self.logins.pools)
        self.world.judges_order = calm and all_stay
        of_users = {pool: self.logins.rule() for pool in self.logins.pools}
        self.world.push(self.general.first({pool: self._rule(pool) for pool in self._pools()}) | of_users)
        if self.rare < 0.9:  # else most of it is over before all have met, and listen
            self._settle_down()
        for _ in range(self.passes):
            self._something()
        self._come_to_rest()

    def _pools(self) -> list[str]:
        return ["broker", self.listener, *self.ips]

    def _rule(self, pool: str) -> CapRule:
        draw = self.draw
        if draw.random() < self.no_cap_share:
            return CapRule(None, "")
        kind = pool.partition(":")[0]
        if self.kind == "waits" and kind == "ip":
            return CapRule(None, "")
        cap = draw.choice(self.caps) * (1 if kind == "ip" else 2)
        return CapRule(cap, SETTINGS[kind], kind != "ip" and cap > 0 and draw.random() < self.wait_share)

    def _something(self) -> None:
        world, draw = self.world, self.draw
        if draw.random() < self.changes:
            rules: Rules = dict(world.versions[-1])
            for pool in draw.sample(self._pools(), draw.randrange(0, 3)):
                rules[pool] = self._rule(pool)
            world.push(rules)
        self.logins.change()
        self.general.change()
        if draw.random() < self.crashes:
            self._crash_or_start()
        if draw.random() < self.clock:
            world.now_s += draw.choice([0.1, 0.3, 0.6, 3.0])
        if draw.random() < self.cuts:
            self._cut_or_relink()
        if self.kind == "late starts":
            if draw.random() < 0.008:
                self._start_late()
            elif all(node.done == len(world.versions) - 1 for node in world.nodes if node.shard != self.started):
                self.slow_links = self.then_slow
        if draw.random() < self.races:
            self._race()
        if draw.random() < self.stalls:
            self.stalled[draw.randrange(world.shards)] = draw.choice([5, 20, 40])
        if draw.random() < 0.1:
            for shard in world.overdue(self.patience_s):
                world.crash(shard, eof_first=False)
        self.woken |= {shard for shard, passes in self.stalled.items() if passes <= 1}
        self.stalled = {shard: passes - 1 for shard, passes in self.stalled.items() if passes > 1}
        alive = [node.shard for node in world.nodes if node.alive and node.shard not in self.stalled]
        if alive:
            self._pass(draw.choice(alive))

    def _race(self) -> None:
        """One client closes and another, which waits, goes away, just before a third comes: all three cross each other."""
        world, draw = self.world, self.draw
        pool = draw.choice(["broker", *self.ips])
        home = world.home(pool)
        away = [each for node in world.nodes if node.shard != home for each in node.connections if pool in each.pools]
        closing = [each for each in away if each.state == "open"]
        waiting = [each for each in away if each.state == "pending" and pool in each.asked]
        if closing and waiting and world.listens(home):
            gone, closed = draw.choice(waiting), draw.choice(closing)
            world.cancel(gone)
            self._end_pass(gone.node.shard)
            world.close(closed)
            self._end_pass(closed.node.shard)
            world.arrive(home, (pool,))
            self._end_pass(home)

    def _end_pass(self, shard: int) -> None:
        self.world.end_pass(shard)
        self.oracle.look(shard)

    def _cut_or_relink(self) -> None:
        world, draw = self.world, self.draw
        broken = world.broken()
        if broken and draw.random() < 0.6:
            world.relink(*draw.choice(broken))
            return
        one, two = draw.sample(range(world.shards), 2)
        if world.linked(one, two):
            world.cut(one, two, keep=draw.choice([0, 0, 1, 3]))

    def _crash_or_start(self) -> None:
        world, draw = self.world, self.draw
        node = draw.choice(world.nodes)
        if draw.random() < (0.8 if self.kind == "homes die" else 0.4):
            node = world.nodes[world.home(draw.choice(self._pools()))]
        if node.alive:
            world.crash(node.shard, eof_first=draw.random() < 0.5)
            if draw.random() >= self.blinks:
                return
            self.woken.update(range(world.shards))
        world.start(node.shard, silently=draw.random() < 0.3)
        self.oracle.look(node.shard)

    def _start_late(self) -> None:
        """No cap is set, and a connection in flight holds tokens. A shard has died and starts again. Those who hear late of
        that come to a version with a cap before; it comes to that after its first, as publisher.one_push_at_a_time says."""
        world, draw = self.world, self.draw
        for connection in [each for each in world.everybody if each.state == "open"]:
            world.close(connection)
        world.push({})
        self._settle_down()
        pool = draw.choice(self._pools()[:2])  # of which a connection that waits for its rate has a token
        home = world.nodes[world.home(pool)]
        node, third = draw.sample([each for each in world.nodes if each is not home], 2)
        world.crash(node.shard, eof_first=False)
        self._settle_down()
        for _ in range(2):
            world.arrive(third.shard, tuple(self._pools()[:3]), rated=True)
        self._end_pass(third.shard)
        world.start(node.shard)
        world.push({pool: self._rule(pool)})
        self.slow_links = {(node.shard, home.shard), (node.shard, third.shard)}
        self.started = node.shard
        self.then_slow = {(home.shard, third.shard)}

    def _pass(self, shard: int) -> None:
        """One pass of one shard's loop: some of what may happen in one, in any order."""
        steps = [self._read, self._read, self._configure, self._admit, self._end_some, self._end_some, self._tick]
        self.draw.shuffle(steps)
        for step in steps:
            step(shard)
        self.logins.go_on(shard)
        self._end_pass(shard)

    def _read(self, shard: int) -> None:
        world, draw = self.world, self.draw
        most = draw.randrange((1 if shard in self.slow else self.haste) + 1)
        if shard in self.woken:
            self.woken.discard(shard)
            most = 200  # all that came while it stood still
        only = draw.randrange(world.shards) if draw.random() < 0.3 else None  # one link has more to read than others
        for _ in range(most):
            peers = world.waiting_events(shard)
            if draw.random() < self.overlooks:
                peers = [peer for peer in peers if (peer, shard) not in self.slow_links]
            if peers:
                world.deliver(only if only in peers else draw.choice(peers), shard)
        if world.strays and draw.random() < 0.1:
            world.deliver_stray(draw.randrange(len(world.strays)))

    def _configure(self, shard: int) -> None:
        world, draw = self.world, self.draw
        if draw.random() < self.again:
            world.push_again(shard)
        node = world.nodes[shard]
        if shard == self.started and (node.done < 0 or draw.random() < 0.8):
            return
        if node.pushed and draw.random() < 0.4:
            skip, how = draw.random() < 0.3, draw.choice(["exact", "exact", "kinds", "unknown"])
            if how == "exact" and self.piece < ALL:
                how = "kinds"  # else few changes visit all pools, in pieces
            how = self.general.how(how)
            world.apply(shard, skip=skip, how=how)

    def _admit(self, shard: int) -> None:
        world, draw = self.world, self.draw
        if not world.listens(shard) or (self.started not in (-1, shard) and draw.random() < 0.9):
            return
        if draw.random() < self.arrivals:
            for _ in range(draw.choice([1, 1, 2, 5])):
                pools = draw.choice([("broker", draw.choice(self.ips)), tuple(self._pools()[:3])])
                rated = draw.random() < self.rated
                world.arrive(shard, pools, rated=rated, at_once=not rated and self.hurry.random() < self.at_once)
        if draw.random() < self.forced:
            world.force(shard, draw.choice(self._pools()))

    def _end_some(self, shard: int) -> None:
        world, draw = self.world, self.draw
        for connection in list(world.nodes[shard].connections):
            if connection.state == "open" and draw.random() < self.closes * 0.2:
                world.close(connection)
            elif connection.state in ("pending", "suspended") and draw.random() < self.cancels:
                world.cancel(connection)
            elif connection.state == "suspended" and draw.random() < self.resumes:
                world.resume(connection)

    def _tick(self, shard: int) -> None:
        if self.draw.random() < 0.2:
            self.world.tick(shard)

    # To rest

    def _settle_down(self) -> None:
        """Lets everything arrive that is under way."""
        world = self.world
        for _ in range(1000):
            busy = False
            for node in world.nodes:
                peers = world.waiting_events(node.shard)
                for peer in peers:
                    world.deliver(peer, node.shard)
                while node.pushed:
                    world.apply(node.shard)
                    busy = True
                for connection in [each for each in node.connections if each.state == "suspended"]:
                    world.resume(connection)
                    busy = True
                if peers or busy or node.tokens.changing:
                    busy = True
                    world.end_pass(node.shard)
                    self.oracle.look(node.shard)
            if not busy:
                return
        require(False, "8", "the shards never stop talking")

    def _come_to_rest(self) -> None:
        world, oracle = self.world, self.oracle
        for pair in world.broken():
            world.relink(*pair)
        for node in world.nodes:
            if not node.alive:
                world.start(node.shard)
        self._settle_down()
        oracle.nobody_waits_in_vain()
        while any(node.connections for node in world.nodes):
            for node in world.nodes:
                for connection in list(node.connections):
                    if connection.state == "open":
                        world.close(connection)
                world.end_pass(node.shard)
                oracle.look(node.shard)
            self._settle_down()
            oracle.nobody_waits_in_vain()
        for _ in range(6):  # idle tokens go home in one turn or two, then the holders' pools go, then the home's
            world.now_s += TTL_S / 2
            for node in world.nodes:
                world.tick(node.shard)
                world.end_pass(node.shard)
                oracle.look(node.shard)
            self._settle_down()
        oracle.nothing_left()
        oracle.look_back()
        wrong = world.books.look_back()
        require(not wrong, "2", "an audit would cry wolf:", *wrong[:3])
