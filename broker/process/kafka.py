"""The Kafka side of one shard: its partitions and groups, the handlers over them, and their periodic work."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import trio

from broker.kafka.cluster import api_versions, describe_cluster, features
from broker.kafka.cluster.api_versions import SupportedVersions
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
from broker.kafka.groups.share import offsets_api as share_group_offsets
from broker.kafka.quotas import api as client_quotas
from broker.kafka.records import delete_records, fetch, list_offsets, log_dirs, offset_for_leader_epoch, produce
from broker.kafka.records.fetch_sessions import FetchSessionCache
from broker.kafka.records.internal_records import InternalRecords
from broker.kafka.records.transactional_produce import TransactionalProduce
from broker.kafka.security import acls, delegation_tokens, scram_users
from broker.kafka.security.access import Access
from broker.kafka.security.acl import Operation, ResourceType
from broker.kafka.security.guarded_route import OPEN, GuardedRoute
from broker.kafka.share import api as share_fetch
from broker.kafka.share.share_homes import ShareHomes
from broker.kafka.share.share_log import ShareLog
from broker.kafka.share.share_partition_manager import SharePartitionManager
from broker.kafka.share.share_session import ShareSessions
from broker.kafka.share.share_store import ShareStore
from broker.kafka.telemetry import api as telemetry
from broker.kafka.telemetry.client_metrics_manager import ClientMetricsManager
from broker.kafka.topics import create_partitions, create_topics, delete_topics, metadata, reassignments
from broker.kafka.topics.internal_topics import InternalTopics
from broker.kafka.topics.topic_mutations import TopicMutations
from broker.kafka.transactions import api as transactions
from broker.kafka.transactions import describe_transactions, init_producer_id, txn_offset_commit, write_txn_markers
from broker.kafka.transactions.homes import ClusterHomes, Shard
from broker.kafka.transactions.producer_ids import ProducerIds
from broker.kafka.transactions.transaction_coordinator import TransactionCoordinator
from broker.kafka.transactions.transaction_log import TransactionLog
from broker.kafka.transactions.verification import TransactionalProducer, Verification
from broker.serve import authentication
from broker.serve.call import Call, Route
from broker.serve.delegation_token_cache import DelegationTokenCache
from broker.storage.disk_space import LOOK_EVERY_S
from broker.storage.log_cleaner import LogCleaner
from broker.storage.log_ends import LogEnds
from broker.storage.manager import LogManager
from broker.storage.partitions import Partitions
from shards.config.cluster_plan import ClusterPlan
from shards.config.image import ClusterImage
from shards.loop.turns import Turns
from shards.mesh.mesh import Mesh
from shards.ownership import home_of_bucket
from shards.quotas.sharded_quotas import ShardedQuotas


class Kafka:
    """`routes` answers every API that this broker has: the list of subjects; `run` keeps groups and logs up to date."""

    def __init__(
        self,
        plan: ClusterPlan,
        broker: int,
        shard: int,
        image: ClusterImage,
        mesh: Mesh,
        meters: ShardedQuotas,
        turns: Turns,
        room: Callable[[int], int],
        ends: LogEnds,
        tokens: DelegationTokenCache,
    ) -> None:
        """`room(most)`: how many bytes a Fetch may be answered with now, of `most`."""
        directory = plan.data_dir / f"b{broker}"
        self.access = Access(image)
        shown = ClusterMetadata(image, broker, plan.brokers, plan.cluster_id)
        self._image = image
        self._logs = LogManager(
            broker=broker, shard=shard, shards=plan.shards, directory=str(directory), image=image, ends=ends
        )
        self._cleaner = LogCleaner(self._logs, turns)
        spawn = turns.spawn
        partitions = Partitions(self._logs, mesh, turns)

        def owns(bucket: int) -> bool:
            return home_of_bucket(bucket, plan.brokers, plan.shards) == shard

        self._offsets = CommittedOffsets(directory / "groups", owns)
        self._groups = GroupCoordinator(self._offsets, image, turns)
        self._sessions = FetchSessionCache(shard, plan.shards)
        self.telemetry = ClientMetricsManager(image)
        self._groups.serve_on(mesh)
        telemetry.serve_on(mesh.serve, self.telemetry)
        ids = ProducerIds(mesh)
        homes = self._make_homes(shown, plan, shard, mesh, partitions)
        verification = Verification(homes, spawn)
        self._groups.verify = lambda producer, group: verification.group(TransactionalProducer(*producer), group)
        kept_transactions = TransactionLog(directory / "transactions", owns)
        self._transactions = TransactionCoordinator(kept_transactions, image, ids, homes, spawn)
        partitions.bring_up = InternalRecords(
            homes, self._logs, image, self._offsets, self._groups.groups, kept_transactions, turns
        ).bring_up
        self._kept_shares = ShareLog(directory / "shares", owns)
        self._shares = SharePartitionManager(
            ShareStore(self._kept_shares, partitions, image),
            ShareSessions(shard, plan.shards),
            partitions,
            image,
            spawn,
        )
        share_homes = ShareHomes(homes, range(plan.brokers), image)
        share_homes.serve(self._shares)
        self._groups.share.state = share_homes
        calls = GroupRouter(self._groups, mesh, shard, plan.brokers, plan.shards)
        mutations = TopicMutations(mesh, meters)
        routes = [
            *produce.routes(partitions, TransactionalProduce(partitions, verification)),
            *fetch.routes(partitions, spawn, self._sessions, room),
            *share_fetch.routes(partitions, share_homes, image, spawn, room),
            *list_offsets.routes(partitions),
            *delete_records.routes(partitions),
            *offset_for_leader_epoch.routes(partitions),
            *log_dirs.routes(self._logs),
            *init_producer_id.routes(ids, homes, spawn),
            *metadata.routes(shown, image, mesh, meters, turns),
            *describe_cluster.routes(shown, image),
            *reassignments.routes(image, mesh, spawn),
            *acls.routes(self.access, mesh, spawn),
            *create_topics.routes(shown, image, mutations, spawn),
            *create_partitions.routes(shown, image, mutations, spawn),
            *delete_topics.routes(image, mutations, spawn),
            *configs.routes(shown, image, mesh, spawn),
            *describe_configs.routes(shown, image, turns),
            *features.routes(shown, mesh, spawn),
            *client_quotas.routes(image, mesh, spawn),
            *find_coordinator.routes(shown, InternalTopics(image, mesh, spawn)),
            *classic_groups.routes(shown, calls, turns),
            *consumer_groups.routes(shown, calls, image, turns),
            *share_groups.routes(shown, calls, image, turns),
            *share_group_offsets.routes(shown, calls, image, turns),
            *offset_commits.routes(shown, calls, image, turns),
            *transactions.routes(homes),
            *txn_offset_commit.routes(shown, calls, image),
            *describe_transactions.routes(homes, partitions, turns),
            *write_txn_markers.routes(homes, partitions),
            *scram_users.routes(image, mesh, spawn),
            *delegation_tokens.routes(tokens, self.access, mesh, turns),
            *telemetry.routes(self.telemetry, image),
            *(GuardedRoute(route.api_key, route.function, OPEN) for route in authentication.routes()),
        ]
        self.versions = SupportedVersions(route.unguarded() for route in routes)
        self.routes: list[GuardedRoute] = [*routes, *api_versions.routes(self.versions, image)]

    def routes_of_clients(self) -> list[Route]:
        """Guarded, if the cluster was started with an authorizer; to be asked for once the configuration is known."""
        if not self.access.is_on:
            return [route.unguarded() for route in self.routes]
        self._groups.topics.may_see = self._may_see
        self._shares.may_read = self._may_read
        return [route.guarded(self.access) for route in self.routes]

    def _may_see(self, reader: tuple[str, str], topic: str) -> bool:
        """Whether the expression of a member of a group may match a topic."""
        call = Call(consumer_groups.HEARTBEAT, 0, user=reader[0], ip=reader[1])
        return self.access.may(call, Operation.DESCRIBE, ResourceType.TOPIC, topic)

    def _may_read(self, reader: Sequence[str], topic: str) -> bool:
        """Whether a member of a share group may read a topic."""
        user, ip = reader
        call = Call(share_fetch.FETCH, share_fetch.LEAST_VERSION, user=user, ip=ip)
        return self.access.may(call, Operation.READ, ResourceType.TOPIC, topic)

    def peer_dead(self, shard: int) -> None:
        """Another shard of this broker has died, and its connections with it."""
        self._shares.peer_gone(shard)

    def _make_homes(
        self, shown: ClusterMetadata, plan: ClusterPlan, shard: int, mesh: Mesh, partitions: Partitions
    ) -> ClusterHomes:
        homes = ClusterHomes(
            Shard(shown.me, shard), plan.brokers, plan.shards, mesh, shown.coordinator, lambda: self._image.topics
        )
        homes.serve(
            "partitions.end_transaction",
            lambda items: [partitions.do("end_transaction", item)[0] for item in items],
        )
        homes.serve("group.end_transaction", self._groups.end_transaction)
        return homes

    def image_changed(self, changed: frozenset[str]) -> None:
        """The image has another version: topics may be gone, or replaced by others of the same name."""
        self.access.image_changed(changed)
        if "topic" in changed:
            self._logs.image_changed()
            self._shares.image_changed()
        self._groups.topics.image_changed(changed)
        if "client_metrics" in changed:
            self.telemetry.image_changed()

    def reset(self) -> None:
        """No group, transaction, fetch session and client instance is left; topics go with the configuration."""
        self._groups.reset()
        self._transactions.reset()
        self._shares.reset()
        self._sessions.clear()
        self.telemetry.reset()

    def describe_gauges(self) -> list[list[Any]]:
        """[[metric name, {label: value}, number]]: Kafka's gauges of its FetchSessionCache, and of its ClientMetricsManager."""
        bean = "kafka_server_fetchsessioncache_numincrementalfetch"
        shares = "kafka_server_sharesessioncache_share"
        return [
            [f"{bean}sessions", {}, len(self._sessions)],
            [f"{bean}partitionscached", {}, self._sessions.partitions],
            [f"{shares}sessionscount", {}, len(self._shares.sessions)],
            [f"{shares}partitionscount", {}, self._shares.sessions.places],
            ["turnstile_share_partitions", {}, len(self._kept_shares)],
            ["kafka_server_client_metrics_instance_count", {}, self.telemetry.count(now_ms=telemetry.now_ms())],
        ]

    async def run(self, *, task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled: group deadlines, free disk space, retention and compaction of logs."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._groups.run)
            nursery.start_soon(self._transactions.run)
            nursery.start_soon(self._shares.store.run)
            await nursery.start(self._watch_space)
            nursery.start_soon(self._cleaner.run)
            task_status.started()
            while True:
                await trio.sleep(self._image.get("log.retention.check.interval.ms") / 1000)
                self._logs.retain(now_ms=time.time_ns() // 1_000_000)

    async def _watch_space(self, *, task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED) -> None:
        self._logs.space.look()
        task_status.started()
        while True:
            await trio.sleep(LOOK_EVERY_S)
            self._logs.space.look()

    def close(self) -> None:
        self._logs.close()
        self._offsets.close()
        self._transactions.close()
        self._kept_shares.close()
