"""A member of a consumer group, the heartbeat it sends and the answer it gets (KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from broker.kafka.groups.modern.member import NOTHING, TopicIdPartition, TopicIdPartitions


class MemberState(IntEnum):
    """Kafka's MemberState: how far a member is on the way to its target."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


class Subscription(NamedTuple):
    """The topics that a member asks for: names, and a regular expression or None. `reader` is (user, address) of the client."""

    names: tuple[str, ...] = ()
    regex: str | None = None
    reader: tuple[str, str] = ("", "")


class Reconciled(NamedTuple):
    """The partitions that a member holds, and the epoch since when. `revoking`: partitions that it was asked to give up and may
    still have."""

    state: MemberState = MemberState.STABLE
    epoch: int = 0
    assigned: TopicIdPartitions = NOTHING
    revoking: TopicIdPartitions = NOTHING


@dataclass(slots=True, eq=False)
class ConsumerMember:
    """`since`: the assignment epoch in which it got each partition that it holds; `session_deadline_ms`: when it counts
    as lost; `revoke_deadline_ms`: the time by which it must have revoked; None: nothing to revoke."""

    id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_ms: int = -1
    assignor: str | None = None
    subscription: Subscription = field(default_factory=Subscription)
    progress: Reconciled = field(default_factory=Reconciled)
    since: Mapping[TopicIdPartition, int] = field(default_factory=dict)
    previous_epoch: int = 0
    target: TopicIdPartitions = NOTHING
    session_deadline_ms: int = 0
    revoke_deadline_ms: int | None = None

    @property
    def epoch(self) -> int:
        return self.progress.epoch

    @property
    def holds(self) -> TopicIdPartitions:
        """The partitions that no other member may be given."""
        return self.progress.assigned | self.progress.revoking

    def update(self, request: Heartbeat) -> bool:
        """Takes over what the request says of the member; returns True if it subscribes to other topics than before."""
        if request.rack_id is not None:
            self.rack_id = request.rack_id
        if request.rebalance_ms != -1:
            self.rebalance_ms = request.rebalance_ms
        if request.assignor is not None:
            self.assignor = request.assignor
        self.client_id, self.client_host = request.client_id, request.client_host
        before = self.subscription
        names = before.names if request.names is None else request.names
        regex = before.regex if request.regex is None else request.regex
        self.subscription = Subscription(names, regex, request.reader if regex else ("", ""))
        return self.subscription != before

    def facts(self) -> tuple[object, ...]:
        """All that is kept of it: everything but its deadlines."""
        return (
            self.id, self.instance_id, self.rack_id, self.client_id, self.client_host, self.rebalance_ms, self.assignor,
            self.subscription, self.progress, self.since, self.previous_epoch, self.target,
        )  # fmt: skip

    def deadline_ms(self) -> int:
        revoke_ms = self.revoke_deadline_ms
        return self.session_deadline_ms if revoke_ms is None else min(self.session_deadline_ms, revoke_ms)


class Heartbeat(NamedTuple):
    """ConsumerGroupHeartbeatRequest. A field that is None (`rebalance_ms`: -1) has not changed. `owned`: what the member
    has now."""

    member_id: str
    epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_ms: int
    names: tuple[str, ...] | None
    regex: str | None
    assignor: str | None
    owned: TopicIdPartitions | None
    client_id: str
    client_host: str
    reader: tuple[str, str]

    @property
    def is_full(self) -> bool:
        """True if it states every field, as a member does after an error."""
        subscribes = self.names is not None or self.regex is not None
        return self.epoch == 0 or (self.rebalance_ms != -1 and subscribes and self.owned is not None)


class ConsumerGroupConfig(NamedTuple):
    """The settings in force for a group: its own configs, else settings such as group.consumer.heartbeat.interval.ms."""

    heartbeat_ms: int
    session_ms: int
    max_size: int
    assignors: tuple[str, ...]
    assignment_interval_ms: int = 0
