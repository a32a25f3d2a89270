"""A conversation about groups of the consumer protocol (KIP-848), right and wrong, compared with what Apache Kafka 4.1 answered.

`CLIENTS_PEER=kafka pytest tests/clients/test_consumer_group_codes.py` asks Kafka itself. Partitions are counted, as Kafka
gives the odd one to whom a hash of member ids says.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic
from wired import Dialogue, Wired, wired

TRY_AGAIN = (14, 15, 16)
EXPRESSIONS = (
    "a.*b", "(", "a**", "a{1001}", "(?=a)", r"(a)\1", "[[:nope:]]", r"\pN+", r"\p{Nope}", "(?P<n>a)", "a{,2}", "x{2}{3}", r"\Z",
    "(?i)a", "[]a]", "*", "^*", "a|*", r"\Qa", r"[a-\d]", r"\8", "(?i)*", "(?<n>a)", "(?#c)",
    r"\x{110000}",
)  # fmt: skip


class Member:
    """One member: what it was told last. `say(asked, ...)` sends a heartbeat and notes the answer."""

    def __init__(self, talk: Conversation, name: str, **fields: Any) -> None:
        self.talk, self.name, self.fields = talk, name, fields
        self.epoch = 0
        self.told: list[tuple[Any, tuple[int, ...]]] | None = []
        self.owned: list[tuple[Any, tuple[int, ...]]] = []

    def beat(self, *, version: int = 1, **fields: Any) -> Any:
        whole = {
            "epoch": self.epoch,
            "member": self.name,
            **(self.fields if self.epoch == 0 else {}),
            "owned": self.owned,
        }
        if self.epoch == 0:
            whole["owned"] = []
        answer = self.talk.heartbeat(version=version, **{**whole, **fields})
        if not answer.error_code and answer.member_epoch >= 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.told = [(each.topic_id, each.partitions) for each in answer.assignment.topic_partitions]
        return answer

    def say(self, asked: str, **fields: Any) -> None:
        self.talk.say(f"{self.name}: {asked}", told(self.beat(**fields)))

    def take(self) -> None:
        """Gives up and takes over what it was told."""
        self.owned = self.told or []

    def until(self, count: int) -> None:
        for _ in range(200):
            self.take()
            self.beat()
            if sum(len(numbers) for _, numbers in self.told or []) == count:
                return
            time.sleep(0.05)
        raise AssertionError(f"{self.name} was told {self.told}")


def told(answer: Any) -> list[Any]:
    """[code, epoch, heartbeat interval, number of partitions or None]."""
    count = (
        None if answer.assignment is None else sum(len(each.partitions) for each in answer.assignment.topic_partitions)
    )
    return [answer.error_code, answer.member_epoch, int(answer.heartbeat_interval / timedelta(milliseconds=1)), count]


class Conversation(Dialogue):
    def __init__(self, wire: Wired, topic: str) -> None:
        super().__init__(wire)
        self.topic = self.group = topic

    def heartbeat(
        self, *, version: int = 1, member: str = "m", epoch: int = 0, owned: Any = None, names: Any = None,
        regex: str | None = None, rebalance_ms: int = -1, group: str | None = None, instance: str | None = None,
        rack: str | None = None, assignor: str | None = None,
    ) -> Any:  # fmt: skip
        types = self.wire.types("consumer_group_heartbeat", version)
        places = None if owned is None else [types.TopicPartitions(topic_id=t, partitions=n) for t, n in owned]
        fields = {"subscribed_topic_regex": regex} if version >= 1 else {}

        def ask() -> Any:
            return self.wire.ask(
                "consumer_group_heartbeat", version, group_id=self.group if group is None else group, member_id=member,
                member_epoch=epoch, instance_id=instance, rack_id=rack, rebalance_timeout=timedelta(milliseconds=rebalance_ms),
                subscribed_topic_names=names, server_assignor=assignor, topic_partitions=places, **fields,
            )  # fmt: skip

        return settled(ask)

    def member(self, name: str, **fields: Any) -> Member:
        return Member(self, name, **{"names": [self.topic], "rebalance_ms": 60_000, **fields})

    def commit(
        self, member: str, epoch: int, *, version: int = 9, group: str | None = None, instance: str | None = None
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
        offsets = [each.committed_offset for topic in found.topics for each in topic.partitions]
        return [found.error_code, *offsets]

    def describe(self, group: str | None = None) -> list[Any]:
        (found,) = self.wire.ask(
            "consumer_group_describe", 1, group_ids=[self.group if group is None else group]
        ).groups
        members = sorted(
            [each.member_id, each.instance_id, each.rack_id, each.member_epoch, each.client_host, each.member_type,
             len(each.subscribed_topic_names), each.subscribed_topic_regex, _count(each.assignment), _count(each.target_assignment)]
            for each in found.members
        )  # fmt: skip
        return [
            found.error_code,
            found.group_state,
            found.group_epoch,
            found.assignment_epoch,
            found.assignor_name,
            members,
        ]

    def listed(self, **filters: Any) -> list[list[str]]:
        groups = self.wire.ask("list_groups", 5, **filters).groups
        return [
            [g.protocol_type, g.group_state.lower(), g.group_type.lower()] for g in groups if g.group_id == self.group
        ]

    def classic_join(self, member: str = "", version: int = 9) -> int:
        protocol = self.wire.types("join_group", version).JoinGroupRequestProtocol(name="range", metadata=b"")
        code: int = settled(
            lambda: self.wire.ask(
                "join_group", version, group_id=self.group, session_timeout=timedelta(seconds=30),
                rebalance_timeout=timedelta(seconds=30), member_id=member, protocol_type="consumer", protocols=[protocol],
            )
        ).error_code  # fmt: skip
        return code

    def leave(self, member: str, instance: str | None = None) -> list[int]:
        identity = self.wire.types("leave_group", 5).MemberIdentity(member_id=member, group_instance_id=instance)
        answer = self.wire.ask("leave_group", 5, group_id=self.group, members=[identity])
        return [answer.error_code, *(each.error_code for each in answer.members)]

    def delete(self) -> int:
        (found,) = self.wire.ask("delete_groups", 2, groups_names=[self.group]).results
        code: int = found.error_code
        return code

    def delete_offsets(self) -> list[int]:
        types = self.wire.types("offset_delete", 0)
        place = types.OffsetDeleteRequestPartition(partition_index=0)
        answer = self.wire.ask(
            "offset_delete",
            0,
            group_id=self.group,
            topics=[types.OffsetDeleteRequestTopic(name=self.topic, partitions=[place])],
        )
        return [answer.error_code, *(each.error_code for topic in answer.topics for each in topic.partitions)]


def _count(assignment: Any) -> int:
    return sum(len(each.partitions) for each in assignment.topic_partitions)


def settled(ask: Callable[[], Any]) -> Any:
    for _ in range(100):
        answer = ask()
        if answer.error_code not in TRY_AGAIN:
            break
        time.sleep(0.05)
    return answer


def converse(bootstrap: str, topic: str) -> list[list[Any]]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 4, 1)])[topic].result(timeout=30)
    with wired(bootstrap) as wire:
        settled(lambda: wire.ask("find_coordinator", 3, key=topic, key_type=0))  # Kafka makes its internal topic then
        talk = Conversation(wire, topic)
        for part in (_malformed, _alone, _two, _static, _commits, _expressions, _admin, _both_protocols):
            talk.group = f"{topic}{part.__name__}"
            part(talk)
    return talk.said


def _malformed(talk: Conversation) -> None:
    good: dict[str, Any] = {"names": [talk.topic], "rebalance_ms": 1000, "owned": []}
    for what, fields in {
        "no group": {"group": ""}, "blank group": {"group": " "}, "no member": {"member": ""}, "no instance": {"instance": ""},
        "no rack": {"rack": ""}, "epoch -3": {"epoch": -3}, "no rebalance timeout": {"rebalance_ms": -1},
        "no partitions": {"owned": None}, "no subscription": {"names": None}, "assignor": {"assignor": "x"},
        "blank assignor": {"assignor": ""}, "leave without instance": {"epoch": -2}, "leave": {"epoch": -1},
        "leave without a member": {"epoch": -1, "member": ""}, "epoch 1 of no group": {"epoch": 1},
        "static leave of no group": {"epoch": -2, "instance": "i"},
        "no member, version 0": {"version": 0, "member": "", "epoch": 1},
    }.items():  # fmt: skip
        talk.say(what, told(talk.heartbeat(**{**good, **fields})))
    talk.say("describe no group", talk.describe())
    talk.say("describe a group without a name", talk.describe(""))


def _alone(talk: Conversation) -> None:
    one = talk.member("one")
    one.say("join")
    one.take()
    one.say("beat")
    one.say("beat without partitions", owned=None)
    one.say("later epoch", epoch=7)
    one.say("join again")
    one.say("join again, epoch of before", epoch=0, names=[talk.topic], rebalance_ms=5000, owned=[])
    one.say("whole", names=[talk.topic], rebalance_ms=5000)
    one.say("another subscription", names=[talk.topic, "nope"])
    one.say("older epoch, owns its own", epoch=1)
    one.say("older epoch, owns nothing", epoch=1, owned=[])
    one.say("older epoch, says nothing", epoch=1, owned=None)
    one.say("epoch 0 now", epoch=0, names=[talk.topic], rebalance_ms=5000, owned=[])
    one.say("no subscription at all", names=[])
    one.say("revoked", owned=[])
    one.say("subscribes again", names=[talk.topic])
    talk.say("described", talk.describe())
    talk.say("an unknown member", told(talk.heartbeat(member="other", epoch=1)))
    talk.say("an unknown instance", told(talk.heartbeat(member="other", epoch=1, instance="x")))
    talk.say("an unknown member leaves", told(talk.heartbeat(member="other", epoch=-1)))
    one.say("rack and range", rack="r", assignor="range", names=[talk.topic])
    talk.say("described", talk.describe())
    one.say("leave", epoch=-1)
    talk.say("described", talk.describe())
    one.epoch = 0
    one.say("join anew")
    one.say("leave", epoch=-1)
    empty = talk.member("none", names=[])
    empty.say("joins without topics")
    empty.say("leave", epoch=-1)


def _two(talk: Conversation) -> None:
    one, two = talk.member("one"), talk.member("two")
    one.say("join")
    one.take()
    two.say("join")
    two.say("beat")
    talk.say("described", talk.describe())
    one.say("beat, says nothing", owned=None)
    talk.say("described", talk.describe())
    one.say("beat, has all")
    two.say("beat")
    one.take()
    one.say("beat, has given up")
    two.say("beat")
    two.take()
    two.say("beat")
    talk.say("described", talk.describe())
    two.say("leave", epoch=-1)
    talk.say("described", talk.describe())
    one.say("beat")
    one.take()
    one.say("beat")
    one.say("leave", epoch=-1)


def _static(talk: Conversation) -> None:
    one, two = talk.member("one", instance="i"), talk.member("two", instance="i")
    one.say("join")
    two.say("join")
    one.take()
    one.say("leaves for a while, wrong instance", epoch=-2, instance="x")
    one.say("leaves for a while", epoch=-2, instance="i")
    one.say("beat", instance="i")
    talk.say("described", talk.describe())
    two.say("takes its place")
    talk.say("described", talk.describe())
    one.say("beat", instance="i")
    one.say("beat without its instance")
    one.say("leaves", epoch=-1, instance="i")
    two.take()
    two.say("beat", instance="i")
    two.say("leaves for a while", epoch=-2, instance="i")
    two.epoch = 0
    two.say("comes back")
    two.say("leaves", epoch=-1, instance="i")
    one.epoch = 0
    one.say("join")
    talk.say("removed by an administrator", talk.leave("", "i"))
    talk.say("removed again", talk.leave("", "i"))
    one.say("beat", instance="i")


def _commits(talk: Conversation) -> None:
    one = talk.member("one")
    say = talk.say
    say("commit in no group", talk.commit("one", 1, group=f"{talk.group}-no"))
    say("commit in no group, version 8", talk.commit("one", 1, group=f"{talk.group}-no", version=8))
    say("fetch in no group", talk.fetch("one", 1, group=f"{talk.group}-no"))
    one.say("join")
    say("commit", talk.commit("one", 1))
    say("commit, version 8", talk.commit("one", 1, version=8))
    say("commit, later epoch", talk.commit("one", 2))
    say("commit, older epoch", talk.commit("one", 0))
    say("commit of another", talk.commit("two", 1))
    say("commit of nobody", talk.commit("", -1))
    say("commit of nobody, version 7", talk.commit("", -1, version=7))
    say("fetch", talk.fetch("one", 1))
    say("fetch, later epoch", talk.fetch("one", 2))
    say("fetch of another", talk.fetch("two", 1))
    say("fetch of nobody", talk.fetch(None, -1))
    say("fetch without a name", talk.fetch("", -1))
    say("delete offsets", talk.delete_offsets())
    one.say("leave", epoch=-1)
    say("commit of nobody", talk.commit("", -1))
    say("commit of who left", talk.commit("one", 1))
    say("fetch of who left", talk.fetch("one", 1))
    say("delete offsets", talk.delete_offsets())


def _expressions(talk: Conversation) -> None:
    for regex in EXPRESSIONS:
        answer = talk.heartbeat(member="one", names=[], regex=regex, rebalance_ms=1000, owned=[])
        talk.say(f"joins with {regex}", answer.error_code)
        if not answer.error_code:
            talk.heartbeat(member="one", epoch=-1)
    one = talk.member("one", names=None, regex=f"{talk.topic}|other")
    one.beat()
    one.until(4)
    talk.say("matches", [each[6:] for each in talk.describe()[-1]] == [[0, one.fields["regex"], 4, 4]])
    one.say("leave", epoch=-1)


def _admin(talk: Conversation) -> None:
    one = talk.member("one")
    one.say("join")
    for what, filters in {
        "all": {}, "consumer": {"types_filter": ["Consumer"]}, "classic": {"types_filter": ["classic"]},
        "stable": {"states_filter": ["stable"]},
        "empty": {"states_filter": ["Empty"]}, "stable consumer": {"states_filter": ["Stable"], "types_filter": ["consumer"]},
    }.items():  # fmt: skip
        talk.say(f"listed: {what}", talk.listed(**filters))
    for version in (5, 6):
        (found,) = talk.wire.ask("describe_groups", version, groups=[talk.group]).groups
        talk.say(
            f"described as a classic group, version {version}",
            [found.error_code, found.group_state, found.protocol_type],
        )
    talk.say("deleted", talk.delete())
    talk.say("unknown member removed", talk.leave("other"))
    talk.say("removed", talk.leave("one"))
    one.say("beat")
    talk.say("listed", talk.listed())
    talk.say("deleted", talk.delete())
    talk.say("deleted again", talk.delete())
    one.say("beat")


def _both_protocols(talk: Conversation) -> None:
    one = talk.member("one")
    one.say("join")
    heartbeat = talk.wire.ask("heartbeat", 4, group_id=talk.group, generation_id=1, member_id="one")
    talk.say("classic heartbeat", heartbeat.error_code)
    sync = talk.wire.ask("sync_group", 5, group_id=talk.group, generation_id=1, member_id="one")
    talk.say("classic sync", sync.error_code)
    one.say("leave", epoch=-1)
    talk.say("classic join of an empty group", talk.classic_join())
    talk.say("described", talk.describe())
    version0 = talk.classic_join(version=3)
    talk.say("classic join", version0)
    talk.say("listed", talk.listed())
    one.epoch = 0
    one.say("join of a group with classic members")
