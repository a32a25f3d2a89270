"""The Kafka side of one shard: its partitions and groups, the handlers over them, and what they do as time passes."""

from __future__ import annotations

import time
from typing import Any

import trio

from broker.cluster import Cluster
from broker.consumers.group_home import GroupCalls, GroupHome
from broker.consumers.offsets import Offsets
from broker.handlers import (
    api_versions,
    cluster,
    configs,
    delete_records,
    fetch,
    find_coordinator,
    groups,
    init_producer_id,
    list_offsets,
    log_dirs,
    metadata,
    offset_for_leader_epoch,
    offsets,
    produce,
    quotas,
    topics,
    users,
)
from broker.handlers.api_versions import ApiVersionsCache
from broker.log.manager import LogManager
from broker.log.partitions import Partitions
from broker.serve import authentication
from broker.serve.call import Route
from shards.homes import home_of
from shards.mesh import Mesh
from shards.meters import Meters
from shards.plan import Plan
from shards.settings import View


class Kafka:
    """`routes` answers every API that this broker has; `run` keeps groups and logs up to date."""

    def __init__(self, plan: Plan, broker: int, shard: int, view: View, mesh: Mesh, meters: Meters) -> None:
        directory = plan.data_dir / f"b{broker}"
        shown = Cluster(view, broker, plan.brokers, plan.cluster_id)
        self._view = view
        self._logs = LogManager(broker=broker, shard=shard, shards=plan.shards, directory=str(directory), view=view)
        partitions = Partitions(self._logs, mesh)
        self._offsets = Offsets(directory / "groups", lambda group: home_of(f"group:{group}", plan.shards) == shard)
        self._groups = GroupHome(self._offsets, view)
        self._groups.serve_on(mesh)
        calls = GroupCalls(self._groups, mesh, shard, plan.shards, home_of)
        self.routes: list[Route] = [
            *produce.routes(partitions),
            *fetch.routes(partitions),
            *list_offsets.routes(partitions),
            *delete_records.routes(partitions),
            *offset_for_leader_epoch.routes(partitions),
            *log_dirs.routes(self._logs),
            *init_producer_id.routes(init_producer_id.ProducerIds(mesh)),
            *metadata.routes(shown, view, mesh, meters),
            *cluster.routes(shown, view),
            *topics.routes(shown, view, mesh, meters),
            *configs.routes(shown, view, mesh),
            *quotas.routes(view, mesh),
            *find_coordinator.routes(shown),
            *groups.routes(shown, calls),
            *offsets.routes(shown, calls, view),
            *users.routes(view, mesh),
            *authentication.routes(),
        ]
        self.api_versions = ApiVersionsCache(self.routes)
        self.routes += api_versions.routes(self.api_versions)

    def view_changed(self, changed: frozenset[str]) -> None:
        """The view has become another version: topics may be gone, or be others under the same name."""
        if "topic" in changed:
            self._logs.view_changed()

    async def run(self, *, task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled: group deadlines, and retention of logs."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._groups.run)
            task_status.started()
            while True:
                await trio.sleep(self._view.get("log.retention.check.interval.ms") / 1000)
                self._logs.retain(now_ms=time.time_ns() // 1_000_000)

    def close(self) -> None:
        self._logs.close()
        self._offsets.close()
