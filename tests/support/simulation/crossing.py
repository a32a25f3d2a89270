"""Worlds in which messages cross each other in the one order that a guard exists for; too rare for drawn schedules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from simulation.cluster import PER_IP, TOTAL, WAITING, SimulatedCluster, pending, refused
from simulation.oracle import require
from simulation.world import ALL, DEADLINE_S, SimulatedConnection, World

from shards.limits.caps import CapRule
from shards.tokens.tokens import Refused


def _carry(world: World, *ways: tuple[int, int]) -> None:
    """The next event of each link, (source, target), is delivered, and its target ends its pass."""
    for source, target in ways:
        world.deliver(source, target)
        world.end_pass(target)


def vanished_client() -> SimulatedConnection:
    """The only token is on its way home when the last client arrives, and is then granted to a client that had gone away
    before; its shard has answered the probe, but not read of the grant. Raises Violation if the last one is refused."""
    cluster = SimulatedCluster(3)
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    third = 3 - home - away
    carry = partial(_carry, world)

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


def granted_behind_the_probe() -> None:
    """The only token is on its way home when the probe begins, and is granted behind it to a client that goes away when its
    shard has answered the probe and not read the grant. Raises Violation if others are refused when it is free again."""
    cluster = SimulatedCluster(4)
    world, home = cluster.world, cluster.home
    first, second, third = (shard for shard in range(4) if shard != home)
    carry = partial(_carry, world)

    cluster.set_cap(1)
    opened = cluster.open(1, on=first)
    gone = cluster.arrive(on=second)
    world.end_pass(second)
    carry((second, home), (home, first))  # the borrow, and what is reclaimed for it
    cluster.arrive(on=third)
    world.end_pass(third)
    carry((third, home))
    world.close(opened[0])
    world.end_pass(first)  # counted; the token goes home behind the answer to `reclaim`
    carry(
        (first, home), (first, home), (home, second)
    )  # the probe begins; the grant goes behind it; the probe is answered
    world.cancel(gone)
    world.end_pass(second)
    carry((home, first), (home, third), (second, home), (first, home), (third, home), (home, third))
    cluster.run()
    cluster.arrive(on=third)
    cluster.run()
    cluster.finish()


def closed_under_a_wider_cap() -> None:
    """The home has a wider cap, and its own connection closes; a shard that knows the pool to be full has the earlier one still.
    Raises Violation if it refuses by that."""
    cluster = SimulatedCluster(3)
    world, home = cluster.world, cluster.home
    holder, knowing = (shard for shard in range(3) if shard != home)
    cluster.set_cap(2)
    at_home = cluster.open(1, on=home)
    cluster.open(1, on=holder)
    cluster.arrive(on=knowing)
    cluster.run()
    world.push({cluster.pool: CapRule(10, PER_IP)})
    world.apply(home)
    world.end_pass(home)
    world.close(at_home[0])
    world.end_pass(home)
    cluster.arrive(on=knowing)
    cluster.run()
    cluster.finish()


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


def _more_in_use_than_a_new_cap() -> tuple[SimulatedCluster, SimulatedConnection]:
    """Two are open on a third shard, and one is in flight elsewhere, when a cap of 2 appears. Every shard has applied it, and
    read nothing of that yet."""
    cluster = SimulatedCluster(3)
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    third = 3 - home - away
    cluster.open(2, on=third)
    late = world.arrive(away, (cluster.pool, "listener:A"), rated=True)
    cluster.run()
    world.push({cluster.pool: CapRule(2, PER_IP)})
    for shard in (home, away, third):
        world.apply(shard)
        world.end_pass(shard)
    return cluster, late


def reported_as_the_home_dies() -> None:
    """A cap appears. One shard tells late of what it uses, and the home dies with what it asks another for. Raises Violation
    if a connection in flight is let in when all are done: that other must not have been done while a report was due."""
    cluster, late = _more_in_use_than_a_new_cap()
    home, away = cluster.home, cluster.elsewhere
    third = 3 - home - away
    drain(cluster, (home, away), (away, home), (home, away), (home, third), (away, third), (third, away))
    drain(cluster, (third, home))
    _home_dies(cluster, late)


def _home_dies(cluster: SimulatedCluster, late: SimulatedConnection) -> None:
    cluster.world.crash(cluster.home, eof_first=True)
    cluster.run()
    cluster.world.resume(late)
    cluster.run()
    cluster.restart(cluster.home)
    cluster.finish()


def drain(cluster: SimulatedCluster, *ways: tuple[int, int], most: int = 1000) -> None:
    """Delivers what is under way, or the first `most` of that, one link after the other."""
    world = cluster.world
    for source, target in ways:
        for _ in range(min(most, len(world.links[source, target].events))):
            world.deliver(source, target)
        world.end_pass(target)


def forced_without_end() -> None:
    """Connections are forced in beyond a cap all the time, so that the home revokes all the time. Raises Violation if a change
    is not done after a few round trips all the same."""
    cluster = SimulatedCluster(3)
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    third = 3 - home - away
    cluster.set_cap(1)
    cluster.open(1, on=away)
    version = world.push({**world.versions[-1], "broker": CapRule(100, TOTAL)})
    for _ in range(6):
        sent = len(world.links[home, away].events)
        world.force(home, cluster.pool)
        world.end_pass(home)
        for shard in range(3):
            if world.nodes[shard].pushed:
                world.apply(shard)
                world.end_pass(shard)
        drain(cluster, (home, third), (away, third), (third, away), (third, home))
        drain(cluster, (home, away), most=sent)  # all but what it asks for now
        drain(cluster, (away, home), (away, third), (third, away))
        assert world.nodes[home].snapshot().unsettled
    require(world.acked == version, "5", "a change waits for what is revoked for other reasons")
    cluster.run()
    cluster.finish()


def late_report() -> None:
    """A cap appears. One shard tells late of what it uses, so that the home revokes connections in flight on another.
    One goes on before its shard has read of that, the other after. Raises Violation if one is let in when all are done."""
    cluster = SimulatedCluster(3)
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    third = 3 - home - away
    cluster.open(2, on=third)
    early, late = (world.arrive(away, (cluster.pool, "listener:A"), rated=True) for _ in range(2))
    cluster.run()
    world.push({cluster.pool: CapRule(2, PER_IP)})
    for shard in (home, away):
        world.apply(shard)
        world.end_pass(shard)
    drain(cluster, (home, away), (away, home))
    world.apply(third)
    world.end_pass(third)
    drain(cluster, (home, third), (away, third), (third, away), (home, away), (away, third), (away, home))
    drain(cluster, (third, home), (home, third), (third, home))
    world.resume(early)
    cluster.run()
    world.resume(late)
    cluster.run()
    cluster.finish()


def revoked_while_all_are_told() -> None:
    """A cap appears over more than it allows. The home has told that it has the version before it reads what the others
    use, and asks them to revoke after that. Raises Violation if a connection in flight is let in when all are done."""
    cluster, late = _more_in_use_than_a_new_cap()
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    third = 3 - home - away
    drain(cluster, (home, away), (home, third), (away, third), (third, away), most=1)
    drain(cluster, (away, home), (third, home), most=1)
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


def returned_unheard() -> None:
    """A home starts again and hears one shard before the other, whose connections use all of a cap. Raises Violation if the
    first gets a token."""
    cluster = SimulatedCluster(3)
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    third = 3 - home - away
    cluster.set_cap(2)
    cluster.open(2, on=away)
    cluster.kill(home)
    world.start(home)
    world.arrive(third, (cluster.pool,))
    drain(cluster, (away, home), most=1)  # it is up; what it uses comes later
    drain(cluster, (home, third), (third, home), (home, third))
    cluster.run()
    cluster.finish()


def _full_but_for_one_in_flight(piece: int = ALL) -> tuple[SimulatedCluster, SimulatedConnection]:
    """A cap of 3: two are open on a third shard, and the other token is that of a connection in flight elsewhere."""
    cluster = SimulatedCluster(3, piece=piece)
    cluster.set_cap(3)
    cluster.open(2, on=3 - cluster.home - cluster.elsewhere)
    late = cluster.world.arrive(cluster.elsewhere, (cluster.pool, "listener:A"), rated=True)
    cluster.run()
    return cluster, late


def changed_as_the_home_dies(*, dead_before: bool, piece: int = ALL) -> None:
    """A cap is cut, and its home dies before it can revoke what a connection in flight holds: before or after its holder
    has applied the change, or while that visits its pools, `piece` in a pass. Raises Violation if that connection is let in
    when all are done."""
    cluster, late = _full_but_for_one_in_flight(piece)
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    _know_more_pools(cluster)
    if dead_before:
        cluster.kill(home)
    world.push({**world.versions[-1], cluster.pool: CapRule(2, PER_IP)})
    world.apply(away, how="unknown")
    world.end_pass(away)
    if not dead_before:
        cluster.kill(home)
    cluster.run()
    world.resume(late)
    cluster.run()
    cluster.restart(home)
    cluster.finish()


def _know_more_pools(cluster: SimulatedCluster, shard: int | None = None) -> None:
    """A shard has more pools than it visits in a few passes: one that is not the home, unless told."""
    for number in range(8):
        cluster.arrive(on=cluster.elsewhere if shard is None else shard, pools=(f"ip:10.0.1.{number}",))
    cluster.run()


def cut_while_nobody_waits() -> None:
    """The home's sweep comes to a pool that nobody waits for and whose cap was cut to what connections elsewhere use. Raises
    Violation if one more is let in there by a cached token."""
    cluster = SimulatedCluster(3, piece=1)
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    cluster.set_cap(12)
    cluster.close(cluster.open(4, on=away)[:2])
    _know_more_pools(cluster, home)
    world.push({**world.versions[-1], cluster.pool: CapRule(2, PER_IP)})
    for shard in (away, home):
        world.apply(shard, how="unknown")
    cluster.run()
    cluster.try_open(away)
    cluster.finish()


def taken_of_a_dead_home_before_the_sweep() -> None:
    """A home is dead when a cap appears. Before the sweep comes to its pool, more connections come to a holder, and wait for
    their rate if they get tokens. Raises Violation if they are let in when all are done."""
    cluster = SimulatedCluster(3, piece=1)
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    _know_more_pools(cluster)
    cluster.open(1, on=away)
    cluster.kill(home)
    world.push({**world.versions[-1], cluster.pool: CapRule(1, PER_IP)})
    world.apply(away, how="unknown")
    world.end_pass(away)
    late = [world.arrive(away, (cluster.pool, "listener:A"), rated=True) for _ in range(3)]
    cluster.run()
    for connection in late:
        if connection.state == "suspended":
            world.resume(connection)
    cluster.run()
    cluster.restart(home)
    cluster.finish()


def returned_within_a_pass() -> None:
    """A shard reads in one pass what its home asks it to revoke, that the home died, and that it is back. Fails if the new
    incarnation gets the answer."""
    cluster, late = _full_but_for_one_in_flight()
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    world.push({**world.versions[-1], cluster.pool: CapRule(2, PER_IP)})
    world.apply(home)
    world.end_pass(home)
    world.crash(home, eof_first=False)
    for _ in range(2):
        while world.links[home, away].events:
            world.deliver(home, away)
        if not world.nodes[home].alive:
            world.start(home)
    world.end_pass(away)
    cluster.run()
    world.resume(late)
    cluster.run()
    cluster.finish()


def left_before_its_grant_was_read() -> None:
    """A home grants its own connection the only token, which leaves in that pass, before another shard's connection asks.
    Raises Violation if that one is refused."""
    cluster = SimulatedCluster(3)
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    third = 3 - home - away
    cluster.set_cap(1)
    opened = cluster.open(1, on=away)
    gone = cluster.arrive(on=home)
    world.end_pass(home)
    drain(cluster, (home, away))  # what is reclaimed: nothing is cached
    world.close(opened[0])
    world.end_pass(away)
    cluster.arrive(on=third)
    world.end_pass(third)
    world.deliver(away, home)
    world.end_pass(home)
    world.deliver(away, home)
    client_left(cluster, gone)
    world.deliver(third, home)
    world.end_pass(home)
    cluster.run()
    cluster.finish()


def unanswered_at_once() -> None:
    """A connection that waits for nobody asks a home that does not answer, under a rule that lets others wait. Raises
    Violation if it is not refused as unavailable at the deadline."""
    cluster = SimulatedCluster(3)
    world, away = cluster.world, cluster.elsewhere
    cluster.set_caps(ip=CapRule(1, WAITING, wait=True))
    cluster.open(1, on=cluster.home)
    late = world.arrive(away, (cluster.pool,), at_once=True)
    world.end_pass(away)
    deadline_passed(cluster, late)
    world.end_pass(away)
    unavailable = isinstance(late.decision, Refused) and late.decision.unavailable
    require(unavailable, "3", "a home did not answer within the deadline, and the decision is", late.decision)
    cluster.run()
    cluster.finish()
