"""From a frame to its answer: what is large is served in turns, what is too large closes its connection."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker.serve.call import Call, Route
from broker.serve.dispatch import Dispatcher
from broker.serve.prepared_answers import PreparedAnswers
from broker.wire import wire
from broker.wire.codec import Message
from broker.wire.primitives import COUNT_ITEMS_ABOVE_BYTES, FREE_TAGS, MAX_ARRAY, MAX_TAGS, uvarint
from shards.config.image import ClusterImage
from shards.loop.deferred import Deferred, Spawn
from shards.loop.turns import Turns

METADATA = 3
DELETE_GROUPS = 42


def answer(request: Any, call: Call) -> Message:
    results = tuple(call.types.DeletableGroupResult(group_id=name, error_code=0) for name in request.groups_names)
    return call.types.DeleteGroupsResponse(results=results)


unlimited: Any = SimpleNamespace(controlled=())


@pytest.fixture
def dispatcher(nursery):
    throttling: Any = SimpleNamespace(active=False, timed=False)
    routes = [Route.of(DELETE_GROUPS, answer)]
    turns = Turns(Spawn(nursery.start_soon))
    prepared = PreparedAnswers(ClusterImage())
    return Dispatcher(routes, lambda *_: b"", throttling, turns, prepared, unlimited, most_items=5000)


def channel() -> Any:
    return SimpleNamespace(
        authentication=None, user="u", listener="L", ip="127.0.0.1", host="127.0.0.1", port=1, client_id=None
    )


def delete_groups(*names: str) -> bytes:
    request = wire.request_types(DELETE_GROUPS, 2).DeleteGroupsRequest(groups_names=names)
    return wire.encode_request(Call(DELETE_GROUPS, 2, 9), request, "c")[4:]


def names_in(response: bytes) -> list[str]:
    parsed = wire.parse_response(response[4:], DELETE_GROUPS, 2).body
    return [each.group_id for each in parsed.results]


async def test_a_small_request_is_answered_at_once(dispatcher):
    assert names_in(dispatcher.answer(channel(), delete_groups("a", "b"))) == ["a", "b"]


async def test_a_large_request_is_answered_in_turns(dispatcher):
    names = [f"group-{n}" for n in range(wire.LARGE_ITEMS + 1)]
    there = dispatcher.answer(channel(), delete_groups(*names))
    assert isinstance(there, Deferred)
    assert names_in(await there) == names


async def test_a_long_answer_to_a_short_request_is_encoded_beside_the_loop(nursery, monkeypatch):
    """Metadata of one topic with many partitions: short is the array of topics, long the one in its item."""
    topic = topics_of(1000)

    async def describe(call: Call) -> Message:
        return topic(call)

    spawn = Spawn(nursery.start_soon)
    turns = Turns(spawn)
    aside: list[str] = []

    async def noted(function: Any, *args: Any) -> Any:
        aside.append(function.__name__)
        return function(*args)

    monkeypatch.setattr(turns, "aside", noted)
    throttling: Any = SimpleNamespace(active=False, timed=False)
    routes = [Route.of(METADATA, lambda request, call: spawn(describe(call)))]
    dispatcher = Dispatcher(
        routes, lambda *_: b"", throttling, turns, PreparedAnswers(ClusterImage()), unlimited, most_items=5000
    )
    request = wire.request_types(METADATA, 12).MetadataRequest(
        topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
    frame = wire.encode_request(Call(METADATA, 12, 9), request, "c")[4:]
    response = await dispatcher.answer(channel(), frame)
    parsed = wire.parse_response(response[4:], METADATA, 12).body
    assert len(parsed.topics[0].partitions) == 1000
    assert aside == ["encode_large_response"]
    assert response == wire.encode_response(Call(METADATA, 12, 9), topic(Call(METADATA, 12)))


def topics_of(partitions: int) -> Any:
    def response(call: Call) -> Message:
        types = call.types
        made = tuple(
            types.MetadataResponsePartition(
                error_code=0, partition_index=n, leader_id=0, leader_epoch=0, replica_nodes=(0,), isr_nodes=(0,),
                offline_replicas=(),
            )
            for n in range(partitions)
        )  # fmt: skip
        topic = types.MetadataResponseTopic(
            error_code=0, name="t", topic_id=None, is_internal=False, partitions=made, topic_authorized_operations=0
        )
        return types.MetadataResponse(
            brokers=(), cluster_id="c", controller_id=0, topics=(topic,), cluster_authorized_operations=0
        )

    return response


async def test_a_request_with_too_many_items_is_no_request(dispatcher):
    with pytest.raises(wire.TooManyItems):
        await dispatcher.answer(channel(), delete_groups(*(f"group-{n}" for n in range(5001))))


def test_items_are_counted_at_all_depths():
    types = wire.request_types(9, 8)
    topic = types.OffsetFetchRequestTopics(name="t", partition_indexes=tuple(range(30)))
    group = types.OffsetFetchRequestGroup(group_id="g", topics=(topic,) * 10)
    request = types.OffsetFetchRequest(groups=(group,) * 4, require_stable=False)
    frame = wire.encode_request(Call(9, 8), request)[4:]
    assert len(frame) > COUNT_ITEMS_ABOVE_BYTES
    *_, at = wire.parse_header(frame)
    items = 4 + 4 * 10 + 4 * 10 * 30
    assert wire.parse_body(frame, at, 9, 8, items) == request
    with pytest.raises(wire.TooManyItems):
        wire.parse_body(frame, at, 9, 8, items - 1)


def tagged(tags: int, where: str) -> bytes:
    """A DeleteGroups 2 with so many tagged fields in its header or its body."""
    block = uvarint(tags) + b"".join(uvarint(1000 + n) + b"\1x" for n in range(tags))
    header, body = (block, b"\0") if where == "header" else (b"\0", block)
    return bytes.fromhex("002a 0002 00000009 ffff".replace(" ", "")) + header + b"\1" + body


@pytest.mark.parametrize("where", ["header", "body"])
def test_no_structure_has_more_than_10000_tagged_fields(where: str):
    *_, at = wire.parse_header(tagged(MAX_TAGS, where))
    assert wire.parse_body(tagged(MAX_TAGS, where), at, DELETE_GROUPS, 2, MAX_TAGS).groups_names == ()
    with pytest.raises(wire.BadFrame, match="more than 10,000 tagged fields"):
        *_, at = wire.parse_header(tagged(MAX_TAGS + 1, where))
        wire.parse_body(tagged(MAX_TAGS + 1, where), at, DELETE_GROUPS, 2, 2 * MAX_TAGS)


def test_many_tagged_fields_of_a_structure_count_as_items():
    for tags, most_items in ((MAX_TAGS, MAX_TAGS), (FREE_TAGS, 1)):
        frame = tagged(tags, "body")
        assert wire.parse_body(frame, 11, DELETE_GROUPS, 2, most_items).groups_names == ()
    with pytest.raises(wire.TooManyItems):
        wire.parse_body(tagged(MAX_TAGS, "body"), 11, DELETE_GROUPS, 2, MAX_TAGS - 1)


def test_an_array_has_a_million_items_at_most_whatever_a_request_may_have():
    types = wire.request_types(9, 8)

    def frame(partitions: int) -> bytes:
        topic = types.OffsetFetchRequestTopics(name="t", partition_indexes=(0,) * partitions)
        group = types.OffsetFetchRequestGroup(group_id="g", topics=(topic,))
        return wire.encode_request(Call(9, 8), types.OffsetFetchRequest(groups=(group,), require_stable=False))[4:]

    *_, at = wire.parse_header(frame(1))
    (group,) = wire.parse_body(frame(MAX_ARRAY), at, 9, 8, 2 * MAX_ARRAY).groups
    assert len(group.topics[0].partition_indexes) == 1_000_000
    with pytest.raises(wire.BadFrame, match="an array of more than 1,000,000 items"):
        wire.parse_body(frame(MAX_ARRAY + 1), at, 9, 8, 2 * MAX_ARRAY)


async def test_the_first_request_of_a_version_waits_until_it_is_compiled_beside_the_loop(dispatcher, monkeypatch):
    first = delete_groups("a")
    monkeypatch.setattr(wire, "COMPILED", wire.COMPILED - {first[:4]})
    answers = [dispatcher.answer(channel(), first), dispatcher.answer(channel(), delete_groups("b"))]
    assert all(isinstance(each, Deferred) for each in answers)
    assert [names_in(await each) for each in answers] == [["a"], ["b"]]
    assert names_in(dispatcher.answer(channel(), delete_groups("c"))) == ["c"], "at once from then on"
