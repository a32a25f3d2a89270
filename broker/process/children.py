"""The processes of a cluster as its supervisor forks them: the stage and the main of each, and what is imported before it.

imported_before_the_fork  The supervisor imports once what several children need, also those that it starts again. Imports that are
    marked as unused below are there for the children.
coordinator_starts_meanwhile  What shards need beside it is more than half of all that is imported. It is imported when the
    coordinator, which every shard waits for, has been forked and starts on another core.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import trio  # noqa: F401

from broker.journal import writer  # noqa: F401
from broker.process import converter_process
from broker.process.shared_memory import SharedMemory
from broker.process.start_reports import ReportPipe, reporting
from broker.runtime import collector
from shards.mesh import mesh  # noqa: F401
from shards.supervisor.binding import ListeningSockets, MeshAddresses
from shards.supervisor.coordinator_watchdog import CoordinatorWatchdog
from shards.supervisor.restart_board import RestartBoard, Restarts
from shards.supervisor.supervisor import Child

if TYPE_CHECKING:
    from shards.config.cluster_plan import ClusterPlan
    from shards.ownership import BrokerShard

CONVERTING, COORDINATING, SHARDING = range(3)
_FIRST_SHARD = 2  # the place of the first shard among the children: after the journal's converter and the coordinator


def import_for(stage: int) -> None:
    """Imports for the children of this stage, before the first of them is forked (coordinator_starts_meanwhile)."""
    if stage == SHARDING:
        with collector.paused():
            from broker.process import shard_process  # noqa: F401


def make_board(plan: ClusterPlan) -> RestartBoard:
    """The board of the restarts of `children_of` this plan."""
    return RestartBoard(_FIRST_SHARD + plan.brokers * plan.shards)


def children_of(
    plan: ClusterPlan, addresses: MeshAddresses, board: RestartBoard, pipe: ReportPipe, backlog: int
) -> list[Child]:
    """The journal's converter, the coordinator and the shards. Each reports to `pipe` that it is up, or why it is not; a
    shard's clients wait in a queue of `backlog` connections."""
    watchdog = CoordinatorWatchdog()
    shared = SharedMemory.of(plan)

    def child(
        name: str,
        stage: int,
        main: Callable[[int], int],
        watchdog: CoordinatorWatchdog | None = None,
        listening: ListeningSockets | None = None,
    ) -> Child:
        return Child(name, stage, reporting(main, pipe, name), watchdog, listening)

    def run_coordinator(epoch: int) -> int:
        from broker.process import coordinator_process

        return coordinator_process.run(plan, restarts_of, watchdog, pipe.report_to, epoch)

    def restarts_of(member: BrokerShard) -> Restarts:
        return board.get(_FIRST_SHARD + plan.members().index(member))

    def run_shard(place: BrokerShard, epoch: int) -> int:
        from broker.process import shard_process

        return shard_process.run(plan, addresses, shared, place, pipe.report_to, epoch)

    children = [
        child("the journal's converter", CONVERTING, partial(converter_process.run, plan, pipe.report_to)),
        child("the coordinator", COORDINATING, run_coordinator, watchdog),
    ]
    for broker, shard in plan.members():
        main = partial(run_shard, (broker, shard))
        listening = ListeningSockets([sock for _, sock in plan.client_sockets[broker, shard]], backlog)
        children.append(child(f"shard {shard} of broker {broker}", SHARDING, main, listening=listening))
    return children
