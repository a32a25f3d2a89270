"""Worlds in which the cap of all addresses changes, which is told to no pool of them (rule_changes.py, cut_for_all_recalls).
Each raises Violation if a connection is let in beyond a cap that was acknowledged, or is kept out without reason."""

from __future__ import annotations

from simulation.cluster import PER_IP, SimulatedCluster, admitted, pending, refused
from simulation.general_rule import GENERAL_RULE
from simulation.oracle import require
from simulation.world import TTL_S, SimulatedConnection

from shards.limits.caps import CapRule


class ManyAddresses(SimulatedCluster):
    """Three shards; the cap of the address is the general one."""

    def __init__(self, cap: int | None) -> None:
        super().__init__(3)
        self.world.has_general_rules = True
        self.third = 3 - self.home - self.elsewhere
        self.set_general(cap)

    def push_general(self, cap: int | None) -> None:
        """A cap of all addresses is on its way."""
        rule = CapRule(cap, PER_IP if cap is not None else "")
        self.world.push({**self.world.versions[-1], GENERAL_RULE: rule, self.pool: rule})

    def set_general(self, cap: int | None) -> None:
        """It is acknowledged."""
        self.push_general(cap)
        self.run()
        assert self.world.acked == len(self.world.versions) - 1

    def suspend(self, on: int) -> SimulatedConnection:
        """A connection holds its token while it waits for its rate."""
        connection = self.world.arrive(on, (self.pool, "listener:A"), rated=True)
        self.run()
        assert connection.state == "suspended"
        return connection

    def resume(self, connection: SimulatedConnection) -> None:
        """Its rate lets it go on."""
        self.world.resume(connection)
        self.run()


def _cached_beyond_a_cut() -> ManyAddresses:
    """Two are open on a third shard, which is the new cap, and tokens are cached elsewhere."""
    cluster = ManyAddresses(40)
    cluster.open(2, on=cluster.third)
    cluster.close(cluster.open(4, on=cluster.elsewhere))
    assert cluster.cached() > 0
    cluster.set_general(2)
    return cluster


def cached_elsewhere() -> None:
    """A cached token is not at hand after the cut."""
    cluster = _cached_beyond_a_cut()
    late = cluster.try_open(cluster.elsewhere)
    require(refused(late), "3", "not refused:", late.decision)
    cluster.finish()


def cached_and_looked_at() -> None:
    """Nor is it when the wheel has met the pool, which was in use a moment ago."""
    cluster = ManyAddresses(40)
    cluster.open(2, on=cluster.third)
    opened = cluster.open(4, on=cluster.elsewhere)
    cluster.wait(TTL_S)
    cluster.close(opened)
    cluster.set_general(2)
    for _ in range(16):  # a turn of the wheel
        cluster.world.now_s += TTL_S / 32
        cluster.world.tick(cluster.elsewhere)
    cluster.try_open(cluster.elsewhere)
    cluster.finish()


def cached_under_a_rule_of_its_own() -> None:
    """Nor when the address has a rule of its own, of which its home has not heard."""
    cluster = _cached_beyond_a_cut()
    world, away = cluster.world, cluster.elsewhere
    world.push({**world.versions[-1], cluster.pool: CapRule(2, "max.connections.per.ip.overrides")})
    world.apply(away)
    world.end_pass(away)
    cluster.arrive(on=away)
    world.end_pass(away)
    cluster.run()
    cluster.finish()


def granted_until_the_home_cuts() -> None:
    """The holder comes to the version first, and is granted more under the earlier cap."""
    cluster = ManyAddresses(40)
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    cluster.open(2, on=cluster.third)
    cluster.push_general(2)
    world.apply(away)
    world.end_pass(away)
    first = cluster.arrive(on=away)
    for source, target in ((away, home), (home, away)):
        world.end_pass(source)
        while world.links[source, target].events:
            world.deliver(source, target)
        world.end_pass(target)
    assert admitted(first) and cluster.cached() > 0
    cluster.run()
    cluster.try_open(away)
    cluster.finish()


def in_flight(*, at_home: bool, queued: bool = False, cut_off: bool = False) -> None:
    """A connection in flight holds a token beyond the cut: it is suspended, or (`queued`) waits for another pool; at home or
    elsewhere. `cut_off`: the links between both are broken meanwhile."""
    cluster = ManyAddresses(3)
    world, home = cluster.world, cluster.home
    on = home if at_home else cluster.elsewhere
    cluster.open(2, on=cluster.third)
    if queued:
        world.push({**world.versions[-1], "broker": CapRule(1, "max.connections", True)})
        cluster.run()
        (blocking,) = [cluster.try_open(cluster.third, ("broker",))]
        late = cluster.try_open(on, (cluster.pool, "broker"))
        assert admitted(blocking) and pending(late)
    else:
        late = cluster.suspend(on)
    if cut_off:
        world.cut(home, on)
        cluster.run()
    cluster.push_general(2)
    cluster.run()
    if cut_off:
        world.relink(home, on)
        cluster.run()
    assert world.acked == len(world.versions) - 1
    if queued:
        cluster.close([blocking])
    else:
        cluster.resume(late)
    require(refused(late), "1/5", "not refused:", late.decision)
    cluster.finish()


def uncapped_of_a_dead_home() -> None:
    """The home of a pool without a cap is dead when a version is applied."""
    cluster = ManyAddresses(None)
    world, away = cluster.world, cluster.elsewhere
    cluster.open(1, on=away)
    cluster.kill(cluster.home)
    world.push({**world.versions[-1], "broker": CapRule(100, "kafka_connections_max")})
    cluster.run()
    late = cluster.arrive(on=away)
    require(admitted(late), "3", "kept out without a cap")
    cluster.restart(cluster.home)
    cluster.finish()


def tight_under_a_wider_cap() -> None:
    """A pool that was full is half empty under a wider cap: it may be cached once the wheel has met it."""
    cluster = ManyAddresses(10)
    cluster.open(10, on=cluster.home)
    assert refused(cluster.try_open(cluster.elsewhere))
    cluster.set_general(100)
    cluster.wait(2 * TTL_S)
    cluster.finish()


def closed_after_a_cut() -> None:
    """Connections beyond the cut close, after more had come in vain: their tokens are good for none."""
    cluster = ManyAddresses(40)
    cluster.open(2, on=cluster.third)
    opened = cluster.open(2, on=cluster.elsewhere)
    cluster.set_general(2)
    require(refused(cluster.try_open(cluster.elsewhere)), "3", "not refused")
    cluster.close(opened)
    cluster.try_open(cluster.elsewhere)
    cluster.finish()


def closed_after_the_wheel_met_it() -> None:
    """The same of a pool that nobody came to: the wheel gave back what was recalled."""
    cluster = ManyAddresses(40)
    cluster.open(2, on=cluster.third)
    opened = cluster.open(2, on=cluster.elsewhere)
    cluster.set_general(2)
    cluster.wait(TTL_S)
    cluster.close(opened)
    cluster.try_open(cluster.elsewhere)
    cluster.finish()
