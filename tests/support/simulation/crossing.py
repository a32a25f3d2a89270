"""A world in which three messages cross each other in the one order that a guard exists for; too rare for drawn schedules."""

from __future__ import annotations

from simulation.cluster import SimulatedCluster
from simulation.world import SimulatedConnection


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
