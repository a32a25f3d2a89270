"""Helper verbs for scenarios: a World in which everything that is under way arrives before the next verb."""

from __future__ import annotations

from simulation.oracle import Oracle
from simulation.world import ALL, Rules, SimulatedConnection, World

from shards.limits.caps import CapRule
from shards.tokens.tokens import ADMITTED, Refused

PER_IP = "kafka_connections_max_per_ip"
TOTAL = "kafka_connections_max"
WAITING = "max.connections"


class SimulatedCluster:
    """Some shards, and connections from `ip` unless said otherwise. Checks every invariant after every verb. A change visits
    `piece` pools in a pass."""

    def __init__(self, shards: int = 4, ip: str = "10.0.0.1", piece: int = ALL) -> None:
        self.world = World(shards, piece=piece)
        self.oracle = Oracle(self.world)
        self.pool = f"ip:{ip}"
        self.messages = 0
        self.run()

    @property
    def home(self) -> int:
        """The home of the pool."""
        return self.world.home(self.pool)

    @property
    def elsewhere(self) -> int:
        """A shard that is not its home."""
        return (self.home + 1) % self.world.shards

    def run(self) -> None:
        """Lets everything arrive."""
        world = self.world
        for node in world.nodes:
            if node.alive:
                world.end_pass(node.shard)
        for _ in range(1000):
            moved = False
            for node in world.nodes:
                if not node.alive:
                    continue
                while node.pushed:
                    world.apply(node.shard)
                for peer in world.waiting_events(node.shard):
                    while world.links[peer, node.shard].events:
                        world.deliver(peer, node.shard)
                        self.messages += 1
                    moved = True
                world.end_pass(node.shard)
                self.oracle.look(node.shard)
                moved = moved or node.tokens.changing
            if not moved and not any(world.waiting_events(node.shard) for node in world.nodes if node.alive):
                return
        raise AssertionError("the shards never stop talking")

    def set_caps(self, **caps: CapRule) -> None:
        """A configuration change, acknowledged: rules by kind of pool; what is not named keeps its rule."""
        rules: Rules = dict(self.world.versions[-1])
        rules.update({self.pool if kind == "ip" else kind: rule for kind, rule in caps.items()})
        version = self.world.push(rules)
        self.run()
        assert self.world.acked == version

    def set_cap(self, cap: int | None) -> None:
        """The cap of the IP."""
        self.set_caps(ip=CapRule(cap, PER_IP if cap is not None else ""))

    def arrive(self, on: int, pools: tuple[str, ...] = ()) -> SimulatedConnection:
        """A connection arrives; nothing else happens yet."""
        return self.world.arrive(on, pools or (self.pool,))

    def try_open(self, on: int, pools: tuple[str, ...] = ()) -> SimulatedConnection:
        """A connection arrives, and is decided if it can be."""
        connection = self.arrive(on, pools)
        self.run()
        return connection

    def open(self, count: int, on: int | None = None) -> list[SimulatedConnection]:
        """`count` connections, on one shard or in turn on all, all of which are admitted."""
        opened = []
        for number in range(count):
            shard = number % self.world.shards if on is None else on
            opened.append(self.try_open(shard))
            assert admitted(opened[-1]), opened[-1].decision
        return opened

    def close(self, connections: list[SimulatedConnection]) -> None:
        """These connections close."""
        for connection in connections:
            self.world.close(connection)
        self.run()

    def kill(self, shard: int) -> None:
        """A shard dies, and its peers have seen it."""
        self.world.crash(shard, eof_first=False)
        self.run()

    def restart(self, shard: int) -> None:
        """It is back, and known to all."""
        self.world.start(shard)
        self.run()

    def wait(self, seconds: float) -> None:
        """Time passes, in ticks of a quarter second."""
        for _ in range(int(seconds * 4)):
            self.world.now_s += 0.25
            for node in self.world.nodes:
                if node.alive:
                    self.world.tick(node.shard)
            self.run()

    def cached(self) -> int:
        """Idle tokens of the pool away from home."""
        return self.oracle.cached(self.pool)

    def finish(self) -> None:
        """Closes all, waits, and checks that nothing is left and that no connection was refused without reason."""
        while left := [one for node in self.world.nodes for one in node.connections if one.state == "open"]:
            self.close(left)
        self.wait(30)
        self.oracle.nothing_left()
        self.oracle.look_back()


def admitted(connection: SimulatedConnection) -> bool:
    """Whether it is in."""
    return connection.decision is ADMITTED


def refused(connection: SimulatedConnection) -> bool:
    """Whether it was turned away by a rule."""
    return isinstance(connection.decision, Refused) and not connection.decision.unavailable


def pending(connection: SimulatedConnection) -> bool:
    """Whether it still waits."""
    return connection.decision is None
