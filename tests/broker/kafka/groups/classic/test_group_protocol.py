"""A long conversation about one group, answer by answer as Apache Kafka 4.1 gave it.

`python tests/unit/test_group_protocol.py HOST:PORT > tests/unit/golden/group_protocol.txt` records it from a real broker
that has a topic `t` of one partition and group.initial.rebalance.delay.ms=0. Ids are replaced by the names of their
members, so that only meaning is compared; members of a response are sorted, as Kafka orders them by a hash.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import trio
import trio.testing

sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parents[2] / "support")]

from desk import KEYS, PLAIN, Desk  # noqa: E402 - importable only from here on

from broker.serve.call import Call  # noqa: E402
from broker.wire import wire  # noqa: E402

GOLDEN = Path(__file__).parent / "golden" / "group_protocol.txt"
RANGE = (("range", b"m"),)
Ask = Callable[..., Awaitable[Any]]


class Conversation:
    """`ask(client number, api, version, **fields)` sends a request; answers are noted in the order they are looked at."""

    def __init__(self, ask: Ask, group: str) -> None:
        self._ask = ask
        self.group = group
        self.names: dict[str, str] = {}
        self.noted: list[str] = []

    def note(self, label: str, answer: Any) -> Any:
        self.noted.append(f"{label}: {_told(answer, self._rename)}")
        return answer

    def _rename(self, text: str) -> str:
        for known, name in {self.group: "GROUP", **self.names}.items():
            text = text.replace(known, name)
        return text

    def name(self, joined: Any, name: str) -> Any:
        self.names.setdefault(joined.member_id, name)
        return joined

    async def join(
        self, client: int, member: str = "", *, version: int = 9, instance: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = RANGE, kind: str = "consumer", session_ms: int = 30_000,
    ) -> Any:  # fmt: skip
        protocol = wire.request_types(KEYS["join_group"], version).JoinGroupRequestProtocol
        return await self._ask(
            client, "join_group", version, group_id=self.group, session_timeout=timedelta(milliseconds=session_ms),
            rebalance_timeout=timedelta(seconds=30), member_id=member, group_instance_id=instance, protocol_type=kind,
            protocols=tuple(protocol(name=name, metadata=data) for name, data in protocols),
        )  # fmt: skip

    async def sync(
        self, client: int, member: str, generation: int, shares: dict[str, bytes] | None = None, *,
        instance: str | None = None, kind: str = "consumer", protocol: str = "range",
    ) -> Any:  # fmt: skip
        share = wire.request_types(KEYS["sync_group"], 5).SyncGroupRequestAssignment
        return await self._ask(
            client, "sync_group", 5, group_id=self.group, generation_id=generation, member_id=member,
            group_instance_id=instance, protocol_type=kind, protocol_name=protocol,
            assignments=tuple(share(member_id=who, assignment=data) for who, data in (shares or {}).items()),
        )  # fmt: skip

    async def beat(self, client: int, member: str, generation: int, instance: str | None = None) -> Any:
        return await self._ask(
            client, "heartbeat", 4, group_id=self.group, generation_id=generation, member_id=member,
            group_instance_id=instance,
        )  # fmt: skip

    async def leave(self, client: int, *who: tuple[str, str | None]) -> Any:
        identity = wire.request_types(KEYS["leave_group"], 5).MemberIdentity
        members = tuple(identity(member_id=member, group_instance_id=instance) for member, instance in who)
        return await self._ask(client, "leave_group", 5, group_id=self.group, members=members)

    async def commit(self, client: int, member: str, generation: int, instance: str | None = None) -> Any:
        types = wire.request_types(KEYS["offset_commit"], 8)
        part = types.OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
        topic = types.OffsetCommitRequestTopic(name="t", partitions=(part,))
        return await self._ask(
            client, "offset_commit", 8, group_id=self.group, generation_id_or_member_epoch=generation,
            member_id=member, group_instance_id=instance, topics=(topic,),
        )  # fmt: skip

    async def describe(self) -> Any:
        return await self._ask(3, "describe_groups", 5, groups=(self.group,))

    async def while_waiting(self, waiting: Awaitable[Any], meanwhile: Callable[[], Awaitable[Any]]) -> Any:
        """The answer to `waiting`, which comes only because of what `meanwhile` does."""
        answers: list[Any] = []

        async def wait() -> None:
            answers.append(await waiting)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.sleep(0.2)  # a broker doesn't tell when a request waits; in the test this is virtual time
            await meanwhile()
        return answers[0]


async def talk(c: Conversation) -> None:
    """Everything, in one go: who joins, who is turned away, who is fenced, and what is told about it."""
    a, b = await dynamic_members(c)
    await second_generation(c, a, b)
    await leaving(c, a, b)
    await static_members(c)
    await old_versions(c)


async def dynamic_members(c: Conversation) -> tuple[str, str]:
    c.note("session too short", await c.join(0, session_ms=1))
    c.note("unknown member", await c.join(0, "zz"))
    c.note("no protocols", await c.join(0, protocols=()))
    c.note("no type", await c.join(0, kind=""))
    a = c.name(await c.join(0), "A").member_id
    c.note("A joins", await c.join(0, a))
    c.note("described while completing", await c.describe())
    c.note("commits while completing", await c.commit(0, a, 1))
    c.note("beats while completing", await c.beat(0, a, 1))
    c.note("syncs another generation", await c.sync(0, a, 7))
    c.note("syncs another protocol", await c.sync(0, a, 1, protocol="zz"))
    c.note("syncs another type", await c.sync(0, a, 1, kind="zz"))
    c.note("a stranger syncs", await c.sync(0, "zz", 1))
    c.note("A syncs", await c.sync(0, a, 1, {a: b"all"}))
    c.note("A syncs again", await c.sync(0, a, 1))
    c.note("described when stable", await c.describe())
    for member, generation in ((a, 1), (a, 2), ("q", 1)):
        c.note("beats", await c.beat(0, member, generation))
    for member, generation in ((a, 1), (a, 0), ("q", 1), ("", -1)):
        c.note("commits", await c.commit(0, member, generation))
    c.note("incompatible", await c.join(1, protocols=(("other", b""),)))
    c.note("of another type", await c.join(1, kind="connect"))
    b = c.note("B joins", c.name(await c.join(1), "B")).member_id
    c.note("beats beside one who has only an id", await c.beat(0, a, 1))
    return a, b


async def second_generation(c: Conversation, a: str, b: str) -> None:
    async def preparing() -> None:
        c.note("beats while preparing", await c.beat(0, a, 1))
        c.note("described while preparing", await c.describe())
        c.note("commits while preparing", await c.commit(0, a, 1))
        c.note("syncs while preparing", await c.sync(2, a, 1))
        c.note("A rejoins", await c.join(0, a))

    c.note("B is in", await c.while_waiting(c.join(1, b), preparing))

    async def completing() -> None:
        c.note("A assigns", await c.sync(0, a, 2, {a: b"a", b: b"b"}))

    c.note("B has its share", await c.while_waiting(c.sync(1, b, 2), completing))
    c.note("B repeats its join", await c.join(1, b))

    async def again() -> None:
        c.note("B is told of it", await c.beat(2, b, 2))
        c.note("B rejoins", await c.join(1, b))

    c.note("the leader rejoins", await c.while_waiting(c.join(0, a), again))
    c.note("B repeats its join while completing", await c.join(1, b))
    c.note("A repeats its join while completing", await c.join(0, a))


async def leaving(c: Conversation, a: str, b: str) -> None:
    c.note("strangers leave", await c.leave(2, ("zz", None), ("", None), ("", "inst")))

    async def leaves() -> None:
        c.note("A leaves", await c.leave(2, (a, None)))

    c.note("B's sync ends", await c.while_waiting(c.sync(1, b, 3), leaves))
    c.note("B beats", await c.beat(1, b, 3))
    c.note("B rejoins alone", await c.join(1, b))
    c.note("B syncs alone", await c.sync(1, b, 4, {b: b"b"}))
    c.note("B leaves", await c.leave(1, (b, None)))
    c.note("described when empty", await c.describe())
    c.note("beats from outside", await c.beat(1, b, 4))
    c.note("commits from outside", await c.commit(1, b, 4))
    c.note("commits without a member", await c.commit(1, "", -1))


async def static_members(c: Conversation) -> None:
    first = c.note("one joins", c.name(await c.join(0, instance="one"), "ONE"))
    one = first.member_id
    c.note("one syncs", await c.sync(0, one, first.generation_id, {one: b"1"}, instance="one"))
    found: list[Any] = []

    async def rejoins() -> None:
        found.append(await c.join(0, one, instance="one"))

    second = c.name(await c.while_waiting(c.join(1, instance="two"), rejoins), "TWO")
    two, generation = second.member_id, second.generation_id
    c.note("two joins", second)
    c.note("one leads", found[0])

    async def assigns() -> None:
        c.note("one assigns", await c.sync(0, one, generation, {one: b"1", two: b"2"}, instance="one"))

    c.note("two has its share", await c.while_waiting(c.sync(1, two, generation, instance="two"), assigns))
    again = c.note("two restarts", c.name(await c.join(2, instance="two"), "TWO AGAIN"))
    c.note("its former self beats", await c.beat(1, two, generation, "two"))
    c.note("and without its instance", await c.beat(1, two, generation))
    c.note("and joins", await c.join(1, two, instance="two"))
    c.note("and syncs", await c.sync(1, two, generation, instance="two"))
    c.note("and commits", await c.commit(1, two, generation, "two"))
    c.note("two syncs", await c.sync(2, again.member_id, generation, instance="two"))
    c.note("one restarts", c.name(await c.join(2, instance="one"), "ONE AGAIN"))
    c.note("one restarts as an old client", c.name(await c.join(2, version=8, instance="one"), "ONE ONCE MORE"))
    c.note("a former self leaves", await c.leave(1, (one, "one")))
    c.note("both are removed", await c.leave(1, ("", "one"), ("", "two")))
    c.note("described after static members", await c.describe())


async def old_versions(c: Conversation) -> None:
    ask = c._ask
    joined = c.note("joins in version 3", c.name(await c.join(0, version=3), "OLD"))
    fields = {"group_id": c.group, "member_id": joined.member_id}
    generation = joined.generation_id
    c.note("syncs in version 0", await ask(0, "sync_group", 0, generation_id=generation, assignments=(), **fields))
    c.note("leaves in version 1", await ask(0, "leave_group", 1, **fields))
    c.note("leaves in version 1 again", await ask(0, "leave_group", 1, **fields))
    nobody = {"group_id": "", "member_id": "", "generation_id": 1, "group_instance_id": None}
    c.note("beats in no group", await ask(0, "heartbeat", 4, **nobody))
    c.note("leaves no group", await ask(0, "leave_group", 4, group_id="", members=()))
    c.note("the group is deleted", await ask(0, "delete_groups", 2, groups_names=(c.group,)))


def _told(value: Any, rename: Callable[[str], str]) -> str:
    """A message as text; what it lists is sorted."""
    if isinstance(value, tuple):
        return "[" + ", ".join(sorted(_told(part, rename) for part in value)) + "]"
    names = getattr(value, "field_names", None)
    if names is None:
        return rename(repr(value))
    fields = [(name, getattr(value, name)) for name in sorted(names) if name != "throttle_time"]
    return "(" + " ".join(f"{name}={_told(each, rename)}" for name, each in fields) + ")"


async def test_every_answer_is_kafkas(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        desk = Desk(tmp_path, shards=2)
        await desk.start(nursery)
        await desk.make_topic("t")

        async def ask(client: int, api: str, version: int, **fields: Any) -> Any:
            return await desk.ask(api, version, client_id=f"c{client}", **fields)

        conversation = Conversation(ask, desk.group_at(0, 1))
        with trio.fail_after(60):
            await talk(conversation)
        nursery.cancel_scope.cancel()
    assert conversation.noted == GOLDEN.read_text().splitlines()


async def record(address: str) -> None:
    """The same conversation with a real broker."""
    host, _, port = address.rpartition(":")
    streams = [await trio.open_tcp_stream(host, int(port)) for _ in range(4)]

    async def receive(stream: trio.SocketStream, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += await stream.receive_some(size - len(data))
        return data

    async def ask(client: int, api: str, version: int, **fields: Any) -> Any:
        call = Call(KEYS[api], version, 7, f"c{client}")
        top = wire.request_types(KEYS[api], version).top
        known = {name: value for name, value in PLAIN.items() if name in top.field_names}
        stream = streams[client]
        await stream.send_all(wire.encode_request(call, top(**{**known, **fields}), f"c{client}"))
        frame = await receive(stream, int.from_bytes(await receive(stream, 4), "big"))
        return wire.parse_response(frame, KEYS[api], version).body

    conversation = Conversation(ask, f"recorded-{trio.current_time():.0f}")
    await talk(conversation)
    print("\n".join(conversation.noted))


if __name__ == "__main__":
    trio.run(record, sys.argv[1])
