"""While the home of a quota is away, each shard decides by itself, knows what the others recorded, and tells the home."""

import pytest
from quota_broker import QuotaBroker, at_home, elsewhere

from shards.errors import RemoteError
from shards.limits.client_quota_managers import PRODUCE
from shards.ownership import home_of
from shards.quotas.away_homes import ANSWER_WITHIN_MS, STALE_AFTER_MS
from shards.quotas.sharded_quotas import STARTING_MS


def mistaken_about(decide, name):
    """Decides as `decide` does, but for a mistake about one client id."""

    def mistaken(kind, user, client_id, *args, **kwargs):
        if client_id == name:
            raise ValueError("a bug")
        return decide(kind, user, client_id, *args, **kwargs)

    return mistaken


async def test_a_mistake_about_one_charge_of_a_call_is_that_charges_alone():
    broker = QuotaBroker(2, {(("client-id", None),): {PRODUCE: 100.0}})
    asking, home = broker.meters
    names = elsewhere(0, 2, 500)
    home.decide = mistaken_about(home.decide, names[7])
    asked = [asking.charge(PRODUCE, "ANONYMOUS", name, 2000) for name in names]
    asking.flush()
    assert broker.calls[0] == (1, 500)
    answers = [each.result() for each in asked]
    assert {(answer.throttle_ms, answer.stand_in) for answer in answers[:7] + answers[8:]} == {(10_000, False)}
    assert (answers[7].throttle_ms, answers[7].stand_in) == (10_000, True), "this shard decides it itself"
    assert [str(error) for error in broker.mistakes] == ["a bug"], "and it is said at home"


async def test_a_call_that_fails_as_a_whole_is_decided_here():
    broker = QuotaBroker(2, {(("client-id", None),): {PRODUCE: 100.0}})
    broker.mistake = RemoteError("ValueError", "a bug")
    asked = [broker.meters[0].charge(PRODUCE, "ANONYMOUS", name, 2000) for name in elsewhere(0, 2, 8)]
    broker.meters[0].flush()
    assert {(each.result().throttle_ms, each.result().stand_in) for each in asked} == {(10_000, True)}


async def test_a_charge_that_can_be_decided_nowhere_fails_alone():
    broker = QuotaBroker(2, {(("client-id", None),): {PRODUCE: 100.0}})
    broker.down = {1}
    asking = broker.meters[0]
    names = elsewhere(0, 2, 3)
    asking.decide = mistaken_about(asking.decide, names[1])
    asked = [asking.charge(PRODUCE, "ANONYMOUS", name, 1) for name in names]
    asking.flush()
    assert asked[0].result().accepted and asked[2].result().accepted
    with pytest.raises(ValueError, match="a bug"):
        asked[1].result()


async def test_each_shard_decides_itself_while_the_home_is_down():
    broker = QuotaBroker(4, {(("user", "alice"),): {PRODUCE: 100.0}})
    home = home_of(f"{PRODUCE}\0alice\0", 4)
    broker.down = {home}
    answers = [await broker.charge(shard, PRODUCE, "alice", "app", 1000) for shard in range(4) if shard != home]
    assert [answer.stand_in for answer in answers] == [True] * 3
    assert [answer.throttle_ms for answer in answers] == [0, 10_000, 20_000], "each knows what the others recorded"


async def test_a_home_that_is_back_goes_on_from_what_its_stand_ins_recorded():
    broker = QuotaBroker(3, {(("user", "alice"),): {PRODUCE: 100.0}})
    home = home_of(f"{PRODUCE}\0alice\0", 3)
    first, second = (shard for shard in range(3) if shard != home)
    broker.down = {home}
    for shard in (first, second, second):
        await broker.charge(shard, PRODUCE, "alice", "app", 500)
    broker.down = set()
    for shard in (first, second):
        broker.meters[shard].expire()  # as it does a few times a second
        broker.meters[shard].flush()
    answer = await broker.charge(first, PRODUCE, "alice", "app", 500)
    assert (answer.throttle_ms, answer.stand_in) == (10_000, False), "2000 recorded, of 1000"


async def test_a_charge_waits_a_quarter_of_a_second_at_most_and_the_next_not_at_all():
    broker = QuotaBroker(2, {(("client-id", None),): {PRODUCE: 100.0}})
    (name,) = elsewhere(0, 2, 1)
    broker.silent = {1}
    asked = broker.meters[0].charge(PRODUCE, "ANONYMOUS", name, 2000)
    broker.meters[0].flush()
    (due_ms, time_up), *_ = broker.timers
    assert due_ms == ANSWER_WITHIN_MS and not asked.resolved
    broker.now_ms = due_ms
    time_up()
    assert asked.result() == (True, 10_000, due_ms, True)
    assert broker.meters[0].charge(PRODUCE, "ANONYMOUS", name, 2000).throttle_ms > 10_000


async def test_a_shard_that_was_held_up_itself_reads_what_has_arrived_before_it_gives_up():
    broker = QuotaBroker(2, {(("client-id", None),): {PRODUCE: 100.0}})
    (name,) = elsewhere(0, 2, 1)
    broker.silent = {1}
    asked = broker.meters[0].charge(PRODUCE, "ANONYMOUS", name, 2000)
    broker.meters[0].flush()
    broker.now_ms = 10_000
    broker.timers.pop(0)[1]()
    assert not asked.resolved and broker.timers, "it looks once more, a few passes later"
    broker.now_ms, time_up = broker.timers.pop(0)
    time_up()
    assert asked.result().stand_in


async def test_a_home_decides_no_charge_that_its_asker_has_given_up():
    broker = QuotaBroker(2, {(("client-id", None),): {PRODUCE: 100.0}})
    served = {}
    broker.meters[1].serve_on(served.__setitem__)
    (name,) = elsewhere(0, 2, 1)
    broker.now_ms = STALE_AFTER_MS
    assert served["charge"](0, [(PRODUCE, "ANONYMOUS", name, 10**6, False)], 0) == [None]
    assert broker.meters[1].describe(10) == []


async def test_a_shard_that_starts_decides_nothing_before_it_was_told():
    broker = QuotaBroker(2, {(("client-id", None),): {PRODUCE: 100.0}})
    name = at_home(0, 2)
    await broker.charge(0, PRODUCE, "ANONYMOUS", name, 5000)  # which it tells shard 1
    broker.restart(0)
    asked = broker.meters[0].charge(PRODUCE, "ANONYMOUS", name, 1)
    assert not asked.resolved
    broker.meters[1].replication.send_everything(0)
    broker.meters[1].flush()
    assert asked.result().throttle_ms == 40_010, "5001 recorded, of 1000"


async def test_a_shard_that_starts_stands_in_for_no_home_before_it_was_told():
    broker = QuotaBroker(2, {(("client-id", None),): {PRODUCE: 100.0}})
    (name,) = elsewhere(0, 2, 1)
    await broker.charge(1, PRODUCE, "ANONYMOUS", name, 5000)  # which it tells shard 0
    broker.restart(0)
    broker.down = {1}  # the link is not up yet
    asked = broker.meters[0].charge(PRODUCE, "ANONYMOUS", name, 1)
    broker.meters[0].flush()
    assert not asked.resolved
    broker.down = set()
    broker.meters[1].replication.send_everything(0)
    broker.meters[1].flush()
    assert (asked.result().throttle_ms, asked.result().stand_in) == (40_010, True), "5001 recorded, of 1000"


async def test_a_home_that_starts_has_charges_decided_by_their_askers_before_it_was_told():
    broker = QuotaBroker(3, {(("client-id", None),): {PRODUCE: 100.0}})
    name = at_home(0, 3)
    await broker.charge(0, PRODUCE, "ANONYMOUS", name, 5000)  # which it tells both
    broker.restart(0)
    broker.meters[1].replication.send_everything(0)
    broker.meters[1].flush()
    answers = [await broker.charge(1, PRODUCE, "ANONYMOUS", name, 1)]
    broker.meters[2].replication.send_everything(0)
    broker.meters[2].flush()
    answers.append(await broker.charge(1, PRODUCE, "ANONYMOUS", name, 1))
    assert [(answer.throttle_ms, answer.stand_in) for answer in answers] == [(40_010, True), (40_020, False)]


async def test_a_shard_that_starts_waits_half_a_second_at_most():
    broker = QuotaBroker(2, {(("client-id", None),): {PRODUCE: 100.0}})
    name = at_home(0, 2)
    broker.restart(0)
    asked = broker.meters[0].charge(PRODUCE, "ANONYMOUS", name, 1)
    (due_ms, go_on), *_ = broker.timers
    assert due_ms == STARTING_MS
    go_on()
    assert asked.result() == (True, 0, 0, False)


async def test_a_reset_forgets_what_others_tell_of_before():
    broker = QuotaBroker(2, {(("user", "alice"),): {PRODUCE: 100.0}})
    home = home_of(f"{PRODUCE}\0alice\0", 2)
    await broker.charge(home, PRODUCE, "alice", "app", 5000)
    broker.now_ms = 5
    for meters in broker.meters:
        meters.reset()
    broker.meters[1 - home].replication.send_everything(home)
    broker.meters[1 - home].flush()
    assert (await broker.charge(home, PRODUCE, "alice", "app", 500)).throttle_ms == 0
