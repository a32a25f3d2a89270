"""Worlds in which messages cross each other in the one order that a guard exists for; too rare for drawn schedules."""

from __future__ import annotations

from simulation.cluster import PER_IP, SimulatedCluster
from simulation.world import SimulatedConnection

from shards.limits.caps import CapRule


def vanished_client() -> SimulatedConnection:
    """The only token is on its way home when the last client arrives, and is then granted to a client that had gone away
    before; its shard has answered the probe, but not read of the grant. Raises Violation if the last one is refused."""
    cluster = SimulatedCluster(3)
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    third = 3 - home - away

    def carry(*ways: tuple[int, int]) -> None:
        for source, target in ways:
            world.deliver(source, target)
            world.end_pass(target)

    cluster.set_cap(1)
    opened = cluster.open(1, on=away)
    gone = cluster.arrive(on=third)
    world.end_pass(third)
    carry((third, home), (home, away))  # the borrow, and what is reclaimed for it
    world.close(opened[0])
    world.end_pass(away)  # the token, after the answer to that
    world.cancel(gone)
    world.end_pass(third)
    late = cluster.arrive(on=home)
    carry((away, home))  # nothing was cached: the probe begins
    carry((away, home))  # the token comes, and is granted to the client that has gone
    carry((home, away), (away, home))  # the first answer to the probe
    carry((third, home))  # the withdrawal
    carry((home, third), (third, home))  # the second answer to the probe, before the grant is read
    cluster.run()
    cluster.finish()
    return late


def late_report() -> None:
    """A cap appears. One shard tells late of what it uses, so that the home revokes connections in flight on another.
    One goes on before its shard has read of that, the other after. Raises Violation if one is let in when all are done."""
    cluster = SimulatedCluster(3)
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    third = 3 - home - away

    def drain(*ways: tuple[int, int]) -> None:
        for source, target in ways:
            while world.links[source, target].events:
                world.deliver(source, target)
            world.end_pass(target)

    cluster.open(2, on=third)
    early, late = (world.arrive(away, (cluster.pool, "listener:A"), rated=True) for _ in range(2))
    cluster.run()
    world.push({cluster.pool: CapRule(2, PER_IP)})
    for shard in (home, away):
        world.apply(shard)
        world.end_pass(shard)
    drain((home, away), (away, home))
    world.apply(third)
    world.end_pass(third)
    drain((home, third), (away, third), (third, away), (home, away), (away, third), (away, home))
    drain((third, home), (home, third), (third, home))
    world.resume(early)
    cluster.run()
    world.resume(late)
    cluster.run()
    cluster.finish()
