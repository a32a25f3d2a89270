"""Metadata, DescribeTopicPartitions, DescribeCluster and what else a client asks about the cluster."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from desk import Desk

from broker.wire import codes
from shards.errors import ClientFault
from shards.mesh.mesh import COORDINATOR


async def test_all_topics_and_brokers_are_shown_in_every_version(tmp_path: Path) -> None:
    desk = Desk(tmp_path, brokers=3)
    await desk.start()
    await desk.make_topic("b", 4)
    await desk.make_topic("a")
    for version in range(14):
        wanted = () if version == 0 else None
        found = await desk.ask("metadata", version, at=(1, 0), topics=wanted)
        assert [(b.node_id, b.host, b.port) for b in found.brokers] == [(n, "127.0.0.1", 9092 + n) for n in range(3)]
        assert [(t.name, t.error_code, len(t.partitions)) for t in found.topics] == [("a", 0, 1), ("b", 0, 4)]
        assert [p.leader_id for p in found.topics[1].partitions] == [0, 1, 2, 0]
        assert {p.isr_nodes for p in found.topics[1].partitions} == {(0,), (1,), (2,)}
        if version >= 2:
            assert (found.cluster_id, found.controller_id) == ("desk-cluster", 0)


async def test_the_endpoint_is_that_of_the_listener_the_request_came_by(tmp_path: Path) -> None:
    desk = Desk(tmp_path, brokers=2)
    await desk.start()
    found = await desk.ask("metadata", 12, listener="INSIDE", topics=())
    assert [(b.host, b.port) for b in found.brokers] == [("127.0.0.1", 9192), ("127.0.0.1", 9193)]
    found = await desk.ask("find_coordinator", 4, listener="INSIDE", key_type=0, coordinator_keys=("g",))
    assert found.coordinators[0].port == 9192 + found.coordinators[0].node_id


async def test_advertised_listeners_may_be_given_once_for_all_brokers(tmp_path: Path) -> None:
    desk = Desk(tmp_path, brokers=2, **{"advertised_listeners": "PLAINTEXT://kafka.example:19092,INSIDE://[::1]:1"})
    await desk.start()
    found = await desk.ask("metadata", 12, topics=())
    assert [(b.host, b.port) for b in found.brokers] == [("kafka.example", 19092), ("kafka.example", 19093)]


async def test_no_topics_are_none_of_them_from_version_1(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.start()
    await desk.make_topic("a")
    assert (await desk.ask("metadata", 1, topics=())).topics == ()


async def test_topic_is_found_by_id_and_unknown_id_is_refused(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.start()
    await desk.make_topic("a")
    known, unknown = desk.images[0, 0].topics.get("a").id, uuid.uuid4()
    topic = desk.types("metadata", 12).MetadataRequestTopic
    asked = (topic(topic_id=known, name=None), topic(topic_id=unknown, name=None))
    found = await desk.ask("metadata", 12, topics=asked, allow_auto_topic_creation=True)
    assert [(t.name, t.topic_id, t.error_code) for t in found.topics] == [
        ("a", known, 0),
        (None, unknown, codes.UNKNOWN_TOPIC_ID),
    ]
    assert desk.asked == []


@pytest.mark.parametrize("version", [0, 1, 4, 9, 13])
async def test_a_topic_is_created_on_the_way_and_answered_whole(tmp_path: Path, version: int) -> None:
    desk = Desk(tmp_path, brokers=2, num_partitions="3")
    await desk.start()
    topic = desk.types("metadata", version).MetadataRequestTopic
    asked = (topic(name="new", topic_id=None), topic(name="bad/name", topic_id=None))
    found = await desk.ask("metadata", version, topics=asked, allow_auto_topic_creation=True)
    assert [(t.name, t.error_code, len(t.partitions)) for t in found.topics] == [
        ("new", 0, 3),
        ("bad/name", codes.INVALID_TOPIC_EXCEPTION, 0),
    ]


@pytest.mark.parametrize(("asks", "setting"), [(False, "true"), (True, "false")])
async def test_nothing_is_created_unless_both_sides_allow_it(tmp_path: Path, asks: bool, setting: str) -> None:
    desk = Desk(tmp_path, auto_create_topics_enable=setting)
    await desk.start()
    topic = desk.types("metadata", 12).MetadataRequestTopic
    asked = (topic(name="new", topic_id=None),)
    found = await desk.ask("metadata", 12, topics=asked, allow_auto_topic_creation=asks)
    assert [t.error_code for t in found.topics] == [codes.UNKNOWN_TOPIC_OR_PARTITION]


async def test_while_the_coordinator_is_away_clients_are_to_ask_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.start()
    desk.down.add(COORDINATOR)
    topic = desk.types("metadata", 12).MetadataRequestTopic
    asked = (topic(name="new", topic_id=None),)
    found = await desk.ask("metadata", 12, topics=asked, allow_auto_topic_creation=True)
    assert [t.error_code for t in found.topics] == [codes.LEADER_NOT_AVAILABLE]


async def test_authorized_operations_are_kafkas_own_bits(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.start()
    await desk.make_topic("a")
    found = await desk.ask(
        "metadata",
        10,
        topics=None,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    assert (found.cluster_authorized_operations, found.topics[0].topic_authorized_operations) == (8096, 3576)
    found = await desk.ask("metadata", 10, topics=None)
    assert {found.cluster_authorized_operations, found.topics[0].topic_authorized_operations} == {-(2**31)}


async def test_partitions_are_described_page_by_page(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.start()
    for name, count in (("a", 3), ("b", 2), ("c", 1)):
        await desk.make_topic(name, count)
    cursor, pages = None, []
    types = desk.types("describe_topic_partitions", 0)
    asked = tuple(types.TopicRequest(name=name) for name in ("c", "b", "a", "zz"))
    while True:
        page = await desk.ask("describe_topic_partitions", 0, topics=asked, response_partition_limit=2, cursor=cursor)
        pages.append([(t.name, t.error_code, [p.partition_index for p in t.partitions]) for t in page.topics])
        if page.next_cursor is None:
            break
        following = page.next_cursor
        cursor = types.Cursor(topic_name=following.topic_name, partition_index=following.partition_index)
    assert pages == [
        [("a", 0, [0, 1])],
        [("a", 0, [2]), ("b", 0, [0])],
        [("b", 0, [1]), ("c", 0, [0])],
        [("zz", codes.UNKNOWN_TOPIC_OR_PARTITION, [])],
    ]
    everything = await desk.ask("describe_topic_partitions", 0, topics=())
    assert [t.name for t in everything.topics] == ["a", "b", "c"]
    assert everything.topics[0].partitions[0].eligible_leader_replicas == ()


async def test_find_coordinator_spreads_groups_over_brokers(tmp_path: Path) -> None:
    desk = Desk(tmp_path, brokers=3)
    await desk.start()
    groups = tuple(f"g{n}" for n in range(20))
    by_broker = [
        [c.node_id for c in (await desk.ask(
            "find_coordinator", 6, at=(broker, 0), key_type=0, coordinator_keys=groups)).coordinators]
        for broker in range(3)
    ]  # fmt: skip
    assert by_broker[0] == by_broker[1] == by_broker[2]
    assert set(by_broker[0]) == {0, 1, 2}
    for version in range(4):
        single = await desk.ask("find_coordinator", version, key="g0", key_type=0)
        assert (single.node_id, single.error_code) == (by_broker[0][0], 0)
    shares = await desk.ask("find_coordinator", 6, key_type=2, coordinator_keys=("g:x:0",))
    assert shares.coordinators[0].error_code == codes.INVALID_REQUEST


async def test_a_client_that_looks_for_controllers_is_told(tmp_path: Path) -> None:
    desk = Desk(tmp_path, brokers=2)
    await desk.start()
    found = await desk.ask(
        "describe_cluster", 2, include_cluster_authorized_operations=True, include_fenced_brokers=True
    )
    assert (found.error_code, found.cluster_id, found.cluster_authorized_operations) == (0, "desk-cluster", 8096)
    assert [(b.broker_id, b.port, b.is_fenced) for b in found.brokers] == [(0, 9092, False), (1, 9093, False)]
    refused = await desk.ask("describe_cluster", 1, include_cluster_authorized_operations=False, endpoint_type=2)
    assert refused.error_code == codes.MISMATCHED_ENDPOINT_TYPE


async def test_what_a_cluster_without_replication_says(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.start()
    await desk.make_topic("a")
    partitions = desk.types("elect_leaders", 2).TopicPartitions(topic="a", partitions=(0, 5))
    elected = await desk.ask("elect_leaders", 2, election_type=0, topic_partitions=(partitions,))
    assert [p.error_code for p in elected.replica_election_results[0].partition_result] == [
        codes.ELECTION_NOT_NEEDED,
        codes.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert (await desk.ask("list_partition_reassignments", 0, topics=None)).topics == ()
    quorum = desk.types("describe_quorum", 2)
    asked = quorum.TopicData(topic_name="__cluster_metadata", partitions=(quorum.PartitionData(partition_index=0),))
    found = await desk.ask("describe_quorum", 2, topics=(asked,))
    part = found.topics[0].partitions[0]
    assert (part.error_code, part.leader_id, [v.replica_id for v in part.current_voters]) == (0, 0, [0])
    acls = await desk.ask(
        "describe_acls", 3, resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1,
        principal_filter=None, host_filter=None, operation=1, permission_type=1,
    )  # fmt: skip
    assert acls.error_code == codes.SECURITY_DISABLED
    resources = await desk.ask("list_config_resources", 1, resource_types=())
    assert [(r.resource_type, r.resource_name) for r in resources.config_resources] == [(8, "0"), (4, "0"), (2, "a")]


async def test_an_id_that_is_named_a_thousand_times_is_answered_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.start()
    one = desk.types("metadata", 12).MetadataRequestTopic(topic_id=uuid.UUID(int=7), name=None)
    assert len((await desk.ask("metadata", 12, topics=(one,) * 1000, allow_auto_topic_creation=False)).topics) == 1


async def test_a_topic_without_name_and_id_is_no_request(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.start()
    one = desk.types("metadata", 12).MetadataRequestTopic(topic_id=None, name=None)
    with pytest.raises(ClientFault):
        await desk.ask("metadata", 12, topics=(one,), allow_auto_topic_creation=False)
