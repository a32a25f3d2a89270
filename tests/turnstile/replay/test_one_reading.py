"""One reading of the limits: cluster, replay, audit and plan accept the same texts, and see the same limits in them."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shards.config.config_state import Change, ConfigState
from shards.config.image import ClusterImage
from shards.config.quota_changes import quotas_delta
from shards.config.setting_changes import settings_delta
from shards.limits.connection_limits import IPV6_PREFIX, READ
from shards.settings.errors import ConfigInvalid
from turnstile.pipeline.errors import PipelineError
from turnstile.pipeline.events.config_states import ConfigEvent
from turnstile.pipeline.events.timeline import Timeline
from turnstile.pipeline.events.version_limits import UNLIMITED
from turnstile.pipeline.plan.candidates import grid
from turnstile.replay.scenario import ChangeRefused, ReplayScenario

LISTENERS = ("EXTERNAL", "INTERNAL")
STATIC = {"0/listeners": ",".join(f"{name}://127.0.0.1:{n}" for n, name in enumerate(LISTENERS, 9092))}
IPS = ("10.0.0.1", "10.0.0.2", "10.1.2.3", "2001:db8::1")
POOLS = ("broker", *(f"listener:{name}" for name in LISTENERS), *(f"ip:{ip}" for ip in IPS))

prefixes = st.sampled_from(["", "listener.name.external.", "listener.name.INTERNAL.", "listener.name.other."])
names = st.tuples(
    prefixes, st.sampled_from(sorted(name for name in READ if "window" not in name and name != IPV6_PREFIX))
).map("".join)
integers = st.sampled_from([-1, 0, 1, 2, 7, 100, 2**31 - 1, 2**31, 3_000_000_000, 2**32 - 1, 2**32, 2**63 - 1, 2**63])
overrides = st.lists(
    st.tuples(
        st.sampled_from(["10.0.0.1", "10.0.0.0/8", "10.1.0.0/16", "[2001:db8::1]", "[2001:db8::2]", "no..where"]),
        integers,
    ),
    max_size=3,
).map(lambda entries: ",".join(f"{key}:{number}" for key, number in entries))
texts = st.one_of(
    integers.map(str),
    overrides,
    st.sampled_from(["true", "False", "", " 5 ", "1_000", "5.0", "nan", "many", '["10.0.0.1:5"]', "[x", "9" * 400]),
)
changes = st.lists(st.tuples(names, st.one_of(st.none(), texts)), min_size=1, max_size=6)


class Readers:
    """A cluster of one broker, a replay and an audit that are told the same."""

    def __init__(self, ipv6_prefix: int = 128) -> None:
        self.state = ConfigState(1, {**STATIC, f"/{IPV6_PREFIX}": str(ipv6_prefix)})
        self.image = ClusterImage(0)
        self.image.apply(1, self.state.dump(), whole=True)
        self.version = 1
        self.scenario = ReplayScenario()
        self.scenario.take({"at": 0, "do": "setup", "listeners": list(LISTENERS)})
        self.scenario.take({"at": 0, "do": "set", "name": IPV6_PREFIX, "value": str(ipv6_prefix)})

    def put(self, delta: list[Change]) -> None:
        self.state.put(delta)
        self.version += 1
        self.image.apply(self.version, delta)

    def replay(self, event: dict[str, Any]) -> str:
        """Why the replay refuses it; "" when it does not."""
        try:
            self.scenario.take({"at": 0, **event})
        except (ChangeRefused, ValueError) as error:
            return str(error)
        return ""

    def timeline(self) -> Timeline:
        detail = {"changes": [list(change) for change in self.state.dump()], "full": True}
        return Timeline([ConfigEvent(self.version, 0, 0, json.dumps(detail))], {}, LISTENERS)


@given(changes, st.sampled_from([128, 64]))
@example([("kafka_connections_max", "3000000000")], 128)
@example([("kafka_connections_max_per_ip", "3000000000"), ("kafka_connection_rate_limit", "3000000000")], 128)
@example([("max.connections", "0")], 128)
@example([("listener.name.external.max.connections", "5"), ("listener.name.internal.max.connections", "5"),
          ("max.connections", "0")], 128)  # fmt: skip
@example([("max.connections.per.ip", "0"), ("max.connections.per.ip.overrides", "10.0.0.1:5"),
          ("max.connections.per.ip", "0")], 128)  # fmt: skip
def test_settings_are_accepted_by_all_or_none_and_mean_the_same(
    wanted: list[tuple[str, str | None]], ipv6_prefix: int
) -> None:
    readers = Readers(ipv6_prefix)
    for name, text in wanted:
        why = ""
        try:
            readers.put(settings_delta(readers.state, [["", name, text]]))
        except ConfigInvalid as fault:
            why = str(fault)
        told = readers.replay({"do": "set", "name": name, "value": text})
        assert bool(told) == bool(why), (name, text, told, why)
    image, limits, timeline = readers.image, readers.scenario.limits, readers.timeline()
    assert timeline.unknown == []
    audited = timeline.limits(readers.version, 0)
    for pool in (*POOLS, f"ip:{limits.counted(IPS[-1])}"):
        kind, _, key = pool.partition(":")
        rule, rate = image.rule_of(pool), image.rate_of(pool)
        assert limits.rule_of(pool) == rule
        assert audited.cap(kind, key) == (UNLIMITED if rule.cap is None else rule.cap)
        if kind != "ip":
            assert limits.rate_of(pool) == rate
            assert audited.rate(kind, key) == (float("inf") if rate.rate is None else rate.rate)
    for ip in IPS:
        rule = image.core_rate_of(ip)
        assert limits.core_rate_of(ip) == rule
        own = rule.name == "kafka_connection_rate_limit_overrides"
        assert audited.rate("core_ip", ip) == (rule.rate if own else float("inf"))
    assert limits.recheck == image.get("turnstile.ip.rate.recheck")


entities = st.sampled_from([{"ip": "10.0.0.1"}, {"ip": None}, {"ip": "nowhere"}, {"ip": "::ffff:10.0.0.2"}])
numbers = st.one_of(integers, st.sampled_from([0.5, 1.0, 2.0, 1e300, float("inf"), 10**400]))


@given(st.lists(st.tuples(entities, st.one_of(st.none(), numbers)), min_size=1, max_size=5))
def test_rates_of_addresses_are_accepted_by_all_or_none_and_mean_the_same(
    wanted: list[tuple[dict[str, str | None], float | None]],
) -> None:
    readers = Readers()
    for entity, value in wanted:
        why = ""
        try:
            readers.put(quotas_delta(readers.state, [[entity, {"connection_creation_rate": value}]]))
        except ConfigInvalid as fault:
            why = str(fault)
        event = {"do": "quota", "entity": entity, "key": "connection_creation_rate", "value": value}
        told = readers.replay(event)
        assert told == why
    readers.replay({"do": "connect", "id": "x", "ip": "192.0.2.1", "listener": "EXTERNAL"})
    audited = readers.timeline().limits(readers.version, 0)
    for ip in ("10.0.0.1", "10.0.0.2", "10.0.0.3"):
        rate = readers.image.quota_for_ip(ip)
        assert readers.scenario.ip_quotas.quota(ip) == rate
        assert audited.rate("ip", ip) == (float("inf") if rate is None else rate)


def test_a_host_name_is_taken_by_a_cluster_alone() -> None:
    readers, entry = Readers(), "edge.example:5"
    readers.put(settings_delta(readers.state, [["", "kafka_connections_max_overrides", entry]]))
    assert "is a host name" in readers.replay({"do": "set", "name": "kafka_connections_max_overrides", "value": entry})
    with pytest.raises(PipelineError, match="is a host name"):
        grid([5], [], [], [], entry)
    readers.put([("host", "edge.example", ["10.0.0.1"])])
    assert (
        readers.image.rule_of("ip:10.0.0.1").cap
        == readers.timeline().limits(readers.version, 0).cap("ip", "10.0.0.1")
        == 5
    )


client_entities = st.sampled_from([{"user": "a"}, {"user": None}, {"client-id": "c"}, {"user": "a", "client-id": None}])
keys = st.sampled_from(["producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"])


@given(client_entities, keys, numbers)
@example({"user": "a"}, "request_percentage", float("inf"))
def test_quotas_of_clients_are_accepted_by_all_or_none(entity: dict[str, str | None], key: str, value: float) -> None:
    readers = Readers()
    why = ""
    try:
        readers.put(quotas_delta(readers.state, [[entity, {key: value}]]))
    except ConfigInvalid as fault:
        why = str(fault)
    assert readers.replay({"do": "quota", "entity": entity, "key": key, "value": value}) == why


@given(st.one_of(st.none(), integers), st.one_of(st.none(), integers), st.one_of(st.none(), integers), overrides)
@example(3_000_000_000, 3_000_000_000, None, "")
def test_a_plans_candidate_is_one_that_a_cluster_takes(
    per_ip: int | None, broker: int | None, rate: int | None, listed: str
) -> None:
    readers = Readers()
    given_axes = [[] if value is None else [value] for value in (per_ip, broker, rate)]
    refused = False
    settings = {
        "kafka_connections_max_per_ip": per_ip,
        "kafka_connections_max": broker,
        "max.connection.creation.rate": rate,
        "kafka_connections_max_overrides": listed or None,
    }
    for name, value in settings.items():
        if value is not None:
            try:
                readers.put(settings_delta(readers.state, [["", name, str(value)]]))
            except ConfigInvalid:
                refused = True
    try:
        candidates = grid(given_axes[0], given_axes[1], [], given_axes[2], listed)
    except PipelineError:
        assert refused
        return
    assert not refused
    for candidate in candidates:
        limits = candidate.connection_limits()
        for pool in POOLS:
            assert limits.rule_of(pool) == readers.image.rule_of(pool)
            assert limits.rate_of(pool) == readers.image.rate_of(pool)
