"""A conversation about share groups (KIP-932), right and wrong, compared with what Apache Kafka 4.2 answered.

`CLIENTS_PEER=kafka pytest tests/clients/test_share_codes.py -k share_group_codes` asks Kafka itself.
Partitions are counted, as Kafka gives the odd one to whom a hash of member ids says. Lags are left out: Kafka knows none
before the first delivery.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic
from consumer_group_codes import settled
from wired import Dialogue, Wired, wired


class ShareMember:
    """One member: what it was told last. `say(asked, ...)` sends a heartbeat and notes the answer."""

    def __init__(self, talk: Conversation, name: str, names: tuple[str, ...] | None = None) -> None:
        self.talk, self.name = talk, name
        self.names = (talk.topic,) if names is None else names
        self.epoch = 0
        self.has = -1

    def beat(self, **fields: Any) -> Any:
        whole = {"epoch": self.epoch, "member": self.name, **({"names": self.names} if self.epoch == 0 else {})}
        answer = self.talk.heartbeat(**{**whole, **fields})
        if not answer.error_code and answer.member_epoch >= 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.has = _count(answer.assignment)
        return answer

    def say(self, asked: str, **fields: Any) -> None:
        self.talk.say(f"{self.name}: {asked}", told(self.beat(**fields)))

    def until(self, count: int) -> None:
        """Kafka initializes the partitions of new topics after its answer."""
        for _ in range(200):
            self.beat()
            if self.has == count:
                return
            time.sleep(0.05)
        raise AssertionError(f"{self.name} has {self.has}")


def told(answer: Any) -> list[Any]:
    """[code, epoch, heartbeat interval, number of partitions or None]."""
    count = None if answer.assignment is None else _count(answer.assignment)
    return [answer.error_code, answer.member_epoch, int(answer.heartbeat_interval / timedelta(milliseconds=1)), count]


def _count(assignment: Any) -> int:
    return sum(len(each.partitions) for each in assignment.topic_partitions)


class Conversation(Dialogue):
    def __init__(self, wire: Wired, topic: str) -> None:
        super().__init__(wire)
        self.topic = self.group = topic

    def heartbeat(
        self, *, member: str = "m", epoch: int = 0, names: Any = None, group: str | None = None, rack: str | None = None
    ) -> Any:
        return settled(
            lambda: self.wire.ask(
                "share_group_heartbeat", 1, group_id=self.group if group is None else group, member_id=member,
                member_epoch=epoch, rack_id=rack, subscribed_topic_names=names,
            )
        )  # fmt: skip

    def member(self, name: str, *names: str) -> ShareMember:
        return ShareMember(self, name, names or None)

    def describe(self, group: str | None = None) -> list[Any]:
        (found,) = self.wire.ask("share_group_describe", 1, group_ids=[self.group if group is None else group]).groups
        members = sorted(
            [each.member_id, each.rack_id, each.member_epoch, each.client_host, len(each.subscribed_topic_names),
             _count(each.assignment)]
            for each in found.members
        )  # fmt: skip
        return [
            found.error_code, found.group_state, found.group_epoch, found.assignment_epoch, found.assignor_name, members
        ]  # fmt: skip

    def listed(self, **filters: Any) -> list[list[str]]:
        groups = self.wire.ask("list_groups", 5, **filters).groups
        return [
            [g.protocol_type, g.group_state.lower(), g.group_type.lower()] for g in groups if g.group_id == self.group
        ]

    def delete(self) -> int:
        (found,) = self.wire.ask("delete_groups", 2, groups_names=[self.group]).results
        code: int = found.error_code
        return code

    # --- offsets -------------------------------------------------------------------------------------------------------

    def offsets(self, wanted: dict[str, list[int]] | None, *, group: str | None = None) -> list[Any]:
        types = self.wire.types("describe_share_group_offsets", 1)
        topics = None if wanted is None else [
            types.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=numbers) for name, numbers in wanted.items()
        ]  # fmt: skip
        asked = types.DescribeShareGroupOffsetsRequestGroup(
            group_id=self.group if group is None else group, topics=topics
        )
        (found,) = self.wire.ask("describe_share_group_offsets", 1, groups=[asked]).groups
        told = sorted(
            [each.topic_name, each.topic_id is not None,
             sorted([p.partition_index, p.start_offset, p.leader_epoch, p.error_code] for p in each.partitions)]
            for each in found.topics
        )  # fmt: skip
        return [found.error_code, told]

    def alter(self, wanted: dict[str, dict[int, int]], *, group: str | None = None) -> list[Any]:
        types = self.wire.types("alter_share_group_offsets", 0)
        topics = [
            types.AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[
                    types.AlterShareGroupOffsetsRequestPartition(partition_index=number, start_offset=offset)
                    for number, offset in parts.items()
                ],
            )
            for name, parts in wanted.items()
        ]
        answer = self.wire.ask(
            "alter_share_group_offsets", 0, group_id=self.group if group is None else group, topics=topics
        )
        told = sorted(
            [each.topic_name, each.topic_id is not None, sorted([p.partition_index, p.error_code] for p in each.partitions)]
            for each in answer.responses
        )  # fmt: skip
        return [answer.error_code, told]

    def forget(self, *names: str, group: str | None = None) -> list[Any]:
        types = self.wire.types("delete_share_group_offsets", 0)
        topics = [types.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
        answer = self.wire.ask(
            "delete_share_group_offsets", 0, group_id=self.group if group is None else group, topics=topics
        )
        told = sorted([each.topic_name, each.topic_id is not None, each.error_code] for each in answer.responses)
        return [answer.error_code, told]

    # --- other protocols -----------------------------------------------------------------------------------------------

    def classic_join(self, version: int = 9) -> int:
        protocol = self.wire.types("join_group", version).JoinGroupRequestProtocol(name="range", metadata=b"")
        code: int = settled(
            lambda: self.wire.ask(
                "join_group", version, group_id=self.group, session_timeout=timedelta(seconds=30),
                rebalance_timeout=timedelta(seconds=30), member_id="", protocol_type="consumer", protocols=[protocol],
            )
        ).error_code  # fmt: skip
        return code

    def consumer_beat(self, epoch: int) -> int:
        code: int = self.wire.ask(
            "consumer_group_heartbeat", 1, group_id=self.group, member_id="c", member_epoch=epoch,
            rebalance_timeout=timedelta(seconds=1), subscribed_topic_names=[self.topic], topic_partitions=[],
        ).error_code  # fmt: skip
        return code

    def commit(self, member: str, epoch: int, version: int = 9) -> int:
        types = self.wire.types("offset_commit", version)
        place = types.OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
        answer = self.wire.ask(
            "offset_commit", version, group_id=self.group, member_id=member, generation_id_or_member_epoch=epoch,
            topics=[types.OffsetCommitRequestTopic(name=self.topic, partitions=[place])],
        )  # fmt: skip
        code: int = answer.topics[0].partitions[0].error_code
        return code

    def fetch(self, member: str | None, epoch: int) -> list[int]:
        types = self.wire.types("offset_fetch", 9)
        topic = types.OffsetFetchRequestTopics(name=self.topic, partition_indexes=[0])
        asked = types.OffsetFetchRequestGroup(group_id=self.group, member_id=member, member_epoch=epoch, topics=[topic])
        (found,) = self.wire.ask("offset_fetch", 9, groups=[asked], require_stable=False).groups
        return [found.error_code, *(each.committed_offset for topic in found.topics for each in topic.partitions)]

    def delete_offsets(self) -> list[int]:
        types = self.wire.types("offset_delete", 0)
        place = types.OffsetDeleteRequestPartition(partition_index=0)
        topic = types.OffsetDeleteRequestTopic(name=self.topic, partitions=[place])
        answer = self.wire.ask("offset_delete", 0, group_id=self.group, topics=[topic])
        return [answer.error_code, *(each.error_code for topic in answer.topics for each in topic.partitions)]


def converse(bootstrap: str, topic: str) -> list[list[Any]]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 4, 1)])[topic].result(timeout=30)
    with wired(bootstrap) as wire:
        settled(lambda: wire.ask("find_coordinator", 3, key=topic, key_type=0))  # Kafka makes its internal topic then
        talk = Conversation(wire, topic)
        for part in (_malformed, _alone, _two, _offsets, _admin, _both_protocols, _coordinator):
            talk.group = f"{topic}{part.__name__}"
            part(talk)
    return talk.said


def _malformed(talk: Conversation) -> None:
    good: dict[str, Any] = {"names": [talk.topic]}
    for what, fields in {
        "no group": {"group": ""}, "blank group": {"group": " "}, "no member": {"member": ""}, "blank member": {"member": " "},
        "no rack": {"rack": ""}, "epoch -2": {"epoch": -2}, "no subscription": {"names": None},
        "empty subscription": {"names": []}, "leave": {"epoch": -1}, "leave without a member": {"epoch": -1, "member": ""},
        "epoch 1 of no group": {"epoch": 1},
    }.items():  # fmt: skip
        talk.say(what, told(talk.heartbeat(**{**good, **fields})))
    talk.say("describe no group", talk.describe())
    talk.say("describe a group without a name", talk.describe(""))


def _alone(talk: Conversation) -> None:
    one = talk.member("one")
    one.say("join")
    talk.say("described", talk.describe())
    one.until(4)
    talk.say("described", talk.describe())
    one.say("beat")
    one.say("whole", names=[talk.topic])
    one.say("later epoch", epoch=7)
    one.say("epoch of before", epoch=1)
    one.say("join again", epoch=0, names=[talk.topic])
    one.say("another subscription", names=[talk.topic, "nope"])
    one.say("older epoch", epoch=1)
    one.say("no subscription", names=[])
    one.say("subscribes again", names=[talk.topic])
    one.say("rack", rack="r")
    talk.say("described", talk.describe())
    talk.say("an unknown member", told(talk.heartbeat(member="other", epoch=1)))
    talk.say("an unknown member leaves", told(talk.heartbeat(member="other", epoch=-1)))
    one.say("leave", epoch=-1)
    talk.say("described", talk.describe())
    one.say("beat")
    one.epoch = 0
    one.say("join anew")
    one.say("leave", epoch=-1)
    nowhere = talk.member("nowhere", "nope")
    nowhere.say("joins for a topic that is not there")
    nowhere.say("leave", epoch=-1)


def _two(talk: Conversation) -> None:
    one, two = talk.member("one"), talk.member("two")
    one.beat()
    one.until(4)
    two.say("join")
    talk.say("described", talk.describe())
    one.say("beat")
    one.say("beat")
    more = [talk.member(f"more{n}") for n in range(6)]
    for each in more:
        talk.say(f"{each.name}: join", told(each.beat())[:2])
    for each in (one, two, *more):
        each.beat()
    talk.say("shares", sorted(each.has for each in (one, two, *more)))
    for each in more:
        each.say("leave", epoch=-1)
    two.say("leave", epoch=-1)
    one.say("beat")
    one.say("leave", epoch=-1)


def _offsets(talk: Conversation) -> None:
    say, topic = talk.say, talk.topic
    say("offsets of no group", talk.offsets({topic: [0], "nope": [0]}))
    say("all offsets of no group", talk.offsets(None))
    say("offsets of a group without a name", talk.offsets({topic: [0]}, group=""))
    say("forget of no group", talk.forget(topic))
    say("forget of a group without a name", talk.forget(topic, group=""))
    say("alter of a group without a name", talk.alter({topic: {0: 1}}, group=""))
    say("alter of no group", talk.alter({topic: {0: 3, 1: 0, 9: 0}, "nope": {0: 0}}))
    say("listed", talk.listed())
    say("described", talk.describe())
    say("offsets", talk.offsets({topic: [0, 1, 2, 9]}))
    say("all offsets", talk.offsets(None))
    one = talk.member("one")
    one.say("join")
    one.until(4)
    say("all offsets", talk.offsets(None))
    say("alter with members", talk.alter({topic: {0: 1}}))
    say("forget with members", talk.forget(topic))
    one.say("leave", epoch=-1)
    say("alter", talk.alter({topic: {0: 7}}))
    say("offsets", talk.offsets({topic: [0, 1]}))
    say("forget", talk.forget(topic, "nope"))
    say("all offsets", talk.offsets(None))
    say("forget again", talk.forget(topic))
    one.epoch = 0
    one.say("join")
    one.until(4)
    one.say("leave", epoch=-1)
    say("deleted", talk.delete())
    say("all offsets", talk.offsets(None))


def _admin(talk: Conversation) -> None:
    one = talk.member("one")
    one.say("join")
    for what, filters in {
        "all": {}, "share": {"types_filter": ["Share"]}, "classic": {"types_filter": ["classic"]},
        "consumer": {"types_filter": ["consumer"]}, "stable": {"states_filter": ["stable"]},
        "empty": {"states_filter": ["Empty"]}, "stable share": {"states_filter": ["Stable"], "types_filter": ["share"]},
    }.items():  # fmt: skip
        talk.say(f"listed: {what}", talk.listed(**filters))
    for version in (5, 6):
        (found,) = talk.wire.ask("describe_groups", version, groups=[talk.group]).groups
        talk.say(
            f"described as a classic group, version {version}",
            [found.error_code, found.group_state, found.protocol_type],
        )
    (found,) = talk.wire.ask("consumer_group_describe", 1, group_ids=[talk.group]).groups
    talk.say("described as a consumer group", found.error_code)
    talk.say("deleted", talk.delete())
    one.say("leave", epoch=-1)
    talk.say("listed", talk.listed())
    talk.say("deleted", talk.delete())
    talk.say("deleted again", talk.delete())
    talk.say("listed", talk.listed())
    one.say("beat")


def _both_protocols(talk: Conversation) -> None:
    one = talk.member("one")
    one.say("join")
    for what in ("a group with members", "an empty group"):
        say = _of(talk, what)
        say("classic join", talk.classic_join())
        say("classic join, version 3", talk.classic_join(3))
        heartbeat = talk.wire.ask("heartbeat", 4, group_id=talk.group, generation_id=1, member_id="one")
        say("classic heartbeat", heartbeat.error_code)
        say(
            "classic sync",
            talk.wire.ask("sync_group", 4, group_id=talk.group, generation_id=1, member_id="one").error_code,
        )
        identity = talk.wire.types("leave_group", 5).MemberIdentity(member_id="one", group_instance_id=None)
        left = talk.wire.ask("leave_group", 5, group_id=talk.group, members=[identity])
        say("classic leave", [left.error_code, *(each.error_code for each in left.members)])
        say("consumer join", talk.consumer_beat(0))
        say("consumer beat", talk.consumer_beat(1))
        say("consumer leave", talk.consumer_beat(-1))
        say("commit", talk.commit("one", 1))
        say("commit, version 8", talk.commit("one", 1, 8))
        say("commit of nobody", talk.commit("", -1))
        say("fetch", talk.fetch("one", 1))
        say("fetch of nobody", talk.fetch(None, -1))
        say("delete offsets", talk.delete_offsets())
        if what == "a group with members":
            one.say("leave", epoch=-1)
    for kind, begin in {
        "classic": lambda: talk.commit("", -1), "consumer": lambda: talk.consumer_beat(0),
    }.items():  # fmt: skip
        talk.group += kind
        talk.say(f"a {kind} group begins", begin())
        other = talk.member("other")
        other.say("joins it")
        other.say("beats in it", epoch=1)
        other.say("leaves it", epoch=-1)
        talk.say("described", talk.describe())
        talk.say("offsets", talk.offsets({talk.topic: [0]}))
        talk.say("all offsets", talk.offsets(None))
        talk.say("alter", talk.alter({talk.topic: {0: 0}}))
        talk.say("forget", talk.forget(talk.topic))
    talk.consumer_beat(-1)
    other.say("joins an empty consumer group")


def _of(talk: Conversation, what: str) -> Callable[[str, Any], None]:
    return lambda asked, answer: talk.say(f"{what}: {asked}", answer)


def _coordinator(talk: Conversation) -> None:
    """Which keys of share partitions are none."""
    topic_id = "AAAAAAAAAAAAAAAAAAAAAQ"
    for key in (
        f"g:{topic_id}:0",
        f"g:{topic_id}",
        "g",
        "",
        f":{topic_id}:0",
        "g:x:0",
        f"g:{topic_id}:x",
        f"g:h:{topic_id}:0",
    ):
        (found,) = settled_keys(talk, key)
        talk.say(f"coordinator of {key!r}", found.error_code)
    (found,) = talk.wire.ask("find_coordinator", 5, key_type=2, coordinator_keys=[f"g:{topic_id}:0"]).coordinators
    talk.say("coordinator, version 5", found.error_code)


def settled_keys(talk: Conversation, key: str) -> Any:
    for _ in range(100):
        found = talk.wire.ask("find_coordinator", 6, key_type=2, coordinator_keys=[key]).coordinators
        if found[0].error_code not in (14, 15, 16):
            break
        time.sleep(0.05)
    return found
