"""A running admin API for tests of what is served and of the commands that ask it."""

import socket
from typing import Any

import pytest
from direct import LISTENERS, MEMBERS, Api, Cluster

from broker.admin.describe import Admin
from broker.admin.http import serve
from broker.metrics.shard_counters import Layout, ShardCounters
from shards.config.store import Store


@pytest.fixture
async def start_api(tmp_path, nursery):
    """Starts an admin API with shards behind it; everything ends with the test."""
    opened: list[Any] = []

    async def start(token: str | None = None, static: dict[str, str] | None = None) -> Api:
        for member in MEMBERS:
            ShardCounters.create(ShardCounters.path(tmp_path, *member), Layout(LISTENERS))
        store = Store(tmp_path / "cluster.sqlite")
        cluster = Cluster(store, static)
        await cluster.start()
        admin = Admin(cluster.coordinator, tmp_path, LISTENERS)
        listening = socket.create_server(("127.0.0.1", 0))
        opened.extend([store, listening, *admin.counters.values()])
        nursery.start_soon(serve, admin, listening.fileno(), token)
        return Api(cluster, admin, f"http://127.0.0.1:{listening.getsockname()[1]}")

    yield start
    nursery.cancel_scope.cancel()
    for one in opened:
        one.close()


@pytest.fixture
async def api(start_api):
    return await start_api()
