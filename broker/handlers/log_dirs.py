"""DescribeLogDirs (35), versions 1-4: KIP-113, KIP-827 (space on the volume). One directory for all partitions."""

import os

from broker.log.disk_space import volume_of
from broker.log.manager import LogManager
from broker.protocol import codes
from broker.protocol.codec import Message
from broker.protocol.requests import DescribeLogDirsRequest
from broker.serve.call import Call, Route

DESCRIBE_LOG_DIRS = 35


def routes(logs: LogManager) -> list[Route]:
    def describe_log_dirs(request: DescribeLogDirsRequest, call: Call) -> Message:
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

    return [Route.of(DESCRIBE_LOG_DIRS, describe_log_dirs)]


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
