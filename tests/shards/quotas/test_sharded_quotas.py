"""Client quotas over several shards are those of one meter: same sequence in, same delays out."""

import random

import pytest
from quota_broker import QuotaBroker, said

from shards.limits.client_quota_managers import (
    FETCH,
    MUTATION,
    PRODUCE,
    REQUEST,
    ClientRequestQuotaManager,
    ControllerMutationQuotaManager,
    FetchQuotaManager,
    ProduceQuotaManager,
)
from shards.limits.sensor_table import MOST_SENSORS
from shards.limits.short_names import LONGEST_KNOWN
from shards.loop.deferred import Deferred
from shards.quotas.meters import KINDS
from shards.quotas.sharded_quotas import MOST_IN_A_CALL, NOTHING_RECORDED

QUOTAS = {
    (("user", "alice"),): {PRODUCE: 1000.0, FETCH: 500.0, REQUEST: 10.0, MUTATION: 5.0},
    (("client-id", "app"), ("user", None)): {PRODUCE: 300.0},
    (("client-id", None),): {FETCH: 2000.0, MUTATION: 1.0},
}
CLIENTS = [("alice", "app"), ("alice", "other"), ("bob", "app"), ("ANONYMOUS", ""), ("ANONYMOUS", "x")]


def one_meter():
    meters = {
        PRODUCE: ProduceQuotaManager(),
        FETCH: FetchQuotaManager(),
        REQUEST: ClientRequestQuotaManager(),
        MUTATION: ControllerMutationQuotaManager(),
    }
    for entity, quotas in QUOTAS.items():
        for kind, value in quotas.items():
            meters[kind].update(dict(entity), value)
    return meters


@pytest.mark.parametrize("seed", range(8))
async def test_any_number_of_shards_charges_as_one_meter_does(seed):
    chance = random.Random(seed)
    broker = QuotaBroker(chance.randint(1, 6), QUOTAS)
    single = one_meter()
    for _ in range(150):
        broker.now_ms += chance.choice([0, 1, 10, 300, 1500])
        meters = chance.choice(broker.meters)
        asked, single_said = [], []
        for _ in range(chance.randint(1, 6)):  # all in one pass of a shard
            kind = chance.choice(KINDS)
            user, client_id = chance.choice(CLIENTS)
            amount = chance.choice([1, 20, 400, 3000])
            strict = {"strict": chance.random() < 0.5} if kind == MUTATION else {}
            asked.append(meters.charge(kind, user, client_id, amount, **strict))
            single_said.append(single[kind].record(user, client_id, amount, now_ms=broker.now_ms, **strict))
        meters.flush()
        assert [await said(each) for each in asked] == [(*one, broker.now_ms, False) for one in single_said]


async def test_what_a_pass_charges_at_one_home_is_one_call():
    broker = QuotaBroker(2, {(("client-id", None),): {PRODUCE: 100.0}})
    meters = broker.meters[0]
    asked = [meters.charge(PRODUCE, "ANONYMOUS", f"client-{number}", 1) for number in range(40)]
    there = sum(isinstance(each, Deferred) for each in asked)
    assert broker.touches == 1 and not broker.calls
    meters.flush()
    assert broker.calls == [(1, there)]
    assert [await said(each) for each in asked] == [(True, 0, 0, False)] * 40
    meters.flush()
    assert len(broker.calls) == 1


async def test_a_call_carries_a_bounded_number_of_charges():
    broker = QuotaBroker(2, {(("client-id", None),): {PRODUCE: 100.0}})
    meters = broker.meters[0]
    asked = [meters.charge(PRODUCE, "ANONYMOUS", f"client-{number}", 1) for number in range(3 * MOST_IN_A_CALL)]
    there = sum(isinstance(each, Deferred) for each in asked)
    meters.flush()
    assert all(each.resolved for each in asked if isinstance(each, Deferred))
    assert [count for _, count in broker.calls] == [MOST_IN_A_CALL, there - MOST_IN_A_CALL]


async def test_before_the_first_quota_nothing_is_recorded():
    broker = QuotaBroker(3)
    assert not any(broker.meters[0].in_use(kind) for kind in KINDS)
    assert await broker.charge(0, PRODUCE, "alice", "app", 10**9) is NOTHING_RECORDED
    broker.set(QUOTAS)
    assert await broker.charge(0, PRODUCE, "alice", "app", 1) == (True, 0, broker.now_ms, False)


async def test_a_changed_quota_holds_for_the_next_request():
    broker = QuotaBroker(4, {(("user", "alice"),): {PRODUCE: 100.0}})
    assert (await broker.charge(1, PRODUCE, "alice", "app", 5000)).throttle_ms > 0
    broker.set({(("user", "alice"),): {PRODUCE: 1e9}})
    assert (await broker.charge(2, PRODUCE, "alice", "app", 5000)).throttle_ms == 0


async def test_rates_and_average_throttles_are_told_by_the_home_alone():
    broker = QuotaBroker(4, {(("user", "alice"),): {PRODUCE: 100.0}})
    throttle_ms = (await broker.charge(1, PRODUCE, "alice", "app", 5000)).throttle_ms
    told = [row for meters in broker.meters for row in meters.describe(10)]
    assert [(kind, user) for kind, user, *_ in told] == [(PRODUCE, "alice")]
    assert told[0][4] == throttle_ms
    assert sum(len(meters.rates_here("alice", "app")) for meters in broker.meters) == 1
    broker.now_ms = 2 * 3_600_000
    for meters in broker.meters:
        meters.expire()
    assert [row for meters in broker.meters for row in meters.describe(10)] == []


async def test_unused_sensors_are_dropped_a_few_at_a_time():
    broker = QuotaBroker(1, {(("client-id", None),): {PRODUCE: 100.0}})
    for number in range(100):
        await broker.charge(0, PRODUCE, "ANONYMOUS", f"client-{number}", 1)
    broker.now_ms = 3_600_000
    await broker.charge(0, PRODUCE, "ANONYMOUS", "client-7", 1)
    broker.meters[0].expire(most=60)
    assert len(broker.meters[0].describe(1000)) == 41
    broker.meters[0].expire(most=60)
    assert [client for _, _, client, *_ in broker.meters[0].describe(1000)] == ["client-7"]
    broker.now_ms *= 3
    for _ in range(2):  # the turn that just ended, and the next
        broker.meters[0].expire(most=60)
    assert not broker.meters[0].describe(1000)


async def test_long_names_of_clients_are_kept_and_sent_short():
    broker = QuotaBroker(2, {(("client-id", None),): {PRODUCE: 100.0}, (("client-id", "x" * 32_000),): {PRODUCE: 10.0}})
    sent, call = [], broker.meters[0]._call

    def spy(peer, method, charges, asked_ms):
        sent.extend(client_id for _, _, client_id, _, _ in charges)
        return call(peer, method, charges, asked_ms)

    broker.meters[0]._call = spy
    names = [letter * 32_000 for letter in "xyzwvu"]
    throttled = [(await broker.charge(0, PRODUCE, "ANONYMOUS", name, 500)).throttle_ms for name in names]
    assert throttled == [40_000, 0, 0, 0, 0, 0], "the quota of a long name is found"
    told = [client for meters in broker.meters for _, _, client, *_ in meters.describe(100)]
    assert len(told) == len(set(told)) == 6
    assert sent and all(len(name) <= LONGEST_KNOWN for name in told + sent)


async def test_what_is_kept_of_clients_that_think_of_names_is_bounded():
    broker = QuotaBroker(1, {(("client-id", None),): {PRODUCE: 100.0, MUTATION: 1.0}})
    meters = broker.meters[0]
    for number in range(MOST_SENSORS + 2000):
        for kind in (PRODUCE, MUTATION):
            meters.charge(kind, "ANONYMOUS", f"client-{number}", 5000)
    assert len(meters.describe(10**6)) == 2 * MOST_SENSORS
    assert len(meters.mutation_rates(10**6)) == MOST_SENSORS
    assert meters.sensors().kept == 2 * MOST_SENSORS
    assert meters.sensors().sharing == [PRODUCE, MUTATION]
    broker.now_ms = 240 * 3_600_000
    for _ in range(20):
        meters.expire()
    assert meters.sensors() == (0, 0, [])
    assert not meters._throttles and not meters._mutation_rates
