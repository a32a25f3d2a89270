"""A member of a share group, the heartbeat it sends and the settings of its group (KIP-932)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from broker.kafka.groups.modern.member import NOTHING, TopicIdPartitions


@dataclass(slots=True, eq=False)
class ShareMember:
    """`assigned` is what it was told, as of `epoch`; `target` what it is told by its next heartbeat."""

    id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    names: tuple[str, ...] = ()
    epoch: int = 0
    previous_epoch: int = 0
    assigned: TopicIdPartitions = NOTHING
    target: TopicIdPartitions = NOTHING
    session_deadline_ms: int = 0

    def deadline_ms(self) -> int:
        """The time at which it is fenced, if nothing is heard of it."""
        return self.session_deadline_ms

    def update(self, request: ShareHeartbeat) -> bool:
        """Takes over what the request says of the member; returns True if it subscribes to other topics than before."""
        if request.rack_id is not None:
            self.rack_id = request.rack_id
        self.client_id, self.client_host = request.client_id, request.client_host
        before = self.names
        self.names = before if request.names is None else request.names
        return self.names != before

    def facts(self) -> tuple[object, ...]:
        """All that is kept of it: everything but its deadline."""
        return (
            self.id, self.rack_id, self.client_id, self.client_host, self.names, self.epoch, self.previous_epoch,
            self.assigned, self.target,
        )  # fmt: skip


class ShareHeartbeat(NamedTuple):
    """ShareGroupHeartbeatRequest. None: as it was."""

    member_id: str
    epoch: int
    rack_id: str | None
    names: tuple[str, ...] | None
    client_id: str
    client_host: str


class ShareGroupConfig(NamedTuple):
    """The settings in force for a group: its own configs, else settings such as group.share.heartbeat.interval.ms."""

    heartbeat_ms: int
    session_ms: int
    max_size: int
    assignment_interval_ms: int = 0
