"""The admin API over a real socket: Redpanda's bodies, errors in one sentence, and the token."""

import math
import re
from base64 import b64encode

import pytest
import raw_http
import trio
from direct import MEMBERS
from prometheus_client.parser import text_string_to_metric_families

from broker.admin import requests
from broker.metrics.top_talkers import TopTalkers
from shards.supervisor.restart_board import Restarts


async def test_a_setting_goes_in_as_rpk_sends_it_and_comes_out_typed(api):
    before = (await api.get("/v1/cluster_config/status"))[0]["config_version"]
    status, body = await api.put("/v1/cluster_config", {"upsert": {"kafka_connections_max": "1000"}, "remove": []})
    assert (status, body) == (200, {"config_version": before + 1})
    assert await api.get("/v1/cluster_config?key=kafka_connections_max") == {"kafka_connections_max": 1000}
    lists = {"kafka_connections_max_overrides": ["10.0.0.1:5", "[2001:db8::1]:7"], "turnstile.ip.rate.recheck": True}
    assert (await api.put("/v1/cluster_config", {"upsert": lists}))[0] == 200
    assert await api.get("/v1/cluster_config?include_defaults=false") == {"kafka_connections_max": 1000, **lists}
    assert [shard.image.rule_of("ip:10.0.0.1").cap for shard in api.cluster.shards.values()] == [5, 5, 5]
    assert (await api.put("/v1/cluster_config", {"remove": ["kafka_connections_max"]}))[0] == 200
    assert await api.get("/v1/cluster_config?key=kafka_connections_max") == {"kafka_connections_max": None}


async def test_everything_listed_is_in_the_schema_and_could_be_put_back(api):
    values = await api.get("/v1/cluster_config")
    schema = (await api.get("/v1/cluster_config/schema"))["properties"]
    assert values.keys() == schema.keys()
    types = {"integer": int, "number": (int, float), "boolean": bool, "string": str, "array": list}
    for name, value in values.items():
        assert value is None or isinstance(value, types[schema[name]["type"]]), name
    live = {name: value for name, value in values.items() if not schema[name]["needs_restart"]}
    status, body = await api.put("/v1/cluster_config?dry_run=true", {"upsert": live})
    assert status == 200, body


async def test_a_bad_value_is_a_400_that_names_the_setting_and_nothing_changes(api):
    before = await api.get("/v1/cluster_config/status")
    status, body = await api.put("/v1/cluster_config", {"upsert": {"kafka_connections_max": 5, "max.connections": 0}})
    assert status == 400
    assert body == {"max.connections": "max.connections cannot be '0': it must be at least 1 while the cluster runs."}
    assert await api.get("/v1/cluster_config/status") == before
    assert (await api.put("/v1/cluster_config", {"upsert": {"kafka_conections_max": 5}}))[1] == {
        "kafka_conections_max": "kafka_conections_max is not a setting; did you mean kafka_connections_max?"
    }
    assert (await api.put("/v1/cluster_config", {"remove": ["nope"]}))[0] == 400


@pytest.mark.parametrize("body", [[], {"upsert": []}, {"set": {}}, {"remove": "x"}, b"{", None, b"\xff\xfe"])
async def test_a_body_of_another_shape_is_a_400(api, body):
    status, answer = await api.put("/v1/cluster_config", body if body is not None else b"")
    assert status == 400
    assert answer


async def test_a_brokers_own_value(api):
    assert (await api.put("/v1/cluster_config?broker=1", {"upsert": {"max.connections": 7}}))[0] == 200
    assert (await api.get("/v1/cluster_config?broker=1&key=max.connections"))["max.connections"] == 7
    assert (await api.get("/v1/cluster_config?broker=0&key=max.connections"))["max.connections"] == 2**31 - 1
    assert api.cluster.shards[1, 0].image.get("max.connections") == 7
    assert api.cluster.shards[0, 0].image.get("max.connections") == 2**31 - 1
    assert (await api.ask("GET", "/v1/cluster_config?broker=2"))[0] == 400


async def test_history_tells_who_changed_what(api):
    headers = {"X-Turnstile-Who": "turnstile config (alice)"}
    await api.ask("PUT", "/v1/cluster_config", {"upsert": {"kafka_connections_max": 5}}, headers)
    latest = (await api.get("/v1/config/history?limit=1"))["history"]
    assert [entry["who"] for entry in latest] == ["turnstile config (alice) from 127.0.0.1"]
    assert latest[0]["changes"] == [["setting", "/kafka_connections_max", None, "5"]]


async def test_quotas_are_altered_listed_and_explained(api):
    alter = [
        {"entity": {"ip": "10.0.0.1"}, "set": {"connection_creation_rate": 20}},
        {"entity": {"user": "alice", "client-id": None}, "set": {"producer_byte_rate": 1024, "request_percentage": 50}},
        {"entity": {"client-id": "app"}, "set": {"consumer_byte_rate": 2048}},
    ]
    assert (await api.put("/v1/quotas", {"alter": alter}))[0] == 200
    await api.put(
        "/v1/quotas", {"alter": [{"entity": {"user": "alice", "client-id": None}, "remove": ["request_percentage"]}]}
    )
    assert (await api.get("/v1/quotas"))["quotas"] == [
        {"entity": {"client-id": "app"}, "values": {"consumer_byte_rate": 2048.0}},
        {"entity": {"client-id": None, "user": "alice"}, "values": {"producer_byte_rate": 1024.0}},
        {"entity": {"ip": "10.0.0.1"}, "values": {"connection_creation_rate": 20.0}},
    ]
    api.cluster.answers["describe_quota"] = lambda member, user, client_id: {"producer_byte_rate": 10.0}
    explained = await api.get("/v1/quotas/explain?user=alice&client-id=app")
    assert explained["matched"] == {"user": "alice", "client-id": "<default>"}
    assert explained["quotas"] == {"producer_byte_rate": 1024.0, "consumer_byte_rate": 2048.0}
    assert explained["levels"]["consumer_byte_rate"] == {"user": None, "client-id": "app"}
    assert explained["rates"] == {"producer_byte_rate": 30.0}
    rates = [(row["broker"], row["rates"]) for row in explained["brokers"]]
    assert rates == [(0, {"producer_byte_rate": 20.0}), (1, {"producer_byte_rate": 10.0})]
    nobody = await api.get("/v1/quotas/explain?user=bob")
    assert nobody["quotas"] == {}


@pytest.mark.parametrize(
    "body", [{}, {"alter": {}}, {"alter": [{}]}, {"alter": [{"entity": 5}]}, {"alter": [{"entity": {}}]}]
)
async def test_a_quota_body_of_another_shape_is_refused(api, body):
    status, answer = await api.put("/v1/quotas", body)
    assert status == 400, answer
    assert (await api.get("/v1/quotas"))["quotas"] == []


async def test_refusals_by_everything_add_up(api):
    for member, counters in api.admin.counters.items():
        for _ in range(member[1] + 1):
            counters.refused("EXTERNAL", "ip_cap")
        counters.refused("INTERNAL", "broker_cap")
        counters.admitted("EXTERNAL")
    top_talkers = TopTalkers()
    top_talkers.add("10.0.0.1", "ip_cap", 3)
    api.cluster.answers["describe_refusals"] = lambda member: top_talkers.top()
    by_reason = await api.get("/v1/refusals?by=reason")
    assert {row["reason"]: row["count"] for row in by_reason["refusals"] if row["count"]} == {
        "ip_cap": 4,
        "broker_cap": 3,
    }
    assert (by_reason["total"], by_reason["admitted"]) == (7, 3)
    for by in ("listener", "shard"):
        assert sum(row["count"] for row in (await api.get(f"/v1/refusals?by={by}"))["refusals"]) == 7
    by_ip = (await api.get("/v1/refusals?by=ip"))["refusals"]
    assert by_ip == [{"ip": "10.0.0.1", "count": 9, "error": 0, "reasons": {"ip_cap": 9}}]
    status, answer = await api.ask("GET", "/v1/refusals?by=colour")
    assert (status, answer["message"]) == (400, "by cannot be 'colour': it must be one of ip, listener, reason, shard.")


async def test_a_pools_tokens_are_put_together_from_its_home_and_its_holders(api):
    at_home = {"pool": "ip:10.0.0.1", "cap": 50, "limit": "kafka_connections_max_per_ip", "in_use": 3, "free": 40,
               "granted": {1: 7}, "mode": "open", "waiting": 0}  # fmt: skip
    held = {"pool": "ip:10.0.0.1", "home": 0, "in_use": 2, "cached": 5, "tight": False}
    tables = {
        (0, 0): {"home": [at_home], "holds": [], "truncated": False},
        (0, 1): {"home": [], "holds": [held], "truncated": True},
        (1, 0): {"home": [{**at_home, "in_use": 9}], "holds": [], "truncated": False},
    }
    api.cluster.answers["describe_tokens"] = lambda member: tables[member]
    tokens = await api.get("/v1/tokens")
    assert [(pool["broker"], pool["in_use"], pool["cached"], pool["cap"]) for pool in tokens["pools"]] == [
        (1, 9, 0, 50),
        (0, 5, 5, 50),
    ]
    pool = tokens["pools"][1]
    assert (pool["kind"], pool["key"], pool["home"], pool["limit"]) == (
        "ip",
        "10.0.0.1",
        0,
        "kafka_connections_max_per_ip",
    )
    assert pool["holders"] == [{"shard": 0, "in_use": 3, "cached": 0}, {"shard": 1, "in_use": 2, "cached": 5}]
    assert tokens["truncated"]


async def test_a_shard_that_owes_an_answer_shows_at_once_and_restarts_are_told(api, monkeypatch):
    monkeypatch.setattr(api.admin, "_unresponsive", lambda: {(0, 1)})
    monkeypatch.setattr(
        api.admin, "_restarts", lambda member: Restarts(3, due_in_s=1.26) if member == (1, 0) else Restarts()
    )
    api.cluster.lose((1, 0))
    rows = (await api.get("/v1/shards"))["shards"]
    assert [row["state"] for row in rows] == ["up", "unresponsive", "down"]
    assert [(row["restarts"], row["restart_in_s"]) for row in rows] == [(0, None), (0, None), (3, 1.3)]
    status, body = await api.ask("GET", "/healthz")
    assert (status, body["states"]) == (503, {"broker 0 shard 1": "unresponsive", "broker 1 shard 0": "down"})


async def test_shards_and_health_follow_the_links_of_shards(api):
    assert await api.get("/healthz") == {"status": "ok"}
    api.cluster.lose((0, 1))
    shards = (await api.get("/v1/shards"))["shards"]
    assert [(row["broker"], row["shard"], row["state"]) for row in shards] == [
        (0, 0, "up"),
        (0, 1, "down"),
        (1, 0, "up"),
    ]
    status, body = await api.ask("GET", "/healthz")
    assert (status, body["missing"]) == (503, ["broker 0 shard 1"])


async def test_metrics_are_in_the_format_and_under_the_names_people_graph(api):
    counters = api.admin.counters[0, 0]
    counters.admitted("EXTERNAL")
    counters.refused("EXTERNAL", "ip_cap")
    counters.borrowed(80_000)
    counters.accept_delayed("EXTERNAL", 250)
    counters.add("throttle_ms_producer_byte_rate", 40)
    counters.refused("EXTERNAL", "core_rate")
    api.cluster.answers["describe_gauges"] = lambda member: [["kafka_server_quota_tokens", {"user": 'a"\n'}, 1.5]]
    text = await api.get("/metrics")
    assert "# TYPE vectorized_kafka_rpc_connections_rejected counter\n" in text
    assert 'vectorized_kafka_rpc_connections_rejected{broker="0",shard="0"} 1.0\n' in text
    assert 'vectorized_kafka_rpc_connections_rejected_rate_limit{broker="0",shard="0"} 1.0\n' in text
    # The parser adds _total to every counter, as OpenMetrics demands.
    families = {family.name: family for family in text_string_to_metric_families(text)}
    samples = {(s.name, tuple(sorted(s.labels.items()))): s.value for f in families.values() for s in f.samples}
    shard = (("broker", "0"), ("shard", "0"))
    assert samples["vectorized_kafka_rpc_connections_rejected_total", shard] == 1
    assert samples["vectorized_kafka_rpc_active_connections", shard] == 1
    assert samples["vectorized_kafka_rpc_connections_wait_rate_total", shard] == 1
    refused = (("broker", "0"), ("listener", "EXTERNAL"), ("reason", "ip_cap"), ("shard", "0"))
    assert samples["turnstile_connections_refused_total", refused] == 1
    assert (
        samples["turnstile_throttle_seconds_total", (("broker", "0"), ("quota", "producer_byte_rate"), ("shard", "0"))]
        == 0.04
    )
    assert samples["turnstile_rpc_seconds_count", ()] == 1
    assert samples["turnstile_rpc_seconds_bucket", (("le", "0.000128"),)] == 1
    assert samples["turnstile_rpc_seconds_bucket", (("le", "6.4e-05"),)] == 0
    listener = (("broker", "0"), ("listener", "EXTERNAL"))
    assert samples["kafka_server_socket_server_metrics_connection_accept_throttle_time", listener] == 250
    assert samples["kafka_server_quota_tokens", (("broker", "0"), ("user", 'a"\n'))] == 3.0
    for name in ("connection_accept_rate", "broker_connection_accept_rate", "ip_connection_accept_throttle_time"):
        assert f"kafka_server_socket_server_metrics_{name}" in families
    assert {
        "turnstile_config_version",
        "turnstile_tokens",
        "turnstile_decisions",
        "turnstile_reclaims",
    } <= families.keys()
    assert "kafka_network_acceptor_acceptorblockedpercent_count" in families
    assert not [key for key, value in samples.items() if math.isnan(value)], "the average of nothing is 0"
    assert families["kafka_server_socket_server_metrics_connection_accept_rate"].documentation.startswith("Connections")


def held(pool, count):
    """What a shard answers to describe_tokens of one pool."""
    return {"home": [], "holds": [{"pool": pool, "home": 0, "in_use": count, "cached": 5}], "truncated": False}


def told(**more):
    """What a shard answers to describe_fullest."""
    none = [0, 0, 0, 0]
    return {
        "addresses": [],
        "close": none,
        "users": [],
        "close_users": none,
        "rates": [],
        "close_rates": {},
        "quotas": [],
        "close_quotas": {},
        **more,
    }


async def test_live_puts_what_an_address_has_open_beside_its_cap_on_each_broker(api):
    api.cluster.answers["describe_refusals"] = lambda member: [
        ("10.0.0.1", 3, 0, {"ip_cap": 3}),
        ("10.0.0.2", 1, 0, {}),
    ]
    api.cluster.answers["describe_fullest"] = lambda member: told(addresses=["10.0.0.3"])
    asked = []
    api.cluster.answers["describe_tokens"] = lambda member, pools: asked.append(pools) or held("ip:10.0.0.1", 2)
    await api.put("/v1/cluster_config", {"upsert": {"max.connections": 40, "kafka_connections_max_per_ip": 4}})
    live = await api.get("/v1/live")
    assert [(row["ip"], row["open"]) for row in live["top_refused"]] == [("10.0.0.1", 6), ("10.0.0.2", 0)]
    assert [(use["broker"], use["used"], use["limit"], use["by"]) for use in live["top_refused"][0]["uses"]] == [
        (0, 4, 4, "kafka_connections_max_per_ip"),
        (1, 2, 4, "kafka_connections_max_per_ip"),
    ]
    fullest = [(use["of"], use["broker"], use["used"], use["limit"]) for use in live["uses"]]
    assert fullest[:2] == [("ip:10.0.0.1", 0, 4, 4), ("ip:10.0.0.1", 1, 2, 4)]
    assert ("broker", 1, 0, 40) in fullest
    assert {"broker", "ip:10.0.0.1", "ip:10.0.0.2", "ip:10.0.0.3"} < set(asked[0])


async def test_live_says_of_how_many_refused_addresses_it_shows_some(api):
    answer = [(f"10.0.0.{n}", 100 - n, 0, {"ip_cap": 100 - n}) for n in range(64)]
    api.cluster.answers["describe_refusals"] = lambda member: answer if member == (0, 0) else []
    live = await api.get("/v1/live")
    shown = sum(row["count"] for row in live["top_refused"])
    assert len(live["top_refused"]) == 12
    others = sum(count for _, count, *_ in answer) - shown
    assert live["refused_addresses"] == {"known": 64, "others_refused": others, "more": False}
    assert len((await api.get("/v1/refusals?by=ip"))["refusals"]) == 64


async def test_live_tells_creation_rates_beside_their_limits(api):
    api.cluster.answers["describe_fullest"] = lambda member: told(
        rates=[["ip:10.0.0.1", 12.5]] if member == (1, 0) else []
    )
    await api.put("/v1/quotas", {"alter": [{"entity": {"ip": "10.0.0.1"}, "set": {"connection_creation_rate": 10}}]})
    own = {"listener.name.internal.max.connection.creation.rate": 50}
    assert (await api.put("/v1/cluster_config", {"upsert": {"max.connection.creation.rate": 100, **own}}))[0] == 200
    uses = (await api.get("/v1/live"))["uses"]
    assert uses[0] == {"broker": 1, "what": "new_connections", "of": "ip:10.0.0.1", "used": 12.5, "limit": 10.0,
                       "by": "connection_creation_rate"}  # fmt: skip
    named = {(use["of"], use["limit"]) for use in uses}
    assert {("broker", 100), ("listener:INTERNAL", 50)} < named and ("listener:EXTERNAL", 100) not in named


async def test_the_limits_closest_to_being_reached_come_first(api):
    await api.put("/v1/cluster_config", {"upsert": {"max.connections": 10, "kafka_connections_max_per_ip": 4}})
    await api.put("/v1/quotas", {"alter": [{"entity": {"client-id": None}, "set": {"producer_byte_rate": 100}}]})
    addresses = [f"10.0.0.{n}" for n in range(60)]
    hostile = "<b>\x1b[31m"
    api.cluster.answers["describe_fullest"] = lambda member: told(
        addresses=addresses,
        close=[7, 5, 2, 60],
        quotas=[["producer_byte_rate", "", hostile, 95.0, 100.0, None]] if member == (0, 0) else [],
        close_quotas={"producer_byte_rate": [1, 1, 0, 1]},
    )
    api.cluster.answers["describe_tokens"] = lambda member, pools: {
        "home": [{"pool": pool, "in_use": 1} for pool in pools if pool.startswith("ip:") and member[0] == 0],
        "holds": [{"pool": "broker", "in_use": 4}],
    }
    answer = await api.get("/v1/utilisation?limit=3")
    rows = [(row["what"], row["of"], row["broker"], row["percent"], row["level"]) for row in answer["limits"]]
    assert rows == [
        ("producer_byte_rate", "client", 0, 95.0, "near"),
        ("connections", "broker", 0, 80.0, "high"),
        ("connections", "ip:10.0.0.0", 0, 50.0, "roomy"),
        ("connections", "ip:10.0.0.1", 0, 50.0, "roomy"),
        ("connections", "broker", 1, 40.0, "roomy"),
    ]
    assert answer["limits"][0]["client_id"] == hostile
    close = {(row["broker"], row["what"], row["of"]): row for row in answer["close"]}
    of_addresses, of_brokers = close[0, "connections", "ip"], close[0, "connections", "broker"]
    assert (of_addresses["high"], of_addresses["limits"]) == (0, 120), "what is out may be cached: what is open counts"
    assert (of_brokers["high"], of_brokers["near"], of_brokers["limits"]) == (1, 0, 1)
    page = await api.get("/metrics")
    assert 'turnstile_limit_utilisation_ratio{broker="0",limit="producer_byte_rate",of="client"} 0.95' in page
    assert 'turnstile_limit_utilisation_ratio{broker="0",limit="connections",of="ip"} 0.5' in page
    assert 'turnstile_limits_close{at_least="0.8",broker="0",limit="connections",of="broker"} 1.0' in page
    assert "10.0.0.1" not in page and hostile not in page, "labels are bounded"


async def test_all_rates_of_an_answer_are_over_one_window(api):
    for member, count in (((0, 0), 3), ((1, 0), 4)):
        for _ in range(count):
            api.admin.counters[member].refused("EXTERNAL", "ip_cap")
    api.admin.sampler.sample()
    api.admin.counters[0, 0].refused("EXTERNAL", "ip_cap")  # is not yet in any sample
    live = await api.get("/v1/live")
    last = live["series"][-1]
    assert sum(row["refused_per_s"] for row in live["shards"]) == pytest.approx(last["refused"]["ip_cap"], rel=0.01)
    assert live["totals"]["refused"]["ip_cap"] == 8, "totals are of this moment"


async def test_live_tells_who_is_throttled_and_what_brokers_have_of_their_own(api):
    alice = {"resource": "Produce", "user": "alice"}
    idle = {"resource": "Fetch", "clientId": "idle"}
    api.cluster.answers["describe_gauges"] = lambda member: [
        ["kafka_server_quota_byte_rate", alice, 100.0],
        ["kafka_server_quota_throttle_time", alice, 250.0 + member[1]],
        ["kafka_server_quota_throttle_time", idle, float("nan")],
        ["kafka_server_quota_byte_rate", idle, 40.0 * member[0]],
        ["kafka_server_produce_queue_size", {}, 3],
    ]
    api.admin.counters[0, 0].throttled("producer_byte_rate", 250)
    quotas = [{"entity": {"user": "alice"}, "set": {"producer_byte_rate": 150}}]
    quotas.append({"entity": {"client-id": None}, "set": {"consumer_byte_rate": 50}})
    await api.put("/v1/quotas", {"alter": quotas})
    await api.put("/v1/cluster_config?broker=1", {"upsert": {"max.connections": 7}})
    live = await api.get("/v1/live")
    row = {"user": "alice", "client_id": "", "quota": "producer_byte_rate", "limit": 150.0}
    assert live["throttled"] == [
        {"broker": 0, **row, "throttle_ms": 251.0, "value": 200.0},
        {"broker": 1, **row, "throttle_ms": 250.0, "value": 100.0},
    ]
    assert live["within_quota"] == [
        {"broker": 1, "user": "", "client_id": "idle", "quota": "consumer_byte_rate", "limit": 50.0, "throttle_ms": 0.0,
         "value": 40.0},
    ]  # fmt: skip
    assert live["totals"]["throttled"]["producer_byte_rate"]["requests"] == 1
    own = [(row["broker"], row["value"]) for row in live["limits"] if row["name"] == "max.connections" and row["set"]]
    assert own == [(1, 7)]
    assert (await api.get("/v1/cluster_config/broker_overrides"))["overrides"] == {"1": {"max.connections": 7}}
    page = await api.get("/metrics")
    assert "NaN" not in page


async def test_live_tells_what_a_display_shows(api):
    api.admin.sampler.sample()
    live = await api.get("/v1/live")
    assert {"totals", "shards", "series", "top_refused", "limits", "version"} <= live.keys()
    assert len(live["shards"]) == len(MEMBERS)
    later = await api.get(f"/v1/live?since={live['series'][-1]['at']}")
    assert later["series"] == []


async def test_the_page_needs_nothing_from_elsewhere_and_runs_only_its_own_scripts(api):
    answer = await trio.to_thread.run_sync(lambda: raw_http.ask(api.url, "GET", "/"))
    assert answer.text.startswith("<!doctype html>")
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    named, files = re.findall(r"/page/[\w.]+", answer.text), {}
    while named:
        path = named.pop()
        if path not in files:
            files[path] = await api.get(path)
            named += [f"/page/{name}" for name in re.findall(r'from "\./([\w.]+)"', files[path])]
    assert {"/page/main.js", "/page/style.css", "/page/quantities.js"} < files.keys()
    for text in (answer.text, *files.values()):
        assert "http://" not in text.replace("http://www.w3.org/", "") and "https://" not in text
    assert (await api.ask("GET", "/page/../api.py"))[0] == 404
    assert await api.ask("GET", "/page/none.js") == (
        404,
        {"message": "the live page has no file 'none.js'.", "code": 404},
    )


async def test_rpks_questions_about_features_are_a_404(api):
    for name in ("enterprise", "license"):
        assert (await api.ask("GET", f"/v1/features/{name}"))[0] == 404
    assert (await api.ask("DELETE", "/v1/shards"))[0] == 405


async def test_a_405_names_every_method_of_the_address(api):
    answer = await trio.to_thread.run_sync(lambda: raw_http.ask(api.url, "PATCH", "/v1/advertise"))
    assert (answer.status, answer.headers["allow"]) == (405, "DELETE, GET, HEAD, PUT")


async def test_another_sites_page_cannot_end_the_cluster(api):
    status, body = await api.ask("POST", "/v1/shutdown", b"")
    assert (status, body["code"]) == (403, 403)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9644", "127.0.0.1.evil.example", "localhost.evil", "[::1"]
)
async def test_a_page_whose_name_was_made_to_resolve_here_is_refused(api, host):
    for method, path, body in (("GET", "/v1/quotas", None), ("PUT", "/v1/cluster_config", {"upsert": {}})):
        status, answer = await api.ask(method, path, body, {"Host": host})
        assert (status, "is not called" in answer["message"]) == (403, True)


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:9644", "LOCALHOST:1", "127.0.0.1:9644", "[::1]:9644", "10.1.2.3"]
)
async def test_addresses_and_localhost_are_this_api(api, host):
    assert (await api.ask("GET", "/v1/shards", None, {"Host": host}))[0] == 200


async def test_a_page_of_another_site_may_not_ask_and_our_own_may(api):
    change = {"upsert": {"kafka_connections_max": 5}}
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "https://"):
        status, answer = await api.ask("PUT", "/v1/cluster_config", change, {"Origin": origin})
        assert (status, "may not ask" in answer["message"]) == (403, True)
    assert (await api.ask("PUT", "/v1/cluster_config", change, {"Origin": api.url}))[0] == 200


async def test_with_a_token_any_name_will_do_but_no_other_sites_page(start_api):
    api = await start_api(token="s3cret")
    token = {"Authorization": "Bearer s3cret", "Host": "turnstile.example"}
    assert (await api.ask("GET", "/v1/shards", None, token))[0] == 200
    assert (await api.ask("GET", "/v1/shards", None, {**token, "Origin": "http://evil.example"}))[0] == 403


async def test_a_body_that_does_not_arrive_is_given_up(api, monkeypatch):
    monkeypatch.setattr(requests, "BODY_WITHIN_S", 0.05)
    address = ("127.0.0.1", int(api.url.rpartition(":")[2]))
    stream = await trio.open_tcp_stream(*address)
    async with stream:
        await stream.send_all(b"PUT /v1/quotas HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        with trio.fail_after(60):
            answer = b"".join([part async for part in stream])
    assert answer.startswith(b"HTTP/1.1 408")


async def test_a_client_that_leaves_in_the_middle_of_its_body_is_no_mistake(api, monkeypatch, capsys):
    ended = trio.Event()
    read_bytes = requests.read_bytes

    async def noted(request):
        try:
            return await read_bytes(request)
        finally:
            ended.set()

    monkeypatch.setattr(requests, "read_bytes", noted)
    address = ("127.0.0.1", int(api.url.rpartition(":")[2]))
    async with await trio.open_tcp_stream(*address) as stream:
        await stream.send_all(b"PUT /v1/quotas HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
    with trio.fail_after(60):
        await ended.wait()
    assert await api.get("/v1/quotas") == {"quotas": []}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("value", [None, "1MB", "5", True, [1]])
async def test_a_quota_that_is_no_number_is_refused_and_removes_nothing(api, value):
    entity = {"user": "alice"}
    await api.put("/v1/quotas", {"alter": [{"entity": entity, "set": {"producer_byte_rate": 5}}]})
    status, answer = await api.put("/v1/quotas", {"alter": [{"entity": entity, "set": {"producer_byte_rate": value}}]})
    assert status == 400
    assert "a quota is a number" in answer["producer_byte_rate"]
    assert (await api.get("/v1/quotas"))["quotas"] == [{"entity": entity, "values": {"producer_byte_rate": 5.0}}]


async def test_a_parameter_that_a_route_does_not_take_is_refused_and_nothing_is_changed(api):
    before = await api.get("/v1/quotas")
    change = {"alter": [{"entity": {"user": "alice"}, "set": {"producer_byte_rate": 5}}]}
    for path in ("/v1/quotas?dryrun=true", "/v1/quotas?dry_run=true&x=", "/v1/quotas?dry_run=maybe"):
        status, answer = await api.put(path, change)
        assert status == 400, path
    assert answer["message"] == "dry_run cannot be 'maybe': it must be true or false."
    _, answer = await api.put("/v1/quotas?dryrun=true", change)
    assert answer["message"] == "'dryrun' is not a parameter: PUT /v1/quotas takes dry_run, observe."
    status, answer = await api.ask("GET", "/v1/shards?a=1")
    assert (status, answer["message"]) == (400, "'a' is not a parameter: GET /v1/shards takes no parameters.")
    assert await api.get("/v1/quotas") == before
    assert (await api.ask("GET", "/healthz?probe=1"))[0] == 200


@pytest.mark.parametrize("text", [b"NaN", b"Infinity", b"-Infinity"])
async def test_what_only_python_takes_for_json_is_refused(api, text):
    body = b'{"alter": [{"entity": {"user": "a"}, "set": {"producer_byte_rate": ' + text + b"}}]}"
    assert (await api.ask("PUT", "/v1/quotas", body))[1]["message"] == "the body is not JSON."


async def test_with_a_token_no_other_caller_gets_in(start_api):
    api = await start_api(token="s3cret")
    assert (await api.ask("GET", "/v1/shards"))[0] == 401
    assert (await api.ask("PUT", "/v1/cluster_config", {"upsert": {}}))[0] == 401
    assert (await api.ask("GET", "/healthz"))[0] == 200
    basic = "Basic " + b64encode(b"any:s3cret").decode()
    for header in ("Bearer s3cret", basic):
        assert (await api.ask("GET", "/v1/shards", None, {"Authorization": header}))[0] == 200
    wrong = "Basic " + b64encode(b"s3cret:").decode()
    for header in ("Bearer s3cre", "Bearer", wrong, "Basic ???", ""):
        assert (await api.ask("GET", "/v1/shards", None, {"Authorization": header}))[0] == 401


async def test_values_that_would_not_read_back_are_refused_and_nothing_is_stored(api):
    before = (await api.get("/v1/cluster_config/status"))[0]["config_version"]
    cost = "Produce=" + "9" * 400 + "us"
    quotas = [
        {"entity": {"user": "a"}, "set": {"request_percentage": float("inf")}},
        {"entity": {"user": "a"}, "set": {"request_percentage": float("nan")}},
        {"entity": {"user": "a"}, "set": {"producer_byte_rate": 10**400}},
        {"entity": {"user": ["a"]}, "set": {"producer_byte_rate": 5}},
        {"entity": {"user": "a"}, "set": {"producer_byte_rate": [5]}},
    ]
    asked = [
        ("/v1/cluster_config", {"upsert": {"metric.reporters": ["[x"]}, "remove": []}),
        ("/v1/cluster_config", {"upsert": {"turnstile.request.cost": cost}, "remove": []}),
        ("/v1/cluster_config", {"upsert": {"kafka_connections_max": 10**400}, "remove": []}),
        *(("/v1/quotas", {"alter": [quota]}) for quota in quotas),
    ]
    for path, body in asked:
        status, answer = await api.put(path, body)
        assert status == 400, (body, answer)
    assert (await api.get("/v1/cluster_config/status"))[0]["config_version"] == before
