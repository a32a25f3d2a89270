"""The error answer of every API in every version: it can be read, and says the error wherever the request named something."""

from __future__ import annotations

from typing import Any

import pytest

from broker.serve.call import Call
from broker.wire import apis, codes, wire
from broker.wire.codec import Message
from broker.wire.error_answers import error_answer
from broker.wire.shapes import Field

VERSIONS = [(key, version) for key, api in apis.APIS.items() for version in range(api.min_version, api.max_version + 1)]


def request(api_key: int, version: int, **fields: Any) -> Any:
    """A request whose arrays have two items each."""
    types = wire.request_types(api_key, version)
    classes = wire.fields_of_version(api_key, version, "request")

    def plain(field: Field, number: int) -> Any:
        return f"n{number}" if field.kind == "string" else number if field.kind == "int32" else wire.shortest(field)

    def value(field: Field) -> Any:
        if field.entity is None:
            one = field._replace(array=False)
            return (plain(one, 1), plain(one, 2)) if field.array else plain(field, 1)
        made = tuple(make(field.entity.__name__) for _ in range(2))
        return made if field.array else made[0]

    def make(name: str) -> Message:
        made: Message = getattr(types, name)(**{field.name: value(field) for field in classes[name]})
        return made

    whole = make(types.top.__name__)
    for name, given in fields.items():
        setattr(whole, name, given)
    return whole


def answered(api_key: int, version: int, asked: Message, message: str | None = "no") -> Any:
    """The answer, as a client reads it; None if there is none."""
    call: Call[Any] = Call(api_key, version, 5)
    response = error_answer(call, asked, codes.POLICY_VIOLATION, message)
    if response is None:
        return None
    correlation_id, read = wire.parse_response(wire.encode_response(call, response)[4:], api_key, version)
    assert correlation_id == 5
    return read


def errors(message: Any) -> set[int]:
    """The error codes in an answer, at all depths."""
    found = {
        getattr(message, name) for name in message.field_names if name == "error_code" or name.endswith("_error_code")
    }
    for name in message.field_names:
        value = getattr(message, name)
        for each in value if isinstance(value, tuple | list) else (value,):
            found |= errors(each) if isinstance(each, Message) else set()
    return found - {codes.NONE}


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_every_answer_can_be_read_and_has_the_error(api_key: int, version: int) -> None:
    fields = {"acks": 1} if api_key == 0 else {}
    assert errors(answered(api_key, version, request(api_key, version, **fields))) == {codes.POLICY_VIOLATION}


def test_each_partition_of_a_produce_has_it_beside_its_number() -> None:
    types = wire.request_types(0, 9)
    partitions = tuple(types.PartitionProduceData(index=index, records=None) for index in (3, 8))
    topics = (types.TopicProduceData(name="t", partition_data=partitions),)
    (topic,) = answered(0, 9, request(0, 9, acks=1, topic_data=topics)).responses
    told = [(each.index, each.error_code, each.error_message) for each in topic.partition_responses]
    assert (topic.name, told) == ("t", [(3, 44, "no"), (8, 44, "no")])


def test_a_produce_without_acknowledgement_has_no_answer() -> None:
    assert answered(0, 9, request(0, 9, acks=0)) is None


@pytest.mark.parametrize("version", [0, 4, 12])
def test_metadata_of_all_topics_has_no_place_and_no_broker(version: int) -> None:
    answer = answered(3, version, request(3, version, topics=() if version == 0 else None))
    assert (answer.topics, answer.brokers) == ((), ())


def test_metadata_has_one_of_its_own_since_version_13() -> None:
    assert answered(3, 13, request(3, 13, topics=None)).error_code == codes.POLICY_VIOLATION


def test_names_alone_are_told_as_names() -> None:
    groups = answered(15, 5, request(15, 5, groups=("a", "b"))).groups
    assert [(each.group_id, each.error_code) for each in groups] == [("a", 44), ("b", 44)]
    results = answered(10, 4, request(10, 4, coordinator_keys=("a",))).coordinators
    assert [(each.key, each.error_code) for each in results] == [("a", 44)]
