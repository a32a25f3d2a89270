"""Redpanda's connection rate per core."""

from broker.accept.core_rates import CoreRates
from shards.config.image import ClusterImage


def rates(**settings):
    image = ClusterImage()
    image.apply(1, [("setting", f"/{name}", value) for name, value in settings.items()], whole=True)
    core = CoreRates(image)
    core.read_settings()
    return core, image


def test_no_limit_asks_nothing():
    core, _ = rates()
    assert not core.active
    assert core.take("10.0.0.1", now_ms=0) == 0


def test_one_bucket_for_all_and_one_for_each_override():
    core, _ = rates(kafka_connection_rate_limit="10", kafka_connection_rate_limit_overrides="10.1.0.0/16:20")
    assert core.active
    assert [core.take(f"10.0.0.{n}", now_ms=0) for n in range(13)] == [0] * 10 + [100, None, None]
    for ip in ("10.1.0.1", "10.1.0.2"):
        assert [core.take(ip, now_ms=0) for _ in range(23)] == [0] * 20 + [50, 100, None]


def test_a_changed_rate_holds_for_the_next_connection():
    core, image = rates(kafka_connection_rate_limit="10")
    for _ in range(10):
        core.take("10.0.0.1", now_ms=0)
    image.apply(2, [("setting", "/kafka_connection_rate_limit", "1000")])
    core.read_settings()
    assert core.take("10.0.0.1", now_ms=0) == 0, "as Redpanda, a raised rate fills the bucket"
    image.apply(3, [("setting", "/kafka_connection_rate_limit", None)])
    core.read_settings()
    assert not core.active


def test_buckets_of_addresses_that_went_away_are_forgotten():
    core, _ = rates(kafka_connection_rate_limit_overrides="10.0.0.0/8:10")
    for number in range(1000):
        core.take(f"10.0.{number // 256}.{number % 256}", now_ms=0)
    core.tick(now_ms=50)
    assert len(core._buckets) == 1000
    core.tick(now_ms=100)
    assert not core._buckets
