"""FindCoordinator, and groups of the classic protocol: join, sync, heartbeat, leave, describe, list, delete."""

from __future__ import annotations

from typing import Any

from differential.table import about
from differential.talk import Talk

PROTOCOLS = [{"name": "range", "metadata": b"m"}, {"name": "other", "metadata": b"o"}]
NOBODY = "nobody"


def _join(group: str, member: str = "", **more: Any) -> dict[str, Any]:
    return {"group_id": group, "session_timeout": 30_000, "rebalance_timeout": 30_000, "member_id": member,
            "protocol_type": "consumer", "protocols": PROTOCOLS, **more}  # fmt: skip


class Group:
    """A group with one member that leads it, stable unless `synced` is false."""

    def __init__(self, talk: Talk, word: str = "g", *, synced: bool = True, instance: str | None = None) -> None:
        self.name = talk.named(word)
        given = talk.quietly("join_group", 5, **_join(self.name, group_instance_id=instance))
        if given.error_code == 79:  # MEMBER_ID_REQUIRED
            given = talk.quietly("join_group", 5, **_join(self.name, given.member_id))
        assert given.error_code == 0, given
        self.member: str = given.member_id
        self.generation: int = given.generation_id
        self.at: dict[str, Any] = {
            "group_id": self.name, "generation_id": self.generation, "member_id": self.member,
            "group_instance_id": instance,
        }  # fmt: skip
        if synced:
            sent = [{"member_id": self.member, "assignment": b"all"}]
            assert talk.quietly("sync_group", 3, **self.at, assignments=sent).error_code == 0


@about("find_coordinator")
def coordinators(talk: Talk) -> None:
    for kind in (0, 1, 2, 3, -1):
        for key in ("some", ""):
            talk.ask(f"kind {kind}, {key!r}", key=key, key_type=kind, coordinator_keys=[key])
    if talk.version >= 4:
        talk.ask("two keys", key_type=0, coordinator_keys=["a", "b"])
        talk.ask("the same twice", key_type=0, coordinator_keys=["a", "a"])
        talk.ask("no keys", key_type=0, coordinator_keys=[])


@about("join_group")
def joining(talk: Talk) -> None:
    def join(label: str, group: str, member: str = "", **more: Any) -> Any:
        return talk.ask(label, **_join(group, member, **more))

    join("no group", "")
    join("an unknown member", talk.named("a"), NOBODY)
    for timeout in (0, 1, 5999, 1_800_001, -1):
        join(f"session timeout {timeout}", talk.named("a"), session_timeout=timeout)
    join("no protocols", talk.named("a"), protocols=[])
    join("no protocol type", talk.named("a"), protocol_type="")
    first = join("first", talk.named("b"))
    if first.error_code == 79:
        join("first, with its id", talk.named("b"), first.member_id)
        join("with its id again", talk.named("b"), first.member_id)
    group = Group(talk, "c")
    join("again, the same", group.name, group.member)
    join("another protocol type", group.name, protocol_type="connect")
    join("no protocol in common", group.name, protocols=[{"name": "none", "metadata": b""}])
    join("an unknown member of it", group.name, NOBODY)


@about("join_group", since=5)
def joining_as_static(talk: Talk) -> None:
    group = talk.named("g")
    first = talk.ask("first", **_join(group, group_instance_id="i"))
    talk.ask("with another's id", **_join(group, NOBODY, group_instance_id="i"))
    talk.ask("with its id", **_join(group, first.member_id, group_instance_id="i"))
    sent = [{"member_id": first.member_id, "assignment": b"all"}]
    at = {"group_id": group, "member_id": first.member_id, "group_instance_id": "i"}
    talk.quietly("sync_group", 3, **at, generation_id=1, assignments=sent)
    talk.quietly("sync_group", 3, **at, generation_id=2, assignments=sent)
    talk.ask("again without an id", **_join(group, group_instance_id="i"))
    talk.ask("the old id", **_join(group, first.member_id, group_instance_id="i"))
    talk.ask("an empty instance", **_join(talk.named("h"), group_instance_id=""))


@about("sync_group")
def syncing(talk: Talk) -> None:
    group = Group(talk, synced=False)
    named = {"protocol_type": "consumer", "protocol_name": "range"}
    sent = [{"member_id": group.member, "assignment": b"all"}]
    talk.ask("no group", **{**group.at, **named, "group_id": ""}, assignments=sent)
    talk.ask("another group", **{**group.at, **named, "group_id": talk.named("none")}, assignments=sent)
    talk.ask("another member", **{**group.at, **named, "member_id": NOBODY}, assignments=sent)
    for generation in (0, 2, -1):
        talk.ask(f"generation {generation}", **{**group.at, **named, "generation_id": generation}, assignments=sent)
    talk.ask("another protocol", **{**group.at, **named, "protocol_name": "other"}, assignments=sent)
    talk.ask("another type", **{**group.at, **named, "protocol_type": "connect"}, assignments=sent)
    talk.ask("an instance", **{**group.at, **named, "group_instance_id": "i"}, assignments=sent)
    talk.ask("well", **group.at, **named, assignments=sent)
    talk.ask("again, without an assignment", **group.at, **named, assignments=[])
    if talk.version >= 5:
        talk.ask("without names", **group.at, assignments=[])


@about("heartbeat")
def beating(talk: Talk) -> None:
    group = Group(talk)
    talk.ask("well", **group.at)
    talk.ask("no group", **{**group.at, "group_id": ""})
    talk.ask("another group", **{**group.at, "group_id": talk.named("none")})
    talk.ask("another member", **{**group.at, "member_id": NOBODY})
    talk.ask("no member", **{**group.at, "member_id": ""})
    for generation in (0, 2, -1):
        talk.ask(f"generation {generation}", **{**group.at, "generation_id": generation})
    if talk.version >= 3:
        talk.ask("an instance", **{**group.at, "group_instance_id": "i"})
    static = Group(talk, "static", instance="i")
    talk.ask("a static one", **static.at)
    talk.ask("a static one, another's id", **{**static.at, "member_id": NOBODY})
    waiting = Group(talk, "waiting", synced=False)
    talk.ask("before it synced", **waiting.at)


@about("leave_group")
def leaving(talk: Talk) -> None:
    group, static = Group(talk), Group(talk, "static", instance="i")

    def leave(label: str, name: str, *members: tuple[str, str | None]) -> None:
        identities = [{"member_id": member, "group_instance_id": instance} for member, instance in members]
        talk.ask(label, group_id=name, member_id=members[0][0] if members else "", members=identities)

    leave("no group", "", (group.member, None))
    leave("another group", talk.named("none"), (group.member, None))
    leave("another member", group.name, (NOBODY, None))
    leave("no member", group.name, ("", None))
    if talk.version >= 3:
        leave("nobody", group.name)
        leave("another instance", static.name, ("", "j"))
        leave("an instance, another's id", static.name, (NOBODY, "i"))
        leave("two, one unknown", group.name, (NOBODY, None), (group.member, None))
        leave("by instance", static.name, ("", "i"))
        return
    leave("well", group.name, (group.member, None))
    leave("again", group.name, (group.member, None))


@about("describe_groups")
def described(talk: Talk) -> None:
    group, waiting = Group(talk), Group(talk, "waiting", synced=False)
    static, empty = Group(talk, "static", instance="i"), Group(talk, "empty")
    talk.quietly("leave_group", 1, group_id=empty.name, member_id=empty.member)
    for label, names in {
        "stable": [group.name],
        "waiting": [waiting.name],
        "static": [static.name],
        "empty": [empty.name],
        "none there": [talk.named("none")],
        "no name": [""],
        "two": [group.name, talk.named("none")],
        "the same twice": [group.name, group.name],
        "nothing": [],
    }.items():
        talk.ask(label, groups=names)
    talk.ask("may do what", groups=[group.name], include_authorized_operations=True)
    talk.ask("may do what with none", groups=[talk.named("none")], include_authorized_operations=True)


@about("delete_groups")
def deleted(talk: Talk) -> None:
    group, empty, other = Group(talk), Group(talk, "empty"), Group(talk, "other")
    for each in (empty, other):
        talk.quietly("leave_group", 1, group_id=each.name, member_id=each.member)
    for label, names in {
        "with members": [group.name],
        "none there": [talk.named("none")],
        "no name": [""],
        "empty": [empty.name],
        "again": [empty.name],
        "two": [other.name, talk.named("none")],
        "nothing": [],
    }.items():
        talk.ask(label, groups_names=names)


@about("list_groups", since=4)
def listed(talk: Talk) -> None:
    """Only filters that no group of another conversation passes have an answer that stays the same."""
    talk.ask("dead", states_filter=["Dead"], types_filter=[])
    talk.ask("an unknown state", states_filter=["Nonsense"], types_filter=[])
    if talk.version >= 5:
        talk.ask("an unknown type", states_filter=["Dead"], types_filter=["nonsense"])
        talk.ask("no share groups", states_filter=["Stable"], types_filter=["share"])
