"""OffsetCommit, OffsetFetch, OffsetDelete."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from differential.conversations.groups import NOBODY, Group
from differential.table import about
from differential.talk import Talk, Topic

UNKNOWN = UUID(int=12345)
"""The id of no topic."""


def _at(topic: Topic, *offsets: tuple[int, int], metadata: str | None = "m") -> dict[str, Any]:
    return {"name": topic.name, "topic_id": topic.id, "partitions": [
        {"partition_index": partition, "committed_offset": offset, "committed_metadata": metadata, "committed_leader_epoch": 0}
        for partition, offset in offsets
    ]}  # fmt: skip


def _simple(group: str) -> dict[str, Any]:
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "group_instance_id": None,
        "retention_time": -1,
    }


def _commit(talk: Talk, group: str, topic: Topic, *offsets: tuple[int, int]) -> None:
    found = talk.quietly("offset_commit", 8, **_simple(group), topics=[_at(topic, *offsets)])
    assert not any(each.error_code for each in found.topics[0].partitions), found


@about("offset_commit")
def committed(talk: Talk) -> None:
    topic, group = talk.topic(), Group(talk)
    simple, other = _simple(talk.named("simple")), Topic(talk.named("none"), UNKNOWN)
    member = {**simple, "group_id": group.name, "member_id": group.member, "generation_id_or_member_epoch": 1}

    def commit(label: str, fields: dict[str, Any], *topics: dict[str, Any]) -> None:
        talk.ask(label, **fields, topics=topics)

    commit("without members", simple, _at(topic, (0, 5)))
    commit("two partitions, one unknown", simple, _at(topic, (0, 5), (9, 5)))
    commit("no topic", simple, _at(other, (0, 5)))
    commit("no name", simple, _at(Topic("", UUID(int=0)), (0, 5)))
    commit("a negative partition", simple, _at(topic, (-1, 5)))
    for offset in (-1, -2, 2**62):
        commit(f"offset {offset}", simple, _at(topic, (0, offset)))
    commit("no metadata", simple, _at(topic, (0, 5), metadata=None))
    commit("much metadata", simple, _at(topic, (0, 5), metadata="x" * 4096))
    commit("too much metadata", simple, _at(topic, (0, 5), metadata="x" * 4097))
    commit("the same twice", simple, _at(topic, (0, 5), (0, 6)))
    commit("nothing", simple)
    commit("no partitions", simple, _at(topic))
    commit("no group", {**simple, "group_id": ""}, _at(topic, (0, 5)))
    commit("a generation of none", {**simple, "generation_id_or_member_epoch": 3}, _at(topic, (0, 5)))
    commit("a member of none", {**simple, "group_id": talk.named("new"), "member_id": NOBODY}, _at(topic, (0, 5)))
    commit("of a member", member, _at(topic, (0, 5)))
    commit("without being one", {**simple, "group_id": group.name}, _at(topic, (0, 5)))
    commit("of another member", {**member, "member_id": NOBODY}, _at(topic, (0, 5)))
    for generation in (0, 2, -1):
        commit(f"generation {generation}", {**member, "generation_id_or_member_epoch": generation}, _at(topic, (0, 5)))
    if talk.version >= 7:
        commit("an instance", {**member, "group_instance_id": "i"}, _at(topic, (0, 5)))


@about("offset_fetch")
def fetched(talk: Talk) -> None:
    topic, group, other = talk.topic(partitions=3), talk.named("g"), talk.named("none")
    _commit(talk, group, topic, (0, 5), (2, 7))

    def fetch(label: str, name: str, asked: dict[Topic, list[int]] | None, **more: Any) -> None:
        topics = asked and [
            {"name": each.name, "topic_id": each.id, "partition_indexes": numbers} for each, numbers in asked.items()
        ]
        topics = [] if asked == {} else topics
        groups = [{"group_id": name, "topics": topics, **more}]
        talk.ask(label, group_id=name, topics=topics, groups=groups)

    fetch("committed and not", group, {topic: [0, 1, 2]})
    fetch("a partition that is not there", group, {topic: [9, -1]})
    fetch("no topic", group, {Topic(other, UNKNOWN): [0]})
    fetch("nothing", group, {})
    fetch("all", group, None)
    fetch("no group", "", {topic: [0]})
    fetch("another group", other, {topic: [0]})
    fetch("all of another group", other, None)
    fetch("the same twice", group, {topic: [0, 0]})
    if talk.version >= 7:
        at = {"name": topic.name, "topic_id": topic.id, "partition_indexes": [0]}
        groups = [{"group_id": group, "topics": [at]}]
        talk.ask("stable", group_id=group, topics=groups[0]["topics"], groups=groups, require_stable=True)
    if talk.version >= 8:
        groups = [{"group_id": each, "topics": None} for each in (other, group, talk.named("new"))]
        talk.ask("three groups", groups=groups)
        talk.ask("no groups", groups=[])
    if talk.version >= 9:
        fetch("as a member of a group without them", group, {topic: [0]}, member_id=NOBODY, member_epoch=1)
        fetch("as a member of none", other, {topic: [0]}, member_id=NOBODY, member_epoch=1)
        fetch("with a later epoch alone", group, {topic: [0]}, member_id=None, member_epoch=9)


@about("offset_delete")
def removed(talk: Talk) -> None:
    created, name = talk.topic(), talk.named("g")
    topic = created.name
    _commit(talk, name, created, (0, 5), (1, 7))
    live = Group(talk, "live")

    def delete(label: str, group: str, *asked: tuple[str, list[int]]) -> None:
        topics = [{"name": each, "partitions": [{"partition_index": p} for p in numbers]} for each, numbers in asked]
        talk.ask(label, group_id=group, topics=topics)

    delete("one", name, (topic, [0]))
    delete("again", name, (topic, [0]))
    delete("no partition", name, (topic, [9]))
    delete("no topic", name, (talk.named("none"), [0]))
    delete("no group", "", (topic, [0]))
    delete("another group", talk.named("none"), (topic, [0]))
    delete("a group with members", live.name, (topic, [0]))
    delete("nothing", name)
    delete("two", name, (topic, [1, 9]))
    delete("of a group that has none left", name, (topic, [1]))
