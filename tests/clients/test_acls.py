"""ACLs by StandardAuthorizer's rules: what every API answers a user who may not, and kafka-acls.

With CLIENTS_PEER=kafka all of it holds for a real Kafka 4.1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from batches import batch
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from conftest import PEER
from harness import running, until
from users import add_users, login, plain_jaas
from wired import Wired, wired

from broker.kafka.security.acl import Operation, PatternType, Permission, ResourceType
from broker.wire import codes
from scripts.peers import servers

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
USERS = ("admin", "alice", "bob")
_KAFKA = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:admin",
    **{
        f"listener.name.{listener}.plain.sasl.jaas.config": plain_jaas(USERS, "admin")
        for listener in ("plaintext", "controller")
    },
}
TIMEOUT = timedelta(seconds=20)


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if PEER == "kafka":
        with servers.kafka(_KAFKA, features=("share.version=1",)) as server:
            yield server.bootstrap
        return
    if PEER is not None:
        pytest.skip("it has no authorizer")
    options = ["--listener", "SASL=127.0.0.1:0,sasl", "--set", f"authorizer.class.name={AUTHORIZER}"]
    options += ["--set", "super.users=User:admin"]
    with running(tmp_path_factory.mktemp("acls") / "data", *options) as cluster:
        add_users(cluster, USERS)
        yield cluster.bootstrap


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> Iterator[Wired]:
    with wired(bootstrap, "admin") as connection:
        yield login(connection, "admin")


@pytest.fixture
def alice(bootstrap: str) -> Iterator[Wired]:
    with wired(bootstrap, "alice") as connection:
        yield login(connection, "alice")


class Grant(NamedTuple):
    operation: Operation
    resource: ResourceType
    name: str
    pattern: PatternType = PatternType.LITERAL
    permission: Permission = Permission.ALLOW
    principal: str = "User:alice"
    host: str = "*"


def create_acls(connection: Wired, *grants: Grant) -> list[tuple[int, str | None]]:
    types = connection.types("create_acls", 3)
    creations = tuple(
        types.AclCreation(
            resource_type=each.resource, resource_name=each.name, resource_pattern_type=each.pattern,
            principal=each.principal, host=each.host, operation=each.operation, permission_type=each.permission,
        )
        for each in grants
    )  # fmt: skip
    answered = connection.ask("create_acls", 3, creations=creations)
    return [(each.error_code, each.error_message) for each in answered.results]


def acl_filter(types: Any, cls: str, **fields: Any) -> Any:
    any_of = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1, "principal_filter": None,
              "host_filter": None, "operation": 1, "permission_type": 1}  # fmt: skip
    return getattr(types, cls)(**{**any_of, **fields})


@pytest.fixture
def acls(admin: Wired) -> Iterator[Callable[..., None]]:
    """Makes ACLs, which hold when it returns, and end with the test."""

    def make(*grants: Grant) -> None:
        before = len(described(admin))
        assert create_acls(admin, *grants) == [(codes.NONE, "")] * len(grants)
        until(lambda: len(described(admin)) == before + len(set(grants)), what="the ACLs are known")

    yield make
    delete_acls(admin)
    until(lambda: not described(admin), what="no ACL is left")


def described(connection: Wired, **fields: Any) -> list[tuple[Any, ...]]:
    types = connection.types("describe_acls", 3)
    asked = acl_filter(types, "DescribeAclsRequest", **fields)
    answered = connection.ask("describe_acls", 3, **{name: getattr(asked, name) for name in asked.field_names})
    assert answered.error_code == codes.NONE
    return sorted(
        (each.resource_type, each.resource_name, each.pattern_type, acl.principal, acl.host, acl.operation,
         acl.permission_type)
        for each in answered.resources
        for acl in each.acls
    )  # fmt: skip


def delete_acls(connection: Wired, **fields: Any) -> Any:
    types = connection.types("delete_acls", 3)
    return connection.ask("delete_acls", 3, filters=(acl_filter(types, "DeleteAclsFilter", **fields),))


@pytest.fixture(scope="module")
def topic(admin: Wired) -> str:
    """A topic that is there."""
    name = f"secret-{uuid4().hex[:8]}"
    types = admin.types("create_topics", 7)
    wanted = types.CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=())
    admin.ask("create_topics", 7, topics=(wanted,), timeout=TIMEOUT)

    def there() -> bool:
        (found,) = metadata(admin, name).topics
        return not found.error_code and not any(each.error_code for each in found.partitions)

    until(there, what="the topic has a leader")
    return name


def metadata(connection: Wired, *names: str, version: int = 9, **fields: Any) -> Any:
    named = connection.types("metadata", version).MetadataRequestTopic
    asked = tuple(named(name=name, topic_id=None) for name in names) or None
    return connection.ask("metadata", version, topics=asked, **fields)


# --- what is answered to whom -----------------------------------------------------------------------------------------

T, G, C, X = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID
TOPIC_FAILED, GROUP_FAILED = codes.TOPIC_AUTHORIZATION_FAILED, codes.GROUP_AUTHORIZATION_FAILED
CLUSTER_FAILED, ID_FAILED = codes.CLUSTER_AUTHORIZATION_FAILED, codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
CLUSTER = "kafka-cluster"


class Case(NamedTuple):
    """`ask(connection, topic)` gives error codes; `denied` are those of a user without ACLs, and `grants(topic)` what it takes
    to be answered another thing."""

    ask: Callable[[Wired, str], list[int]]
    denied: list[int]
    grants: Callable[[str], tuple[Grant, ...]]


def on_topic(operation: Operation, *more: Grant) -> Callable[[str], tuple[Grant, ...]]:
    return lambda topic: (Grant(operation, T, topic), *more)


def on_cluster(operation: Operation) -> Callable[[str], tuple[Grant, ...]]:
    return lambda topic: (Grant(operation, C, CLUSTER),)


def on_group(operation: Operation, *more: Grant) -> Callable[[str], tuple[Grant, ...]]:
    return lambda topic: (Grant(operation, G, "g"), *more)


def of_topics(answered: Any, partitions: str = "partitions", code: str = "error_code") -> list[int]:
    return [getattr(each, code) for topic in answered.topics for each in getattr(topic, partitions)]


def _produce(connection: Wired, topic: str) -> list[int]:
    types = connection.types("produce", 9)
    data = types.PartitionProduceData(index=0, records=batch(b"x", timestamps=[time.time_ns() // 1_000_000]))
    data = types.TopicProduceData(name=topic, partition_data=(data,))
    answered = connection.ask("produce", 9, acks=1, timeout=TIMEOUT, topic_data=(data,))
    return [each.error_code for topic in answered.responses for each in topic.partition_responses]


def _fetch(connection: Wired, topic: str) -> list[int]:
    types = connection.types("fetch", 12)
    one = types.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20, current_leader_epoch=-1,
                               log_start_offset=-1, last_fetched_epoch=-1)  # fmt: skip
    topics = (types.FetchTopic(topic=topic, partitions=(one,)),)
    answered = connection.ask("fetch", 12, topics=topics, max_bytes=1 << 20, replica_id=-1, session_epoch=-1)
    return [each.error_code for topic in answered.responses for each in topic.partitions]


def _list_offsets(connection: Wired, topic: str) -> list[int]:
    types = connection.types("list_offsets", 7)
    one = types.ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=-1)
    asked = (types.ListOffsetsTopic(name=topic, partitions=(one,)),)
    return of_topics(connection.ask("list_offsets", 7, replica_id=-1, topics=asked))


def _leader_epoch(connection: Wired, topic: str) -> list[int]:
    types = connection.types("offset_for_leader_epoch", 4)
    one = types.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
    asked = (types.OffsetForLeaderTopic(topic=topic, partitions=(one,)),)
    return of_topics(connection.ask("offset_for_leader_epoch", 4, replica_id=-1, topics=asked))


def _delete_records(connection: Wired, topic: str) -> list[int]:
    types = connection.types("delete_records", 2)
    one = types.DeleteRecordsPartition(partition_index=0, offset=0)
    asked = (types.DeleteRecordsTopic(name=topic, partitions=(one,)),)
    return of_topics(connection.ask("delete_records", 2, topics=asked, timeout=TIMEOUT))


def _create_partitions(connection: Wired, topic: str) -> list[int]:
    types = connection.types("create_partitions", 3)
    asked = (types.CreatePartitionsTopic(name=topic, count=1, assignments=None),)
    answered = connection.ask("create_partitions", 3, topics=asked, timeout=TIMEOUT, validate_only=True)
    return [each.error_code for each in answered.results]


def _create_topics(connection: Wired, topic: str) -> list[int]:
    types = connection.types("create_topics", 7)
    wanted = types.CreatableTopic(
        name=f"{topic}-new", num_partitions=1, replication_factor=1, assignments=(), configs=()
    )
    answered = connection.ask("create_topics", 7, topics=(wanted,), timeout=TIMEOUT, validate_only=True)
    return [code for each in answered.topics for code in (each.error_code, each.topic_config_error_code)]


def _delete_topics(connection: Wired, topic: str) -> list[int]:
    answered = connection.ask("delete_topics", 5, topic_names=(f"{topic}-never",), timeout=TIMEOUT)
    return [each.error_code for each in answered.responses]


def _metadata(connection: Wired, topic: str) -> list[int]:
    return [each.error_code for each in metadata(connection, topic).topics]


def _partitions(connection: Wired, topic: str) -> list[int]:
    types = connection.types("describe_topic_partitions", 0)
    asked = (types.TopicRequest(name=topic),)
    answered = connection.ask("describe_topic_partitions", 0, topics=asked, response_partition_limit=10, cursor=None)
    return [each.error_code for each in answered.topics]


def _producers(connection: Wired, topic: str) -> list[int]:
    types = connection.types("describe_producers", 0)
    asked = (types.TopicRequest(name=topic, partition_indexes=(0,)),)
    return of_topics(connection.ask("describe_producers", 0, topics=asked))


def _join(connection: Wired, topic: str) -> list[int]:
    return [
        connection.ask("join_group", 7, group_id="g", session_timeout=TIMEOUT, rebalance_timeout=TIMEOUT,
                       protocol_type="consumer", member_id="").error_code
    ]  # fmt: skip


def _sync(connection: Wired, topic: str) -> list[int]:
    return [connection.ask("sync_group", 4, group_id="g", generation_id=1, member_id="m").error_code]


def _heartbeat(connection: Wired, topic: str) -> list[int]:
    return [connection.ask("heartbeat", 4, group_id="g", generation_id=1, member_id="m").error_code]


def _leave(connection: Wired, topic: str) -> list[int]:
    return [connection.ask("leave_group", 4, group_id="g", members=()).error_code]


def _commit(connection: Wired, topic: str) -> list[int]:
    types = connection.types("offset_commit", 8)
    one = types.OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    asked = (types.OffsetCommitRequestTopic(name=topic, partitions=(one,)),)
    return of_topics(
        connection.ask("offset_commit", 8, group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=asked)
    )


def _offsets(connection: Wired, topic: str) -> list[int]:
    types = connection.types("offset_fetch", 8)
    asked = (types.OffsetFetchRequestTopics(name=topic, partition_indexes=(0,)),)
    groups = (types.OffsetFetchRequestGroup(group_id="g", topics=asked),)
    (group,) = connection.ask("offset_fetch", 8, groups=groups, require_stable=False).groups
    return [group.error_code, *(each.error_code for topic in group.topics for each in topic.partitions)]


def _delete_offsets(connection: Wired, topic: str) -> list[int]:
    types = connection.types("offset_delete", 0)
    one = types.OffsetDeleteRequestPartition(partition_index=0)
    asked = (types.OffsetDeleteRequestTopic(name=topic, partitions=(one,)),)
    answered = connection.ask("offset_delete", 0, group_id="g", topics=asked)
    return [answered.error_code, *of_topics(answered)]


def _groups(connection: Wired, topic: str) -> list[int]:
    answered = connection.ask("describe_groups", 5, groups=("g",), include_authorized_operations=False)
    return [each.error_code for each in answered.groups]


def _delete_groups(connection: Wired, topic: str) -> list[int]:
    return [each.error_code for each in connection.ask("delete_groups", 2, groups_names=("none",)).results]


def _coordinator(kind: int, key: str) -> Callable[[Wired, str], list[int]]:
    def ask(connection: Wired, topic: str) -> list[int]:
        answered = connection.ask("find_coordinator", 4, key_type=kind, coordinator_keys=(key,))
        return [each.error_code for each in answered.coordinators]

    return ask


def _share_beat(connection: Wired, topic: str) -> list[int]:
    asked = {"group_id": "s", "member_id": "m", "subscribed_topic_names": [topic]}
    return [connection.ask("share_group_heartbeat", 1, **asked).error_code]


def _share_groups(connection: Wired, topic: str) -> list[int]:
    return [each.error_code for each in connection.ask("share_group_describe", 1, group_ids=["s"]).groups]


def _share_offsets(connection: Wired, topic: str) -> list[int]:
    types = connection.types("describe_share_group_offsets", 0)
    asked = types.DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[0])
    groups = [types.DescribeShareGroupOffsetsRequestGroup(group_id="s", topics=[asked])]
    (group,) = connection.ask("describe_share_group_offsets", 0, groups=groups).groups
    return [group.error_code, *of_topics(group)]


def _alter_share_offsets(connection: Wired, topic: str) -> list[int]:
    types = connection.types("alter_share_group_offsets", 0)
    one = types.AlterShareGroupOffsetsRequestPartition(partition_index=9, start_offset=0)
    asked = types.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[one])
    answered = connection.ask("alter_share_group_offsets", 0, group_id="s", topics=[asked])
    return [answered.error_code, *(each.error_code for topic in answered.responses for each in topic.partitions)]


def _delete_share_offsets(connection: Wired, topic: str) -> list[int]:
    topics = [connection.types("delete_share_group_offsets", 0).DeleteShareGroupOffsetsRequestTopic(topic_name=topic)]
    answered = connection.ask("delete_share_group_offsets", 0, group_id="none", topics=topics)
    return [answered.error_code, *(each.error_code for each in answered.responses)]


def _share_coordinator(connection: Wired, topic: str) -> list[int]:
    keys = ("s:AAAAAAAAAAAAAAAAAAAAAQ:0",)
    answered = connection.ask("find_coordinator", 6, key_type=2, coordinator_keys=keys)
    return [each.error_code for each in answered.coordinators]


def _init(transactional_id: str | None) -> Callable[[Wired, str], list[int]]:
    def ask(connection: Wired, topic: str) -> list[int]:
        return [
            connection.ask("init_producer_id", 4, transactional_id=transactional_id, transaction_timeout=TIMEOUT,
                           producer_id=-1, producer_epoch=-1).error_code
        ]  # fmt: skip

    return ask


def _configs(kind: int, name: str | None) -> Callable[[Wired, str], list[int]]:
    def ask(connection: Wired, topic: str) -> list[int]:
        types = connection.types("describe_configs", 4)
        one = types.DescribeConfigsResource(resource_type=kind, resource_name=name or topic, configuration_keys=("x",))
        return [each.error_code for each in connection.ask("describe_configs", 4, resources=(one,)).results]

    return ask


def _alter_configs(kind: int, name: str | None) -> Callable[[Wired, str], list[int]]:
    def ask(connection: Wired, topic: str) -> list[int]:
        types = connection.types("incremental_alter_configs", 1)
        one = types.AlterConfigsResource(resource_type=kind, resource_name=topic if name is None else name, configs=())
        answered = connection.ask("incremental_alter_configs", 1, resources=(one,), validate_only=True)
        return [each.error_code for each in answered.responses]

    return ask


def _top(api: str, version: int, **fields: Any) -> Callable[[Wired, str], list[int]]:
    return lambda connection, topic: [connection.ask(api, version, **fields).error_code]


def _alter_quotas(connection: Wired, topic: str) -> list[int]:
    types = connection.types("alter_client_quotas", 1)
    entity = (types.EntityData(entity_type="user", entity_name="u"),)
    ops = (types.OpData(key="producer_byte_rate", value=1.0, remove=True),)
    entries = (types.EntryData(entity=entity, ops=ops),)
    answered = connection.ask("alter_client_quotas", 1, entries=entries, validate_only=True)
    return [each.error_code for each in answered.entries]


def _describe_users(connection: Wired, topic: str) -> list[int]:
    users = (connection.types("describe_user_scram_credentials", 0).UserName(name="u"),)  # Kafka never denies all
    return [connection.ask("describe_user_scram_credentials", 0, users=users).error_code]


def _acls_created(connection: Wired, topic: str) -> list[int]:
    return [code for code, _ in create_acls(connection, Grant(Operation.READ, T, "x"))]


def _acls_deleted(connection: Wired, topic: str) -> list[int]:
    return [each.error_code for each in delete_acls(connection, resource_name_filter="never").filter_results]


O = Operation  # noqa: E741 - short, as the table is long
CASES = {
    "produce": Case(_produce, [TOPIC_FAILED], on_topic(O.WRITE)),
    "fetch": Case(_fetch, [TOPIC_FAILED], on_topic(O.READ)),
    "list offsets": Case(_list_offsets, [TOPIC_FAILED], on_topic(O.DESCRIBE)),
    "list offsets, as a reader": Case(_list_offsets, [TOPIC_FAILED], on_topic(O.READ)),
    "end of an epoch": Case(_leader_epoch, [TOPIC_FAILED], on_topic(O.DESCRIBE)),
    "delete records": Case(_delete_records, [TOPIC_FAILED], on_topic(O.DELETE)),
    "create partitions": Case(_create_partitions, [TOPIC_FAILED], on_topic(O.ALTER)),
    "create topics": Case(_create_topics, [TOPIC_FAILED, 0], lambda t: (Grant(O.CREATE, T, f"{t}-new"), Grant(
        O.DESCRIBE_CONFIGS, T, f"{t}-new"))),
    "create any topic": Case(_create_topics, [TOPIC_FAILED, 0], lambda t: (Grant(O.CREATE, C, CLUSTER), Grant(
        O.DESCRIBE_CONFIGS, T, "*"))),
    "delete topics": Case(_delete_topics, [TOPIC_FAILED], lambda t: (Grant(O.DELETE, T, f"{t}-never"),)),
    "metadata": Case(_metadata, [TOPIC_FAILED], on_topic(O.DESCRIBE)),
    "describe partitions": Case(_partitions, [TOPIC_FAILED], on_topic(O.DESCRIBE)),
    "join": Case(_join, [GROUP_FAILED], on_group(O.READ)),
    "sync": Case(_sync, [GROUP_FAILED], on_group(O.READ)),
    "heartbeat": Case(_heartbeat, [GROUP_FAILED], on_group(O.READ)),
    "leave": Case(_leave, [GROUP_FAILED], on_group(O.READ)),
    "commit": Case(_commit, [GROUP_FAILED], lambda t: (Grant(O.READ, G, "g"), Grant(O.READ, T, t))),
    "fetch offsets": Case(_offsets, [GROUP_FAILED], lambda t: (Grant(O.DESCRIBE, G, "g"), Grant(O.DESCRIBE, T, t))),
    "delete offsets": Case(_delete_offsets, [GROUP_FAILED], lambda t: (Grant(O.DELETE, G, "g"), Grant(O.READ, T, t))),
    "describe groups": Case(_groups, [GROUP_FAILED], on_group(O.DESCRIBE)),
    "delete groups": Case(_delete_groups, [GROUP_FAILED], lambda t: (Grant(O.DELETE, G, "none"),)),
    "share heartbeat": Case(_share_beat, [GROUP_FAILED], lambda t: (Grant(O.READ, G, "s"), Grant(O.DESCRIBE, T, t))),
    "describe share groups": Case(_share_groups, [GROUP_FAILED], lambda t: (Grant(O.DESCRIBE, G, "s"), Grant(O.DESCRIBE, T, t))),
    "share offsets": Case(_share_offsets, [GROUP_FAILED], lambda t: (Grant(O.DESCRIBE, G, "s"), Grant(O.DESCRIBE, T, t))),
    "alter share offsets": Case(_alter_share_offsets, [GROUP_FAILED], lambda t: (Grant(O.READ, G, "s"), Grant(O.READ, T, t))),
    "delete share offsets": Case(_delete_share_offsets, [GROUP_FAILED], lambda t: (Grant(O.DELETE, G, "none"), Grant(
        O.READ, T, t))),
    "coordinator of shares": Case(_share_coordinator, [CLUSTER_FAILED], on_cluster(O.CLUSTER_ACTION)),
    "coordinator of a group": Case(_coordinator(0, "g"), [GROUP_FAILED], on_group(O.DESCRIBE)),
    "coordinator of an id": Case(_coordinator(1, "x"), [ID_FAILED], lambda t: (Grant(O.DESCRIBE, X, "x"),)),
    "idempotence": Case(_init(None), [CLUSTER_FAILED], on_cluster(O.IDEMPOTENT_WRITE)),
    "idempotence of whoever may write": Case(_init(None), [CLUSTER_FAILED], on_topic(O.WRITE)),
    "describe a topic's configs": Case(_configs(2, None), [TOPIC_FAILED], on_topic(O.DESCRIBE_CONFIGS)),
    "describe a broker's configs": Case(_configs(4, "0"), [CLUSTER_FAILED], on_cluster(O.ALTER_CONFIGS)),
    "alter a topic's configs": Case(_alter_configs(2, None), [TOPIC_FAILED], on_topic(O.ALTER_CONFIGS)),
    "alter a broker's configs": Case(_alter_configs(4, ""), [CLUSTER_FAILED], on_cluster(O.ALTER_CONFIGS)),
    "describe log dirs": Case(_top("describe_log_dirs", 4, topics=()), [CLUSTER_FAILED], on_cluster(O.DESCRIBE)),
    "list reassignments": Case(_top("list_partition_reassignments", 0, topics=None, timeout=TIMEOUT), [CLUSTER_FAILED],
        on_cluster(O.DESCRIBE)),
    "alter reassignments": Case(_top("alter_partition_reassignments", 0, timeout=TIMEOUT), [CLUSTER_FAILED],
        on_cluster(O.ALTER)),
    "describe quotas": Case(_top("describe_client_quotas", 1), [CLUSTER_FAILED], on_cluster(O.DESCRIBE_CONFIGS)),
    "alter quotas": Case(_alter_quotas, [CLUSTER_FAILED], on_cluster(O.ALTER_CONFIGS)),
    "describe users": Case(_describe_users, [CLUSTER_FAILED], on_cluster(O.DESCRIBE)),
    "describe the quorum": Case(_top("describe_quorum", 1), [CLUSTER_FAILED], on_cluster(O.DESCRIBE)),
    "list resources": Case(_top("list_config_resources", 1), [CLUSTER_FAILED], on_cluster(O.DESCRIBE_CONFIGS)),
    "create ACLs": Case(_acls_created, [CLUSTER_FAILED], on_cluster(O.ALTER)),
    "delete ACLs": Case(_acls_deleted, [CLUSTER_FAILED], on_cluster(O.ALTER)),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_what_a_user_is_answered_without_and_with_the_acls_that_it_takes(bootstrap, topic, alice, acls, what):
    case = CASES[what]
    assert case.ask(alice, topic) == case.denied
    acls(*case.grants(topic))
    with wired(bootstrap, "alice again") as again:
        codes_now = case.ask(login(again, "alice"), topic)
    denials = {TOPIC_FAILED, GROUP_FAILED, CLUSTER_FAILED, ID_FAILED}
    assert not denials & set(codes_now), codes_now


def test_a_topic_that_is_not_there_is_denied_like_one_that_is(alice, topic):
    (hidden,) = metadata(alice, f"{topic}-never", allow_auto_topic_creation=True).topics
    (denied,) = metadata(alice, topic).topics
    assert (hidden.error_code, hidden.partitions) == (denied.error_code, denied.partitions) == (TOPIC_FAILED, ())


def test_by_id_a_topic_is_denied_and_its_name_is_not_told(alice, admin, acls, topic):
    topic_id = metadata(admin, topic, version=12).topics[0].topic_id
    named = alice.types("metadata", 12).MetadataRequestTopic(topic_id=topic_id, name=None)
    (found,) = alice.ask("metadata", 12, topics=(named,)).topics
    assert (found.error_code, found.name, found.topic_id) == (TOPIC_FAILED, None, topic_id)

    def deleted() -> tuple[int, str | None]:
        state = alice.types("delete_topics", 6).DeleteTopicState(name=None, topic_id=topic_id)
        (gone,) = alice.ask("delete_topics", 6, topics=(state,), timeout=TIMEOUT).responses
        return gone.error_code, gone.name

    assert deleted() == (TOPIC_FAILED, None)
    types = alice.types("fetch", 17)
    one = types.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1, current_leader_epoch=-1,
                               log_start_offset=-1, last_fetched_epoch=-1, replica_directory_id=None)  # fmt: skip
    asked = (types.FetchTopic(topic_id=topic_id, partitions=(one,)),)
    fetched = alice.ask("fetch", 17, topics=asked, max_bytes=1, session_epoch=-1).responses
    assert [(each.topic_id, each.partitions[0].error_code) for each in fetched] == [(topic_id, TOPIC_FAILED)]
    types = alice.types("produce", 13)
    data = types.PartitionProduceData(index=0, records=batch(b"x"))
    sent = (types.TopicProduceData(topic_id=topic_id, partition_data=(data,)),)
    made = alice.ask("produce", 13, acks=1, timeout=TIMEOUT, topic_data=sent).responses
    assert [(each.topic_id, each.partition_responses[0].error_code) for each in made] == [(topic_id, TOPIC_FAILED)]
    acls(Grant(Operation.DESCRIBE, T, topic))
    assert deleted() == (TOPIC_FAILED, topic)


def test_some_topics_of_a_request_are_denied_and_the_others_served(alice, admin, acls, topic):
    other = topic.replace("secret", "open")
    acls(Grant(Operation.WRITE, T, other), Grant(Operation.CREATE, T, other))
    types = alice.types("metadata", 9)
    asked = tuple(types.MetadataRequestTopic(name=name) for name in (topic, other))

    def found() -> dict[str, int]:
        answered = alice.ask("metadata", 9, topics=asked, allow_auto_topic_creation=True)
        return {each.name: each.error_code for each in answered.topics}

    until(lambda: found() == {topic: TOPIC_FAILED, other: codes.NONE}, what="the other one is created")
    types = alice.types("produce", 9)
    data = types.PartitionProduceData(index=0, records=batch(b"x", timestamps=[time.time_ns() // 1_000_000]))
    sent = tuple(types.TopicProduceData(name=name, partition_data=(data,)) for name in (topic, other))

    def produced() -> dict[str, int]:
        answered = alice.ask("produce", 9, acks=1, timeout=TIMEOUT, topic_data=sent)
        return {each.name: each.partition_responses[0].error_code for each in answered.responses}

    until(lambda: produced() == {topic: TOPIC_FAILED, other: codes.NONE}, what="the other one has a leader")


def test_of_all_topics_a_user_sees_those_that_it_may_describe(alice, admin, acls, topic):
    acls(Grant(Operation.READ, T, topic[:10], PatternType.PREFIXED))
    assert [each.name for each in metadata(alice).topics] == [topic]


def test_a_denial_goes_before_what_is_allowed(alice, acls, topic):
    acls(
        Grant(Operation.ALL, T, "*"),
        Grant(Operation.WRITE, T, "secret-", PatternType.PREFIXED, Permission.DENY),
    )
    assert _produce(alice, topic) == [TOPIC_FAILED]
    assert _metadata(alice, topic) == [codes.NONE]
    assert _fetch(alice, topic) == [codes.NONE]


def test_an_acl_of_another_host_or_user_concerns_nobody_else(alice, acls, topic):
    acls(
        Grant(Operation.READ, T, topic, host="10.9.9.9"),
        Grant(Operation.READ, T, topic, principal="User:bob"),
        Grant(Operation.DESCRIBE, T, topic, host="127.0.0.1"),
    )
    assert _fetch(alice, topic) == [TOPIC_FAILED]
    assert _metadata(alice, topic) == [codes.NONE]


def test_a_user_is_told_which_operations_it_is_authorized_to(alice, admin, acls, topic):
    acls(
        Grant(Operation.READ, T, topic), Grant(Operation.ALTER_CONFIGS, T, topic), Grant(Operation.READ, G, "g"),
        Grant(Operation.DESCRIBE, C, CLUSTER), Grant(Operation.CREATE, C, CLUSTER),
    )  # fmt: skip

    def bits(*operations: Operation) -> int:
        return sum(1 << each for each in operations)

    (found,) = metadata(alice, topic, include_topic_authorized_operations=True).topics
    o = Operation
    assert found.topic_authorized_operations == bits(o.READ, o.DESCRIBE, o.DESCRIBE_CONFIGS, o.ALTER_CONFIGS)
    _coordinator(0, "g")(admin, topic)  # Kafka makes its offsets topic now
    until(lambda: _commit(admin, topic) == [codes.NONE], what="there is such a group")
    answered = alice.ask("describe_groups", 5, groups=("g",), include_authorized_operations=True)
    assert [each.authorized_operations for each in answered.groups] == [bits(o.READ, o.DESCRIBE)]
    cluster = alice.ask("describe_cluster", 1, include_cluster_authorized_operations=True, endpoint_type=1)
    assert cluster.cluster_authorized_operations == bits(o.DESCRIBE, o.CREATE)


def test_a_client_that_may_not_describe_the_cluster_is_told_of_no_operation(alice):
    answered = alice.ask("describe_cluster", 1, include_cluster_authorized_operations=True, endpoint_type=1)
    assert (answered.error_code, answered.cluster_authorized_operations) == (codes.NONE, 0)


def test_sessions_tell_of_a_topic_that_may_not_be_read_each_time(alice, topic):
    types = alice.types("fetch", 12)
    one = types.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20, current_leader_epoch=-1,
                               log_start_offset=-1, last_fetched_epoch=-1)  # fmt: skip
    asked = (types.FetchTopic(topic=topic, partitions=(one,)),)
    begun = alice.ask("fetch", 12, topics=asked, max_bytes=1 << 20, replica_id=-1, session_epoch=0)
    again = alice.ask("fetch", 12, max_bytes=1 << 20, replica_id=-1, session_id=begun.session_id, session_epoch=1)
    for answered in (begun, again):
        assert [each.error_code for topic in answered.responses for each in topic.partitions] == [TOPIC_FAILED]


# --- ACLs themselves --------------------------------------------------------------------------------------------------

BAD = {
    "no name": (Grant(Operation.READ, T, ""), "Invalid empty resource name"),
    "another cluster": (
        Grant(Operation.READ, C, "mine"),
        "The only valid name for the CLUSTER resource is kafka-cluster",
    ),
    "no type of principal": (
        Grant(Operation.READ, T, "x", principal="alice"),
        "Could not parse principal from `alice` (no colon is present separating the principal type from the "
        "principal name)",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_acl(admin, what):
    grant, message = BAD[what]
    assert create_acls(admin, grant) == [(codes.INVALID_REQUEST, message)]


@pytest.mark.parametrize(
    "grant",
    [Grant(Operation.READ, 1, "x"), Grant(Operation.READ, T, "x", PatternType.MATCH), Grant(1, T, "x")],  # type: ignore[arg-type]
    ids=["any resource", "a filter's pattern", "any operation"],
)
def test_what_only_filters_may_have_fails_as_a_whole(admin, grant):
    failed = (codes.UNKNOWN_SERVER_ERROR, None)
    assert create_acls(admin, Grant(Operation.READ, T, "x"), grant) == [failed, failed]
    assert described(admin) == []


def test_acls_are_described_and_deleted_by_filters(admin, acls):
    orders = Grant(Operation.READ, T, "orders")
    prefixed = Grant(Operation.WRITE, T, "ord", PatternType.PREFIXED)
    every = Grant(Operation.ALL, T, "*", permission=Permission.DENY, host="10.0.0.1")
    group = Grant(Operation.READ, G, "orders")
    acls(orders, prefixed, every, group)
    assert create_acls(admin, orders) == [(codes.NONE, "")], "it is there already"

    def names(**fields: Any) -> list[str]:
        return [each[1] for each in described(admin, **fields)]

    assert names() == ["*", "ord", "orders", "orders"]
    assert names(resource_name_filter="orders") == ["orders", "orders"]
    assert names(resource_name_filter="orders", pattern_type_filter=2, resource_type_filter=T) == ["*", "ord", "orders"]
    assert names(pattern_type_filter=4) == ["ord"]
    assert names(permission_type=2, host_filter="10.0.0.1") == ["*"]
    (gone,) = delete_acls(admin, resource_type_filter=T, operation=Operation.READ).filter_results
    assert [(each.resource_name, each.error_code) for each in gone.matching_acls] == [("orders", 0)]
    until(lambda: names() == ["*", "ord", "orders"], what="it is gone")


# --- clients ----------------------------------------------------------------------------------------------------------


def _settings(bootstrap: str, user: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "PLAIN",
        "sasl.username": user, "sasl.password": f"{user}-secret",
    }  # fmt: skip


def test_members_of_consumer_groups_see_what_they_may_describe(alice, admin, acls, topic):
    """KIP-848: topics that are named, that an expression matches, and that a group has."""
    group = f"g-{uuid4().hex[:8]}"

    def beat(connection: Wired, **fields: Any) -> Any:
        asked = {"group_id": group, "member_id": "m", "rebalance_timeout": TIMEOUT, "topic_partitions": []}
        return connection.ask("consumer_group_heartbeat", 1, **{**asked, **fields})

    def has() -> bool:
        """True if the group has partitions."""
        (found,) = admin.ask("consumer_group_describe", 1, group_ids=[group]).groups
        return any(member.target_assignment.topic_partitions for member in found.members)

    def coordinated() -> bool:
        """Kafka makes its internal topic when asked for it."""
        found = admin.ask("find_coordinator", 3, key=group, key_type=0).error_code
        return found == beat(admin, subscribed_topic_names=[]).error_code == codes.NONE

    until(coordinated, within_s=30, what="a coordinator")
    beat(admin, member_epoch=-1)
    acls(Grant(Operation.READ, G, group))
    assert beat(alice, subscribed_topic_names=[topic]).error_code == TOPIC_FAILED
    joined = beat(alice, subscribed_topic_names=[], subscribed_topic_regex="secret-.*")
    assert (joined.error_code, has()) == (codes.NONE, False)
    assert beat(alice, member_epoch=-1).error_code == codes.NONE
    acls(Grant(Operation.DESCRIBE, T, topic))

    def is_assigned() -> bool:
        """True an interval after the last assignment: the member joins once more."""
        assert beat(alice, subscribed_topic_names=[topic]).error_code == codes.NONE
        return has()

    until(is_assigned, what="an assignment")
    assert beat(alice, member_epoch=-1).error_code == codes.NONE
    epochs = [beat(alice, subscribed_topic_names=[], subscribed_topic_regex="secret-.*").member_epoch]

    def sees_it() -> bool:
        later = beat(
            alice, member_epoch=epochs[-1], rebalance_timeout=timedelta(milliseconds=-1), subscribed_topic_names=None
        )
        epochs.append(later.member_epoch)
        return has()

    until(sees_it, what="the expression matches")
    assert alice.ask("consumer_group_describe", 1, group_ids=[group]).groups[0].error_code == codes.NONE
    with wired(alice.sock.getpeername()[0] + f":{alice.sock.getpeername()[1]}", "bob") as connection:
        bob = login(connection, "bob")
        acls(Grant(Operation.DESCRIBE, G, group, principal="User:bob"))
        (hidden,) = bob.ask("consumer_group_describe", 1, group_ids=[group]).groups
        assert (hidden.error_code, hidden.members) == (TOPIC_FAILED, ())
    beat(alice, member_epoch=-1)


def test_a_client_that_may_read_a_share_group_is_told_nothing_of_hidden_topics(alice, acls, topic):
    acls(*(Grant(operation, G, group) for operation in (O.READ, O.DELETE) for group in ("s", "none")))
    assert _share_beat(alice, topic) == [TOPIC_FAILED]
    assert _share_offsets(alice, topic) == [codes.NONE, TOPIC_FAILED]
    assert _alter_share_offsets(alice, topic) == [codes.NONE, TOPIC_FAILED]
    assert _delete_share_offsets(alice, topic) == [codes.NONE, TOPIC_FAILED]


def test_librdkafka_is_told_and_goes_on_when_it_may(bootstrap, topic, acls):
    told: list[Any] = []
    producer = Producer(_settings(bootstrap, "alice"))
    producer.produce(topic, b"x", on_delivery=lambda error, _: told.append(error))
    producer.flush(20)
    assert told[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    acls(Grant(Operation.WRITE, T, topic), Grant(Operation.READ, T, topic), Grant(Operation.READ, G, "readers"))

    producer = Producer(_settings(bootstrap, "alice"))
    producer.produce(topic, b"hello", on_delivery=lambda error, _: told.append(error))
    assert producer.flush(20) == 0 and told[-1] is None
    with Consumer(
        {**_settings(bootstrap, "alice"), "group.id": "readers", "auto.offset.reset": "earliest"}
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert consumer.consume(1, timeout=30)[0].error() is None


@pytest.mark.jars
def test_kafka_acls_adds_lists_and_removes(bootstrap, jvm, admin, acls, tmp_path: Path):
    config = tmp_path / "admin.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="admin" password="admin-secret";\n'
    )

    def tool(*args: str) -> str:
        ran = jvm("kafka-acls", "--bootstrap-server", bootstrap, "--command-config", str(config), *args)
        assert ran.code == 0, ran.out + ran.err
        return ran.out

    added = tool("--add", "--allow-principal", "User:alice", "--consumer", "--topic", "orders", "--group", "app")
    assert "ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)" in added
    tool("--add", "--deny-principal", "User:bob", "--deny-host", "10.0.0.1", "--operation", "Write", "--topic", "ord",
         "--resource-pattern-type", "prefixed")  # fmt: skip
    listed = tool("--list", "--topic", "orders", "--resource-pattern-type", "match")
    assert "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)" in listed
    assert "(principal=User:bob, host=10.0.0.1, operation=WRITE, permissionType=DENY)" in listed
    assert "name=app" in tool("--list", "--principal", "User:alice")
    tool("--remove", "--force", "--topic", "orders", "--group", "app")
    until(lambda: [each[1] for each in described(admin)] == ["ord"], what="the others are gone")


@pytest.mark.skipif(PEER is not None, reason="streams groups are off in a Kafka 4.1")
def test_a_member_of_a_streams_group_needs_its_group_its_topics_and_the_right_to_create(
    admin: Wired, alice: Wired, acls: Callable[..., None], topic: str
) -> None:
    group = f"g-{uuid4()}"
    changelog = f"{group}-changelog"
    types = alice.types("streams_group_heartbeat", 0)
    internal = types.TopicInfo(name=changelog, partitions=0, replication_factor=0, topic_configs=())
    topology = types.Topology(epoch=0, subtopologies=(
        types.Subtopology(subtopology_id="0", source_topics=(topic,), source_topic_regex=(), state_changelog_topics=(internal,),
                          repartition_sink_topics=(), repartition_source_topics=(), copartition_groups=()),
    ))  # fmt: skip

    def beat(epoch: int, tasks: tuple[Any, ...] | None, **fields: Any) -> Any:
        return alice.ask(
            "streams_group_heartbeat", 0, group_id=group, member_id="m", member_epoch=epoch, endpoint_information_epoch=0,
            instance_id=None, rack_id=None, active_tasks=tasks, standby_tasks=tasks, warmup_tasks=tasks, user_endpoint=None,
            client_tags=None, task_offsets=None, task_end_offsets=None, shutdown_application=False, **fields,
        )  # fmt: skip

    def join() -> Any:
        return beat(0, (), rebalance_timeout=timedelta(seconds=60), topology=topology, process_id="p")

    def described() -> int:
        (found,) = alice.ask(
            "streams_group_describe", 0, group_ids=(group,), include_authorized_operations=False
        ).groups
        return int(found.error_code)

    assert (join().error_code, described()) == (codes.GROUP_AUTHORIZATION_FAILED,) * 2
    acls(Grant(Operation.READ, ResourceType.GROUP, group))
    assert join().error_code == codes.TOPIC_AUTHORIZATION_FAILED
    acls(*(Grant(Operation.DESCRIBE, ResourceType.TOPIC, each) for each in (topic, changelog)))
    joined = join()
    assert joined.error_code == codes.NONE
    assert f"Unauthorized to CREATE on topics {changelog}." in [each.status_detail for each in joined.status]
    assert described() == codes.NONE
    assert (
        beat(-1, None, rebalance_timeout=timedelta(milliseconds=-1), topology=None, process_id=None).error_code
        == codes.NONE
    )
    acls(Grant(Operation.CREATE, ResourceType.TOPIC, group, PatternType.PREFIXED))
    assert not any("Unauthorized" in each.status_detail for each in join().status)
    until(
        lambda: metadata(admin, changelog).topics[0].error_code == codes.NONE, what="it is created in the member's name"
    )
