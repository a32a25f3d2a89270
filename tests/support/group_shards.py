"""The groups of one protocol and one shard, which may be restarted over its files: consumer, share and streams groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import consumer_members
import share_members
from consumer_members import FakeTopics

from broker.kafka.groups.committed_offsets import CommittedOffsets
from broker.kafka.groups.consumer.consumer_groups import ConsumerGroups
from broker.kafka.groups.consumer.member import Heartbeat
from broker.kafka.groups.share.member import ShareHeartbeat
from broker.kafka.groups.share.share_groups import ShareGroups
from broker.kafka.groups.streams.member import StreamsGroupConfig, StreamsHeartbeat
from broker.kafka.groups.streams.streams_groups import StreamsGroups
from broker.kafka.groups.streams.topology import Subtopology, Topology


class GroupShard:
    """Groups that are kept in `directory`, of the topic `a` with four partitions. `members`: the most there may be."""

    config: ClassVar[Any]
    group_module: ClassVar[str]
    """The module that compares what members ask for."""

    def __init__(self, directory: Path, *, members: int = 100) -> None:
        self.directory, self.members, self.now_ms = directory, members, 1000
        self.topics = FakeTopics(a=4)
        self.restart()

    def restart(self) -> None:
        self.store = CommittedOffsets(self.directory)
        self.groups = self.made()
        self.groups.load()

    def made(self) -> Any:
        raise NotImplementedError

    def limits(self) -> dict[str, Any]:
        return {
            "config": lambda group_id: self.config,
            "setting": self.setting,
            "now_ms": lambda: self.now_ms,
        }

    def setting(self, name: str) -> int:
        """turnstile.<protocol>.members.max"""
        assert name.endswith(".members.max")
        return self.members

    def request(self, member: str, epoch: int, **fields: Any) -> Any:
        raise NotImplementedError

    def beat(self, member: str, epoch: int, *, group: str = "g", **fields: Any) -> Any:
        return self.groups.heartbeat(group, self.request(member, epoch, **fields), self.now_ms)

    def leave(self, member: str, *, group: str = "g") -> Any:
        return self.groups.leave(group, member, 0)


class ConsumerShard(GroupShard):
    config = consumer_members.CONFIG
    group_module = "broker.kafka.groups.consumer.group_state"

    def made(self) -> ConsumerGroups:
        return ConsumerGroups(self.store, self.topics, **self.limits())  # type: ignore[arg-type]

    def request(
        self, member: str, epoch: int, *, owned: Any = (), instance: Any = None, regex: Any = None
    ) -> Heartbeat:
        joins = epoch == 0
        return Heartbeat(
            member, epoch, instance, None, 10_000 if joins else -1, ("a",) if joins else None, regex, None,
            frozenset(owned), "c", "/h", ("", ""),
        )  # fmt: skip

    def leave(self, member: str, *, group: str = "g") -> Any:
        return self.groups.leave(group, member, None, -1, 0)


class ShareShard(GroupShard):
    config = share_members.CONFIG
    group_module = "broker.kafka.groups.share.group"

    def __init__(self, directory: Path, *, members: int = 100, groups: int = 100) -> None:
        self.most_groups = groups
        super().__init__(directory, members=members)

    def made(self) -> ShareGroups:
        return ShareGroups(self.store, self.topics, **self.limits())

    def setting(self, name: str) -> int:
        return self.most_groups if name == "turnstile.share.groups.max" else super().setting(name)

    def request(self, member: str, epoch: int) -> ShareHeartbeat:
        return ShareHeartbeat(member, epoch, "r", ("a",) if epoch == 0 else None, "c", "/h")


class StreamsShard(GroupShard):
    config = StreamsGroupConfig(heartbeat_ms=5000, session_ms=45_000, max_size=1000)
    group_module = "broker.kafka.groups.streams.group"

    def made(self) -> StreamsGroups:
        return StreamsGroups(self.store, self.topics, **self.limits())

    def request(self, member: str, epoch: int) -> StreamsHeartbeat:
        topology = Topology(0, (Subtopology("0", ("a",)),)) if epoch == 0 else None
        return StreamsHeartbeat(member, epoch, rebalance_ms=10_000, topology=topology, process_id=member)


SHARDS = [ConsumerShard, ShareShard, StreamsShard]
