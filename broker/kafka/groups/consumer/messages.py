"""The messages from handlers to the home of a group of the consumer protocol. The docstring of each gives the answer to it
(groups/messages.py)."""

from typing import NamedTuple

from broker.kafka.groups.consumer.member import Heartbeat


class ConsumerHeartbeat(NamedTuple):
    """Answer: the fields of a HeartbeatResult."""

    group: str
    heartbeat: Heartbeat


class DescribeConsumerGroup(NamedTuple):
    """Answer: [state, epoch, assignment epoch, assignor, members], from ConsumerCoordinator.describe."""

    group: str
