"""Stand-ins for shard processes, reached by plain calls: the coordinator, its admin API and the CLI without a cluster."""

import json
from collections.abc import Callable
from typing import Any

import raw_http
import trio
from admin_schemas import faults_of

from broker.admin.describe import Admin
from shards.config.coordinator import Coordinator
from shards.config.image import ClusterImage
from shards.config.store import Store
from shards.config.subscriber import AppliedVersion, Subscriber
from shards.errors import DeadlineExceeded, PeerLost, RemoteError
from shards.ownership import BrokerShard

LISTENERS = ["EXTERNAL", "INTERNAL"]
MEMBERS: list[BrokerShard] = [(0, 0), (0, 1), (1, 0)]


class Shard:
    """A shard process: an image behind its Subscriber, and how it behaves when a version arrives."""

    def __init__(self, member: BrokerShard) -> None:
        self.image = ClusterImage(member[0])
        self.subscriber = Subscriber(self.image, self._enforce)
        self.stuck = False  # never enforces a version
        self.silent = False  # answers nothing
        self.delay_s = 0.0
        self.parts: list[tuple[int, bool, bool]] = []
        self.dones: list[Callable[[], None]] = []

    def _enforce(self, applied: AppliedVersion, done: Callable[[], None]) -> None:
        if self.stuck:
            self.dones.append(done)
        else:
            done()


class Cluster:
    """Shards that the coordinator reaches by plain calls."""

    def __init__(
        self, store: Store, static: dict[str, str] | None = None, addresses: dict[str, list[str]] | None = None
    ) -> None:
        """`addresses`: what DNS has."""
        self.shards: dict[BrokerShard, Shard] = {}
        self.killed: list[BrokerShard] = []
        self.busy: set[BrokerShard] = set()
        self.answers: dict[str, Callable[..., object]] = {
            "describe_proxies": lambda member: [["10.0.0.1", None, member[1]]]
        }
        self.addresses = addresses or {}
        self.coordinator = Coordinator(
            store, self, MEMBERS, static=static, wall_clock=lambda: 1000.0, look_up=self._look_up
        )

    async def start(self, *members: BrokerShard) -> None:
        for member in members or MEMBERS:
            self.shards[member] = Shard(member)
            await self.coordinator.connected(member)

    def lose(self, member: BrokerShard) -> None:
        self.shards.pop(member, None)
        self.coordinator.disconnected(member)

    async def request(self, member: BrokerShard, method: str, *args: object, timeout_s: float = 5.0) -> object:
        shard = self.shards.get(member)
        if shard is None:
            raise PeerLost(str(member))
        if shard.silent:
            await trio.sleep(timeout_s)
            raise DeadlineExceeded(method)
        if method in self.answers:
            return self.answers[method](member, *args)
        if method != "apply":
            raise RemoteError("UnknownMethod", f"{method} is not served here")
        await trio.sleep(shard.delay_s)
        version, _, whole, more = args
        shard.parts.append((version, whole, more))
        return await shard.subscriber.apply(None, *args)

    async def _look_up(self, name: str) -> list[str]:
        await trio.lowlevel.checkpoint()
        if name not in self.addresses:
            raise OSError("Name or service not known")
        return self.addresses[name]

    def kill(self, member: BrokerShard) -> None:
        self.killed.append(member)
        self.lose(member)

    def is_busy(self, member: BrokerShard) -> bool:
        return member in self.busy

    def versions(self) -> set[int]:
        return {shard.image.version for shard in self.shards.values()}


class Api:
    """A running admin API, the stand-in shards behind it, and a client of it."""

    def __init__(self, cluster: Cluster, admin: Admin, url: str) -> None:
        self.cluster = cluster
        self.admin = admin
        self.url = url

    async def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """The answer, which is as the OpenAPI document says."""
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        answer = await trio.to_thread.run_sync(lambda: raw_http.ask(self.url, method, path, data, headers))
        told = json.loads(answer.text) if answer.kind == "application/json" else answer.text
        assert faults_of(method, path, answer.status, told) == [], told
        return answer.status, told

    async def get(self, path: str) -> Any:
        status, body = await self.ask("GET", path)
        assert status == 200, body
        return body

    async def put(self, path: str, body: Any) -> tuple[int, Any]:
        return await self.ask("PUT", path, body)
