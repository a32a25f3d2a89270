"""A conversation about share groups (KIP-932), right and wrong, compared with what Apache Kafka 4.3 answered.

`CLIENTS_PEER=kafka pytest tests/clients/test_share_codes.py -k share_group_codes` asks Kafka itself.
Lags are left out: Kafka knows none
before the first delivery.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from group_dialogue import TRY_AGAIN, DialogueMember, GroupDialogue, count_of, held, settled, told


class ShareMember(DialogueMember):
    def __init__(self, talk: Conversation, name: str, names: tuple[str, ...] | None = None) -> None:
        super().__init__(name, talk, talk.heartbeat)
        self.names = (talk.topic,) if names is None else names

    def fields(self) -> dict[str, Any]:
        return {} if self.epoch else {"names": self.names}


class Conversation(GroupDialogue):
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
             count_of(each.assignment)]
            for each in found.members
        )  # fmt: skip
        return [
            found.error_code, found.group_state, found.group_epoch, found.assignment_epoch, found.assignor_name, members
        ]  # fmt: skip

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

    def consumer_beat(self, epoch: int) -> int:
        code: int = self.wire.ask(
            "consumer_group_heartbeat", 1, group_id=self.group, member_id="c", member_epoch=epoch,
            rebalance_timeout=timedelta(seconds=1), subscribed_topic_names=[self.topic], topic_partitions=[],
        ).error_code  # fmt: skip
        return code


def converse(bootstrap: str, topic: str) -> list[list[Any]]:
    parts = (_malformed, _alone, _two, _offsets, _admin, _both_protocols, _coordinator)
    return held(bootstrap, topic, Conversation, parts)


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
    talk.say("shares", sorted(each.count for each in (one, two, *more)))
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
    say("offsets", talk.offsets({topic: [0, 1, 2]}))
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
    talk.say_listed({
        "all": {}, "share": {"types_filter": ["Share"]}, "classic": {"types_filter": ["classic"]},
        "consumer": {"types_filter": ["consumer"]}, "stable": {"states_filter": ["stable"]},
        "empty": {"states_filter": ["Empty"]}, "stable share": {"states_filter": ["Stable"], "types_filter": ["share"]},
    })  # fmt: skip
    talk.say_described_as_classic()
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
        say("classic leave", talk.leave("one"))
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
        if found[0].error_code not in TRY_AGAIN:
            break
        time.sleep(0.05)
    return found
