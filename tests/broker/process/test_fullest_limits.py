"""What a shard tells of the limits closest to being reached: clients' quotas and addresses' rates."""

from types import SimpleNamespace

import pytest

from broker.metrics.source_counts import SourceCounts
from broker.process.fullest_limits import FEW_QUOTAS, MOST, FullestLimits
from broker.process.watched_figures import WatchedFigures
from shards.config.image import ClusterImage
from shards.limits.client_quota_managers import MUTATION, PRODUCE
from shards.limits.quota_entities import key_of_entity
from shards.limits.utilisation import NO_LIMITS, CloseLimits
from shards.quotas.meters import QuotaUse
from shards.quotas.sharded_quotas import ShardedQuotas

POOLS = SimpleNamespace(
    addresses=lambda: ["10.0.0.1"], close=lambda: NO_LIMITS, users=lambda: ["alice"], close_users=lambda: NO_LIMITS
)
TOKENS = SimpleNamespace(fullest=POOLS)


class Shard:
    """Quotas of one shard, of one second in which each client produced once."""

    def __init__(self, rates=(), **quotas):
        self.now_ms = 1000
        self.image = ClusterImage(0)
        ip = [["quota", key_of_entity((("ip", None),)), {"connection_creation_rate": 10}]]
        clients = [["quota", key_of_entity((("client-id", None),)), quotas or {PRODUCE: 1000.0}]]
        self.image.apply(1, [*ip, *clients])
        self.meters = ShardedQuotas(
            0, 1, self.image, call=None, now_ms=lambda: self.now_ms, touch=None, after=None, mistaken=None
        )
        self.meters.read_quotas()
        self.here = FullestLimits(TOKENS, self.meters, self.image, lambda most: rates[:most])

    def produce(self, clients, amount=1):
        for client in clients:
            self.meters.charge(PRODUCE, "", client, amount)


def test_the_use_of_quotas_is_as_it_is_now():
    shard = Shard()
    shard.produce(["a"], 20_000)
    shard.produce(["b"], 9_500)
    told = shard.here.describe()
    assert told["quotas"] == [
        QuotaUse(PRODUCE, "", "a", 2000.0, 1000.0, 10_000),
        QuotaUse(PRODUCE, "", "b", 950.0, 1000.0, None),
    ]
    assert told["close_quotas"][PRODUCE] == CloseLimits(high=2, near=2, full=1, limits=2)
    assert told["addresses"] == ["10.0.0.1"] and told["users"] == ["alice"]
    shard.now_ms += 60_000
    assert shard.here.describe()["quotas"] == [], "nothing of it counts any more"


def test_what_is_watched_is_told_by_name():
    shard, sources = Shard(), SourceCounts()
    shard.produce(["a"], 20_000)
    for outcome in ("admitted", "admitted", "ip_cap"):
        sources.add("10.0.0.1", outcome)
    watched = WatchedFigures(sources, shard.meters, {"ip:10.0.0.1": 2.5, "user:alice": 1.5, "user:bob": 9.0}.get)
    assert watched.describe(["10.0.0.1", "10.0.0.2"], [("", "a"), ("alice", ""), ("bob", "a")]) == {
        "counts": {"10.0.0.1": {"admitted": 2, "ip_cap": 1}, "10.0.0.2": {}},
        "rates": {"ip:10.0.0.1": 2.5, "user:alice": 1.5},
        "quotas": [QuotaUse(PRODUCE, "", "a", 2000.0, 1000.0, 10_000)],
    }


def test_mutations_are_told_a_second():
    shard = Shard(controller_mutation_rate=10.0)
    shard.meters.charge(MUTATION, "", "a", 44, strict=True)
    assert shard.here.describe()["quotas"] == [QuotaUse(MUTATION, "", "a", 4.4, 10.0, None)]


def test_many_quotas_are_looked_at_in_turns(monkeypatch):
    shard = Shard()
    shard.produce([f"client-{n}" for n in range(FEW_QUOTAS + 1)])
    shard.produce(["heavy"], 9_000)
    assert shard.here.describe()["quotas"] == [], "none was looked at yet"
    for _ in range(4):
        shard.here.tick()
    told = shard.here.describe()
    assert told["quotas"][0].client_id == "heavy" and len(told["quotas"]) == MOST
    assert told["close_quotas"][PRODUCE] == CloseLimits(high=1, near=1, full=0, limits=FEW_QUOTAS + 2)
    looks = []
    monkeypatch.setattr(shard.meters, "use", lambda kind, key: looks.append(key))
    shard.here.describe()
    assert len(looks) == MOST, "a question looks at what it tells alone"


@pytest.mark.parametrize("number", [3, 500])
def test_the_rates_closest_to_being_reached_come_first(number):
    shard = Shard([(f"ip:10.0.{n // 250}.{n % 250}", 10 * n / number) for n in range(number)])
    told = shard.here.describe()
    assert told["rates"][0] == (f"ip:10.0.{(number - 1) // 250}.{(number - 1) % 250}", 10 * (number - 1) / number)
    assert len(told["rates"]) == min(number - 1, MOST)
    assert told["close_rates"]["ip"].limits == number - 1
