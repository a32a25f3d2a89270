"""The request handlers of a whole cluster in one process: real coordinator, images, groups and wire format, no sockets.

A `Desk` has B brokers of N shards. `ask` sends a request through the codec to the handlers of one shard and gives the
response as a client would read it; calls between shards and to the coordinator go through msgpack, as over the mesh.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgpack
import trio

from broker.kafka.cluster import describe_cluster
from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.configs import api as configs
from broker.kafka.configs import describe_configs
from broker.kafka.groups import find_coordinator
from broker.kafka.groups import offsets_api as offset_commits
from broker.kafka.groups.classic import api as classic_groups
from broker.kafka.groups.committed_offsets import CommittedOffsets
from broker.kafka.groups.consumer import api as consumer_groups
from broker.kafka.groups.coordinator import GroupCoordinator
from broker.kafka.groups.router import GroupRouter
from broker.kafka.groups.share import api as share_groups
from broker.kafka.groups.streams import api as streams_groups
from broker.kafka.quotas import api as client_quotas
from broker.kafka.security import acls
from broker.kafka.security.access import Access
from broker.kafka.security.guarded_route import GuardedRoute
from broker.kafka.topics import create_partitions, create_topics, delete_topics, metadata, reassignments
from broker.kafka.topics.internal_topics import InternalTopics
from broker.kafka.topics.topic_mutations import TopicMutations
from broker.serve.call import Call
from broker.serve.client_quotas import ClientQuotas, side_by_side
from broker.serve.redpanda_quotas import RedpandaQuotas
from broker.wire import apis, wire
from shards.config.cluster_plan import ListenerEndpoint
from shards.config.coordinator import Coordinator
from shards.config.image import ClusterImage
from shards.config.setting_changes import static_settings
from shards.config.store import Store
from shards.config.subscriber import AppliedVersion, Subscriber
from shards.errors import PeerLost, RemoteError
from shards.loop.deferred import Deferred, Spawn
from shards.loop.turns import Turns
from shards.mesh.mesh import COORDINATOR
from shards.ownership import home_of_bucket, home_of_coordinator_key
from shards.quotas.sharded_quotas import ShardedQuotas
from shards.quotas.shared_buckets import SharedBuckets
from shards.settings.errors import TurnstileError

SPAWN = Spawn(trio.lowlevel.spawn_system_task)
KEYS = {api.name: key for key, api in apis.APIS.items()}
PLAIN = {"include_cluster_authorized_operations": False, "include_topic_authorized_operations": False,
         "include_authorized_operations": False, "include_fenced_brokers": False, "timeout": 1000,
         "validate_only": False, "include_documentation": False, "group_instance_id": None}  # fmt: skip


def packed(value: Any) -> Any:
    return msgpack.unpackb(msgpack.packb(value), strict_map_key=False)


AT_ONCE = {f"group_{kind}_assignment_interval_ms": "0" for kind in ("consumer", "share", "streams")}


class DeskMesh:
    """What a shard's handlers see of the others; `down` lists peers that can't be reached."""

    def __init__(self, desk: Desk, broker: int, shard: int) -> None:
        self._desk = desk
        self._broker = broker
        self._shard = shard
        self.served: dict[str, Callable[..., Any]] = {}

    def serve(self, method: str, function: Callable[..., Any]) -> None:
        self.served[method] = function

    def call(self, peer: int, method: str, *args: Any, timeout_s: float = 5.0) -> Deferred[Any]:
        return SPAWN(self.request(peer, method, *args, timeout_s=timeout_s))

    async def request(self, peer: int, method: str, *args: Any, timeout_s: float = 5.0) -> Any:
        if peer in self._desk.down:
            raise PeerLost(f"{peer} is down")
        self._desk.asked.append(method)
        served = self._desk.served if peer == COORDINATOR else self._desk.meshes[self._broker, peer].served
        try:
            value = served[method](self._shard, *packed(args))
            return packed(await value if inspect.isawaitable(value) else value)
        except TurnstileError as fault:
            raise RemoteError(type(fault).__name__, str(fault)) from None


class _Uncounted:
    """Counters that nobody reads."""

    def add(self, name: str, amount: int) -> None: ...


def _raise(error: Exception) -> None:
    raise error


class Desk:
    """`settings` as `--set` takes them; groups are assigned at each change. Listeners PLAINTEXT on port 9092 and INSIDE on 9192,
    of broker 0."""

    def __init__(self, directory: Path, *, brokers: int = 1, shards: int = 1, **settings: str) -> None:
        endpoints = [
            ListenerEndpoint(broker, name, "127.0.0.1", port + broker)
            for broker in range(brokers)
            for name, port in (("PLAINTEXT", 9092), ("INSIDE", 9192))
        ]
        settings = {**AT_ONCE, **settings}
        static = static_settings(
            [(name if name.startswith("kafka_") else name.replace("_", "."), text) for name, text in settings.items()],
            endpoints,
        )
        members = [(broker, shard) for broker in range(brokers) for shard in range(shards)]
        self.directory = directory
        self.brokers, self.shards, self.members = brokers, shards, members
        self.nursery: trio.Nursery | None = None
        self.down: set[int] = set()
        self.asked: list[str] = []
        self.served: dict[str, Callable[..., Any]] = {}
        self.coordinator = Coordinator(Store(directory / "cluster.sqlite"), self, members, static=static)
        self.coordinator.serve_on(lambda name, function: self.served.__setitem__(name, function))
        self.images = {member: ClusterImage(member[0]) for member in members}
        self._subscribers = {
            member: Subscriber(image, partial(self._enforce, member)) for member, image in self.images.items()
        }
        self.meshes = {member: DeskMesh(self, *member) for member in members}
        self.quotas: dict[tuple[int, int], ClientQuotas] = {}
        self.homes: dict[tuple[int, int], GroupCoordinator] = {}
        self._routes: dict[tuple[int, int], dict[int, GuardedRoute]] = {}

    async def start(self, nursery: trio.Nursery | None = None) -> None:
        """`nursery`: where the groups meet their deadlines, if they are to."""
        self.nursery = nursery
        for member in self.members:
            await self.coordinator.connected(member)
            self.restart(member)

    def restart(self, member: tuple[int, int]) -> None:
        """The shard's groups and handlers begin anew, with what is on disk."""
        broker, shard = member
        image, mesh = self.images[member], self.meshes[member]
        shown = ClusterMetadata(image, broker, self.brokers, "desk-cluster")
        files = CommittedOffsets(
            self.directory / f"b{broker}" / "groups",
            lambda bucket: home_of_bucket(bucket, self.brokers, self.shards) == shard,
        )
        turns = Turns(SPAWN)
        home = self.homes[member] = GroupCoordinator(files, image, turns)
        home.serve_on(mesh)
        if self.nursery is not None:
            self.nursery.start_soon(home.run)
        make = partial(
            ShardedQuotas,
            shard,
            self.shards,
            now_ms=lambda: int(trio.current_time() * 1000),
            touch=lambda: quotas.flush(),
            after=lambda ms, function: None,  # no home here is slow
            mistaken=_raise,
        )
        unlimited: Any = SimpleNamespace(serve_on=lambda serve: None)
        untold: Any = SimpleNamespace(image=image, journal=_Uncounted(), counters=_Uncounted())
        shared = SharedBuckets(
            shard, self.shards, call=mesh.call, now_ms=lambda: int(trio.current_time() * 1000), timers=unlimited
        )
        quotas = side_by_side(
            make, image, mesh.call, _Uncounted(), _raise, throughput=unlimited, buckets=RedpandaQuotas(shared, untold)
        )  # type: ignore[arg-type]
        quotas.serve_on(mesh.serve)
        quotas.follow()
        self.quotas[member] = quotas
        calls = GroupRouter(home, mesh, shard, self.brokers, self.shards)
        mutations = TopicMutations(mesh, quotas)
        routes = [
            *metadata.routes(shown, image, mesh, quotas, turns),
            *describe_cluster.routes(shown, image),
            *reassignments.routes(image, mesh, SPAWN),
            *acls.routes(Access(image), mesh, SPAWN),
            *create_topics.routes(shown, image, mutations, SPAWN),
            *create_partitions.routes(shown, image, mutations, SPAWN),
            *delete_topics.routes(image, mutations, SPAWN),
            *configs.routes(shown, image, mesh, SPAWN),
            *describe_configs.routes(shown, image, turns),
            *client_quotas.routes(image, mesh, SPAWN),
            *find_coordinator.routes(shown, InternalTopics(image, mesh, SPAWN)),
            *classic_groups.routes(shown, calls, turns),
            *consumer_groups.routes(shown, calls, image, turns),
            *share_groups.routes(shown, calls, image, turns),
            *streams_groups.routes(shown, calls, image, turns, mesh, Access(image)),
            *offset_commits.routes(shown, calls, image, turns),
        ]
        self._routes[member] = {route.api_key: route for route in routes}

    async def request(self, member: tuple[int, int], method: str, *args: Any, timeout_s: float = 5.0) -> Any:
        """As the coordinator reaches a shard."""
        assert method == "apply"
        return await self._subscribers[member].apply(COORDINATOR, *packed(args))

    def _enforce(self, member: tuple[int, int], applied: AppliedVersion, done: Callable[[], None]) -> None:
        if member in self.quotas:
            self.quotas[member].follow()
            self.homes[member].topics.image_changed(applied.changed.kinds)
        done()

    def kill(self, member: tuple[int, int]) -> None:
        raise AssertionError("no shard is ever late here")

    def is_busy(self, member: tuple[int, int]) -> bool:
        return False

    def types(self, api: str, version: int) -> Any:
        """The classes of a request, by name."""
        return wire.request_types(KEYS[api], version)

    async def ask(
        self, api: str, version: int, *, at: tuple[int, int] = (0, 0), listener: str = "PLAINTEXT",
        client_id: str = "client", **fields: Any,
    ) -> Any:  # fmt: skip
        """The response to a request with these fields; the dullest are filled in."""
        call = Call(KEYS[api], version, 7, client_id, listener=listener, ip="127.0.0.1", port=50000)
        types = self.types(api, version)
        known = {name: value for name, value in PLAIN.items() if name in types.top.field_names}
        frame = wire.encode_request(call, types.top(**{**known, **fields}), client_id)[4:]
        key, got_version, _, _, start = wire.parse_header(frame)
        route = self._routes[at][key]
        response = route.function(wire.parse_body(frame, start, key, got_version, 20_000), call)
        if isinstance(response, Deferred):
            response = await response
        return wire.parse_response(wire.encode_response(call, response)[4:], key, version).body

    async def make_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        wanted = [[name, partitions, {key.replace("_", "."): value for key, value in configs.items()}]]
        assert await self.coordinator.create_topics("test", wanted) == [["", ""]]

    def group_at(self, broker: int, shard: int) -> str:
        """A group id whose home is this shard."""
        shown = ClusterMetadata(ClusterImage(0), 0, self.brokers, "")
        names = (f"group{n}" for n in range(10_000))
        return next(
            g
            for g in names
            if shown.coordinator(g) == broker and home_of_coordinator_key(g, self.brokers, self.shards) == shard
        )
