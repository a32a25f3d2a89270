"""AlterReplicaLogDirs in raw frames. With CLIENTS_PEER=kafka it holds for a real Kafka 4.1."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from harness import until
from wired import Wired, wired

from broker.wire import codes


def moved(connection: Wired, path: str, topic: str, number: int = 0) -> int:
    types = connection.types("alter_replica_log_dirs", 2)
    topics = (types.AlterReplicaLogDirTopic(name=topic, partitions=(number,)),)
    dirs = (types.AlterReplicaLogDir(path=path, topics=topics),)
    (answered,) = connection.ask("alter_replica_log_dirs", 2, dirs=dirs).results
    assert answered.topic_name == topic
    return answered.partitions[0].error_code


def test_a_replica_may_be_moved_to_a_directory_that_there_is(two_shards: Any, topic: str) -> None:
    with wired(two_shards.bootstrap) as connection:
        types = connection.types("create_topics", 7)
        wanted = types.CreatableTopic(name=topic, num_partitions=1, replication_factor=1, assignments=(), configs=())
        connection.ask("create_topics", 7, topics=(wanted,), timeout=timedelta(seconds=20))
        (described,) = connection.ask("describe_log_dirs", 4, topics=None).results
        until(lambda: moved(connection, described.log_dir, topic) == codes.NONE, what="the topic is there")
        assert moved(connection, "/not/there", topic) == codes.LOG_DIR_NOT_FOUND
        assert moved(connection, described.log_dir, topic, 9) == codes.UNKNOWN_TOPIC_OR_PARTITION
