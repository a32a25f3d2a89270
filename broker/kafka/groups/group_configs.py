"""The settings in force for groups of each protocol: a group's own configs, else the broker's."""

from __future__ import annotations

from broker.kafka.groups.classic.members import GroupConfig
from broker.kafka.groups.consumer.member import ConsumerGroupConfig
from broker.kafka.groups.share.member import ShareGroupConfig
from broker.kafka.groups.streams.member import StreamsGroupConfig
from shards.config.image import ClusterImage


class GroupConfigs:
    """Asked whenever a request is served, so that changes hold at once."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image

    def classic(self) -> GroupConfig:
        get = self._image.get
        return GroupConfig(
            get("group.min.session.timeout.ms"),
            get("group.max.session.timeout.ms"),
            get("group.max.size"),
            get("group.initial.rebalance.delay.ms"),
        )

    def consumer(self, group_id: str) -> ConsumerGroupConfig:
        get = self._image.get
        return ConsumerGroupConfig(
            self._image.group_get(group_id, "consumer.heartbeat.interval.ms"),
            self._image.group_get(group_id, "consumer.session.timeout.ms"),
            get("group.consumer.max.size"),
            get("group.consumer.assignors"),
            self._image.group_get(group_id, "consumer.assignment.interval.ms"),
        )

    def share(self, group_id: str) -> ShareGroupConfig:
        return ShareGroupConfig(
            self._image.group_get(group_id, "share.heartbeat.interval.ms"),
            self._image.group_get(group_id, "share.session.timeout.ms"),
            self._image.get("group.share.max.size"),
            self._image.group_get(group_id, "share.assignment.interval.ms"),
        )

    def streams(self, group_id: str) -> StreamsGroupConfig:
        return StreamsGroupConfig(
            self._image.group_get(group_id, "streams.heartbeat.interval.ms"),
            self._image.group_get(group_id, "streams.session.timeout.ms"),
            self._image.get("group.streams.max.size"),
            self._image.group_get(group_id, "streams.num.standby.replicas"),
            self._image.group_get(group_id, "streams.initial.rebalance.delay.ms"),
            self._image.group_get(group_id, "streams.assignment.interval.ms"),
        )

    def number(self, setting: str) -> int:
        """The value of a setting of the broker that is a number."""
        return int(self._image.get(setting))
