"""DescribeLogDirs (35), versions 1-5, AlterReplicaLogDirs (34), versions 1-2: KIP-113, KIP-827 (space on the volume).

The directory is never cordoned (KIP-1066): there is no other one for new partitions.

One directory holds all partitions, so a replica may be moved to where it is, and nowhere else. Source: ReplicaManager.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from broker.kafka.records import guards
from broker.kafka.security.guarded_route import GuardedRoute
from broker.serve.call import Call
from broker.storage.disk_space import volume_of
from broker.storage.log_manager import LogManager
from broker.wire import codes
from broker.wire.codec import Message

if TYPE_CHECKING:
    from broker.wire.requests import AlterReplicaLogDirsRequest, DescribeLogDirsRequest
    from broker.wire.responses import AlterReplicaLogDirsTypes, DescribeLogDirsTypes

ALTER_REPLICA_LOG_DIRS, DESCRIBE_LOG_DIRS = 34, 35


def routes(logs: LogManager) -> list[GuardedRoute]:
    def describe_log_dirs(request: DescribeLogDirsRequest, call: Call[DescribeLogDirsTypes]) -> Message:
        types = call.types
        sizes = logs.sizes()
        topics = [
            types.DescribeLogDirsTopic(
                name=name,
                partitions=[
                    types.DescribeLogDirsPartition(
                        partition_index=number,
                        partition_size=sizes.get((name, number), 0),
                        offset_lag=0,
                        is_future_key=False,
                    )
                    for number in numbers
                ],
            )
            for name, numbers in _asked(request, logs).items()
        ]
        total_bytes, usable_bytes = volume_of(logs.directory)
        directory = types.DescribeLogDirsResult(
            error_code=codes.NONE,
            log_dir=os.path.abspath(logs.directory),
            topics=topics,
            total_bytes=total_bytes,
            usable_bytes=usable_bytes,
        )
        return types.DescribeLogDirsResponse(error_code=codes.NONE, results=[directory])

    def alter_replica_log_dirs(request: AlterReplicaLogDirsRequest, call: Call[AlterReplicaLogDirsTypes]) -> Message:
        types = call.types
        one = types.AlterReplicaLogDirPartitionResult
        results: dict[str, list[AlterReplicaLogDirsTypes.AlterReplicaLogDirPartitionResult]] = {}
        for directory in request.dirs:
            for topic in directory.topics:
                codes_of = ((number, _moved(logs, directory.path, topic.name, number)) for number in topic.partitions)
                moved = [one(partition_index=number, error_code=code) for number, code in codes_of]
                results.setdefault(topic.name, []).extend(moved)
        made = (types.AlterReplicaLogDirTopicResult(topic_name=name, partitions=each) for name, each in results.items())
        return types.AlterReplicaLogDirsResponse(results=tuple(made))

    return [
        GuardedRoute(DESCRIBE_LOG_DIRS, describe_log_dirs, guards.describe_log_dirs),
        GuardedRoute(ALTER_REPLICA_LOG_DIRS, alter_replica_log_dirs, guards.alter_replica_log_dirs),
    ]


def _moved(logs: LogManager, path: str, name: str, number: int) -> int:
    """The error code of a replica that is to be in that directory."""
    if path != os.path.abspath(logs.directory):
        return codes.LOG_DIR_NOT_FOUND
    topic = logs.image.topics.get(name)
    if topic is None or not 0 <= number < len(topic.leaders):
        return codes.UNKNOWN_TOPIC_OR_PARTITION
    return codes.NONE if topic.leaders[number] == logs.broker else codes.REPLICA_NOT_AVAILABLE


def _asked(request: DescribeLogDirsRequest, logs: LogManager) -> dict[str, list[int]]:
    """The partitions of this broker that the request names, by topic; null names all."""
    topics = logs.image.topics
    named = None if request.topics is None else {topic.topic: set(topic.partitions) for topic in request.topics}
    asked = {}
    for name in topics.names() if named is None else named:
        found = topics.get(name)
        if found is None:
            continue
        numbers = [number for number, leader in enumerate(found.leaders) if leader == logs.broker]
        kept = numbers if named is None else [number for number in numbers if number in named[name]]
        if kept:
            asked[name] = kept
    return asked
