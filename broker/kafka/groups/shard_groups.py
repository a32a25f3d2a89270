"""The groups of one shard, of all protocols, and the offsets that are committed for them.

storage_error_changes_nothing
    An operation whose change can't be written answers KAFKA_STORAGE_ERROR, and nothing has changed.

one_protocol_per_group
    A group id is of one protocol at a time. A group without members becomes one of the other protocol by the first member
    that joins it so; one with members stays what it is, as in Kafka by group.consumer.migration.policy=disabled. Kafka
    lets classic members into a group of the consumer protocol all the same; here they are told
    INCONSISTENT_GROUP_PROTOCOL. A share group stays one, and no other becomes one.

Source: GroupMetadataManager of Kafka 4.1.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

from broker.kafka.groups.classic.classic_groups import ClassicGroups
from broker.kafka.groups.committed_offsets import CommittedOffsets
from broker.kafka.groups.consumer.consumer_groups import ConsumerGroups
from broker.kafka.groups.consumer.consumer_topics import ConsumerTopics
from broker.kafka.groups.group_configs import GroupConfigs
from broker.kafka.groups.share.share_groups import ShareGroups
from broker.kafka.groups.streams.streams_groups import StreamsGroups
from broker.kafka.security.access import Access
from broker.runtime.logger import Logger
from broker.wire import codes
from shards.config.image import ClusterImage

log = Logger()


class ShardGroups:
    """The groups of each protocol and their offsets. `access` says which topics the members of consumer and share groups may see
    (None: every one)."""

    def __init__(
        self, offsets: CommittedOffsets, image: ClusterImage, *, access: Access | None, now_ms: Callable[[], int]
    ) -> None:
        self.offsets = offsets
        self._image = image
        self._now_ms = now_ms
        configs = GroupConfigs(image)
        self.groups = ClassicGroups(
            limits=configs.classic,
            new_id=lambda: str(uuid.uuid4()),
            store=offsets,
            on_fault=lambda group, fault: log.error("a group was ended by a mistake", group=group, exc_info=fault),
        )
        self.topics = ConsumerTopics(image, access)
        self.consumers = ConsumerGroups(
            offsets, self.topics, config=configs.consumer, setting=configs.number, now_ms=now_ms
        )
        self.shares = ShareGroups(offsets, self.topics, config=configs.share, setting=configs.number, now_ms=now_ms)
        self.streams = StreamsGroups(
            offsets, self.topics, config=configs.streams, setting=configs.number, now_ms=now_ms
        )

    def reset(self) -> None:
        """Drops every group and all that was committed. Raises OSError."""
        self.groups.clear()
        self.consumers.clear()
        self.shares.clear()
        self.streams.clear()
        for group_id in self.offsets:
            self.offsets.forget(group_id)

    def _is_known(self, group_id: str) -> bool:
        """True if there is a group of any protocol by that id."""
        return self.groups.get(group_id) is not None or group_id in self.offsets

    def _is_modern(self, group_id: str) -> bool:
        """True if it is a group of another than the classic protocol."""
        return any(each.get(group_id) is not None for each in self._modern_groups())

    def _modern_groups(self) -> Sequence[ConsumerGroups | ShareGroups | StreamsGroups]:
        return self.consumers, self.shares, self.streams

    def _make_way(self, group_id: str) -> bool:
        """True if no other group is in the way of a new one of a modern protocol (one_protocol_per_group): a classic group without
        members gives way."""
        group = self.groups.get(group_id)
        if (group is not None and group.members) or self._is_modern(group_id):
            return False
        self.groups.drop(group_id)
        return True

    def _admit_classic(self, group_id: str) -> int:
        """NONE if a member of the classic protocol may join (one_protocol_per_group): a consumer group without members gives way,
        also to one that only asks for its id, as in Kafka 4.3."""
        consumer = self.consumers.get(group_id)
        if consumer is None:
            return codes.INCONSISTENT_GROUP_PROTOCOL if self._is_modern(group_id) else codes.NONE
        if consumer.members:
            return codes.INCONSISTENT_GROUP_PROTOCOL
        if self._written(group_id, lambda: self.offsets.forget_members(group_id)):
            return codes.COORDINATOR_NOT_AVAILABLE
        self.consumers.drop(group_id)
        return codes.NONE

    def _written(self, group: str, change: Callable[[], None]) -> int:
        """NONE, or KAFKA_STORAGE_ERROR if `change` could not be written (storage_error_changes_nothing)."""
        try:
            change()
        except OSError as fault:
            log.error("a change of committed offsets was not written", group=group, error=str(fault))
            return codes.KAFKA_STORAGE_ERROR
        return codes.NONE

    def _forget(self, group: str) -> None:
        self.offsets.forget(group)
        self.groups.drop(group)
        self.consumers.drop(group)
        self.shares.drop(group)
        self.streams.drop(group)

    def _is_current(self, topic: str, topic_id: str) -> bool:
        found = self._image.topics.get(topic)
        return found is not None and found.id.hex == topic_id

    def _next_deadline_ms(self) -> int | None:
        due = (each.next_deadline_ms() for each in (self.groups, *self._modern_groups()))
        return min((each for each in due if each is not None), default=None)
