"""Producer ids: unique, taken from blocks, and the next epoch for a producer that knows its id."""

from typing import Any

import trio
from shards_in_process import DirectMesh

from broker.kafka.transactions import init_producer_id
from broker.kafka.transactions.homes import ClusterHomes, Shard
from broker.kafka.transactions.producer_ids import BLOCK, ProducerIds
from broker.serve.call import Call
from broker.wire import codes, wire
from shards.loop.deferred import Deferred, Spawn
from shards.mesh.mesh import COORDINATOR


class Coordinator:
    """Gives blocks out one behind the other, each only after every other task had a turn."""

    def __init__(self, peers: dict[int, DirectMesh]) -> None:
        self.given = 0
        DirectMesh(COORDINATOR, peers).serve("allocate_producer_ids", self.allocate)

    async def allocate(self, _peer: int, count: int) -> int:
        first, self.given = self.given, self.given + count
        await trio.lowlevel.checkpoint()
        return first


async def init(ids: ProducerIds, version: int = 4, transactional_id: str | None = None, **known: int) -> Any:
    homes = ClusterHomes(Shard(0, 0), 1, 1, DirectMesh(0, {}), lambda key: 0 if key != "elsewhere" else 1, dict)
    (route,) = init_producer_id.routes(ids, homes, Spawn(trio.lowlevel.spawn_system_task))
    types = wire.request_types(22, version)
    request = types.InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout=0, **known)
    response = route.function(request, Call(22, version))
    return await response if isinstance(response, Deferred) else response


def outcome(response: Any) -> tuple[int, int, int]:
    return response.error_code, response.producer_id, response.producer_epoch


async def test_everybody_gets_another_id_and_a_block_is_asked_for_once() -> None:
    peers: dict[int, DirectMesh] = {}
    coordinator = Coordinator(peers)
    shards = [ProducerIds(DirectMesh(shard, peers)) for shard in range(2)]
    got: list[int] = []

    async def take(ids: ProducerIds) -> None:
        got.append((await init(ids)).producer_id)

    async with trio.open_nursery() as nursery:
        for _ in range(BLOCK // 2 + 1):
            for ids in shards:
                nursery.start_soon(take, ids)
    assert len(set(got)) == len(got) == BLOCK + 2
    assert coordinator.given == 2 * BLOCK


async def test_without_a_transactional_id_every_producer_gets_a_new_id() -> None:
    peers: dict[int, DirectMesh] = {}
    Coordinator(peers)
    ids = ProducerIds(DirectMesh(0, peers))
    assert outcome(await init(ids, producer_id=41, producer_epoch=3)) == (codes.NONE, 0, 0)
    assert outcome(await init(ids, producer_id=41, producer_epoch=32_766)) == (codes.NONE, 1, 0)
    assert outcome(await init(ids, producer_id=41, producer_epoch=-1)) == (codes.INVALID_REQUEST, -1, -1)


async def test_without_a_coordinator_it_is_to_be_tried_again() -> None:
    ids = ProducerIds(DirectMesh(0, {}))
    assert outcome(await init(ids, version=0)) == (codes.COORDINATOR_NOT_AVAILABLE, -1, -1)


async def test_a_transactional_id_must_be_one_that_this_broker_coordinates() -> None:
    ids = ProducerIds(DirectMesh(0, {}))
    assert outcome(await init(ids, transactional_id="")) == (codes.INVALID_REQUEST, -1, -1)
    assert outcome(await init(ids, transactional_id="elsewhere")) == (codes.NOT_COORDINATOR, -1, -1)
