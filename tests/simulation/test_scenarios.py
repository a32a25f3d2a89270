"""What has to be true of tokens, told one story at a time. The first four are how the design's ancestor fails."""

from collections.abc import Callable, Iterator
from itertools import product

import pytest
from simulation.cluster import PER_IP, TOTAL, WAITING, SimulatedCluster, admitted, pending, refused
from simulation.crossing import (
    changed_as_the_home_dies,
    client_left,
    closed_under_a_wider_cap,
    cut_while_nobody_waits,
    deadline_passed,
    drain,
    forced_without_end,
    granted_behind_the_probe,
    late_report,
    left_after_the_answer,
    left_at_home,
    left_before_its_grant_was_read,
    nobody_to_wait_for,
    reported_as_the_home_dies,
    returned_unheard,
    returned_within_a_pass,
    revoked_while_all_are_told,
    taken_of_a_dead_home_before_the_sweep,
    unanswered_at_once,
    vanished_client,
)
from simulation.recalling import (
    cached_and_looked_at,
    cached_elsewhere,
    cached_under_a_rule_of_its_own,
    closed_after_a_cut,
    closed_after_the_wheel_met_it,
    granted_until_the_home_cuts,
    in_flight,
    tight_under_a_wider_cap,
    uncapped_of_a_dead_home,
)
from simulation.world import SimulatedConnection

from shards.limits.caps import CapRule
from shards.tokens.tokens import Refused


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    """Four shards; at the end of each story nothing may be left."""
    cluster = SimulatedCluster()
    yield cluster
    cluster.finish()


def test_after_a_cut_no_connection_enters_until_enough_have_left(cluster: SimulatedCluster) -> None:
    cluster.set_cap(10)
    opened = cluster.open(10)
    cluster.set_cap(4)
    cluster.close(opened[:6])
    assert refused(cluster.try_open(on=0))  # four are open, and four is the cap
    cluster.close(opened[6:7])
    assert admitted(cluster.try_open(on=0))
    assert refused(cluster.try_open(on=1))


def test_tokens_that_were_idle_at_a_cut_are_not_spent_afterwards(cluster: SimulatedCluster) -> None:
    cluster.set_cap(40)
    cluster.close(cluster.open(1, on=cluster.elsewhere))
    opened = cluster.open(6, on=cluster.home)
    assert cluster.cached() >= 4
    cluster.set_cap(5)
    assert cluster.cached() == 0
    assert all(refused(cluster.try_open(on)) for on in (0, 1, 2, 3))
    cluster.close(opened[:2])
    assert [admitted(cluster.try_open(cluster.elsewhere)) for _ in range(2)] == [True, False]


def test_idle_tokens_elsewhere_never_cause_a_refusal(cluster: SimulatedCluster) -> None:
    cluster.set_cap(40)
    for shard in range(4):
        cluster.close(cluster.open(1, on=shard))
    assert cluster.cached() > 0
    cluster.set_cap(10)  # a change that once reclaimed from some and not from others
    opened = cluster.open(10, on=cluster.home)
    assert refused(cluster.try_open(on=cluster.home))
    cluster.close(opened)
    cluster.open(10, on=cluster.elsewhere)


def test_an_override_without_a_general_cap_counts_what_closes(cluster: SimulatedCluster) -> None:
    cluster.set_cap(5)
    for _ in range(20):
        cluster.close(cluster.open(5))
    assert refused(cluster.open(5) and cluster.try_open(on=0))


@pytest.mark.parametrize("shards", [1, 2, 4, 7, 16])
def test_exactly_as_many_get_in_as_the_cap_says(shards: int) -> None:
    cluster = SimulatedCluster(shards)
    cluster.set_cap(50)
    tries = [cluster.arrive(on=number % shards) for number in range(200)]
    cluster.run()
    assert sum(map(admitted, tries)) == 50
    assert sum(map(refused, tries)) == 150
    cluster.finish()


def test_a_cap_of_zero_lets_nobody_in(cluster: SimulatedCluster) -> None:
    cluster.set_cap(0)
    for shard in range(4):
        assert cluster.arrive(on=shard).decision == Refused(cluster.pool, CapRule(0, PER_IP), 1)


def test_connections_from_before_the_cap_count(cluster: SimulatedCluster) -> None:
    opened = cluster.open(7)
    cluster.set_cap(8)
    assert admitted(cluster.try_open(on=0))
    assert refused(cluster.try_open(on=1))
    cluster.set_cap(None)
    more = cluster.open(5)
    cluster.set_cap(8)
    cluster.close(opened[:4])
    assert refused(cluster.try_open(on=2))  # 9 are left
    cluster.close(more[:2])
    assert admitted(cluster.try_open(on=3))


def test_a_refusal_names_pool_limit_value_and_version(cluster: SimulatedCluster) -> None:
    cluster.set_caps(broker=CapRule(100, TOTAL))
    cluster.set_cap(1)
    cluster.open(1, on=cluster.home)
    last = cluster.try_open(cluster.elsewhere, ("broker", cluster.pool))
    assert last.decision == Refused(cluster.pool, CapRule(1, PER_IP), 2)


def test_a_refused_connection_gives_back_what_it_had(cluster: SimulatedCluster) -> None:
    cluster.set_caps(broker=CapRule(1, TOTAL), ip=CapRule(0, PER_IP))
    for shard in (0, 1, 2, 3):
        assert refused(cluster.try_open(shard, ("broker", cluster.pool)))
    assert admitted(cluster.try_open(0, ("broker", "ip:10.0.0.2")))


def test_the_home_decides_without_a_message(cluster: SimulatedCluster) -> None:
    cluster.set_cap(3)
    before = cluster.messages
    opened = [cluster.arrive(on=cluster.home) for _ in range(4)]
    assert [admitted(one) for one in opened] == [True, True, True, False]
    assert refused(opened[3])
    cluster.run()
    assert cluster.messages == before


def test_without_a_cap_no_shard_is_asked(cluster: SimulatedCluster) -> None:
    before = cluster.messages
    cluster.close(cluster.open(20))
    assert cluster.messages == before


def test_a_holder_gets_more_than_it_asked_for_while_the_pool_is_under_half_used(cluster: SimulatedCluster) -> None:
    cluster.set_cap(100)
    cluster.open(1, on=cluster.elsewhere)
    before = cluster.messages
    cluster.open(10, on=cluster.elsewhere)
    assert cluster.messages == before
    assert cluster.world.nodes[cluster.elsewhere].tokens.decided_cached == 10


def test_nothing_is_cached_when_the_cap_does_not_exceed_the_shards(cluster: SimulatedCluster) -> None:
    cluster.set_cap(4)
    cluster.close(cluster.open(2, on=cluster.elsewhere))
    assert cluster.cached() == 0
    assert cluster.oracle.granted(cluster.pool) == 0


def test_all_that_wait_in_one_pass_are_one_borrow(cluster: SimulatedCluster) -> None:
    cluster.set_cap(4)
    tokens = cluster.world.nodes[cluster.elsewhere].tokens
    tries = [cluster.arrive(on=cluster.elsewhere) for _ in range(10)]
    before = cluster.messages
    cluster.run()
    assert tokens.borrows == 1
    assert sum(map(admitted, tries)) == 4
    assert cluster.messages - before <= 6  # borrow, grant and reclaim, answer, probe, answer, refusal


def test_a_connection_that_comes_after_the_home_has_decided_is_not_refused_by_that_answer(
    cluster: SimulatedCluster,
) -> None:
    world, away, home = cluster.world, cluster.elsewhere, cluster.home
    cluster.set_cap(2)
    opened = cluster.open(2, on=home)
    early = cluster.arrive(on=away)
    world.end_pass(away)
    world.deliver(away, home)
    world.end_pass(home)  # only the home has tokens out: it refuses at once
    world.close(opened[0])
    world.end_pass(home)
    late = cluster.arrive(on=away)
    world.deliver(home, away)
    world.end_pass(away)
    assert refused(early)
    assert pending(late)
    cluster.run()
    assert admitted(late)


def test_a_token_on_its_way_home_is_not_in_use(cluster: SimulatedCluster) -> None:
    """Closed before the other arrived: the answer to the probe brings the token, so there is no refusal."""
    world, away, home = cluster.world, cluster.elsewhere, cluster.home
    cluster.set_cap(2)
    opened = cluster.open(2, on=away)
    assert refused(cluster.try_open(on=home))
    world.close(opened[0])
    world.end_pass(away)  # given back, and still under way
    late = cluster.arrive(on=home)
    world.end_pass(home)
    assert pending(late)
    cluster.run()
    assert admitted(late)


def test_a_token_granted_to_a_client_that_went_away_is_not_in_use() -> None:
    late = vanished_client()
    assert admitted(late)


def test_a_token_granted_to_a_client_of_the_home_that_went_away_is_not_in_use() -> None:
    late = left_at_home()
    assert admitted(late)


@pytest.mark.parametrize("granted_first", [True, False])
@pytest.mark.parametrize("leave", [client_left, deadline_passed])
def test_a_connection_that_left_after_the_probe_was_answered_used_its_token_until_then(
    leave: Callable[[SimulatedCluster, SimulatedConnection], None], granted_first: bool
) -> None:
    """Client gone and deadline passed are the same withdrawal to the home, so both give the same right to refuse."""
    first, second = left_after_the_answer(leave, granted_first=granted_first)
    assert not admitted(first)
    assert refused(second)


@pytest.mark.parametrize("leave", [client_left, deadline_passed])
@pytest.mark.parametrize("at_home", [True, False])
def test_a_connection_that_waited_in_vain_used_nothing(
    cluster: SimulatedCluster, leave: Callable[[SimulatedCluster, SimulatedConnection], None], at_home: bool
) -> None:
    """The oracle counts it neither then nor when its shard is granted a token later."""
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    shard = home if at_home else (away + 1) % world.shards
    cluster.set_cap(1)
    opened = cluster.open(1, on=away)
    gone = cluster.arrive(on=shard)
    world.end_pass(shard)
    if not at_home:
        world.deliver(shard, home)
        world.end_pass(home)
    leave(cluster, gone)  # before the holder has answered the home
    cluster.run()
    world.close(opened[0])
    world.end_pass(away)
    late = cluster.try_open(shard)  # before the token has come home, so it is granted
    assert admitted(late)
    assert gone.past == []


def test_tokens_of_a_version_that_a_shard_skipped_are_not_spent_after_their_home_died(
    cluster: SimulatedCluster,
) -> None:
    """The rule is the same before and after for the holder: only its home, which died, knew of the one between."""
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    cluster.set_cap(2)
    world.push({cluster.pool: CapRule(None, "")})
    world.apply(home)
    world.end_pass(home)
    opened = [cluster.arrive(on=away) for _ in range(5)]
    for source, target in ((home, away), (away, home), (home, away)):
        world.end_pass(source)
        while world.links[source, target].events:
            world.deliver(source, target)
        world.end_pass(target)
    assert all(map(admitted, opened))
    for connection in opened:
        world.close(connection)
    world.crash(home, eof_first=False)
    for node in world.nodes:
        while node.alive and world.links[home, node.shard].events:
            world.deliver(home, node.shard)
        world.end_pass(node.shard)
    assert cluster.cached() >= 5
    world.push({cluster.pool: CapRule(2, PER_IP)})
    for node in world.nodes:
        if node.alive:
            world.apply(node.shard, skip=True)
    cluster.run()
    late = [cluster.arrive(on=away) for _ in range(3)]
    cluster.run()
    assert not any(map(admitted, late))
    cluster.restart(home)


def test_a_change_is_done_after_every_home_has_heard_and_revoked() -> None:
    late_report()


def test_a_tight_pool_may_be_cached_again_once_it_is_half_empty(cluster: SimulatedCluster) -> None:
    cluster.set_cap(20)
    opened = cluster.open(20, on=cluster.elsewhere)
    assert refused(cluster.try_open(on=cluster.home))
    cluster.close(opened[:5])
    assert cluster.cached() == 0
    cluster.close(opened[5:16])
    cluster.open(1, on=cluster.elsewhere)
    assert cluster.cached() > 0


def test_idle_tokens_go_home_after_a_while(cluster: SimulatedCluster) -> None:
    cluster.set_cap(40)
    cluster.close(cluster.open(3, on=cluster.elsewhere))
    assert cluster.cached() > 0
    cluster.wait(12)
    assert cluster.cached() == 0
    assert cluster.oracle.granted(cluster.pool) == 0


def test_a_rule_that_lets_wait_serves_in_the_order_of_arrival_at_the_home(cluster: SimulatedCluster) -> None:
    cluster.set_caps(ip=CapRule(2, WAITING, wait=True))
    opened = cluster.open(2, on=cluster.home)
    queue = [cluster.try_open(on) for on in (1, 2, 3, 0)]
    cluster.wait(5)
    assert all(map(pending, queue))
    for first in range(4):
        cluster.close(opened[:1] if first < 2 else queue[first - 2 : first - 1])
        opened = opened[1:]
        assert [admitted(one) for one in queue] == [number <= first for number in range(4)]


def test_a_raised_cap_wakes_connections_that_wait(cluster: SimulatedCluster) -> None:
    cluster.set_caps(ip=CapRule(1, WAITING, wait=True))
    cluster.open(1)
    queue = [cluster.try_open(on) for on in (1, 2, 3)]
    cluster.set_caps(ip=CapRule(3, WAITING, wait=True))
    assert [admitted(one) for one in queue] == [True, True, False]
    cluster.set_cap(None)
    assert admitted(queue[2])


def test_a_connection_that_waits_and_goes_away_gets_no_token(cluster: SimulatedCluster) -> None:
    cluster.set_caps(ip=CapRule(1, WAITING, wait=True))
    opened = cluster.open(1, on=cluster.home)
    gone, next_one = cluster.try_open(cluster.elsewhere), cluster.try_open(cluster.elsewhere)
    cluster.world.cancel(gone)
    cluster.close(opened)
    assert admitted(next_one)
    assert gone.decision is None


def test_the_dead_do_not_wait(cluster: SimulatedCluster) -> None:
    cluster.set_caps(ip=CapRule(1, WAITING, wait=True))
    opened = cluster.open(1, on=cluster.home)
    cluster.try_open(cluster.elsewhere)
    living = cluster.try_open(cluster.home)
    cluster.kill(cluster.elsewhere)
    cluster.close(opened)
    assert admitted(living)
    cluster.restart(cluster.elsewhere)


def test_the_tokens_of_a_dead_shard_are_free_at_once(cluster: SimulatedCluster) -> None:
    cluster.set_cap(4)
    cluster.open(4, on=cluster.elsewhere)
    assert refused(cluster.try_open(on=cluster.home))
    cluster.kill(cluster.elsewhere)
    cluster.open(4, on=cluster.home)
    cluster.restart(cluster.elsewhere)
    assert refused(cluster.try_open(on=cluster.elsewhere))


def test_a_home_that_died_learns_the_use_before_it_grants_a_token(cluster: SimulatedCluster) -> None:
    away, home = cluster.elsewhere, cluster.home
    cluster.set_cap(10)
    opened = cluster.open(4, on=away)
    cluster.kill(home)
    cluster.world.start(home)
    third = (home + 2) % cluster.world.shards
    early = cluster.arrive(on=third)
    drain(cluster, (home, third), (third, home))
    assert pending(early)  # the shard with the open ones has not reported
    cluster.run()
    assert admitted(early)
    cluster.open(5, on=home)
    assert refused(cluster.try_open(on=home))
    cluster.close(opened)


def test_cached_tokens_are_good_while_their_home_is_down(cluster: SimulatedCluster) -> None:
    cluster.set_cap(100)
    cluster.open(1, on=cluster.elsewhere)
    cluster.kill(cluster.home)
    cluster.open(3, on=cluster.elsewhere)
    cluster.restart(cluster.home)


def test_a_connection_that_waits_for_a_home_that_is_down_is_refused_as_unavailable(cluster: SimulatedCluster) -> None:
    cluster.set_cap(4)
    cluster.kill(cluster.home)
    waiting = cluster.try_open(cluster.elsewhere)
    cluster.wait(0.5)
    assert pending(waiting)
    cluster.wait(1)
    assert isinstance(waiting.decision, Refused) and waiting.decision.unavailable
    cluster.restart(cluster.home)


def test_a_connection_that_waits_for_a_home_that_comes_back_in_time_is_let_in(cluster: SimulatedCluster) -> None:
    cluster.set_cap(4)
    cluster.kill(cluster.home)
    waiting = cluster.try_open(cluster.elsewhere)
    cluster.wait(0.5)
    cluster.restart(cluster.home)
    assert admitted(waiting)


def test_the_end_of_a_lost_link_does_not_begin_the_deadline_anew(cluster: SimulatedCluster) -> None:
    cluster.set_cap(4)
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    world.cut(home, away)
    cluster.run()
    waiting = cluster.try_open(away)
    cluster.wait(0.75)
    world.crash(home, eof_first=False)
    world.deliver(home, away)  # the link that broke before; that the home is dead is not known yet
    for _ in range(2):
        world.now_s += 0.25
        world.tick(away)
        world.end_pass(away)
        cluster.oracle.look(away)
    assert isinstance(waiting.decision, Refused) and waiting.decision.unavailable
    cluster.restart(home)


def test_a_cut_while_the_home_is_down_leaves_nothing_to_spend(cluster: SimulatedCluster) -> None:
    cluster.set_cap(100)
    cluster.open(2, on=cluster.elsewhere)
    cluster.kill(cluster.home)
    cluster.set_cap(2)
    late = cluster.try_open(on=cluster.elsewhere)
    assert pending(late)
    cluster.restart(cluster.home)
    assert refused(late)


def test_a_connection_in_flight_at_a_cut_is_not_admitted_beyond_it(cluster: SimulatedCluster) -> None:
    """It holds a token of the broker and waits for a slot of the listener, while the broker's cap falls to what is open."""
    away = cluster.elsewhere
    cluster.set_caps(broker=CapRule(3, TOTAL), listener=CapRule(1, WAITING, wait=True))
    first = cluster.try_open(away, ("broker", "listener"))
    second = cluster.try_open(away, ("broker",))
    in_flight = cluster.try_open(away, ("broker", "listener"))
    assert admitted(first) and admitted(second) and pending(in_flight)
    cluster.set_caps(broker=CapRule(2, TOTAL))
    assert refused(in_flight)


def test_a_connection_that_no_cap_may_stop_counts_all_the_same(cluster: SimulatedCluster) -> None:
    cluster.set_cap(2)
    opened = cluster.open(2, on=cluster.elsewhere)
    cluster.world.force(cluster.home, cluster.pool)
    cluster.world.force(cluster.elsewhere, cluster.pool)
    cluster.run()
    assert cluster.world.nodes[cluster.home].tokens.excess(cluster.pool) == 2
    cluster.close(opened)
    assert refused(cluster.try_open(on=cluster.elsewhere))
    assert cluster.world.nodes[cluster.home].tokens.excess(cluster.pool) == 0


def test_a_change_of_something_else_visits_no_pool(cluster: SimulatedCluster) -> None:
    cluster.set_cap(10)
    cluster.open(5)
    tokens = cluster.world.nodes[cluster.home].tokens
    done: list[int] = []
    tokens._rule_of = lambda pool: pytest.fail(f"{pool} was visited")
    tokens.apply(2, lambda: done.append(2), changed=())
    for node in cluster.world.nodes:
        if node.shard != cluster.home:
            node.tokens.apply(2, lambda: done.append(2), changed={"listener"})
    cluster.run()
    assert done == [2, 2, 2, 2]
    cluster.world.versions.append(cluster.world.versions[-1])
    for node in cluster.world.nodes:
        node.done = 2


def test_a_shard_that_starts_under_an_older_version_than_the_others_listens_once_it_has_theirs() -> None:
    """A cap appears. The others are done with that before they meet it: what it used under the older version, its home would
    revoke of a connection in flight that its shard may admit."""
    cluster = SimulatedCluster(3)
    world, home, away = cluster.world, cluster.home, cluster.elsewhere
    third = 3 - home - away
    cluster.kill(third)
    world.start(third)
    world.push({cluster.pool: CapRule(2, PER_IP)})
    for shard in (home, away):
        world.apply(shard)
    drain(cluster, *2 * [(home, away), (away, home)])
    assert world.nodes[home].done == world.nodes[away].done == 1
    drain(cluster, *3 * [(home, third), (away, third), (third, home), (third, away)])
    assert world.nodes[third].done == 0
    assert not world.listens(third)
    cluster.run()
    assert world.acked == 1
    assert world.listens(third)
    cluster.open(2, on=third)
    cluster.finish()


def test_a_late_connection_waits_for_no_other_and_those_that_wait_keep_their_places() -> None:
    nobody_to_wait_for()


def test_a_holder_is_not_done_while_its_home_may_die_with_what_it_has_to_revoke() -> None:
    reported_as_the_home_dies()


def test_a_change_is_done_while_connections_are_forced_in_without_end() -> None:
    forced_without_end()


def test_a_home_that_is_back_grants_nothing_before_all_have_told_what_they_use() -> None:
    returned_unheard()


@pytest.mark.parametrize("piece", [1, 1000])
@pytest.mark.parametrize("dead_before", [False, True])
def test_what_a_dead_home_cannot_revoke_its_holder_gives_up(dead_before: bool, piece: int) -> None:
    changed_as_the_home_dies(dead_before=dead_before, piece=piece)


def test_a_cap_that_is_cut_while_nobody_waits_is_not_exceeded_by_cached_tokens() -> None:
    cut_while_nobody_waits()


def test_what_was_taken_of_a_dead_home_before_the_sweep_is_given_up() -> None:
    taken_of_a_dead_home_before_the_sweep()


def test_no_shard_is_done_before_it_has_read_what_it_is_to_revoke() -> None:
    revoked_while_all_are_told()


def test_what_a_home_asked_for_is_not_answered_to_its_next_incarnation() -> None:
    returned_within_a_pass()


def test_a_token_granted_to_a_connection_that_left_in_that_pass_is_not_in_use() -> None:
    left_before_its_grant_was_read()


def test_a_late_connection_is_refused_at_the_deadline_though_others_may_wait() -> None:
    unanswered_at_once()


def test_a_grant_behind_the_probe_leaves_no_pool_full_that_is_not() -> None:
    granted_behind_the_probe()


def test_a_wider_cap_at_home_leaves_no_pool_full_that_is_not() -> None:
    closed_under_a_wider_cap()


@pytest.mark.parametrize(
    "world",
    [
        cached_elsewhere,
        cached_and_looked_at,
        cached_under_a_rule_of_its_own,
        closed_after_a_cut,
        closed_after_the_wheel_met_it,
        granted_until_the_home_cuts,
        uncapped_of_a_dead_home,
        tight_under_a_wider_cap,
    ],
    ids=lambda world: world.__name__,
)
def test_a_cap_of_all_addresses_that_is_changed_holds_for_each(world: Callable[[], None]) -> None:
    world()


@pytest.mark.parametrize(
    ("at_home", "queued", "cut_off"),
    [(True, False, False), (True, True, False), *product([False], [False, True], [False, True])],
)
def test_a_connection_in_flight_is_not_let_in_beyond_a_cut_for_all(at_home: bool, queued: bool, cut_off: bool) -> None:
    in_flight(at_home=at_home, queued=queued, cut_off=cut_off)
