"""What a shard tells /metrics of client quotas, under the names of Kafka's beans."""

from types import SimpleNamespace

from broker.metrics.shard_counters import Layout, ShardCounters
from broker.process.gauges import ShardGauges, describe_gauges
from broker.serve.muted import Muted
from shards.config.image import ClusterImage
from shards.limits.client_quota_managers import MUTATION, PRODUCE, REQUEST
from shards.limits.quota_entities import key_of_entity
from shards.limits.sensor_table import MOST_SENSORS
from shards.loop.stalls import Stalls
from shards.quotas.sharded_quotas import ShardedQuotas


def gauges(now_ms, *, charges=(), exempt_ms=0.0, quotas=None):
    """{(name, resource, user, client-id): value} after these charges."""
    image = ClusterImage(0)
    delta = [["quota", key_of_entity(entity), values] for entity, values in (quotas or {}).items()]
    image.apply(1, delta)
    meters = ShardedQuotas(0, 1, image, call=None, now_ms=lambda: now_ms, touch=None, after=None, mistaken=None)
    meters.read_quotas()
    for charge in charges:
        meters.charge(*charge, strict=True) if charge[0] == MUTATION else meters.charge(*charge)
    meters.record_exempt(exempt_ms)
    told = describe_gauges(meters, Muted(None))
    return {
        (name, labels.get("resource"), labels.get("user"), labels.get("clientId")): value
        for name, labels, value in told
    }


def test_without_quotas_there_are_only_empty_queues():
    told = gauges(1000, charges=[(PRODUCE, "alice", "app", 100)], exempt_ms=5)
    assert set(told.values()) == {0}
    assert {name for name, *_ in told} == {
        "kafka_server_produce_queue_size",
        "kafka_server_fetch_queue_size",
        "kafka_server_request_queue_size",
        "kafka_server_controllermutation_queue_size",
    }


def test_rates_and_throttle_times_of_a_client():
    told = gauges(
        1000,
        charges=[(PRODUCE, "alice", "app", 20_000)],
        quotas={(("client-id", "app"), ("user", "alice")): {PRODUCE: 1000.0}},
    )
    assert told["kafka_server_quota_byte_rate", "Produce", "alice", "app"] == 2000.0
    assert told["kafka_server_quota_throttle_time", "Produce", "alice", "app"] == 10_000


def test_mutations_and_what_is_left_of_them():
    told = gauges(1000, charges=[(MUTATION, "", "admin", 44)], quotas={(("client-id", "admin"),): {MUTATION: 10.0}})
    assert told["kafka_server_quota_mutation_rate", "ControllerMutation", None, "admin"] == 4.4
    assert told["kafka_server_quota_tokens", "ControllerMutation", None, "admin"] == 66.0


def test_exempt_requests_are_measured_while_request_time_is():
    told = gauges(1000, exempt_ms=100, quotas={(("client-id", "app"),): {REQUEST: 50.0}})
    assert told["kafka_server_request_exempt_request_time", None, None, None] == 1.0  # 10 % of a second, over 10 s


class Log(list):
    """The lines of a log."""

    def warning(self, event, **fields):
        self.append((event, fields))

    info = warning


def test_that_clients_share_a_quota_is_counted_and_said_at_the_beginning_and_at_the_end(tmp_path):
    now_ms = [0]
    image = ClusterImage(0)
    image.apply(1, [["quota", key_of_entity((("client-id", None),)), {PRODUCE: 1000.0}]])
    meters = ShardedQuotas(0, 1, image, call=None, now_ms=lambda: now_ms[0], touch=None, after=None, mistaken=None)
    meters.read_quotas()
    ShardCounters.create(tmp_path / "counters", Layout(["L"]))
    counters = ShardCounters(tmp_path / "counters", Layout(["L"]))
    tokens = SimpleNamespace(
        totals=lambda: SimpleNamespace(in_use=0, cached=0, pools=0),
        decided_home=0, decided_cached=0, decided_rpc=0, borrows=0, reclaims=0,
    )  # fmt: skip
    log = Log()
    poller = SimpleNamespace(stalls=Stalls())
    context = SimpleNamespace(
        tokens=tokens,
        counters=counters,
        journal=SimpleNamespace(written=0, dropped=0, fault=""),
        log=log,
        poller=poller,
    )
    gauges = ShardGauges(context, Muted(None), meters)
    for number in range(MOST_SENSORS + 1):
        meters.charge(PRODUCE, "", f"client-{number}", 1)
    gauges.set()
    gauges.set()
    assert [fields for _, fields in log] == [{"quotas": [PRODUCE]}]
    assert (counters.value("quota_sensors"), counters.value("quotas_shared")) == (MOST_SENSORS, 1)
    now_ms[0] = 20_000
    meters.charge(PRODUCE, "", "another", 1)
    meters.expire()
    gauges.set()
    assert len(log) == 2
    assert counters.value("quotas_shared") == 0
    assert counters.value("quota_sensors_evicted") == 500
    counters.close()
