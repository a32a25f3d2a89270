"""The Kafka side of one shard: its partitions and groups, the handlers over them, and their periodic work."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import trio

from broker.access.access import Access
from broker.access.guards import guarded
from broker.groups.committed_offsets import CommittedOffsets, home_of_bucket
from broker.groups.group_coordinator import GroupCoordinator
from broker.groups.group_router import GroupRouter
from broker.handlers import (
    acls,
    api_versions,
    classic_groups,
    client_quotas,
    configs,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    fetch,
    find_coordinator,
    init_producer_id,
    list_offsets,
    log_dirs,
    metadata,
    offset_commits,
    offset_for_leader_epoch,
    produce,
    reassignments,
    scram_users,
)
from broker.handlers.api_versions import SupportedVersions
from broker.handlers.cluster_metadata import ClusterMetadata
from broker.handlers.topic_mutations import TopicMutations
from broker.log.disk_space import LOOK_EVERY_S
from broker.log.fetch_sessions import FetchSessionCache
from broker.log.manager import LogManager
from broker.log.partitions import Partitions
from broker.serve import authentication
from broker.serve.call import Route
from shards.config.cluster_plan import ClusterPlan
from shards.config.image import ClusterImage
from shards.mesh.mesh import Mesh
from shards.mesh.turns import Turns
from shards.quotas.sharded_quotas import ShardedQuotas


class Kafka:
    """`routes` answers every API that this broker has; `run` keeps groups and logs up to date."""

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
    ) -> None:
        """`room(most)`: how many bytes a Fetch may be answered with now, of `most`."""
        directory = plan.data_dir / f"b{broker}"
        self.access = Access(image)
        shown = ClusterMetadata(image, broker, plan.brokers, plan.cluster_id)
        self._image = image
        self._logs = LogManager(broker=broker, shard=shard, shards=plan.shards, directory=str(directory), image=image)
        spawn = turns.spawn
        partitions = Partitions(self._logs, mesh, turns)
        self._offsets = CommittedOffsets(
            directory / "groups", lambda bucket: home_of_bucket(bucket, plan.shards) == shard
        )
        self._groups = GroupCoordinator(self._offsets, image)
        self._sessions = FetchSessionCache(shard, plan.shards)
        self._groups.serve_on(mesh)
        calls = GroupRouter(self._groups, mesh, shard, plan.shards)
        mutations = TopicMutations(mesh, meters)
        self.routes: list[Route] = [
            *produce.routes(partitions),
            *fetch.routes(partitions, spawn, self._sessions, room),
            *list_offsets.routes(partitions),
            *delete_records.routes(partitions),
            *offset_for_leader_epoch.routes(partitions),
            *log_dirs.routes(self._logs),
            *init_producer_id.routes(init_producer_id.ProducerIds(mesh), spawn),
            *metadata.routes(shown, image, mesh, meters, turns),
            *describe_cluster.routes(shown, image),
            *reassignments.routes(image),
            *acls.routes(self.access, mesh, spawn),
            *create_topics.routes(shown, image, mutations, spawn),
            *create_partitions.routes(shown, image, mutations, spawn),
            *delete_topics.routes(image, mutations, spawn),
            *configs.routes(shown, image, mesh, turns),
            *client_quotas.routes(image, mesh, spawn),
            *find_coordinator.routes(shown),
            *classic_groups.routes(shown, calls, turns),
            *offset_commits.routes(shown, calls, image, turns),
            *scram_users.routes(image, mesh, spawn),
            *authentication.routes(),
        ]
        self.versions = SupportedVersions(self.routes)
        self.routes += api_versions.routes(self.versions)

    def routes_of_clients(self) -> list[Route]:
        """Guarded, if the cluster was started with an authorizer; to be asked for once the configuration is known."""
        return guarded(self.routes, self.access) if self.access.is_on else self.routes

    def image_changed(self, changed: frozenset[str]) -> None:
        """The image has another version: topics may be gone, or replaced by others of the same name."""
        self.access.image_changed(changed)
        if "topic" in changed:
            self._logs.image_changed()

    def reset(self) -> None:
        """No group and no fetch session is left; topics go with the configuration."""
        self._groups.reset()
        self._sessions.clear()

    def describe_gauges(self) -> list[list[Any]]:
        """[[metric name, {label: value}, number]]: Kafka's gauges of its FetchSessionCache."""
        bean = "kafka_server_fetchsessioncache_numincrementalfetch"
        return [
            [f"{bean}sessions", {}, len(self._sessions)],
            [f"{bean}partitionscached", {}, self._sessions.partitions],
        ]

    async def run(self, *, task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled: group deadlines, free disk space, and retention of logs."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._groups.run)
            await nursery.start(self._watch_space)
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
