"""Changes: validated whole or refused whole, with a sentence that names setting, value and rule."""

import json
from collections.abc import Callable

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shards.config.acl_changes import acls_delta
from shards.config.changes import (
    MAX_CHANGES,
    Change,
    ConfigState,
    overruled,
    settings_delta,
    static_settings,
)
from shards.config.cluster_plan import ListenerEndpoint
from shards.config.image import ClusterImage
from shards.config.quota_changes import quotas_delta, users_delta
from shards.config.recovery import usable
from shards.config.resource_changes import CLIENT_METRICS_KIND, resource_configs_delta
from shards.config.topic_changes import create_topics, topic_configs_delta
from shards.settings.config_def import BROKER, TOPIC
from shards.settings.errors import ConfigInvalid


def state(brokers: int = 2, static: dict[str, str] | None = None, **settings: str) -> ConfigState:
    return ConfigState(
        brokers, static or {}, [("setting", f"/{name.replace('__', '.')}", v) for name, v in settings.items()]
    )


def test_values_are_spelled_canonically_and_only_differences_remain():
    delta = settings_delta(state(kafka_connections_max="5"), [
        ["", "kafka_connections_max", " 5 "],
        ["", "kafka_connections_max_overrides", '["10.0.0.1:5"]'],
        ["1", "listener.name.EXTERNAL.max.connections", "07"],
    ])  # fmt: skip
    assert delta == [
        ("setting", "/kafka_connections_max_overrides", "10.0.0.1:5"),
        ("setting", "1/listener.name.external.max.connections", "7"),
    ]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (["", "kafka_connection_max", "5"], "kafka_connection_max is not a setting; did you mean kafka_conn"),
        (["", "max_connections_per_ip", "5"], "did you mean max.connections.per.ip?"),
        (["", "per_ip", "5"], "per_ip is not a setting; did you mean kafka_connections_max_per_ip?"),
        (["", "kafka_connections_max", "many"], "kafka_connections_max cannot be 'many': it must be a whole number"),
        (["", "max.connections", "0"], "max.connections cannot be '0': it must be at least 1 while the cluster runs."),
        (["", "listener.name.a.max.connections", "0"], "it must be at least 1"),
        (["", "listener.name.a.num.partitions", "1"], "a listener can have its own max.connections, max.connection."),
        (["", "max.connections.per.ip", "0"], "it can be zero only while max.connections.per.ip.overrides is set."),
        (["", "num.io.threads", "17"], "a live change may at most halve or double it, and it is 8 now."),
        (["", "num.partitions", "3"], "can't change while the cluster runs; start it with --set num.partitions=VALUE"),
        (["", "num.partitions", None], "can't change while the cluster runs; start it without --set num.partitions"),
        (["2", "max.connections", "5"], "broker cannot be '2': this cluster has brokers 0 to 1."),
        (["", "kafka_connections_max_overrides", "10.0.0.1"], "ip:number"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(change, sentence):
    with pytest.raises(ConfigInvalid) as refused:
        settings_delta(state(), [change])
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_handlers_that_are_unset_are_at_most_doubled_too():
    now = state()
    for threads in ("4", "2"):
        now.put(settings_delta(now, [["", "num.io.threads", threads]]))
    with pytest.raises(ConfigInvalid, match=r"halve or double it, and it is 2 now"):
        settings_delta(now, [["", "num.io.threads", None]])
    now.put(settings_delta(now, [["", "num.io.threads", "4"]]))
    now.put(settings_delta(now, [["", "num.io.threads", None]]))
    assert now.value("num.io.threads") == 8


def test_zero_per_ip_needs_overrides_whichever_is_changed_last():
    overrides = ["", "max.connections.per.ip.overrides", "10.0.0.1:5"]
    zero = ["", "max.connections.per.ip", "0"]
    now = state()
    now.put(settings_delta(now, [zero, overrides]))
    with pytest.raises(ConfigInvalid, match=r"max\.connections\.per\.ip cannot be '0'"):
        settings_delta(now, [["", "max.connections.per.ip.overrides", None]])
    with pytest.raises(ConfigInvalid):
        settings_delta(now, [["1", "max.connections.per.ip.overrides", ""]])


names = st.sampled_from(
    ["kafka_connections_max", "max.connections", "max.connections.per.ip", "num.io.threads", "nope"]
)
values = st.sampled_from([None, "0", "5", "x"])
changes = st.lists(st.tuples(st.sampled_from(["", "0", "1", "9"]), names, values), max_size=6)


@given(changes, changes)
def test_a_refused_request_changes_nothing_and_an_accepted_one_everything(first, second):
    now = state()
    try:
        now.put(settings_delta(now, first))
    except ConfigInvalid:
        assert now.settings == {}
    before = dict(now.settings)
    try:
        delta = settings_delta(now, second)
    except ConfigInvalid:
        assert now.settings == before
        return
    assert now.settings == before
    now.put(delta)
    for (broker, name), value in {(broker, name): value for broker, name, value in second}.items():
        assert now.settings.get(f"{broker}/{name}") == value
    assert settings_delta(now, second) == []


def test_too_many_changes_at_once_are_refused():
    with pytest.raises(ConfigInvalid, match="at most 10000 changes"):
        settings_delta(state(), [["", "kafka_connections_max", "1"]] * (MAX_CHANGES + 1))


def test_a_cluster_starts_with_what_its_endpoints_and_its_command_line_say():
    endpoints = [
        ListenerEndpoint(b, n, "127.0.0.1", 9092 + b, o) for b in (0, 1) for n, o in (("EXT", ()), ("S", ("sasl",)))
    ]
    static = static_settings([("max.connections", "0"), ("num.partitions", "4")], endpoints)
    assert static["1/advertised.listeners"] == "EXT://127.0.0.1:9093,S://127.0.0.1:9093"
    assert static["0/listener.security.protocol.map"] == "EXT:PLAINTEXT,S:SASL_PLAINTEXT"
    assert static["/num.partitions"] == "4"
    assert static["/max.connections"] == "0"
    with pytest.raises(ConfigInvalid, match=r"names no listener of this cluster, which has EXT, S"):
        static_settings([("listener.name.other.max.connections", "4")], endpoints)
    with pytest.raises(ConfigInvalid, match=r"did you mean num\.partitions"):
        static_settings([("num.partition", "4")])


def test_a_live_value_that_overrules_the_command_line_is_pointed_out():
    now = state(static={"/kafka_connections_max": "5", "/num.partitions": "2"}, kafka_connections_max="9")
    assert [each[1:] for each in overruled(now)] == [("kafka_connections_max", "5", "9")]


# Answers of Kafka 4.1's own ClientQuotaControlManager to the same questions.
@pytest.mark.parametrize(
    ("entity", "key", "value", "message"),
    [
        ({}, "producer_byte_rate", 1.0, "Invalid empty client quota entity"),
        ({"ip": "10.0.0.1"}, "connection_creation_rate", 0.0, "Quota connection_creation_rate must be greater than 0"),
        ({"ip": "10.0.0.1"}, "connection_creation_rate", 5.5, "connection_creation_rate cannot be a fractional value."),
        ({"ip": "10.0.0.1"}, "connection_creation_rate", 3e9,
         "Proposed value for connection_creation_rate is too large for an INT."),
        ({"ip": "10.0.0.1"}, "producer_byte_rate", 5.0, "Invalid configuration key producer_byte_rate"),
        ({"ip": "no.such"}, "connection_creation_rate", 5.0, "no.such is not a valid IP or resolvable host."),
        ({"ip": "10.0.0.1", "user": "u"}, "connection_creation_rate", 5.0,
         "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"),
        ({"user": "u", "client-id": ""}, "producer_byte_rate", 5.0, "Empty client-id not supported"),
        ({"group": "g"}, "producer_byte_rate", 5.0, "Unhandled client quota entity type: group"),
        ({"user": "u"}, "producer_byte_rate", 1e19, "Proposed value for producer_byte_rate is too large for a LONG."),
        ({"user": "u"}, "request_percentage", -0.5, "Quota request_percentage must be greater than 0"),
        ({"client-id": "c"}, "connection_creation_rate", 1.0, "Invalid configuration key connection_creation_rate"),
    ],
)  # fmt: skip
def test_quotas_are_refused_in_kafkas_words(entity, key, value, message):
    with pytest.raises(ConfigInvalid) as refused:
        quotas_delta(state(), [[entity, {key: value}]])
    assert str(refused.value) == message
    assert refused.value.error == "INVALID_REQUEST"


def test_quotas_are_set_merged_and_removed_per_entity():
    now = state()
    both = {"producer_byte_rate": 5, "request_percentage": 0.5}
    now.put(quotas_delta(now, [[{"user": "a", "client-id": None}, both]]))
    assert now.quotas == {'{"client-id":null,"user":"a"}': {"producer_byte_rate": 5.0, "request_percentage": 0.5}}
    now.put(quotas_delta(now, [[{"client-id": None, "user": "a"}, {"producer_byte_rate": None}]]))
    assert now.quotas == {'{"client-id":null,"user":"a"}': {"request_percentage": 0.5}}
    now.put(quotas_delta(now, [[{"client-id": None, "user": "a"}, {"request_percentage": None, "unknown": None}]]))
    assert now.quotas == {}


def test_an_ip_entity_has_one_spelling():
    delta = quotas_delta(state(), [[{"ip": "::ffff:10.0.0.1"}, {"connection_creation_rate": 5}]])
    assert delta == [("quota", '{"ip":"10.0.0.1"}', {"connection_creation_rate": 5.0})]


def test_credentials_come_and_go_by_mechanism():
    now = state()
    now.put(users_delta(now, [["alice", "PLAIN", {"h": "1"}], ["alice", "SCRAM-SHA-256", {"h": "2"}]]))
    now.put(users_delta(now, [["alice", "PLAIN", None]]))
    assert now.users == {"alice": {"SCRAM-SHA-256": {"h": "2"}}}
    with pytest.raises(ConfigInvalid, match="no PLAIN credential"):
        users_delta(now, [["alice", "PLAIN", None]])


texts = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ['["[x"]', "[x", "9" * 400, "Produce=" + "9" * 400 + "us", "*=1e5us", "nan", "Infinity", "\ud800", "a\0b"]
    ),
    st.lists(st.text(max_size=5), max_size=3).map(json.dumps),
)
numbers = st.one_of(
    st.floats(), st.integers(-(10**20), 10**20), st.sampled_from([10**400, "Infinity", "nan", "5", True, None, [5]])
)
json_names = st.one_of(
    st.none(), st.text(max_size=5), st.integers(), st.lists(st.text(max_size=3), max_size=2), st.just("\ud800")
)


def survives(now: ConfigState, make: Callable[[], list[Change]]) -> None:
    """What a request asks for is refused in a sentence; or it is stored, pushed, read back equal and usable."""
    try:
        delta = make()
    except ConfigInvalid as fault:
        assert str(fault)
        return
    now.put(delta)
    for _, key, value in delta:
        assert json.loads(json.dumps([key, value], allow_nan=False)) == [key, value]
        assert msgpack.unpackb(msgpack.packb([key, value])) == [key, value]
    kept = [change for change in delta if change[2] is not None]
    assert usable(kept) == (kept, [])
    ClusterImage(0).apply(1, now.dump(), whole=True)


@given(st.sampled_from(sorted(name for name, row in BROKER.items() if row.dynamic)), texts)
@example("metric.reporters", '["[x"]')
@example("turnstile.request.cost", "Produce=" + "9" * 400 + "us")
def test_a_setting_that_would_not_read_back_is_refused(name, text):
    now = state()
    survives(now, lambda: settings_delta(now, [["", name, text]]))


@given(st.sampled_from(sorted(TOPIC)), texts)
def test_a_topic_config_that_would_not_read_back_is_refused(name, text):
    now = state()
    now.put(create_topics(now, [["t", 1, {}]])[0])
    survives(now, lambda: topic_configs_delta(now, [["t", name, text]]))


@given(
    st.dictionaries(st.sampled_from(["user", "client-id", "ip", "group"]), json_names, max_size=2),
    st.dictionaries(st.sampled_from(["request_percentage", "producer_byte_rate", "connection_creation_rate"]), numbers),
)
@example({"user": "a"}, {"request_percentage": float("inf")})
@example({"user": "a"}, {"request_percentage": float("nan")})
@example({"user": ["a"]}, {"producer_byte_rate": 5})
def test_a_quota_that_would_not_read_back_is_refused(entity, values):
    now = state()
    survives(now, lambda: quotas_delta(now, [[entity, values]]))


@given(json_names, st.dictionaries(st.text(max_size=3), st.one_of(numbers, st.text(max_size=3), st.just("\ud800"))))
def test_a_credential_that_would_not_read_back_is_refused(name, credential):
    now = state()
    survives(now, lambda: users_delta(now, [[name, "PLAIN", credential]]))


STORED_BY_NAME: dict[str, Callable[[str], list[Change]]] = {
    "quota": lambda name: quotas_delta(state(), [[{"user": name}, {"producer_byte_rate": 1}]]),
    "user": lambda name: users_delta(state(), [[name, "SCRAM-SHA-256", {}]]),
    "client_metrics": lambda name: resource_configs_delta(
        state(), CLIENT_METRICS_KIND, [[name, "interval.ms", "1000"]]
    ),
    "acl": lambda name: acls_delta(state(), [[[2, name, 3, "User:a", "*", 3, 3], True]]),
}


@pytest.mark.parametrize("kind", STORED_BY_NAME)
def test_a_name_of_megabytes_is_refused_wherever_it_would_be_stored(kind):
    assert STORED_BY_NAME[kind]("n" * 60_000)
    with pytest.raises(
        ConfigInvalid, match=f"^{kind} .* has too long a name: 3.* bytes, of at most 65536.$"
    ) as refused:
        STORED_BY_NAME[kind]("n" * 3_000_000)
    assert refused.value.error == "INVALID_REQUEST" and len(str(refused.value)) < 300


def test_a_long_name_of_earlier_can_be_removed():
    before = state()
    before.put([("user", "n" * 3_000_000, {"SCRAM-SHA-256": {}})])
    assert users_delta(before, [["n" * 3_000_000, "SCRAM-SHA-256", None]]) == [("user", "n" * 3_000_000, None)]
