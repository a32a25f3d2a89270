"""Shards of one broker in one process: real views, partitions and handlers; calls between them pass through msgpack."""

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import msgpack
import trio

from broker.kafka.records import delete_records, fetch, list_offsets, log_dirs, offset_for_leader_epoch, produce
from broker.kafka.records.fetch_sessions import FetchSessionCache
from broker.kafka.records.transactional_produce import TransactionalProduce
from broker.kafka.security.guarded_route import GuardedRoute
from broker.kafka.transactions.homes import ClusterHomes, Shard
from broker.kafka.transactions.verification import Verification
from broker.serve.call import Call
from broker.storage.append_notices import AppendNotices
from broker.storage.log_ends import LogEnds
from broker.storage.log_manager import LogManager
from broker.storage.partitions import Partitions
from broker.wire import wire
from shards.config.image import ClusterImage
from shards.errors import PeerLost
from shards.loop.deferred import Deferred, Spawn, then
from shards.loop.turns import Turns
from shards.ownership import home_of_partition

SPAWN = Spawn(trio.lowlevel.spawn_system_task)


class DirectMesh:
    """Calls the served functions of its peers, who are the values of `peers`; one that is missing is lost."""

    def __init__(self, me: int, peers: dict[int, "DirectMesh"]) -> None:
        self.me = me
        self.peers = peers
        self.served: dict[str, Callable[..., Any]] = {}
        self.calls: list[str] = []
        peers[me] = self

    def serve(self, method: str, function: Callable[..., Any]) -> None:
        self.served[method] = function

    def call(self, key: Any, method: str, *args: Any, timeout_s: float = 5.0) -> Deferred[Any]:
        self.calls.append(method)
        later: Deferred[Any] = Deferred()
        if key not in self.peers:
            later.fail(PeerLost(f"{key} is down"))
        else:
            value = self.peers[key].served[method](self.me, *msgpack.unpackb(msgpack.packb(args)))
            if isinstance(value, Deferred):
                value.add_callback(lambda there: later.resolve(msgpack.unpackb(msgpack.packb(there.result()))))
            else:
                later.resolve(msgpack.unpackb(msgpack.packb(value)))
        return later

    async def request(self, key: Any, method: str, *args: Any, timeout_s: float = 5.0) -> Any:
        self.calls.append(method)
        if key not in self.peers:
            raise PeerLost(f"{key} is down")
        value = self.peers[key].served[method](self.me, *msgpack.unpackb(msgpack.packb(args)))
        if inspect.isawaitable(value):
            value = await value
        return msgpack.unpackb(msgpack.packb(value))


class Broker:
    """Broker 0 with `shards` shards. Topics are {name: partitions}, all led here unless `leaders` says otherwise."""

    def __init__(self, directory: Path, shards: int = 2) -> None:
        self.directory = directory
        self.shards = shards
        self.ends = LogEnds(1 << 10)
        self.peers: dict[int, DirectMesh] = {}
        self._homes: dict[DirectMesh, ClusterHomes] = {}
        self.image = ClusterImage(0)
        self.logs = [self._logs(shard) for shard in range(shards)]
        self.partitions = [self._partitions(logs) for logs in self.logs]
        self.routes = [self._routes(shard) for shard in range(shards)]

    def _logs(self, shard: int) -> LogManager:
        return LogManager(
            broker=0,
            shard=shard,
            shards=self.shards,
            directory=str(self.directory),
            image=self.image,
            ends=self.ends,
            on_append=AppendNotices(DirectMesh(shard, self.peers), shard, self.shards).send,
        )

    def _partitions(self, logs: LogManager) -> Partitions:
        return Partitions(logs, self.peers[logs.shard], Turns(SPAWN))

    def _routes(self, shard: int) -> dict[int, GuardedRoute]:
        modules = (list_offsets, delete_records, offset_for_leader_epoch)
        routes = [route for module in modules for route in module.routes(self.partitions[shard])]
        verification = Verification(self.homes_of(shard), SPAWN)
        routes += produce.routes(self.partitions[shard], TransactionalProduce(self.partitions[shard], verification))
        routes += fetch.routes(self.partitions[shard], SPAWN, FetchSessionCache(shard, self.shards))
        return {route.api_key: route for route in [*routes, *log_dirs.routes(self.logs[shard])]}

    def homes_of(self, shard: int) -> ClusterHomes:
        """One for each incarnation of a shard."""
        mesh = self.peers[shard]
        if mesh not in self._homes:
            self._homes[mesh] = ClusterHomes(
                Shard(0, shard), 1, self.shards, mesh, lambda key: 0, lambda: self.image.topics
            )
        return self._homes[mesh]

    def close(self) -> None:
        for logs in self.logs:
            logs.close()

    def put_topic(
        self, name: str, partitions: int = 1, *, topic_id: int = 1, leaders: list[int] | None = None, **configs: str
    ) -> None:
        """`configs` with _ for the dots of their names."""
        value = {
            "id": UUID(int=topic_id).hex,
            "leaders": leaders or [0] * partitions,
            "configs": {key.replace("_", "."): text for key, text in configs.items()},
        }
        self._apply(("topic", name, value))

    def drop_topic(self, name: str) -> None:
        self._apply(("topic", name, None))

    def _apply(self, change: tuple[str, str, Any]) -> None:
        self.image.apply(self.image.version + 1, [change])
        for logs in self.logs:
            logs.image_changed({"topic"})

    def homes(self, name: str, count: int) -> list[int]:
        return [home_of_partition(name, number, self.shards) for number in range(count)]

    def at(self, name: str, home: int) -> int:
        """The first partition of a topic that is at home at shard `home`."""
        return self.homes(name, 64).index(home)

    def start_again(self, shard: int) -> None:
        """A successor of a killed shard: it knows only what is on disk."""
        self.logs[shard] = self._logs(shard)
        self.partitions[shard] = self._partitions(self.logs[shard])
        self.routes[shard] = self._routes(shard)

    def send(self, shard: int, api_key: int, version: int, build: Callable[[Any], Any]) -> Any:
        """The response of a shard, now or as a Deferred; the request passes through the wire."""
        call = Call(api_key, version, 5, "test", ip="10.0.0.1", port=4711)
        frame = wire.encode_request(call, build(wire.request_types(api_key, version)), "test")[4:]
        *_, at = wire.parse_header(frame)
        response = self.routes[shard][api_key].function(wire.parse_body(frame, at, api_key, version, 20_000), call)
        return then(response, partial(_through_the_wire, call))

    async def ask(self, shard: int, api_key: int, version: int, build: Callable[[Any], Any]) -> Any:
        response = self.send(shard, api_key, version, build)
        return await response if isinstance(response, Deferred) else response


def _through_the_wire(call: Call, response: Any) -> Any:
    if response is None:
        return None
    frame = wire.encode_response(call, response)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    correlation_id, parsed = wire.parse_response(frame[4:], call.api_key, call.api_version)
    assert correlation_id == 5
    return parsed
