"""Where share partitions are at home, and how other shards reach them.

The share partition (group, topic, partition) is at home in the shard `home_of_coordinator_key(group)` of the broker that leads the
partition: all shares of a group are decided by one shard of each broker, beside the group itself where that broker coordinates
it. What is asked of several partitions is asked once of each broker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from broker.kafka.groups.share.messages import ShareOffset, SharePlace
from broker.kafka.remote import LOST
from broker.kafka.share.messages import (
    ForgetShares,
    ListSharePlaces,
    ReadShareOffsets,
    SetShareOffsets,
    ShareMessage,
)
from broker.kafka.share.share_partition_manager import SharePartitionManager
from broker.kafka.transactions.homes import ClusterHomes, Shard
from broker.wire import codes
from shards.config.image import ClusterImage
from shards.loop.deferred import Deferred, MaybeDeferred, gather, then
from shards.ownership import home_of_coordinator_key

T = TypeVar("T")


class ShareHomes:
    """Reaches the home of any share partition of the cluster, from any shard."""

    def __init__(self, homes: ClusterHomes, brokers: Sequence[int], image: ClusterImage) -> None:
        self._homes = homes
        self._brokers = brokers
        self._image = image

    @property
    def me(self) -> Shard:
        return self._homes.me

    def serve(self, manager: SharePartitionManager) -> None:
        for kind, operation in manager.operations.items():
            self._homes.serve(_method(kind), operation)

    def ask(self, group: str, message: ShareMessage, timeout_s: float = 5.0) -> MaybeDeferred[Any]:
        """The answer of the home of the group's shares on this broker; it may be PeerLost or DeadlineExceeded."""
        return self._ask(self.me.broker, group, message, timeout_s)

    def _ask(self, broker: int, group: str, message: ShareMessage, timeout_s: float = 5.0) -> MaybeDeferred[Any]:
        home = Shard(broker, home_of_coordinator_key(group, self._homes.brokers, self._homes.shards))
        return self._homes.call(home, _method(type(message)), *message, timeout_s=timeout_s)

    # What the coordinator of a group asks

    def offsets(self, group: str, places: Sequence[SharePlace]) -> MaybeDeferred[list[ShareOffset]]:
        """The answers to DescribeShareGroupOffsets, one for each place, in order."""
        rows = [_row(place) for place in places]
        gathered = self._of_each(
            group,
            ReadShareOffsets,
            places,
            rows,
            ShareOffset(codes.UNKNOWN_TOPIC_OR_PARTITION),
            ShareOffset(codes.NOT_COORDINATOR),
        )
        return then(gathered, lambda answers: [ShareOffset(*answer) for answer in answers])

    def places(self, group: str) -> MaybeDeferred[list[SharePlace]]:
        """All of which the group has a state, on all brokers."""
        asked = [
            _or(self._ask(broker, group, ListSharePlaces(group)), partial(list[tuple[str, int]]))
            for broker in self._brokers
        ]
        return then(
            gather(asked),
            lambda answers: [SharePlace(UUID(hex=topic), number) for rows in answers for topic, number in rows],
        )

    def alter(self, group: str, offsets: Sequence[tuple[SharePlace, int]]) -> MaybeDeferred[list[int]]:
        """Sets the offsets of an empty group (AlterShareGroupOffsets): a code for each. Records in flight are forgotten."""
        rows = [(*_row(place), offset) for place, offset in offsets]
        places = [place for place, _ in offsets]
        return self._of_each(
            group, SetShareOffsets, places, rows, codes.UNKNOWN_TOPIC_OR_PARTITION, codes.NOT_COORDINATOR
        )

    def delete(self, group: str, topic_ids: Sequence[UUID] | None) -> MaybeDeferred[int]:
        """Deletes the offsets of topics (DeleteShareGroupOffsets), or of all (None, for DeleteGroups): a code for all."""
        hexes = None if topic_ids is None else [each.hex for each in topic_ids]
        asked = [
            _or(self._ask(broker, group, ForgetShares(group, hexes)), lambda: codes.NOT_COORDINATOR)
            for broker in self._brokers
        ]
        return then(gather(asked), max)

    def _of_each(
        self,
        group: str,
        question: type[ReadShareOffsets] | type[SetShareOffsets],
        places: Sequence[SharePlace],
        rows: Sequence[Any],
        unknown: T,
        lost: T,
    ) -> MaybeDeferred[list[T]]:
        """The answers of the homes in the order of `rows`: `unknown` where there is no such partition, `lost` where its home
        does not answer."""
        by_broker: dict[int, list[int]] = {}
        for index, (topic_id, partition) in enumerate(places):
            topic = self._image.topics.by_id(topic_id)
            if topic is not None and 0 <= partition < len(topic.leaders):
                by_broker.setdefault(topic.leaders[partition], []).append(index)
        asked = [
            _or(
                self._ask(broker, group, question(group, [rows[i] for i in indexes])),
                partial(_all, lost, len(indexes)),
            )
            for broker, indexes in by_broker.items()
        ]

        def joined(parts: list[list[T]]) -> list[T]:
            answers = [unknown] * len(rows)
            for indexes, some in zip(by_broker.values(), parts, strict=True):
                for index, answer in zip(indexes, some, strict=True):
                    answers[index] = answer
            return answers

        return then(gather(asked), joined)


def _method(kind: type[ShareMessage]) -> str:
    return f"share.{kind.__name__}"


def _row(place: SharePlace) -> tuple[str, int]:
    topic_id, partition = place
    return topic_id.hex, partition


def _all(answer: T, count: int) -> list[T]:
    return [answer] * count


def _or(answer: MaybeDeferred[T], lost: Callable[[], T]) -> MaybeDeferred[T]:
    return answer.recover(LOST, lost) if isinstance(answer, Deferred) else answer
