"""Groups of the consumer protocol (KIP-848): ConsumerGroupHeartbeat, ConsumerGroupDescribe."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from differential.conversations.groups import NOBODY, PROTOCOLS, Group
from differential.table import about
from differential.talk import Talk

JOIN = 0


def _beat(group: str, member: str = "", epoch: int = JOIN, **more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"group_id": group, "member_id": member, "member_epoch": epoch, "rebalance_timeout": -1}
    if epoch == JOIN:
        fields.update({"rebalance_timeout": 30_000, "subscribed_topic_names": ["nothing"], "topic_partitions": []})
    return {"instance_id": None, "rack_id": None, "server_assignor": None, **fields, **more}


@about("consumer_group_heartbeat")
def joining_wrong(talk: Talk) -> None:
    group = talk.named("g")
    for label, fields in {
        "no group": _beat("", "m"),
        "a blank group": _beat("  ", "m"),
        "no member": _beat(group, ""),
        "an empty instance": _beat(group, "m", instance_id=""),
        "an empty rack": _beat(group, "m", rack_id=""),
        "an unknown assignor": _beat(group, "m", server_assignor="nonsense"),
        "an empty assignor": _beat(group, "m", server_assignor=""),
        "no rebalance timeout": _beat(group, "m", rebalance_timeout=-1),
        "no subscription": _beat(group, "m", subscribed_topic_names=None),
        "an empty subscription": _beat(group, "m", subscribed_topic_names=[]),
        "no owned partitions": _beat(group, "m", topic_partitions=None),
        "owned partitions": _beat(group, "m", topic_partitions=[{"topic_id": UUID(int=9), "partitions": [0]}]),
        "a wrong expression": _beat(group, "m", subscribed_topic_names=None, subscribed_topic_regex="[a"),
        "epoch -1 of none": _beat(group, "m", -1),
        "epoch -2 of none": _beat(group, "m", -2),
        "epoch -2 without an instance": _beat(group, "m", -2),
        "epoch -3": _beat(group, "m", -3),
        "epoch 5 of none": _beat(group, "m", 5),
    }.items():
        talk.ask(label, **fields)


@about("consumer_group_heartbeat")
def living(talk: Talk) -> None:
    topic, group = talk.topic(partitions=3), talk.named("g")
    asked = {"subscribed_topic_names": [topic.name]}
    if talk.version == 0:
        joined = talk.ask("join without an id", **_beat(group, "", **asked))
        member = joined.member_id
    else:
        member = "chosen"
        joined = talk.ask("join", **_beat(group, member, **asked))
    epoch = joined.member_epoch or 1
    owned = [{"topic_id": topic.id, "partitions": [0, 1, 2]}]
    talk.ask("confirm", **_beat(group, member, epoch, topic_partitions=owned))
    talk.ask("beat", **_beat(group, member, epoch))
    talk.ask("join again", **_beat(group, member, **asked))
    talk.ask("an epoch before", **_beat(group, member, 0))
    for epoch in (9, -2, -5):
        talk.ask(f"epoch {epoch}", **_beat(group, member, epoch))
    talk.ask("another member", **_beat(group, NOBODY, 1))
    talk.ask("an instance", **_beat(group, member, epoch, instance_id="i"))
    talk.ask("another topic", **_beat(group, member, epoch, subscribed_topic_names=["nothing"]))
    talk.ask("a classic member", api="heartbeat", version=4, group_id=group, generation_id=epoch, member_id=member)
    talk.ask("a classic member joins", api="join_group", version=9, group_id=group, session_timeout=30_000,
             rebalance_timeout=30_000, member_id="", protocol_type="consumer", protocols=PROTOCOLS)  # fmt: skip
    talk.ask("leave", **_beat(group, member, -1))
    talk.ask("leave again", **_beat(group, member, -1))
    talk.ask("describe it as a classic one", api="describe_groups", version=6, groups=[group])


@about("consumer_group_heartbeat")
def static_members(talk: Talk) -> None:
    topic, group = talk.topic(partitions=2), talk.named("g")
    asked = {"subscribed_topic_names": [topic.name], "instance_id": "i"}
    talk.ask("join", **_beat(group, "one", **asked))
    talk.ask("another with its instance", **_beat(group, "two", **asked))
    talk.ask("leave for a while", **_beat(group, "one", -2, instance_id="i"))
    epoch = talk.ask("the next one", **_beat(group, "two", **asked)).member_epoch or 1
    talk.ask("the old one", **_beat(group, "one", epoch, instance_id="i"))
    talk.ask("without its instance", **_beat(group, "two", epoch))
    talk.ask("leave", **_beat(group, "two", -1, instance_id="i"))


@about("consumer_group_describe")
def described(talk: Talk) -> None:
    topic, group, classic = talk.topic(partitions=2), talk.named("g"), Group(talk, "classic")
    joined = _beat(group, "m", subscribed_topic_names=[topic.name])
    epoch = talk.quietly("consumer_group_heartbeat", 1, **joined).member_epoch
    owned = [{"topic_id": topic.id, "partitions": [0, 1]}]
    talk.until(
        lambda: (
            talk.quietly("consumer_group_describe", 0, group_ids=[group]).groups[0].group_state == "Stable"
            or talk.quietly("consumer_group_heartbeat", 1, **_beat(group, "m", epoch, topic_partitions=owned)) is None
        ),
        "the group is stable",
    )
    for label, names in {
        "one": [group],
        "none there": [talk.named("none")],
        "no name": [""],
        "a classic one": [classic.name],
        "two": [group, talk.named("none")],
        "the same twice": [group, group],
        "nothing": [],
    }.items():
        talk.ask(label, group_ids=names)
    talk.ask("may do what", group_ids=[group], include_authorized_operations=True)
