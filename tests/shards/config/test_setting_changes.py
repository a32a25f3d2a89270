"""setting_changes.py: validated whole or refused whole, with a sentence that names setting, value and rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.config.cluster_plan import ListenerEndpoint
from shards.config.config_state import MAX_CHANGES, ConfigState
from shards.config.setting_changes import overruled, settings_delta, static_settings
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
