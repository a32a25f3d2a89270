"""The common part of conversations about groups of the consumer protocol and share groups: requests that any group may be sent,
and a member that notes its epoch and its partitions.

Partitions are counted, as Kafka gives the odd one to whom a hash of member ids says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from confluent_kafka.admin import AdminClient, NewTopic
from wired import Dialogue, Wired, wired

TRY_AGAIN = (14, 15, 16)
AT_ONCE = {f"group.{kind}.assignment.interval.ms": "0" for kind in ("consumer", "share")}
"""Settings with which a group is assigned at each change, so that an answer does not depend on the time since the last one."""


def as_options(settings: dict[str, str]) -> list[str]:
    """As `turnstile up` takes them."""
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


class GroupDialogue(Dialogue):
    """`group` is asked about where a request names no other; `topic` has four partitions."""

    def __init__(self, wire: Wired, topic: str) -> None:
        super().__init__(wire)
        self.topic = self.group = topic

    # --- offsets -------------------------------------------------------------------------------------------------------

    def commit(
        self, member: str, epoch: int, version: int = 9, *, group: str | None = None, instance: str | None = None
    ) -> int:
        types = self.wire.types("offset_commit", version)
        place = types.OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
        answer = self.wire.ask(
            "offset_commit", version, group_id=group or self.group, member_id=member, generation_id_or_member_epoch=epoch,
            group_instance_id=instance, topics=[types.OffsetCommitRequestTopic(name=self.topic, partitions=[place])],
        )  # fmt: skip
        code: int = answer.topics[0].partitions[0].error_code
        return code

    def fetch(self, member: str | None, epoch: int, *, group: str | None = None) -> list[int]:
        types = self.wire.types("offset_fetch", 9)
        topic = types.OffsetFetchRequestTopics(name=self.topic, partition_indexes=[0])
        asked = types.OffsetFetchRequestGroup(
            group_id=group or self.group, member_id=member, member_epoch=epoch, topics=[topic]
        )
        (found,) = self.wire.ask("offset_fetch", 9, groups=[asked], require_stable=False).groups
        return [found.error_code, *(each.committed_offset for topic in found.topics for each in topic.partitions)]

    def delete_offsets(self) -> list[int]:
        types = self.wire.types("offset_delete", 0)
        place = types.OffsetDeleteRequestPartition(partition_index=0)
        topic = types.OffsetDeleteRequestTopic(name=self.topic, partitions=[place])
        answer = self.wire.ask("offset_delete", 0, group_id=self.group, topics=[topic])
        return [answer.error_code, *(each.error_code for topic in answer.topics for each in topic.partitions)]

    # --- administration ------------------------------------------------------------------------------------------------

    def listed(self, **filters: Any) -> list[list[str]]:
        groups = self.wire.ask("list_groups", 5, **filters).groups
        return [
            [g.protocol_type, g.group_state.lower(), g.group_type.lower()] for g in groups if g.group_id == self.group
        ]

    def say_listed(self, filters: dict[str, dict[str, Any]]) -> None:
        for what, each in filters.items():
            self.say(f"listed: {what}", self.listed(**each))

    def say_described_as_classic(self) -> None:
        for version in (5, 6):
            (found,) = self.wire.ask("describe_groups", version, groups=[self.group]).groups
            self.say(
                f"described as a classic group, version {version}",
                [found.error_code, found.group_state, found.protocol_type],
            )

    def delete(self) -> int:
        (found,) = self.wire.ask("delete_groups", 2, groups_names=[self.group]).results
        code: int = found.error_code
        return code

    # --- the classic protocol ------------------------------------------------------------------------------------------

    def classic_join(self, version: int = 9) -> int:
        protocol = self.wire.types("join_group", version).JoinGroupRequestProtocol(name="range", metadata=b"")
        code: int = settled(
            lambda: self.wire.ask(
                "join_group", version, group_id=self.group, session_timeout=timedelta(seconds=30),
                rebalance_timeout=timedelta(seconds=30), member_id="", protocol_type="consumer", protocols=[protocol],
            )
        ).error_code  # fmt: skip
        return code

    def leave(self, member: str, instance: str | None = None) -> list[int]:
        identity = self.wire.types("leave_group", 5).MemberIdentity(member_id=member, group_instance_id=instance)
        answer = self.wire.ask("leave_group", 5, group_id=self.group, members=[identity])
        return [answer.error_code, *(each.error_code for each in answer.members)]


class DialogueMember:
    """A member: `epoch` and `assigned`, of topic ids and partitions, are those of its last answers.

    `say(asked, ...)` sends a heartbeat and notes the answer.
    """

    def __init__(self, name: str, talk: GroupDialogue, heartbeat: Callable[..., Any]) -> None:
        self.name, self.talk, self.heartbeat = name, talk, heartbeat
        self.epoch = 0
        self.assigned: list[tuple[Any, tuple[int, ...]]] | None = None

    def fields(self) -> dict[str, Any]:
        """Of its next heartbeat, beside its epoch and its name."""
        raise NotImplementedError

    def beat(self, **fields: Any) -> Any:
        answer = self.heartbeat(**{"epoch": self.epoch, "member": self.name, **self.fields(), **fields})
        if not answer.error_code and answer.member_epoch >= 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.assigned = [(each.topic_id, each.partitions) for each in answer.assignment.topic_partitions]
        return answer

    def say(self, asked: str, **fields: Any) -> None:
        self.talk.say(f"{self.name}: {asked}", told(self.beat(**fields)))

    @property
    def count(self) -> int:
        """Of its partitions; -1 before it was told any."""
        return -1 if self.assigned is None else sum(len(numbers) for _, numbers in self.assigned)

    def until(self, count: int, before: Callable[[], None] = lambda: None) -> None:
        """Heartbeats, each after `before()`, until it has so many partitions; Kafka initializes those of new topics meanwhile."""
        for _ in range(200):
            before()
            self.beat()
            if self.count == count:
                return
            time.sleep(0.05)
        raise AssertionError(f"{self.name} has {self.assigned}")


def told(answer: Any) -> list[Any]:
    """[code, epoch, heartbeat interval in ms, number of partitions or None]."""
    count = None if answer.assignment is None else count_of(answer.assignment)
    return [answer.error_code, answer.member_epoch, int(answer.heartbeat_interval / timedelta(milliseconds=1)), count]


def count_of(assignment: Any) -> int:
    return sum(len(each.partitions) for each in assignment.topic_partitions)


def settled(ask: Callable[[], Any]) -> Any:
    """The first answer that is not one of TRY_AGAIN."""
    for _ in range(100):
        answer = ask()
        if answer.error_code not in TRY_AGAIN:
            break
        time.sleep(0.05)
    return answer


T = TypeVar("T", bound=GroupDialogue)


def held(
    bootstrap: str, topic: str, dialogue: Callable[[Wired, str], T], parts: Sequence[Callable[[T], None]]
) -> list[list[Any]]:
    """[what was asked, the answer] of each part of a conversation, which has a group of its own."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 4, 1)])[topic].result(timeout=30)
    with wired(bootstrap) as wire:
        settled(lambda: wire.ask("find_coordinator", 3, key=topic, key_type=0))  # Kafka makes its internal topic then
        talk = dialogue(wire, topic)
        for part in parts:
            talk.group = f"{topic}{part.__name__}"
            part(talk)
    return talk.said
