"""A schedule of an AcceptWorld: clients, configurations and faults in an order and at times drawn from a seed.

Judged by the oracle of the tokens, by W1 and W2, and by the time that the last connections take to be served.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from simulation.accept_world import LISTENERS, AcceptWorld, Records
from simulation.oracle import Oracle, require
from simulation.world import TTL_S, piece_of

from broker.process.shard_watchdog import EVERY_S, ShardWatchdog

_TICK_S = 0.25
_CAP, _CORE_CAP, _RATE = "max.connections", "kafka_connections_max", "max.connection.creation.rate"
_SSL_CAP = "turnstile.max.ssl.connections"
_USER_CAP = "turnstile.max.connections.per.user"
_QUIET_S = 16.0  # a whole window of KIP-612, the longest delay, the deadline of a home
_TURN_S = 0.4  # eight rounds: a slot asked for, granted, a rate asked for, granted, the slot given back


class AcceptSchedule:
    """One seeded run."""

    def __init__(self, seed: int, log: Callable[[str], None] | None = None) -> None:
        self.draw = draw = random.Random(f"accept {seed}")
        self.draw_observed = random.Random(f"observed {seed}")  # of its own: the other choices are the same without it
        self.observes = self.draw_observed.random() < 0.5
        self.draw_users = random.Random(f"users {seed}")
        self.users = self.draw_users.choice([(), (), ("alice",), ("alice", "bob")])
        self.logins = self.draw_users.choice([0.1, 0.5])
        self.draw_ssl = random.Random(f"ssl {seed}")
        ssl = self.draw_ssl.choice([(), (), (), (), ("A",), ("A", "B")])
        shards = draw.choice([1, 2, 2, 3, 3, 4])
        ips = [f"10.0.{draw.randrange(256)}.{draw.randrange(1, 256)}" for _ in range(draw.randrange(1, 4))]
        self.ips = ips
        self.rates = draw.choice([False, True, True])
        self.slowest = 1000.0  # connections a second that the tightest rate of listeners lets in
        self.with_rate = [name for name in (_RATE, f"listener.name.a.{_RATE}") if self.rates and draw.random() < 0.5]
        rated = [ip for ip in ips if self.rates and draw.random() < 0.5]
        self.fixed = self._fixed()
        self.caps = draw.choice([[1, 2, 3], [2, 5, 10], [5, 20, 40]])
        self.changes = draw.choice([0.0, 0.01, 0.05])
        self.arrivals = draw.choice([0.2, 0.5])
        self.closes = draw.choice([0.02, 0.1, 0.3])
        self.haste = draw.choice([1, 3, 20])
        self.passes = draw.randrange(60, 160)
        self.steps_s = draw.choice([[0.0, 0.001, 0.002], [0.0, 0.005, 0.02], [0.001, 0.02, 0.3]])
        self.again = draw.choice([0.0, 0.02])
        calm = shards == 1 or draw.random() < 0.5
        self.crashes, self.cuts, self.stalls = (0.0, 0.0, 0.0) if calm else draw.choice(
            [(0.03, 0.0, 0.0), (0.0, 0.05, 0.0), (0.0, 0.0, 0.03), (0.02, 0.02, 0.02)]
        )  # fmt: skip
        self.most_queued = 1000 if calm else draw.choice([4, 20, 1000])  # messages of a link that is not read
        self.timeout_s = draw.choice([0.6, 2.0])
        self.stalled: dict[int, int] = {}
        self.starting: dict[int, float] = {}
        self.ticked_s: dict[int, float] = {}
        self.beaten_s = 0.0
        self.asked: set[int] = set()
        self.shard_watchdog = ShardWatchdog([(0, shard) for shard in range(shards)], now_s=0.0)
        self.world = AcceptWorld(shards, ips, rated=rated, ssl=ssl, users=self.users, log=log, piece=piece_of(seed))
        self.world.calm = calm and max(self.steps_s) < 0.1 and self.haste == 20
        self.oracle = Oracle(self.world)

    def run(self) -> None:
        """Runs to the end and to rest; raises Violation, or whatever else goes wrong."""
        world = self.world
        world.configure(self._state())
        for _ in range(4):
            self._round()
        for _ in range(self.passes):
            self._something()
        self._come_to_rest()
        for desk in world.desks.values():
            desk.shard_listeners.close()  # gives its spare descriptors back: a process runs thousands of schedules

    # Configurations

    def _fixed(self) -> Records:
        """What no change of this schedule touches."""
        draw = self.draw
        fixed: Records = {}
        if draw.random() < 0.3:
            fixed["static", "/inter.broker.listener.name"] = "B"
        if self.rates and draw.random() < 0.3:
            fixed["setting", "/turnstile.ip.rate.recheck"] = "true"
        if self.rates and draw.random() < 0.2:
            fixed["setting", "/kafka_connection_rate_limit"] = "5"
        return fixed

    def _state(self) -> Records:
        draw = self.draw
        state = dict(self.fixed)

        def put(name: str, value: Any) -> None:
            state["setting", f"/{name}"] = str(value)

        for name in self.with_rate:
            rate = draw.choice([10, 30, 100])
            self.slowest = min(self.slowest, rate)
            put(name, rate)
        for ip in self.world.rated:
            state["quota", f'{{"ip":"{ip}"}}'] = {"connection_creation_rate": draw.choice([2, 10, 50])}
        cap = draw.choice(self.caps)
        if draw.random() < 0.6:
            put(draw.choice([_CAP, _CORE_CAP]), 2 * cap)
        if draw.random() < 0.6:
            put(f"listener.name.a.{_CAP}", cap)
        if draw.random() < 0.4:
            put(draw.choice(["max.connections.per.ip", "kafka_connections_max_per_ip"]), draw.choice([0, cap, 2 * cap]))
        if draw.random() < 0.2:
            put("max.connections.per.ip.overrides", f"{self.ips[0]}:{cap}")
        if self.observes:
            state |= self._observed()
        if self.world.ssl:
            state |= self._of_ssl()
        return state | self._of_users() if self.users else state

    def _of_ssl(self) -> Records:
        """A cap of connections over TLS, enforced, observed, both or none."""
        draw = self.draw_ssl
        kinds = [kind for kind in ("setting", "observed") if draw.random() < 0.6]
        return {(kind, f"/{_SSL_CAP}"): str(draw.choice(self.caps)) for kind in kinds}

    def _of_users(self) -> Records:
        """A cap of each user's connections, enforced, observed, both or none."""
        draw = self.draw_users
        kinds = [kind for kind in ("setting", "observed") if draw.random() < 0.6]
        return {(kind, f"/{_USER_CAP}"): str(draw.choice([1, *self.caps])) for kind in kinds}

    def _observed(self) -> Records:
        """Caps that are observed beside the enforced ones; none at times."""
        draw = self.draw_observed
        state: Records = {}
        if draw.random() < 0.2:
            return state
        for names, chance in (
            ((_CAP, _CORE_CAP), 0.6),
            ((f"listener.name.a.{_CAP}",), 0.4),
            (("max.connections.per.ip", "kafka_connections_max_per_ip"), 0.6),
        ):
            if draw.random() < chance:
                state["observed", f"/{draw.choice(names)}"] = str(draw.choice([1, *self.caps]))
        return state

    # What happens

    def _something(self) -> None:
        world, draw = self.world, self.draw
        world.now_s += draw.choice(self.steps_s)
        if draw.random() < self.changes:
            world.configure(draw.choice([world.states[-1], self._state()]))
        if draw.random() < self.arrivals:
            for _ in range(draw.choice([1, 2, 8])):
                world.connect(draw.randrange(world.shards), draw.choice(LISTENERS), draw.choice(self.ips))
        self._faults()
        self._beat()
        alive = [node.shard for node in world.nodes if node.alive and node.shard not in self.stalled]
        if alive:
            self._pass(draw.choice(alive))

    def _faults(self) -> None:
        world, draw = self.world, self.draw
        if draw.random() < self.crashes:
            self._crash(draw.randrange(world.shards))
        if draw.random() < self.stalls:
            self.stalled[draw.randrange(world.shards)] = draw.choice([5, 20, 60])
        self.stalled = {shard: passes - 1 for shard, passes in self.stalled.items() if passes > 1}
        if draw.random() < self.cuts:
            one, two = draw.sample(range(world.shards), 2)
            if world.linked(one, two):
                world.cut(one, two, keep=draw.choice([0, 1, 3]))
        if draw.random() < 0.1:
            for pair in world.broken()[:1]:
                world.relink(*pair)
        for shard in [shard for shard, at_s in self.starting.items() if at_s <= world.now_s]:
            self._start(shard)

    def _crash(self, shard: int) -> None:
        if self.world.nodes[shard].alive:
            self.world.crash(shard, eof_first=False)
            self.starting[shard] = self.world.now_s + self.draw.choice([0.0, 0.05, 0.3])
            self.shard_watchdog.lost((0, shard), now_s=self.world.now_s)
            self.stalled.pop(shard, None)

    def _start(self, shard: int) -> None:
        del self.starting[shard]
        self.asked.discard(shard)
        self.world.start(shard)
        self.oracle.look(shard)
        self.shard_watchdog.answered((0, shard), now_s=self.world.now_s)

    def _beat(self) -> None:
        """The coordinator asks, and ends a shard that does not answer."""
        now_s = self.world.now_s
        if now_s - self.beaten_s < EVERY_S:
            return
        self.beaten_s = now_s
        for node in self.world.nodes:
            if node.alive and self.shard_watchdog.begin_ping((0, node.shard), now_s=now_s):
                self.asked.add(node.shard)
        for _, shard in self.shard_watchdog.take_overdue(self.timeout_s, now_s=now_s):
            self._crash(shard)

    # A pass

    def _pass(self, shard: int) -> None:
        world, draw = self.world, self.draw
        world.begin_pass(shard)
        if shard in self.asked:
            self.asked.discard(shard)
            self.shard_watchdog.answered((0, shard), now_s=world.now_s)
        steps = [self._read, self._configure, self._accept, self._close, self._tick]
        draw.shuffle(steps)
        for step in steps:
            step(shard)
        self._log_in(shard)
        self._end_pass(shard)

    def _end_pass(self, shard: int) -> None:
        world = self.world
        world.end_pass(shard)
        self.oracle.look(shard)
        world.look(shard, rates=self.rates)
        for peer in range(world.shards):
            link = world.links.get((shard, peer))
            if link is not None and len(link.events) > self.most_queued and world.linked(shard, peer):
                world.cut(
                    shard, peer, keep=self.most_queued // 2
                )  # a one-way link that is full is lost: link.py, unwritten_bytes_are_bounded

    def _read(self, shard: int) -> None:
        for _ in range(self.draw.randrange(self.haste + 1)):
            peers = self.world.waiting_events(shard)
            if peers:
                self.world.deliver(self.draw.choice(peers), shard)

    def _configure(self, shard: int) -> None:
        world, draw = self.world, self.draw
        if draw.random() < self.again:
            world.push_again(shard)
        if world.nodes[shard].pushed and draw.random() < 0.5:
            world.apply(shard, how=draw.choice(["exact", "exact", "unknown"]))

    def _accept(self, shard: int) -> None:
        self.world.accept(shard, self.draw.choice([1, 8, 256]))

    def _close(self, shard: int) -> None:
        for connection in list(self.world.nodes[shard].connections):
            if connection.state == "open" and self.draw.random() < self.closes:
                self.world.close(connection)

    def _log_in(self, shard: int) -> None:
        world = self.world
        for connection in list(world.nodes[shard].connections) if self.users else ():
            is_new = connection.number in world.listeners and connection.number not in world.logins
            if is_new and connection.state == "open" and self.draw_users.random() < self.logins:
                world.log_in(connection, self.draw_users.choice(self.users))

    def _tick(self, shard: int) -> None:
        if self.world.now_s - self.ticked_s.get(shard, 0.0) >= _TICK_S:
            self.ticked_s[shard] = self.world.now_s
            self.world.tick(shard)

    # To rest

    def _round(self) -> None:
        """Every shard does all that there is to do."""
        world = self.world
        for node in world.nodes:
            world.begin_pass(node.shard)
            for peer in world.waiting_events(node.shard):
                while world.links[peer, node.shard].events:
                    world.deliver(peer, node.shard)
            while node.pushed:
                world.apply(node.shard)
            world.accept(node.shard, 256)
            self._tick(node.shard)
            self._end_pass(node.shard)

    def _left(self) -> int:
        world = self.world
        waiting = sum(each.state == "pending" for node in world.nodes for each in node.connections)
        return waiting + sum(map(len, world.backlogs.values()))

    def _come_to_rest(self) -> None:
        """Clients come no more, and close: every connection is served in the time that its rates ask for."""
        world = self.world
        self.most_queued = 1 << 30
        for pair in world.broken():
            world.relink(*pair)
        for node in world.nodes:
            if not node.alive:
                self.starting.setdefault(node.shard, 0.0)
                self._start(node.shard)
        until_s = world.now_s + _QUIET_S + self._left() * (2 / self.slowest + _TURN_S)
        while self._left():
            require(world.now_s <= until_s, "time", f"{self._left()} connections are not served after", until_s, "s")
            world.now_s += 0.05
            for connection in [each for node in world.nodes for each in node.connections if each.state == "open"]:
                world.close(connection)
            self._round()
        for node in world.nodes:
            for connection in list(node.connections):
                world.close(connection)
        newest = len(world.versions) - 1  # a change may visit one pool in a pass
        for _ in range(1000):
            is_done = all(node.done == newest for node in world.nodes)
            if is_done and not (world.calls or any(desk.tasks for desk in world.desks.values())):
                break
            self._round()
        for _ in range(8):  # idle tokens go home in one turn or two, then the holders' pools go, then the home's
            world.now_s += TTL_S / 2
            self._round()
            self._round()
        self.oracle.nothing_left()
        self.oracle.look_back()
        wrong = world.books.look_back()
        require(not wrong, "2", "an audit would cry wolf:", *wrong[:3])
        require(not world.calls and not any(desk.tasks for desk in world.desks.values()), "8", "a call is not answered")
