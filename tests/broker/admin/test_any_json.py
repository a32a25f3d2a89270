"""Any JSON, sent to any route that takes a body, and any text in a query: an answer that blames the caller, never ours."""

import pytest
import trio
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from broker.faults.fault import _OF_KIND, _OPTIONS, _TARGETS, KINDS, TRIGGERS

WORDS = (
    "upsert", "remove", "alter", "entity", "set", "name", "password", "add", "kind", "configs", "times", "error", "api",
    "delay", "delay_ms", "user", "client-id", "ip", "producer_byte_rate", "max.connections", "alice", "10.0.0.1", "one",
    "Produce", "match", "interval.ms", "metrics", "client_id=a", "NOT_LEADER_OR_FOLLOWER", "every", "probability",
    "kafka_connections_max_overrides", "topic", "bytes", "client_software_name", "first", "seed", "", "null", "\u0000",
)  # fmt: skip
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
TEXTS = st.sampled_from(WORDS) | st.text(max_size=5)
JSON = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def shaped(*names):
    """Objects that have some of these members, each of them any JSON."""
    return st.dictionaries(st.sampled_from(names), JSON, max_size=len(names))


def listed(member):
    return st.lists(member | JSON, max_size=2)


PARTS = (*_OF_KIND.values(), *_OPTIONS, *_TARGETS, *TRIGGERS, "seed", "name")
FAULT = st.fixed_dictionaries({"kind": st.sampled_from(KINDS)}, optional=dict.fromkeys(PARTS, JSON))
BODIES = {
    "/v1/cluster_config": st.fixed_dictionaries({}, optional={"upsert": shaped(*WORDS) | JSON, "remove": listed(TEXTS)}),
    "/v1/quotas": st.fixed_dictionaries({"alter": listed(shaped("entity", "set", "remove"))}),
    "/v1/users": shaped("name", "password"),
    "/v1/faults": st.fixed_dictionaries(
        {}, optional={"add": listed(FAULT), "remove": listed(JSON)}
    ),
    "/v1/advertise": st.fixed_dictionaries(
        {"addresses": listed(st.sampled_from(("auto", "localhost:1", "[::1]:2", "a:b")) | TEXTS) | TEXTS},
        optional={"listener": TEXTS | JSON, "broker": JSON},
    ),
    "/v1/telemetry": st.fixed_dictionaries({"name": TEXTS | JSON, "configs": shaped(*WORDS) | JSON}),
}  # fmt: skip


@pytest.mark.parametrize("path", BODIES)
async def test_any_json_is_an_answer(api, path, capsys):
    ask = trio.from_thread.run

    def property_holds():
        @settings(max_examples=150, suppress_health_check=list(HealthCheck), deadline=None)
        @given(BODIES[path] | JSON)
        def one(body):
            status, answer = ask(api.put, path, body)
            assert status < 500, (body, answer)
            assert status == 200 or all(isinstance(each, str | int) for each in answer.values()), answer

        one()

    await trio.to_thread.run_sync(property_holds)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "path",
    [
        "/v1/cluster_config?key={}", "/v1/cluster_config?broker={}", "/v1/cluster_config?include_defaults={}",
        "/v1/config/history?limit={}", "/v1/config/history?before={}", "/v1/explain?ip={}",
        "/v1/explain?user={}&client-id={}", "/v1/quotas/explain?user={}", "/v1/refusals?by={}", "/v1/live?since={}",
        "/v1/telemetry/{}",
    ],
)  # fmt: skip
async def test_any_text_in_a_query_is_an_answer(api, path, capsys):
    api.cluster.answers["describe_quota"] = lambda member, user, client_id: {}
    api.cluster.answers["describe_address"] = lambda member, ip: {}
    ask = trio.from_thread.run

    def property_holds():
        from urllib.parse import quote

        @settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
        @given(st.sampled_from(("nan", "inf", "-1", "1e400", "9" * 5000, "%ff", "::1", "²")) | st.text(max_size=8))
        @example("/")
        def one(text):
            written = quote(text, safe="%")
            status, answer = ask(api.ask, "GET", path.format(*[written] * 2))
            assert status < 500, (text, answer)

        one()

    await trio.to_thread.run_sync(property_holds)
    assert capsys.readouterr().err == ""
