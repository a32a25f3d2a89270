"""A member of a streams group, the heartbeat it sends and the settings of its group (KIP-1071)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from broker.kafka.groups.streams.endpoints import Endpoint, EndpointPartitions
from broker.kafka.groups.streams.reconciliation import MemberState, TaskProgress
from broker.kafka.groups.streams.status import Status
from broker.kafka.groups.streams.tasks import NOTHING, Task, Tasks, to_row
from broker.kafka.groups.streams.topology import InternalTopic, Topology

STICKY = "sticky"


class MemberFacts(NamedTuple):
    """The description that a member gives of itself; another one than before raises the group's epoch."""

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: Endpoint | None = None
    tags: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True, eq=False)
class StreamsMember:
    """`target` is what it is to come to; `since`: the assignment epoch in which it got each active task."""

    id: str
    facts: MemberFacts = field(default_factory=MemberFacts)
    progress: TaskProgress = field(default_factory=TaskProgress)
    previous_epoch: int = 0
    target: Tasks = NOTHING
    since: Mapping[Task, int] = field(default_factory=dict)
    session_deadline_ms: int = 0
    revoke_deadline_ms: int | None = None

    @property
    def epoch(self) -> int:
        return self.progress.epoch

    @property
    def endpoint(self) -> Endpoint | None:
        return self.facts.endpoint

    def update(self, request: StreamsHeartbeat) -> bool:
        """Notes what a heartbeat says of the member; whether that is another thing than before."""
        before = self.facts
        sent = {
            "rack_id": request.rack_id,
            "rebalance_ms": None if request.rebalance_ms == -1 else request.rebalance_ms,
            "topology_epoch": None if request.topology is None else request.topology.epoch,
            "process_id": request.process_id,
            "endpoint": request.endpoint,
            "tags": request.tags,
        }
        given: dict[str, Any] = {name: value for name, value in sent.items() if value is not None}
        self.facts = before._replace(client_id=request.client_id, client_host=request.client_host, **given)
        return self.facts != before

    def advance(self, progress: TaskProgress, now_ms: int) -> None:
        """Another step on its way to the target; while it is to revoke tasks it has its rebalance timeout for it."""
        if progress.epoch != self.epoch:
            self.previous_epoch = self.epoch
        self.since = {task: self.since.get(task, progress.epoch) for task in progress.assigned.active}
        self.progress = progress
        self.await_revocation(now_ms)

    def await_revocation(self, now_ms: int) -> None:
        """The time in which it is to revoke tasks begins, if it is to revoke any."""
        waits = self.progress.state is MemberState.UNREVOKED_TASKS
        self.revoke_deadline_ms = now_ms + self.facts.rebalance_ms if waits else None

    def deadline_ms(self) -> int:
        """The time at which it is fenced, if nothing is heard of it."""
        return min(self.session_deadline_ms, self.revoke_deadline_ms or self.session_deadline_ms)

    def kept(self) -> tuple[object, ...]:
        """All that is kept of it: everything but its deadlines."""
        return self.facts, self.progress, self.previous_epoch, self.target, self.since


class StreamsHeartbeat(NamedTuple):
    """StreamsGroupHeartbeatRequest. None, and -1 of `rebalance_ms`: as it was."""

    member_id: str
    epoch: int
    endpoint_epoch: int = 0
    rack_id: str | None = None
    rebalance_ms: int = -1
    topology: Topology | None = None
    owned: Tasks | None = None
    process_id: str | None = None
    endpoint: Endpoint | None = None
    tags: tuple[tuple[str, str], ...] | None = None
    shutdown: bool = False
    client_id: str = ""
    client_host: str = ""


class StreamsResult(NamedTuple):
    """`tasks` None: as they were; `endpoints` None: the same; `missing`: the internal topics that are to be created."""

    code: int
    message: str | None = None
    member_id: str = ""
    epoch: int = 0
    interval_ms: int = 0
    statuses: tuple[Status, ...] = ()
    tasks: Tasks | None = None
    endpoint_epoch: int = 0
    endpoints: tuple[EndpointPartitions, ...] | None = None
    missing: tuple[InternalTopic, ...] = ()

    def fields(self) -> list[object]:
        """The answer as msgpack carries it: tasks as tasks.to_row packs them."""
        return [to_row(each) if isinstance(each, Tasks) else each for each in self]


class StreamsGroupConfig(NamedTuple):
    """The values in force for a group: its own configs, else settings such as group.streams.heartbeat.interval.ms. Milliseconds."""

    heartbeat_ms: int
    session_ms: int
    max_size: int
    standby_replicas: int = 0
    initial_delay_ms: int = 0
    assignment_interval_ms: int = 0
