"""config_state.py: each record of a delta is stored, pushed and read back equal, or its change is refused."""

import json
from collections.abc import Callable

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shards.config.acl_changes import acls_delta
from shards.config.config_state import Change, ConfigState
from shards.config.image import ClusterImage
from shards.config.quota_changes import quotas_delta, users_delta
from shards.config.resource_changes import CLIENT_METRICS_KIND, resource_configs_delta
from shards.config.setting_changes import settings_delta
from shards.config.store_recovery import usable_records
from shards.config.topic_changes import create_topics, topic_configs_delta
from shards.settings.config_def import BROKER, TOPIC
from shards.settings.errors import ConfigInvalid


def state() -> ConfigState:
    return ConfigState(2, {})


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
    assert usable_records(kept) == (kept, [])
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
