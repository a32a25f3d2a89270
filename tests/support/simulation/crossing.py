"""Worlds in which messages cross each other in the one order that a guard exists for; too rare for drawn schedules."""

from __future__ import annotations

from collections.abc import Callable

from simulation.cluster import PER_IP, WAITING, SimulatedCluster, admitted, pending, refused
from simulation.world import DEADLINE_S, SimulatedConnection

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


def client_left(cluster: SimulatedCluster, connection: SimulatedConnection) -> None:
    """The client of a connection that waits goes away."""
    cluster.world.cancel(connection)


def deadline_passed(cluster: SimulatedCluster, connection: SimulatedConnection) -> None:
    """A connection that waits gets no answer within the deadline, and is refused as unavailable."""
    world, shard = cluster.world, connection.node.shard
    world.tick(shard)
    world.now_s += DEADLINE_S
    world.tick(shard)


def left_after_the_answer(
    leave: Callable[[SimulatedCluster, SimulatedConnection], None], *, granted_first: bool
) -> tuple[SimulatedConnection, SimulatedConnection]:
    """The only token is on its way home when the probe begins. It goes to the first of two connections, which stops waiting
    after its shard has answered the probe and before that shard reads the grant. `granted_first`: the home grants it
    before the connection leaves, else after. Returns both connections; raises Violation if the oracle objects."""
    cluster = SimulatedCluster(3)
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    third = 3 - home - away

    def carry(source: int, target: int) -> None:
        world.deliver(source, target)
        world.end_pass(target)

    cluster.set_cap(1)
    opened = cluster.open(1, on=away)
    first = cluster.arrive(on=third)
    world.end_pass(third)
    carry(third, home)  # the borrow
    carry(home, away)  # what is reclaimed for it: nothing is cached
    world.close(opened[0])
    world.end_pass(away)  # the token, after the answer to that
    second = cluster.arrive(on=home)
    carry(away, home)  # the answer: the probe begins
    carry(home, third)
    if granted_first:
        carry(away, home)
    leave(cluster, first)
    world.end_pass(third)
    if not granted_first:
        carry(away, home)
    carry(third, home)  # the answer to the probe; the withdrawal is still under way
    carry(home, away)
    carry(away, home)
    cluster.run()
    cluster.finish()
    return first, second


def left_at_home() -> SimulatedConnection:
    """As left_after_the_answer, but the first connection is one of the home's own, and leaves in the pass in which the home
    grants it the token and reads the last answer. Returns the other; raises Violation if that one is refused."""
    cluster = SimulatedCluster(3)
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    third = 3 - home - away
    cluster.set_cap(1)
    opened = cluster.open(1, on=away)
    gone = cluster.arrive(on=home)
    world.end_pass(home)
    world.deliver(home, away)  # what is reclaimed: nothing is cached
    world.end_pass(away)
    world.close(opened[0])
    world.end_pass(away)  # the token, after the answer to that
    late = cluster.arrive(on=third)
    world.end_pass(third)
    for source in (third, away):  # the borrow, and the answer: the probe begins
        world.deliver(source, home)
        world.end_pass(home)
    for target in (third, away):
        world.deliver(home, target)
        world.end_pass(target)
    for source in (third, away, away):  # an answer, the token, the other answer
        world.deliver(source, home)
    client_left(cluster, gone)
    world.end_pass(home)
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


def nobody_to_wait_for() -> None:
    """Of two connections that a full pool lets wait one asks at once. Raises Violation unless that one alone is refused."""
    cluster = SimulatedCluster(3)
    world = cluster.world
    cluster.set_caps(ip=CapRule(1, WAITING, wait=True))
    opened = cluster.open(1, on=cluster.elsewhere)
    waiting, late = (world.arrive(cluster.home, (cluster.pool,), at_once=at_once) for at_once in (False, True))
    cluster.run()
    cluster.oracle.nobody_waits_in_vain()
    assert pending(waiting) and refused(late)
    cluster.close([*opened])
    cluster.close([waiting])
    cluster.finish()


def restarted_unseen() -> None:
    """A cap appears while a shard starts again, still without it. Its home reads that the shard is up after another's `sync`
    and before it applies the change itself. Raises Violation if a connection in flight is let in when all are done."""
    cluster = SimulatedCluster(3)
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    third = 3 - home - away

    def drain(*ways: tuple[int, int], most: int = 1000) -> None:
        for source, target in ways:
            for _ in range(min(most, len(world.links[source, target].events))):
                world.deliver(source, target)
            world.end_pass(target)

    cluster.kill(third)
    late = world.arrive(away, (cluster.pool, "listener:A"), rated=True)
    cluster.run()
    world.start(third)
    drain((home, third), (away, third), (third, away))
    for _ in range(2):
        assert admitted(world.arrive(third, (cluster.pool,)))
    world.push({cluster.pool: CapRule(2, PER_IP)})
    world.apply(away)
    world.end_pass(away)
    drain((away, home))
    drain((third, home), most=1)
    world.apply(home)
    world.end_pass(home)
    drain((home, away), (away, home))
    world.apply(third)
    world.end_pass(third)
    for _ in range(2):  # all but what the home tells in the end
        drain((home, third), (away, third), (third, away), (third, home), (home, third), (away, third), (away, home))
    world.resume(late)
    cluster.run()
    cluster.finish()
