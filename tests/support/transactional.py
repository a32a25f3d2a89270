"""A broker of several shards in one process with transactions and groups: shards_in_process.py and what these need."""

from pathlib import Path
from typing import Any

import trio
from batches import batch
from shards_in_process import SPAWN, Broker, DirectMesh

from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.groups import offsets_api as offset_commits
from broker.kafka.groups.committed_offsets import CommittedOffsets
from broker.kafka.groups.coordinator import GroupCoordinator
from broker.kafka.groups.router import GroupRouter
from broker.kafka.records.internal_records import InternalRecords
from broker.kafka.security.guarded_route import GuardedRoute
from broker.kafka.transactions import api as transactions
from broker.kafka.transactions import describe_transactions, init_producer_id, txn_offset_commit, write_txn_markers
from broker.kafka.transactions.producer_ids import ProducerIds
from broker.kafka.transactions.transaction_coordinator import TransactionCoordinator
from broker.kafka.transactions.transaction_log import TransactionLog
from broker.kafka.transactions.verification import TransactionalProducer, Verification
from broker.storage.log_manager import LogManager
from broker.storage.partitions import Partitions
from broker.storage.records import TRANSACTIONAL
from shards.loop.deferred import Deferred
from shards.loop.turns import Turns
from shards.mesh.mesh import COORDINATOR
from shards.ownership import home_of_bucket


class TransactionalBroker(Broker):
    """`now_ms` is the time of day of its transactions. Shards are given to `run` once the topics are known."""

    def __init__(self, directory: Path, shards: int = 2) -> None:
        self.now_ms = 1_700_000_000_000
        self.given = 0
        self.coordinators: list[TransactionCoordinator] = [None] * shards  # type: ignore[list-item]
        self.kept_transactions: list[TransactionLog] = [None] * shards  # type: ignore[list-item]
        self.groups: list[GroupCoordinator] = [None] * shards  # type: ignore[list-item]
        self.scopes: list[trio.CancelScope] = []
        super().__init__(directory, shards)
        DirectMesh(COORDINATOR, self.peers).serve("allocate_producer_ids", self._allocate)

    async def _allocate(self, _peer: int, count: int) -> int:
        first, self.given = self.given, self.given + count
        return first

    def _partitions(self, logs: LogManager) -> Partitions:
        shard, turns = logs.shard, Turns(SPAWN)
        mesh, homes = self.peers[shard], self.homes_of(shard)
        owns = lambda bucket: home_of_bucket(bucket, 1, self.shards) == shard  # noqa: E731
        verification = Verification(homes, SPAWN)
        groups = self.groups[shard] = GroupCoordinator(
            CommittedOffsets(self.directory / "groups", owns),
            self.image,
            turns,
            verify=lambda producer, group: verification.group(TransactionalProducer(*producer), group),
        )
        groups.serve_on(mesh)
        groups._open.resolve(None)
        homes.serve("group.end_transaction", groups.end_transaction)
        kept = self.kept_transactions[shard] = TransactionLog(self.directory / "transactions", owns)
        records = InternalRecords(
            homes, logs, self.image, offsets=groups.offsets, groups=groups.groups, transactions=kept, turns=turns
        )
        return Partitions(logs, mesh, turns, bring_up=records.bring_up)

    def _routes(self, shard: int) -> dict[int, GuardedRoute]:
        mesh, partitions, turns = self.peers[shard], self.partitions[shard], Turns(SPAWN)
        homes, groups = self.homes_of(shard), self.groups[shard]
        homes.serve(
            "partitions.end_transaction", lambda items: [partitions.do("end_transaction", item)[0] for item in items]
        )
        ids = ProducerIds(mesh)
        self.coordinators[shard] = TransactionCoordinator(
            self.kept_transactions[shard], self.image, ids, homes, SPAWN, wall_ms=lambda: self.now_ms
        )
        shown, router = ClusterMetadata(self.image, 0, 1, "cluster"), GroupRouter(groups, mesh, shard, 1, self.shards)
        added = [
            *init_producer_id.routes(ids, homes, SPAWN),
            *transactions.routes(homes),
            *txn_offset_commit.routes(shown, router, self.image),
            *offset_commits.routes(shown, router, self.image, turns),
            *describe_transactions.routes(homes, partitions, turns),
            *write_txn_markers.routes(homes, partitions),
        ]
        return {**super()._routes(shard), **{route.api_key: route for route in added}}

    def run(self, nursery: trio.Nursery) -> None:
        for coordinator in self.coordinators:
            nursery.start_soon(coordinator.run)

    def start_shard_again(self, shard: int, nursery: trio.Nursery) -> None:
        """As after kill -9: what was written is there, and nothing else."""
        self.start_again(shard)
        nursery.start_soon(self.coordinators[shard].run)


class TransactionalClient:
    """A transactional producer that asks one shard. `second`: by the second version of the protocol."""

    def __init__(self, broker: TransactionalBroker, name: str, *, second: bool, shard: int = 0) -> None:
        self.broker, self.name, self.second, self.shard = broker, name, second, shard
        self.id, self.epoch = -1, -1
        self.sequences: dict[int, int] = {}

    async def ask(self, api_key: int, version: int, build: Any) -> Any:
        answer = self.broker.send(self.shard, api_key, version, build)
        return await answer if isinstance(answer, Deferred) else answer

    async def init(self, timeout_ms: int = 60_000, *, known: bool = False) -> int:
        producer = {"producer_id": self.id, "producer_epoch": self.epoch} if known else {}
        answer = await self.ask(
            22, 5,
            lambda types: types.InitProducerIdRequest(
                transactional_id=self.name, transaction_timeout=timeout_ms, **producer
            ),
        )  # fmt: skip
        if not answer.error_code:
            self.id, self.epoch, self.sequences = answer.producer_id, answer.producer_epoch, {}
        return int(answer.error_code)

    async def init_until_done(self) -> None:
        with trio.fail_after(60):
            while await self.init():  # noqa: ASYNC110 - as clients do
                await trio.sleep(0.01)

    async def add(self, *partitions: int, topic: str = "t") -> list[int]:
        answer = await self.ask(
            24, 3,
            lambda types: types.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=self.id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=[types.AddPartitionsToTxnTopic(name=topic, partitions=partitions)],
            ),
        )  # fmt: skip
        (topic_result,) = answer.results_by_topic_v3_and_below
        return [each.partition_error_code for each in topic_result.results_by_partition]

    async def produce(self, partition: int, *values: bytes) -> int:
        if not self.second:
            assert await self.add(partition) == [0]
        return await self.append(partition, *values)

    async def append(self, partition: int, *values: bytes) -> int:
        sequence = self.sequences.get(partition, 0)
        sent = batch(*values, producer_id=self.id, epoch=self.epoch, sequence=sequence, attributes=TRANSACTIONAL)
        answer = await self.ask(
            0, 12 if self.second else 9,
            lambda types: types.ProduceRequest(
                transactional_id=self.name, acks=-1, timeout=30_000,
                topic_data=[
                    types.TopicProduceData(
                        name="t", partition_data=[types.PartitionProduceData(index=partition, records=sent)]
                    )
                ],
            ),
        )  # fmt: skip
        code = int(answer.responses[0].partition_responses[0].error_code)
        if not code:
            self.sequences[partition] = sequence + len(values)
        return code

    async def commit_offsets(self, group: str, offset: int) -> int:
        if not self.second:
            answer = await self.ask(
                25, 3,
                lambda types: types.AddOffsetsToTxnRequest(
                    transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, group_id=group
                ),
            )  # fmt: skip
            assert answer.error_code == 0
        return await self.send_offsets(group, offset)

    async def send_offsets(self, group: str, offset: int) -> int:
        answer = await self.ask(
            28, 5 if self.second else 3,
            lambda types: types.TxnOffsetCommitRequest(
                transactional_id=self.name, group_id=group, producer_id=self.id, producer_epoch=self.epoch,
                topics=[
                    types.TxnOffsetCommitRequestTopic(
                        name="t",
                        partitions=[
                            types.TxnOffsetCommitRequestPartition(
                                partition_index=0, committed_offset=offset, committed_metadata=""
                            )
                        ],
                    )
                ],
            ),
        )  # fmt: skip
        return int(answer.topics[0].partitions[0].error_code)

    async def end(self, *, commit: bool) -> int:
        answer = await self.ask(
            26, 5 if self.second else 3,
            lambda types: types.EndTxnRequest(
                transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=commit
            ),
        )  # fmt: skip
        if not answer.error_code and self.second:
            self.id, self.epoch, self.sequences = answer.producer_id, answer.producer_epoch, {}
        return int(answer.error_code)
