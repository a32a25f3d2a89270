"""Heartbeats of members of a share group, for tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from consumer_members import FakeTopics

from broker.kafka.groups.modern.member import HeartbeatResult, TopicIdPartitions
from broker.kafka.groups.share.group import ShareGroup
from broker.kafka.groups.share.member import ShareGroupConfig, ShareHeartbeat

CONFIG = ShareGroupConfig(5000, 45_000, 1000)


class FakeShareMember:
    """A client: what it was told last."""

    def __init__(
        self, group: ShareGroup, topics: FakeTopics, member_id: str, names: Iterable[str] = ("a",), *,
        config: ShareGroupConfig = CONFIG,
    ) -> None:  # fmt: skip
        self.group, self.topics, self.id, self.names, self.config = group, topics, member_id, tuple(names), config
        self.epoch = 0
        self.told: TopicIdPartitions = frozenset()

    def send(self, *, now_ms: int = 0, **fields: Any) -> HeartbeatResult:
        epoch = fields.pop("epoch", self.epoch)
        names = fields.pop("names", self.names if epoch == 0 else None)
        answer = self.group.heartbeat(
            ShareHeartbeat(self.id, epoch, None, names, "c", "/h"), self.config, self.topics, now_ms
        )
        self.group.check()
        if not answer.code:
            self.epoch = answer.epoch
            self.told = self.told if answer.assignment is None else answer.assignment
        return answer
