"""Every route of the admin API, called on a real cluster by the client that is generated for Python: each body and each answer is
as the OpenAPI document says, and has nothing that it does not say."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from admin_schemas import body_faults, faults_of, operations
from announcing import v1
from confluent_kafka import Producer
from harness import Cluster, admitted, connect, running, until

sys.path.insert(0, str(Path(__file__).parents[2] / "modules" / "python"))

from turnstile_admin import AdminApi, AdminRefused

MODULES = Path(__file__).parents[2] / "modules"
STORMER = "127.1.0.9"
PROXY = "127.3.0.1"
DAMAGED = "topics.damaged-20260101T000000Z"


class CheckedApi(AdminApi):
    """A client that compares what it sends with the document, too."""

    def _text(self, method: str, path: str, query: dict[str, Any], body: Any = None) -> str:
        assert body is None or body_faults(method, path, body) == []
        return super()._text(method, path, query, body)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    listener = ("--listener", f"EDGE=127.0.0.1:0,proxy=allowed,trusted={PROXY}/32")
    with running(tmp_path_factory.mktemp("api") / "data", "--topic", "orders:2", *listener, brokers=2) as cluster:
        (cluster.data_dir / DAMAGED).write_bytes(b"half a file")
        yield cluster


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> AdminApi:
    return CheckedApi(cluster.admin, who="a test")


@pytest.fixture(scope="module")
def pushing(cluster: Cluster, api: AdminApi) -> Iterator[str]:
    """The instance id of a client that has pushed its telemetry; an address was refused, and a client id has a quota."""
    api.put_config(
        {"upsert": {"kafka_connections_max_overrides": [f"{STORMER}:1"], "max.connection.creation.rate": 1000}}
    )
    api.put_config({"upsert": {"max.connections": 500}}, broker=1)
    api.put_config({"upsert": {"kafka_connections_max": 1}}, observe=True)
    api.put_config({"upsert": {"max.connections": 2}}, observe=True, broker=1)
    api.put_quotas({"alter": [{"entity": {"client-id": "importer"}, "set": {"producer_byte_rate": 1000}}]})
    api.put_quotas(
        {"alter": [{"entity": {"client-id": "application"}, "set": {"producer_byte_rate": 10}}]}, observe=True
    )
    api.put_subscription({"name": "every-client", "configs": {"metrics": "*", "interval.ms": "100"}})
    held = [connect(cluster.address, STORMER) for _ in range(3)]
    assert sum(admitted(each) for each in held) == 1
    announced = connect(cluster.address, PROXY)
    announced.sendall(v1("10.5.0.1", 4711))
    assert admitted(announced)
    held.append(announced)
    producer = produced(cluster, "application")
    pushes = until(
        lambda: [each for each in api.get_telemetry()["client_instances"] if each["pushes"]], within_s=30, what="a push"
    )
    yield pushes[0]["client_instance_id"]
    del producer
    for each in held:
        each.close()


def produced(cluster: Cluster, client_id: str) -> Producer:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "client.id": client_id, "log_level": 0})
    producer.produce("orders", b"x" * 20_000)
    assert producer.flush(60) == 0
    return producer


def changes(api: AdminApi) -> dict[str, Callable[[], object]]:
    faults = [
        {"kind": "error", "error": "REQUEST_TIMED_OUT", "api": "Produce", "client_id": "nobody", "times": 2},
        {"name": "slow", "kind": "delay", "delay_ms": 5, "api": ["Fetch"], "ip": "10.0.0.1", "every_ms": 1000},
        {"kind": "disconnect", "reset": True, "connection": "10.0.0.1:9", "probability": 0.5, "seed": 7},
        {"kind": "throttle", "throttle_ms": 5, "mute": False, "client_id": "nobody", "on_call": 3},
        {"kind": "blackhole", "client_id": "nobody", "once": True},
    ]
    return {
        "put_config": lambda: api.put_config(
            {"upsert": {"max.connection.creation.rate": 900}, "remove": []}, dry_run=True
        ),
        "put_advertised": lambda: api.put_advertised({"addresses": ["localhost:32801", "localhost:32802"]}),
        "delete_advertised": lambda: api.delete_advertised(broker=1),
        "put_quotas": lambda: api.put_quotas(
            {"alter": [{"entity": {"ip": None}, "set": {"connection_creation_rate": 500}, "remove": []}]}
        ),
        "put_user": lambda: api.put_user({"name": "alice", "password": "secret"}),
        "put_faults": lambda: api.put_faults({"add": faults, "remove": []}),
        "put_subscription": lambda: api.put_subscription({"name": "other", "configs": {"match": None}}),
    }


def questions(api: AdminApi, instance: str) -> dict[str, Callable[[], object]]:
    return {
        "get_config": lambda: api.get_config(include_defaults=True, broker=1),
        "get_config_schema": api.get_config_schema,
        "get_config_status": api.get_config_status,
        "get_broker_overrides": api.get_broker_overrides,
        "get_config_history": lambda: api.get_config_history(limit=1000, before=2**40),
        "get_notes": api.get_notes,
        "get_advertised": api.get_advertised,
        "get_quotas": api.get_quotas,
        "get_observed_quotas": api.get_observed_quotas,
        "explain_quotas": lambda: api.explain_quotas(user="alice", client_id="importer"),
        "explain": lambda: api.explain(ip=STORMER, client_id="importer"),
        "get_users": api.get_users,
        "get_faults": api.get_faults,
        "get_telemetry": api.get_telemetry,
        "get_last_push": lambda: api.get_last_push(instance),
        "get_refusals": lambda: api.get_refusals(by="ip"),
        "get_sources": api.get_sources,
        "get_proxies": api.get_proxies,
        "get_utilisation": lambda: api.get_utilisation(limit=10),
        "get_watch": lambda: api.get_watch(ip=STORMER, broker=0, minutes=5, since=0),
        "get_tokens": api.get_tokens,
        "list_kafka_connections": lambda: api.list_kafka_connections(
            {"filter": f'source.ip_address = "{STORMER}"', "orderBy": "open_time desc", "pageSize": 5}
        ),
        "list_brokers": lambda: api.list_brokers({}),
        "get_broker": lambda: api.get_broker({"nodeId": 1}),
        "get_shards": api.get_shards,
        "get_series": lambda: api.get_series(minutes=2, since=0),
        "get_live": lambda: api.get_live(since=0),
        "get_cluster": api.get_cluster,
        "get_damaged": api.get_damaged,
        "get_metrics": api.get_metrics,
        "get_public_metrics": api.get_public_metrics,
        "get_health": api.get_health,
        "get_page": api.get_page,
        "get_page_file": lambda: api.get_page_file("style.css"),
        "get_openapi": api.get_openapi,
    }


LAST = ("reset", "shutdown")
ROWS = ("series", "uses", "top_refused", "throttled", "limits", "observed")


def full(live: dict[str, Any]) -> dict[str, Any] | None:
    """An answer that has rows of each kind."""
    return live if all(live[name] for name in ROWS) else None


def test_the_client_has_a_method_for_each_route_and_the_tests_call_each(api: AdminApi) -> None:
    called = {*changes(api), *questions(api, ""), *LAST}
    assert called == operations().keys()
    assert {name for name in vars(AdminApi) if not name.startswith("_")} == called


def test_every_answer_is_as_the_document_says(cluster: Cluster, api: AdminApi, pushing: str) -> None:
    importer = produced(cluster, "importer")
    live = until(
        lambda: full(api.get_live(since=0)), what="rows of each kind"
    )  # a throttled client is live for a moment
    answers: dict[str, Any] = {}
    for name, call in {**changes(api), **questions(api, pushing)}.items():
        answers[name] = live if name == "get_live" else call()
        method, path = operations()[name]
        assert faults_of(method, path, 200, answers[name]) == [], name
    empty = [name for name, each in answers.items() if isinstance(each, dict) and not any(each.values())]
    assert empty == [], "an empty answer proves nothing"
    assert {row["broker"] for row in live["limits"]} == {None, 1}
    assert {row["kind"] for row in answers["get_faults"]["faults"]} == {
        "error", "delay", "disconnect", "throttle", "blackhole",
    }  # fmt: skip
    assert answers["get_last_push"]["metrics"] and answers["get_last_push"]["error"] is None
    assert answers["explain"]["brokers"][0]["connections"] and answers["explain"]["brokers"][0]["rates"]
    fullest = answers["get_utilisation"]["limits"]
    assert [row["percent"] for row in fullest] == sorted((row["percent"] for row in fullest), reverse=True)
    stormer = next(row for row in fullest if row["of"] == f"ip:{STORMER}")
    assert (stormer["used"], stormer["limit"], stormer["level"]) == (1, 1, "full")
    assert {"broker", "client"} <= {row["of"] for row in fullest}
    point = answers["get_watch"]["points"][0]
    assert point["used"]["connections"] == point["limits"]["connections"] == 1
    assert answers["get_watch"]["refused"] == {"ip_cap": 2} and answers["get_watch"]["admitted"] == 1
    (stormers,) = answers["list_kafka_connections"]["connections"]
    assert stormers["totalRequestStatistics"]["requestCount"] == "1" and stormers["source"]["ipAddress"] == STORMER
    listed = cluster.turnstile("connections", "--client-id", "importer", "--limit", "1")
    assert "127.0.0.1:" in listed and "rdkafka" in listed
    del importer  # until here its connection is open
    assert "No open connection" not in cluster.turnstile("connections", "--ip", STORMER)
    assert "does not keep group_id" in cluster.turnstile("connections", "--filter", 'group_id = "g"', expect=1)
    assert answers["get_refusals"]["refusals"][0]["ip"] == STORMER
    assert answers["put_config"]["notes"] and answers["get_damaged"] == {
        "damaged": [{"path": DAMAGED, "size_bytes": 11}]
    }


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("by", ["ip", "listener", "reason", "shard", "limit"])
def test_refusals_by_each_thing(api: AdminApi, pushing: str, by: Any, observed: bool) -> None:
    if by == "limit" and not observed:
        with pytest.raises(AdminRefused, match="by cannot be 'limit'"):
            api.get_refusals(by=by)
        return
    answer = api.get_refusals(by=by, observed=observed)
    assert faults_of("GET", "/v1/refusals", 200, answer) == [] and answer["refusals"]


IN_NODE = """
const [module, url, ...names] = process.argv.slice(1)
const { AdminApi } = await import(module)
const api = new AdminApi(url, undefined, 'a test in Node')
const answers = {}
for (const name of names) answers[name] = await api[name.replace(/_(.)/g, (_, first) => first.toUpperCase())]()
console.log(JSON.stringify(answers))
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_client_of_node_asks_each_question(cluster: Cluster, api: AdminApi, pushing: str) -> None:
    arguments = {
        "explain",
        "get_last_push",
        "get_page_file",
        "list_kafka_connections",
        "list_brokers",
        "get_broker",
        "get_watch",
    }
    names = [name for name in questions(api, "") if name not in arguments]
    words = ["node", "--input-type=module", "-e", IN_NODE, str(MODULES / "node" / "admin.js"), cluster.admin, *names]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert answers.keys() == set(names)
    for name, answer in answers.items():
        assert faults_of(*operations()[name], 200, answer) == [], name


def test_observed_limits_are_answered(api: AdminApi, pushing: str) -> None:
    observed = until(
        lambda: (told := api.get_observed_quotas())["requests"] and told, what="a produce that is too large"
    )
    assert [each["values"] for each in observed["set"]] == [{"producer_byte_rate": 10}]
    assert [(each["client_id"], each["requests"] > 0) for each in observed["clients"]] == [("application", True)]
    assert api.get_config(observe=True) == {"kafka_connections_max": 1}
    assert api.get_broker_overrides(observe=True) == {"overrides": {"1": {"max.connections": 2}}}
    pools = api.explain(ip=STORMER)["brokers"][0]["connections"]
    assert [pool["observed"]["value"] for pool in pools if pool["observed"]] == [1]


@pytest.mark.parametrize(
    ("method", "path", "status", "call"),
    [
        ("PUT", "/v1/cluster_config", 400, lambda api: api.put_config({"upsert": {"max.connections": 0}})),
        ("PUT", "/v1/quotas", 400, lambda api: api.put_quotas({"alter": [{"entity": {}}]})),
        ("GET", "/v1/config/history", 400, lambda api: api.get_config_history(limit=0)),
        ("GET", "/v1/cluster_config", 400, lambda api: api.get_config(broker=9)),
        ("GET", "/v1/watch", 400, lambda api: api.get_watch()),
        ("GET", "/v1/watch", 400, lambda api: api.get_watch(ip=STORMER, user="alice")),
        ("GET", "/v1/watch", 400, lambda api: api.get_watch(ip=STORMER, broker=9)),
        ("GET", "/v1/watch", 400, lambda api: api.get_watch(ip="nowhere")),
        ("GET", "/v1/telemetry/none", 404, lambda api: api.get_last_push("none")),
        ("GET", "/page/none", 404, lambda api: api.get_page_file("none")),
        ("GET", "/page/a b%2F", 404, lambda api: api.get_page_file("a b/")),
    ],
)
def test_an_error_is_as_the_document_says(
    api: AdminApi, method: str, path: str, status: int, call: Callable[[AdminApi], object]
) -> None:
    with pytest.raises(AdminRefused) as refused:
        call(api)
    assert refused.value.status == status and str(refused.value)
    assert faults_of(method, path, status, refused.value.told) == []


def test_a_reset_and_the_end_of_a_cluster(tmp_path: Path) -> None:
    with running(tmp_path / "data", shards=2) as cluster:
        api = CheckedApi(cluster.admin)
        assert faults_of("POST", "/v1/reset", 200, api.reset()) == []
        assert faults_of("POST", "/v1/shutdown", 200, api.shutdown()) == []
        assert cluster.process.wait(20) == 0
        with pytest.raises(OSError):
            api.get_health()
