"""A conversation about groups of the consumer protocol (KIP-848), right and wrong, compared with what Apache Kafka 4.3 answered.

`CLIENTS_PEER=kafka pytest tests/clients/test_consumer_group_codes.py` asks Kafka itself.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from group_dialogue import DialogueMember, GroupDialogue, count_of, held, settled, told

EXPRESSIONS = (
    "a.*b", "(", "a**", "a{1001}", "(?=a)", r"(a)\1", "[[:nope:]]", r"\pN+", r"\p{Nope}", "(?P<n>a)", "a{,2}", "x{2}{3}", r"\Z",
    "(?i)a", "[]a]", "*", "^*", "a|*", r"\Qa", r"[a-\d]", r"\8", "(?i)*", "(?<n>a)", "(?#c)",
    r"\x{110000}",
)  # fmt: skip


class Member(DialogueMember):
    """`owned` is what it says that it has."""

    def __init__(self, talk: Conversation, name: str, **fields: Any) -> None:
        super().__init__(name, talk, talk.heartbeat)
        self.first = fields
        self.owned: list[tuple[Any, tuple[int, ...]]] = []

    def fields(self) -> dict[str, Any]:
        return {"owned": self.owned} if self.epoch else {**self.first, "owned": []}

    def take(self) -> None:
        """Gives up and takes over what it was told."""
        self.owned = self.assigned or []


class Conversation(GroupDialogue):
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

    def describe(self, group: str | None = None) -> list[Any]:
        (found,) = self.wire.ask(
            "consumer_group_describe", 1, group_ids=[self.group if group is None else group]
        ).groups
        members = sorted(
            [each.member_id, each.instance_id, each.rack_id, each.member_epoch, each.client_host, each.member_type,
             len(each.subscribed_topic_names), each.subscribed_topic_regex, count_of(each.assignment),
             count_of(each.target_assignment)]
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


def converse(bootstrap: str, topic: str) -> list[list[Any]]:
    parts = (_malformed, _alone, _two, _static, _commits, _expressions, _admin, _both_protocols)
    return held(bootstrap, topic, Conversation, parts)


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
    one.until(4, before=one.take)
    talk.say("matches", [each[6:] for each in talk.describe()[-1]] == [[0, one.first["regex"], 4, 4]])
    one.say("leave", epoch=-1)


def _admin(talk: Conversation) -> None:
    one = talk.member("one")
    one.say("join")
    talk.say_listed({
        "all": {}, "consumer": {"types_filter": ["Consumer"]}, "classic": {"types_filter": ["classic"]},
        "stable": {"states_filter": ["stable"]},
        "empty": {"states_filter": ["Empty"]}, "stable consumer": {"states_filter": ["Stable"], "types_filter": ["consumer"]},
    })  # fmt: skip
    talk.say_described_as_classic()
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
