"""The Kafka side of one shard: its partitions and groups, the handlers over them, and their periodic work."""

from __future__ import annotations

import time
from collections.abc import Callable

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
from broker.kafka.groups.streams import api as streams_groups
from broker.kafka.quotas import api as client_quotas
from broker.kafka.records import delete_records, fetch, list_offsets, log_dirs, offset_for_leader_epoch, produce
from broker.kafka.records.fetch_sessions import FetchSessionCache
from broker.kafka.records.internal_records import InternalRecords
from broker.kafka.records.transactional_produce import TransactionalProduce
from broker.kafka.security import acls, delegation_tokens, scram_users
from broker.kafka.security.access import Access
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
from broker.serve.call import Route
from broker.serve.client_quotas import ClientQuotas
from broker.serve.delegation_token_cache import DelegationTokenCache
from broker.storage.append_notices import AppendNotices
from broker.storage.disk_space import LOOK_EVERY_S
from broker.storage.log_cleaner import LogCleaner
from broker.storage.log_ends import LogEnds
from broker.storage.log_manager import LogManager
from broker.storage.partitions import Partitions
from shards.config.cluster_plan import ClusterPlan
from shards.config.image import ClusterImage
from shards.loop.turns import Turns
from shards.mesh.mesh import Mesh
from shards.ownership import home_of_bucket
from shards.settings.releases import AS_VERSION


class Kafka:
    """`routes` has the routes of every API, listed by subject; `run` keeps groups and logs up to date.

    What follows the image by itself (broker/process/shard_cycle.py) is public: `access`, `logs`, `shares`, `topics`, `telemetry`.
    """

    def __init__(
        self,
        plan: ClusterPlan,
        me: Shard,
        image: ClusterImage,
        mesh: Mesh,
        turns: Turns,
        *,
        quotas: ClientQuotas,
        room: Callable[[int], int],
        ends: LogEnds,
        tokens: DelegationTokenCache,
    ) -> None:
        """`room(most)`: how many bytes a Fetch may be answered with now, of `most`."""
        directory = plan.data_dir / f"b{me.broker}"
        self._image = image
        self._mesh = mesh
        self._turns = turns
        cluster = ClusterMetadata(image, me.broker, plan.brokers, plan.cluster_id)
        self.access = Access(image)
        self.telemetry = ClientMetricsManager(image)
        self.logs = self._make_logs(plan, me, ends)
        self._cleaner = LogCleaner(self.logs, turns)
        self._sessions = FetchSessionCache(me.shard, plan.shards)

        def owns(bucket: int) -> bool:
            return home_of_bucket(bucket, plan.brokers, plan.shards) == me.shard

        homes = ClusterHomes(me, plan.brokers, plan.shards, mesh, cluster.coordinator, lambda: image.topics)
        share_homes = ShareHomes(homes, range(plan.brokers), image)
        verification = Verification(homes, turns.spawn)
        ids = ProducerIds(mesh)
        self._offsets = CommittedOffsets(directory / "groups", owns)
        self._groups = GroupCoordinator(
            self._offsets,
            image,
            turns,
            verify=lambda producer, group: verification.group(TransactionalProducer(*producer), group),
            share_state=share_homes,
            access=self.access,
        )
        self.topics = self._groups.topics
        kept_transactions = TransactionLog(directory / "transactions", owns)
        self._transactions = TransactionCoordinator(kept_transactions, image, ids, homes, turns.spawn)
        partitions = self._make_partitions(homes, kept_transactions)
        self._share_log = ShareLog(directory / "shares", owns)
        self.shares = self._make_shares(partitions, ShareSessions(me.shard, plan.shards))
        self._serve(homes, partitions, share_homes)
        calls = GroupRouter(self._groups, mesh, me.shard, plan.brokers, plan.shards)
        routes = [
            *self._routes_of_records(partitions, homes, share_homes, verification, room),
            *self._routes_of_topics(cluster, quotas),
            *self._routes_of_groups(cluster, calls),
            *self._routes_of_transactions(cluster, calls, homes, ids, partitions),
            *self._routes_of_the_cluster(cluster, tokens),
        ]
        self.versions = SupportedVersions(route.unguarded() for route in routes)
        self.routes: list[GuardedRoute] = [*routes, *api_versions.routes(self.versions, image)]

    def _make_logs(self, plan: ClusterPlan, me: Shard, ends: LogEnds) -> LogManager:
        return LogManager(
            broker=me.broker,
            shard=me.shard,
            shards=plan.shards,
            directory=str(plan.data_dir / f"b{me.broker}"),
            image=self._image,
            ends=ends,
            on_append=AppendNotices(self._mesh, me.shard, plan.shards).send,
        )

    def _make_partitions(self, homes: ClusterHomes, kept_transactions: TransactionLog) -> Partitions:
        records = InternalRecords(
            homes,
            self.logs,
            self._image,
            offsets=self._offsets,
            groups=self._groups.groups,
            transactions=kept_transactions,
            turns=self._turns,
        )
        return Partitions(self.logs, self._mesh, self._turns, bring_up=records.bring_up)

    def _make_shares(self, partitions: Partitions, sessions: ShareSessions) -> SharePartitionManager:
        store = ShareStore(self._share_log, partitions, self._image)
        return SharePartitionManager(store, sessions, partitions, self._image, self._turns.spawn, self.access)

    def _serve(self, homes: ClusterHomes, partitions: Partitions, share_homes: ShareHomes) -> None:
        """The methods that other shards may call."""
        self._groups.serve_on(self._mesh)
        telemetry.serve_on(self._mesh.serve, self.telemetry)
        share_homes.serve(self.shares)
        homes.serve("group.end_transaction", self._groups.end_transaction)
        homes.serve(
            "partitions.end_transaction",
            lambda items: [partitions.do("end_transaction", item)[0] for item in items],
        )

    # Routes, by subject

    def _routes_of_records(
        self,
        partitions: Partitions,
        homes: ClusterHomes,
        share_homes: ShareHomes,
        verification: Verification,
        room: Callable[[int], int],
    ) -> list[GuardedRoute]:
        image, spawn = self._image, self._turns.spawn
        return [
            *produce.routes(partitions, TransactionalProduce(partitions, verification)),
            *fetch.routes(partitions, spawn, self._sessions, room),
            *share_fetch.routes(partitions, share_homes, image, spawn, room),
            *list_offsets.routes(partitions),
            *delete_records.routes(partitions),
            *offset_for_leader_epoch.routes(partitions),
            *log_dirs.routes(self.logs),
            *write_txn_markers.routes(homes, partitions),
        ]

    def _routes_of_topics(self, cluster: ClusterMetadata, quotas: ClientQuotas) -> list[GuardedRoute]:
        image, mesh, spawn = self._image, self._mesh, self._turns.spawn
        mutations = TopicMutations(mesh, quotas)
        return [
            *metadata.routes(cluster, image, mesh, quotas, self._turns),
            *reassignments.routes(image, mesh, spawn),
            *create_topics.routes(cluster, image, mutations, spawn),
            *create_partitions.routes(cluster, image, mutations, spawn),
            *delete_topics.routes(image, mutations, spawn),
        ]

    def _routes_of_groups(self, cluster: ClusterMetadata, calls: GroupRouter) -> list[GuardedRoute]:
        image, turns = self._image, self._turns
        return [
            *find_coordinator.routes(cluster, InternalTopics(image, self._mesh, turns.spawn)),
            *classic_groups.routes(cluster, calls, turns),
            *consumer_groups.routes(cluster, calls, image, turns),
            *share_groups.routes(cluster, calls, image, turns),
            *share_group_offsets.routes(cluster, calls, image, turns),
            *streams_groups.routes(cluster, calls, image, turns, self._mesh, self.access),
            *offset_commits.routes(cluster, calls, image, turns),
        ]

    def _routes_of_transactions(
        self,
        cluster: ClusterMetadata,
        calls: GroupRouter,
        homes: ClusterHomes,
        ids: ProducerIds,
        partitions: Partitions,
    ) -> list[GuardedRoute]:
        return [
            *init_producer_id.routes(ids, homes, self._turns.spawn),
            *transactions.routes(homes),
            *txn_offset_commit.routes(cluster, calls, self._image),
            *describe_transactions.routes(homes, partitions, self._turns),
        ]

    def _routes_of_the_cluster(self, cluster: ClusterMetadata, tokens: DelegationTokenCache) -> list[GuardedRoute]:
        """The routes of the cluster, configs, quotas, users, ACLs, tokens and telemetry."""
        image, mesh, turns, spawn = self._image, self._mesh, self._turns, self._turns.spawn
        return [
            *describe_cluster.routes(cluster, image),
            *features.routes(cluster, mesh, spawn),
            *configs.routes(cluster, image, mesh, spawn),
            *describe_configs.routes(cluster, image, turns),
            *client_quotas.routes(image, mesh, spawn),
            *acls.routes(self.access, mesh, spawn),
            *scram_users.routes(image, mesh, spawn),
            *delegation_tokens.routes(tokens, self.access, mesh, turns),
            *telemetry.routes(self.telemetry, image),
            *(GuardedRoute(route.api_key, route.function, OPEN) for route in authentication.routes()),
        ]

    def versions_of_clients(self) -> SupportedVersions:
        """The API versions of the Kafka release that this cluster emulates. Call it once the configuration is known."""
        return self.versions.as_release(self._image.get(AS_VERSION))

    def routes_of_clients(self) -> list[Route]:
        """Guarded, if the cluster was started with an authorizer, and narrowed to `versions_of_clients`."""
        is_on, versions = self.access.is_on, self.versions_of_clients()
        routes = [route.guarded(self.access) if is_on else route.unguarded() for route in self.routes]
        return [narrowed for route in routes if (narrowed := versions.narrowed(route)) is not None]

    def peer_dead(self, shard: int) -> None:
        """Another shard of this broker has died, and its connections with it."""
        self.shares.peer_gone(shard)

    def reset(self) -> None:
        """Drops every group, transaction, fetch session and client instance. A change of configuration drops the topics."""
        self._groups.reset()
        self._transactions.reset()
        self.shares.reset()
        self._sessions.clear()
        self.telemetry.reset()

    def describe_gauges(self) -> list[list[object]]:
        """[[metric name, {label: value}, number]]: Kafka's gauges of its FetchSessionCache, and of its ClientMetricsManager."""
        bean = "kafka_server_fetchsessioncache_numincrementalfetch"
        shares = "kafka_server_sharesessioncache_share"
        return [
            [f"{bean}sessions", {}, len(self._sessions)],
            [f"{bean}partitionscached", {}, self._sessions.partitions],
            [f"{shares}sessionscount", {}, len(self.shares.sessions)],
            [f"{shares}partitionscount", {}, self.shares.sessions.places],
            ["turnstile_share_partitions", {}, len(self._share_log)],
            ["kafka_server_client_metrics_instance_count", {}, self.telemetry.count(now_ms=telemetry.now_ms())],
        ]

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Runs group deadlines, the look at free disk space, retention and compaction of logs, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._groups.run)
            nursery.start_soon(self._transactions.run)
            nursery.start_soon(self.shares.store.run)
            await nursery.start(self._watch_space)
            nursery.start_soon(self._cleaner.run)
            task_status.started()
            while True:
                await trio.sleep(self._image.get("log.retention.check.interval.ms") / 1000)
                self.logs.retain(now_ms=time.time_ns() // 1_000_000)

    async def _watch_space(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        self.logs.space.look()
        task_status.started()
        while True:
            await trio.sleep(LOOK_EVERY_S)
            self.logs.space.look()

    def close(self) -> None:
        self.logs.close()
        self._offsets.close()
        self._transactions.close()
        self._share_log.close()
