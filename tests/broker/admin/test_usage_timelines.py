"""usage_timelines.py: what is asked for is watched from then on, bounded in number and in time."""

from types import SimpleNamespace

import pytest

from broker.admin import usage_timelines
from broker.admin.sampler import COARSE, KEPT
from broker.admin.usage_timelines import FORGOTTEN_S, MOST, Watched, Watches

ADDRESS = Watched(0, "10.0.0.1")
CLIENT = Watched(0, None, "", "app")


class Cluster:
    """Two shards of broker 0, one of broker 1, under a clock that the test moves."""

    def __init__(self):
        self.now_s = 100.0
        self.open = 3
        self.counts = {"admitted": 10, "ip_cap": 0}
        self.quotas = []
        self.asked = []
        rule = SimpleNamespace(cap=5, rate=20.0)
        images = SimpleNamespace(
            of=lambda broker: SimpleNamespace(rule_of=lambda pool: rule, rate_of=lambda pool: rule)
        )
        clocks = {"wall_clock": lambda: 5000 + self.now_s, "mono_clock": lambda: self.now_s}
        self.watches = Watches(self.ask, images, **clocks)

    async def ask(self, method, *query):
        self.asked.append((method, *query))
        if method == "describe_tokens":
            of_user = {"pool": "user:alice", "in_use": 2}
            tokens = {"home": [{"pool": "ip:10.0.0.1", "in_use": self.open}, of_user], "holds": []}
            return {
                (0, 0): tokens,
                (0, 1): {"home": [], "holds": [{"pool": "ip:10.0.0.1", "in_use": 1}]},
                (1, 0): tokens,
            }
        rates = {"ip:10.0.0.1": 7.5, "user:alice": 2.5}
        home = {"counts": {"10.0.0.1": dict(self.counts)}, "rates": rates, "quotas": self.quotas}
        other = {"counts": {"10.0.0.1": {"admitted": 1}}, "rates": {}, "quotas": []}
        return {(0, 0): home, (0, 1): other, (1, 0): other}

    async def seconds(self, number):
        for _ in range(number):
            self.now_s += 1
            await self.watches.sample()


async def test_an_address_is_seen_at_once_and_then_every_second():
    cluster = Cluster()
    told = await cluster.watches.answer(ADDRESS, 5, 0.0)
    limits = {"connections": 5, "new_connections": 20.0}
    assert told["points"] == [
        {"at": 5100.0, "used": {"connections": 4, "new_connections": 7.5}, "limits": limits, "throttle_ms": {}, "admitted": 0.0,
         "refused": {}},
    ]  # fmt: skip
    cluster.counts = {"admitted": 14, "ip_cap": 6}
    cluster.now_s += 1
    await cluster.seconds(1)
    told = await cluster.watches.answer(ADDRESS, 5, told["points"][-1]["at"])
    (point,) = told["points"]
    assert (point["admitted"], point["refused"]) == (2.0, {"ip_cap": 3.0})
    assert (told["admitted"], told["refused"], told["began"]) == (15, {"ip_cap": 6}, 5100.0)


async def test_a_client_has_the_use_of_its_quotas_and_what_it_was_told_to_wait():
    cluster = Cluster()
    cluster.quotas = [
        ["producer_byte_rate", "", "app", 120.0, 100.0, 250.04],
        ["consumer_byte_rate", "", "other", 1.0, 2.0, None],
    ]
    told = await cluster.watches.answer(CLIENT, 5, 0.0)
    (point,) = told["points"]
    assert point["used"] == {"producer_byte_rate": 120.0} and point["limits"] == {"producer_byte_rate": 100.0}
    assert point["throttle_ms"] == {"producer_byte_rate": 250.0}
    assert told["admitted"] is None and told["refused"] is None
    assert [method for method, *_ in cluster.asked] == ["describe_watched"], "no pool is asked for"


async def test_a_user_has_its_connections_beside_its_quotas_and_with_a_client_id_only_these():
    cluster = Cluster()
    cluster.quotas = [["producer_byte_rate", "alice", client, 120.0, 100.0, None] for client in ("", "app")]
    (point,) = (await cluster.watches.answer(Watched(0, None, "alice", ""), 5, 0.0))["points"]
    assert point["used"] == {"connections": 2, "new_connections": 2.5, "producer_byte_rate": 120.0}
    assert point["limits"] == {"connections": 5, "new_connections": 20.0, "producer_byte_rate": 100.0}
    assert ("describe_tokens", ["user:alice"]) in cluster.asked
    (point,) = (await cluster.watches.answer(Watched(0, None, "alice", "app"), 5, 0.0))["points"]
    assert point["used"] == {"producer_byte_rate": 120.0}


async def test_counts_that_fall_are_no_connections():
    cluster = Cluster()
    await cluster.watches.answer(ADDRESS, 5, 0.0)
    cluster.counts = {"admitted": 0, "ip_cap": 0}
    await cluster.seconds(1)
    assert (await cluster.watches.answer(ADDRESS, 5, 0.0))["points"][-1]["admitted"] == 0.0


async def test_half_an_hour_is_kept_in_points_of_six_seconds():
    cluster = Cluster()
    await cluster.watches.answer(ADDRESS, 5, 0.0)
    for _ in range(4):
        await cluster.seconds(600)
        await cluster.watches.answer(ADDRESS, 30, 0.0)
    told = await cluster.watches.answer(ADDRESS, 30, 0.0)
    assert told["step_s"] == COARSE and len(told["points"]) in (KEPT - 1, KEPT)
    assert told["points"][-1]["at"] - told["points"][0]["at"] > 29 * 60
    told = await cluster.watches.answer(ADDRESS, 1, 0.0)
    assert told["step_s"] == 1 and len(told["points"]) == 60


async def test_what_is_not_asked_for_is_forgotten():
    cluster = Cluster()
    await cluster.watches.answer(ADDRESS, 5, 0.0)
    cluster.now_s += FORGOTTEN_S - 1
    await cluster.seconds(1)
    assert len(cluster.watches) == 1
    await cluster.seconds(1)
    cluster.asked.clear()
    await cluster.seconds(1)
    assert len(cluster.watches) == 0 and cluster.asked == [], "nothing is watched: no shard is asked"


async def test_the_one_that_was_asked_for_the_longest_ago_makes_room():
    cluster = Cluster()
    for number in range(MOST):
        await cluster.watches.answer(Watched(0, None, "", f"client-{number}"), 5, 0.0)
    await cluster.watches.answer(Watched(0, None, "", "client-0"), 5, 0.0)
    await cluster.watches.answer(ADDRESS, 5, 0.0)
    cluster.asked.clear()
    await cluster.seconds(1)
    assert len(cluster.watches) == MOST
    (_, addresses, clients), _ = cluster.asked
    assert addresses == ["10.0.0.1"] and ("", "client-0") in clients and ("", "client-1") not in clients


@pytest.mark.parametrize("watched", [ADDRESS, CLIENT])
async def test_a_second_costs_each_shard_two_questions_at_most(watched, monkeypatch):
    monkeypatch.setattr(usage_timelines, "MOST", 8)
    cluster = Cluster()
    for broker in (0, 1):
        await cluster.watches.answer(watched._replace(broker=broker), 5, 0.0)
    cluster.asked.clear()
    await cluster.seconds(1)
    assert len(cluster.asked) <= 2
