"""Redpanda's calls by the Connect protocol: answers and errors in both codecs."""

import json

import pytest
import raw_http
import trio

from broker.admin import connection_list
from broker.admin.connect_messages import Scalar as S
from broker.admin.connect_messages import from_protobuf, message, to_protobuf
from broker.admin.kafka_connection import BROKER_REQUEST, LIST_REQUEST
from broker.admin.protobuf import fields
from broker.serve.listed_connections import LISTED_FIELDS

LIST = "/redpanda.core.admin.v2.ClusterService/ListKafkaConnections"
BROKERS = "/redpanda.core.admin.v2.BrokerService/"


def row(broker, port, **more):
    """As a shard tells it."""
    blank = dict.fromkeys(LISTED_FIELDS, "")
    numbers = dict.fromkeys(("shard_id", "open_time", "idle_duration", "total_request_statistics.request_count"), 0)
    flags = dict.fromkeys(("tls_info.enabled", "in_flight_requests.has_more_requests"), False)
    states = {
        "state": "KAFKA_CONNECTION_STATE_OPEN",
        "authentication_info.state": "AUTHENTICATION_STATE_UNAUTHENTICATED",
    }
    return {**blank, **numbers, **flags, **states, "node_id": broker, "source.port": port, **more}


async def call(api, path, body, proto=False):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"content-type": "application/proto" if proto else "application/json", "connect-protocol-version": "1"}
    return await trio.to_thread.run_sync(lambda: raw_http.ask_bytes(api.url, "POST", path, content, headers))


async def test_connections_of_all_shards_are_merged_in_order(api):
    asked = []

    def answer(member, *query):
        asked.append(query)
        return {"total": 5, "connections": [row(member[0], 10 * member[0] + n + member[1]) for n in (1, 5)]}

    api.cluster.answers["list_connections"] = answer
    status, told = await api.ask(
        "POST", LIST, {"filter": "source.port < 99", "orderBy": "source.port desc", "pageSize": 3}
    )
    assert status == 200 and told["totalSize"] == "15"
    assert [(each["nodeId"], each["source"]["port"]) for each in told["connections"]] == [(1, 15), (1, 11), (0, 6)]
    assert asked[0] == ([("source.port", "<", 99)], [("source.port", True)], 3)
    assert "closeTime" not in told["connections"][0] and "groupId" not in told["connections"][0]


@pytest.mark.parametrize(("size", "most"), [(0, 1000), (7, 7), (2**31 - 1, 1000)])
async def test_a_page_is_bounded(api, size, most):
    asked = []
    api.cluster.answers["list_connections"] = lambda member, *query: (
        asked.append(query[2]) or {"total": 0, "connections": []}
    )
    assert (await api.ask("POST", LIST, {"pageSize": size}))[1] == {"connections": [], "totalSize": "0"}
    assert set(asked) == {most}


async def test_rpk_asks_in_protocol_buffers(api):
    api.cluster.answers["list_connections"] = lambda member, *query: {
        "total": 1, "connections": [row(member[0], 9, client_id="app")] if query[0] == [("client_id", "=", "app")] else []
    }  # fmt: skip
    answer = await call(
        api, LIST, to_protobuf(LIST_REQUEST, {"page_size": 20, "filter": 'client_id = "app"'}), proto=True
    )
    assert (answer.status, answer.kind) == (200, "application/proto")
    connections = [each.value for each in fields(answer.content) if each.number == 1]
    assert len(connections) == 3
    assert {each.number: each.value for each in fields(connections[0])}[11] == b"app"
    brokers = [each.value for each in fields((await call(api, f"{BROKERS}ListBrokers", b"", proto=True)).content)]
    assert len(brokers) == 2
    one = await call(api, f"{BROKERS}GetBroker", to_protobuf(BROKER_REQUEST, {"node_id": 1}), proto=True)
    broker = next(fields(next(fields(one.content)).value))
    assert (broker.number, broker.value) == (1, 1)
    build = {each.number: each.value for each in fields(next(fields(one.content)).value)}[2]
    assert from_protobuf(message(("version", S.TEXT), ("build_sha", S.TEXT)), build)["version"] >= "v25.3"


@pytest.mark.parametrize("proto", [False, True])
@pytest.mark.parametrize(
    ("asked", "status", "code", "says"),
    [
        ({"filter": "client = 1"}, 400, "invalid_argument", "there is no field 'client'"),
        ({"filter": "a OR b"}, 400, "invalid_argument", "is not a condition"),
        ({"order_by": "node_id sideways"}, 400, "invalid_argument", "should be a field"),
        ({"page_size": -1}, 400, "invalid_argument", "can't be negative"),
        ({"order_by": "recent_request_statistics.produce_bytes desc"}, 501, "unimplemented", "does not keep recent_"),
        ({"filter": 'group_id = "g"'}, 501, "unimplemented", "does not keep group_id"),
    ],
)
async def test_what_is_not_understood_is_refused_in_connects_form(api, proto, asked, status, code, says):
    answer = await call(api, LIST, to_protobuf(LIST_REQUEST, asked) if proto else asked, proto)
    assert (answer.status, answer.kind) == (status, "application/json")
    told = json.loads(answer.content)
    assert told.keys() == {"code", "message"} and told["code"] == code and says in told["message"]


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"page": 1}', b'{"pageSize": "1"}', b'{"pageSize": true}', b'{"filter": 1}', b"\xff"]
)
async def test_a_body_that_is_no_request_is_refused(api, body):
    answer = await call(api, LIST, body)
    assert answer.status == 400 and json.loads(answer.content)["code"] == "invalid_argument"


async def test_a_list_without_a_shards_connections_is_no_list(api, monkeypatch):
    monkeypatch.setattr(connection_list, "_WITHIN_S", 0.05)
    api.cluster.answers["list_connections"] = lambda member, *query: {"total": 0, "connections": []}
    api.cluster.shards[1, 0].silent = True
    status, told = await api.ask("POST", LIST, {})
    assert status == 503 and told == {"code": "unavailable", "message": "broker 1 shard 0 did not answer."}


async def test_a_broker_that_there_is_not(api):
    status, told = await api.ask("POST", f"{BROKERS}GetBroker", {"nodeId": 9})
    assert status == 404 and told == {"code": "not_found", "message": "there is no broker 9."}
