"""listed_connections.py: which connections are listed, in which order, how many, and how long it holds up the loop."""

from types import SimpleNamespace

import pytest
import trio

from broker.serve import listed_connections
from broker.serve.listed_connections import LOOKED_AT, ListedConnections

S = 10**9


def connection(number, **more):
    serving = SimpleNamespace(logged_in_by=more.pop("logged_in_by", None), tls=None)
    about = {
        "id": number, "ip": "10.0.0.0", "host": f"10.0.0.{number % 250}", "port": number, "listener": "EXTERNAL",
        "user": "ANONYMOUS", "authentication": None, "client_id": None, "software": None, "opened_ns": number * S,
        "last_used_ns": number * S, "under_way": None, "requests": number % 7, "closed": False, "serving": serving,
    }  # fmt: skip
    return SimpleNamespace(**{**about, **more})


class Shard:
    def __init__(self, *connections):
        self.open = {each.id: each for each in connections}
        poller = SimpleNamespace(now_ns=10_000 * S, touch=lambda: None)
        self.listed = ListedConnections(self.open, (1, 2), 12, poller, wall_ns=lambda: 1_000_000 * S)

    async def select(self, conditions=(), keys=(), most=1000):
        told = await self.listed.select(conditions, keys, most)
        return told["total"], told["connections"]


async def test_a_connection_is_told_as_it_is():
    fast = connection(
        1234, client_id="app", software=("librdkafka", "2.5"), logged_in_by="SASL", user="alice", under_way=(1, None)
    )
    total, rows = await Shard(fast).select()
    assert total == 1 and rows == [{
        "node_id": 1, "shard_id": 2, "uid": "0000000c-0001-4002-8000-0000000004d2", "state": "KAFKA_CONNECTION_STATE_OPEN",
        "open_time": (1_000_000 - 10_000 + 1234) * S, "authentication_info.state": "AUTHENTICATION_STATE_SUCCESS",
        "authentication_info.user_principal": "alice", "listener_name": "EXTERNAL", "tls_info.enabled": False,
        "source.ip_address": "10.0.0.234", "source.port": 1234, "client_id": "app", "client_software_name": "librdkafka",
        "client_software_version": "2.5", "idle_duration": 0, "in_flight_requests.has_more_requests": True,
        "total_request_statistics.request_count": 2,
    }]  # fmt: skip


@pytest.mark.parametrize(
    ("more", "proven"),
    [
        ({}, False),
        ({"logged_in_by": "SASL", "authentication": object()}, False),
        ({"logged_in_by": "SASL", "user": "alice"}, True),
        ({"logged_in_by": "SASL", "user": "alice", "authentication": object()}, True),
    ],
)
async def test_a_client_that_has_proven_its_identity(more, proven):
    ((row,),) = [(await Shard(connection(1, **more)).select())[1]]
    assert row["authentication_info.state"].endswith("_SUCCESS") is proven
    assert bool(row["authentication_info.user_principal"]) is proven


async def test_conditions_join_and_an_order_has_several_keys():
    shard = Shard(*map(connection, range(1, 101)), connection(7000, closed=True))
    total, rows = await shard.select(
        [["source.port", ">", 50], ["total_request_statistics.request_count", "!=", 0]],
        [["total_request_statistics.request_count", True], ["open_time", False]],
        most=5,
    )
    matching = [n for n in range(51, 101) if n % 7]
    assert total == len(matching)
    assert [row["source.port"] for row in rows] == sorted(matching, key=lambda n: (-(n % 7), n))[:5]


async def test_the_first_of_many_are_found_while_others_have_their_turn():
    shard = Shard(*map(connection, range(1, 10 * LOOKED_AT)))
    turns = 0

    async def others():
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        total, rows = await shard.select(keys=[["idle_duration", True]], most=3)
        nursery.cancel_scope.cancel()
    assert total == 10 * LOOKED_AT - 1 and [row["source.port"] for row in rows] == [1, 2, 3]
    assert turns >= 9


async def test_an_answer_is_bounded_also_in_what_clients_chose(monkeypatch):
    monkeypatch.setattr(listed_connections, "MOST_TEXT", 10_000)
    total, rows = await Shard(*(connection(n, client_id="x" * 3000) for n in range(1, 20))).select()
    assert total == 19 and len(rows) == 3
