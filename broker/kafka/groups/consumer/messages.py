"""The messages from handlers to the home of a group of the consumer protocol; the answer stands at each message
(groups/messages.py)."""

from typing import NamedTuple

from broker.kafka.groups.consumer.member import Heartbeat


class ConsumerHeartbeat(NamedTuple):
    """The fields of a HeartbeatResult."""

    group: str
    heartbeat: Heartbeat


class DescribeConsumerGroup(NamedTuple):
    """[state, epoch, assignment epoch, assignor, members], as ConsumerCoordinator.describe says."""

    group: str
