"""Answers as two brokers can agree on them, and what is said of two that don't."""

from __future__ import annotations

from uuid import UUID

from batches import batch
from differential.compare import ABSENT, Difference, differences
from differential.known import Known, rows, unexplained
from differential.plain import Plain, batches
from differential.recording import load, save
from differential.requests import NotInVersion, request
from pytest import raises
from wired import KEYS

from broker.wire import wire


def test_an_id_is_told_by_its_order_and_stays_the_same_id():
    types = wire.types(KEYS["describe_cluster"], 0)
    plain = Plain()

    def told(cluster_id: str) -> object:
        broker = types.DescribeClusterBroker(broker_id=3, host="here", port=9, rack=None)
        answer = types.DescribeClusterResponse(
            error_code=0, error_message=None, cluster_id=cluster_id, controller_id=3, brokers=(broker,)
        )
        return plain.of(answer)

    first = told("x")
    assert first["cluster_id"] == "cluster 1" and told("y")["cluster_id"] == "cluster 2" and told("x") == first
    assert first["brokers"] == [{"broker_id": 3, "host": "host", "port": "host", "rack": None}]


def test_an_id_that_was_chosen_and_a_number_that_means_none_are_told_as_they_are():
    types = wire.types(KEYS["init_producer_id"], 4)
    plain = Plain()
    plain.chose({"producer_id": 5})
    for producer_id, told in ((5, 5), (6, "producer 1"), (-1, -1)):
        answer = types.InitProducerIdResponse(error_code=0, producer_id=producer_id, producer_epoch=0)
        assert plain.of(answer)["producer_id"] == told


def test_records_are_told_without_times_and_checksums():
    assert batches(batch(b"a", b"b")) == [[0, -1, 0, -1, [[0, "61"], [1, "62"]]]]
    assert batches(b"") == [] and batches(batch(b"a", attributes=1))[0][-1] == "compressed"


def test_a_request_is_of_plain_values_in_any_version():
    topics = [{"name": "a", "topic_id": UUID(int=1)}]
    assert request("metadata", 1, {"topics": topics, "allow_auto_topic_creation": True}).topics[0].name == "a"
    assert request("metadata", 12, {"topics": topics}).topics[0].topic_id == UUID(int=1)
    with raises(NotInVersion):
        request("metadata", 0, {"topics": None})
    with raises(TypeError):
        request("metadata", 0, {"topic": topics})


def test_answers_are_compared_field_by_field(tmp_path):
    kafka = {"fetch 4 a": {"one": {"topics": [{"code": 0}, {"code": 1}]}, "two": {"code": 0}}}
    other = {"fetch 4 a": {"one": {"topics": [{"code": 3}]}, "three": {"code": 0}}}
    save(tmp_path / "said.json", kafka)
    assert load(tmp_path / "said.json") == kafka
    found = list(differences(kafka, other))
    assert [(each.label, each.field, each.kafka, each.turnstile) for each in found] == [
        ("one", "topics[].code", 0, 3),
        ("one", "topics[]", {"code": 1}, ABSENT),
        ("two", "", {"code": 0}, ABSENT),
        ("three", "", ABSENT, {"code": 0}),
    ]


def test_a_difference_needs_a_row_and_a_row_a_difference(tmp_path):
    page = tmp_path / "differences.md"
    page.write_text("| API | versions |\n|---|---|\n| `fetch` | 4-5 | `*` | `topics[].*` | because |\n")
    (row,) = rows(page)
    assert row == Known("fetch", "4-5", "*", "topics[].*", "because")
    found = Difference("fetch 5 a", "one?", "topics[].code", 0, 1)
    assert list(unexplained([found], [row])) == []
    assert len(list(unexplained([found._replace(conversation="fetch 6 a")], [row]))) == 2
