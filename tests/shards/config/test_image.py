"""What a ClusterImage says a limit is, over both vocabularies, levels and overrides."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.config.image import ClusterImage, ImageChange
from shards.limits.caps import NO_RATE, UNLIMITED, CapRule, RateRule
from shards.settings.overrides import Overrides


def image_with(broker: int = 0, static: dict[str, str] | None = None, **named: str) -> ClusterImage:
    """An image with these cluster-wide settings: `_` stands for `.` in Kafka's names, which `kafka_...` names are not."""
    image = ClusterImage(broker)
    settings = [["setting", "/" + (n if n.startswith("kafka") else n.replace("_", ".")), v] for n, v in named.items()]
    image.apply(1, [*(["static", k, v] for k, v in (static or {}).items()), *settings], whole=True)
    return image


def test_nothing_set_is_unlimited():
    image = ClusterImage()
    for pool in ("broker", "listener:EXTERNAL", "ip:10.0.0.1", "user:alice"):
        assert image.rule_of(pool) == UNLIMITED
        assert image.rate_of(pool) == NO_RATE
    assert image.core_rate_of("10.0.0.1") == NO_RATE


def test_redpandas_broker_cap_refuses_and_kafkas_waits():
    assert image_with(kafka_connections_max="7").rule_of("broker") == CapRule(7, "kafka_connections_max")
    assert image_with(max_connections="7").rule_of("broker") == CapRule(7, "max.connections", wait=True)
    both = image_with(kafka_connections_max="9", max_connections="7")
    assert both.rule_of("broker") == CapRule(7, "max.connections", wait=True)
    assert both.rule_of("broker:all") == CapRule(9, "kafka_connections_max"), (
        "for connections that max.connections does not keep out"
    )
    assert image_with(kafka_connections_max="7").rule_of("broker:all") == UNLIMITED


def test_a_listener_without_its_own_number_uses_the_brokers():
    image = ClusterImage()
    image.apply(1, [["setting", "/max.connections", "10"], ["setting", "/listener.name.external.max.connections", "3"]])
    own = CapRule(3, "listener.name.external.max.connections", wait=True)
    assert image.rule_of("listener:EXTERNAL") == own
    assert image.rule_of("listener:INTERNAL") == CapRule(10, "max.connections", wait=True)


def test_an_override_replaces_the_general_number_even_when_it_is_higher():
    image = image_with(kafka_connections_max_per_ip="5", kafka_connections_max_overrides="10.0.0.1:50,10.1.0.0/16:2")
    assert image.rule_of("ip:10.0.0.1") == CapRule(50, "kafka_connections_max_overrides")
    assert image.rule_of("ip:10.1.2.3") == CapRule(2, "kafka_connections_max_overrides")
    assert image.rule_of("ip:10.0.0.2") == CapRule(5, "kafka_connections_max_per_ip")


def test_zero_with_overrides_is_an_allow_list():
    image = image_with(kafka_connections_max_per_ip="0", kafka_connections_max_overrides="10.0.0.1:5")
    assert image.rule_of("ip:10.0.0.1").cap == 5
    assert image.rule_of("ip:10.0.0.2").cap == 0


def test_across_vocabularies_the_tighter_one_rules_and_is_named():
    image = ClusterImage()
    image.apply(1, [
        ["setting", "/kafka_connections_max_overrides", "10.0.0.1:50"],
        ["setting", "/max.connections.per.ip", "20"],
        ["setting", "/max.connections.per.ip.overrides", "10.0.0.2:3"],
    ])  # fmt: skip
    assert image.rule_of("ip:10.0.0.1") == CapRule(20, "max.connections.per.ip")
    assert image.rule_of("ip:10.0.0.2") == CapRule(3, "max.connections.per.ip.overrides")


number = st.one_of(st.none(), st.integers(0, 12))
entries = st.dictionaries(st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.0/24", "10.0.0.0/8"]), st.integers(0, 12))


@given(number, entries, number, entries, st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.9", "10.9.9.9", "11.0.0.1"]))
def test_the_joined_rule_is_the_least_of_what_each_vocabulary_says(per_ip, listed, kafka, kafka_listed, ip):
    delta = [
        ["setting", "/kafka_connections_max_per_ip", None if per_ip is None else str(per_ip)],
        ["setting", "/kafka_connections_max_overrides", str(Overrides(listed))],
        ["setting", "/max.connections.per.ip", None if kafka is None else str(kafka)],
        ["setting", "/max.connections.per.ip.overrides", str(Overrides(kafka_listed))],
    ]
    image = ClusterImage()
    image.apply(1, delta)
    said = []
    for general, overrides in ((per_ip, Overrides(listed)), (kafka, Overrides(kafka_listed))):
        own = overrides.lookup(ip)
        said.append(general if own is None else own)
    expected = min((cap for cap in said if cap is not None), default=None)
    assert image.rule_of(f"ip:{ip}").cap == expected


def test_a_brokers_own_value_beats_the_clusters_and_that_beats_the_command_line():
    delta = [["static", "/max.connections", "1"], ["setting", "/max.connections", "2"]]
    mine, other = ClusterImage(broker=3), ClusterImage(broker=0)
    for image in (mine, other):
        image.apply(1, [*delta, ["setting", "3/max.connections", "4"]])
    assert mine.get("max.connections") == 4
    assert other.get("max.connections") == 2
    mine.apply(2, [["setting", "3/max.connections", None], ["setting", "/max.connections", None]])
    assert mine.get("max.connections") == 1


def test_rates_by_listener_and_by_core():
    image = ClusterImage()
    image.apply(1, [
        ["setting", "/max.connection.creation.rate", "100"],
        ["setting", "/listener.name.a.max.connection.creation.rate", "5"],
        ["setting", "/kafka_connection_rate_limit", "700"],
        ["setting", "/kafka_connection_rate_limit_overrides", "10.0.0.1:9"],
        ["quota", '{"ip":null}', {"connection_creation_rate": 20.0}],
        ["quota", '{"ip":"10.0.0.1"}', {"connection_creation_rate": 30.0}],
    ])  # fmt: skip
    assert image.rate_of("broker") == RateRule(100.0, "max.connection.creation.rate")
    assert image.rate_of("listener:A") == RateRule(5.0, "listener.name.a.max.connection.creation.rate")
    assert image.rate_of("listener:B") == RateRule(100.0, "max.connection.creation.rate")
    assert image.core_rate_of("10.0.0.1") == RateRule(9.0, "kafka_connection_rate_limit_overrides")
    assert image.core_rate_of("10.0.0.2") == RateRule(700.0, "kafka_connection_rate_limit")
    assert image.quota_for_ip("10.0.0.1") == 30.0
    assert image.rate_of("ip:10.0.0.2") == RateRule(20.0, "connection_creation_rate")


@pytest.mark.parametrize(
    ("delta", "kind", "pools"),
    [
        ([["setting", "/kafka_connections_max", "5"]], "setting", {"broker"}),
        ([["setting", "/max.connections", "5"]], "setting", {"broker", "listener"}),
        ([["setting", "/kafka_connections_max_per_ip", "5"]], "setting", {"general/ip"}),
        ([["setting", "/kafka_connections_max_overrides", "10.0.0.1:5"]], "setting", {"ip:10.0.0.1"}),
        ([["setting", "/log.retention.ms", "5"]], "setting", set()),
        ([["static", "/log.retention.ms", "5"]], "setting", set()),
        ([["quota", '{"ip":null}', {"connection_creation_rate": 5.0}]], "quota", set()),
        ([["quota", '{"user":"a"}', {"producer_byte_rate": 5.0}]], "quota", set()),
        ([["topic", "t", {"id": uuid.uuid4().hex, "leaders": [0], "configs": {}}]], "topic", set()),
    ],
)
def test_a_delta_says_which_records_and_which_pools_it_touched(delta, kind, pools):
    """A change of anything but a cap names no pool: no pool is visited, and none waits until every shard has it."""
    assert ClusterImage().apply(1, delta) == ImageChange(frozenset({kind}), frozenset(pools))


def test_a_whole_state_forgets_what_it_does_not_name():
    image = image_with(kafka_connections_max="5")
    image.apply(2, [["topic", "t", {"id": uuid.uuid4().hex, "leaders": [0], "configs": {}}]])
    changed = image.apply(7, [], whole=True)
    assert image.rule_of("broker") == UNLIMITED
    assert len(image.topics) == 0
    assert changed == ImageChange(frozenset({"setting", "topic"}), frozenset({"broker"}))
    assert image.version == 7


def test_topics_are_found_by_name_and_id_and_configured_by_themselves_or_the_broker():
    image = ClusterImage()
    topic_id = uuid.uuid4()
    value = {"id": topic_id.hex, "leaders": [0, 1, 0], "configs": {"retention.ms": "5"}}
    image.apply(1, [["topic", "t", value], ["static", "/log.retention.hours", "2"]])
    found = image.topics.by_id(topic_id)
    assert found is image.topics.get("t")
    assert found is not None and found.leaders == [0, 1, 0]
    assert {topic.name: len(topic.leaders) for topic in image.topics} == {"t": 3}
    assert image.topic_get("t", "retention.ms") == 5
    assert image.topic_get("other", "retention.ms") == 2 * 3_600_000
    assert image.topic_get("t", "retention.bytes") == image.get("log.retention.bytes")
    image.apply(2, [["topic", "t", None]])
    assert image.topics.by_id(topic_id) is None


def test_a_pool_asked_for_leaves_nothing_behind():
    image = image_with(kafka_connections_max_per_ip="5", kafka_connections_max_overrides="10.0.0.0/8:1")
    kept = len(image.limits.exact)
    for n in range(1000):
        image.rule_of(f"ip:10.0.{n // 256}.{n % 256}")
    assert len(image.limits.exact) == kept
