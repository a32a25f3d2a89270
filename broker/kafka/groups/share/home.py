"""The home of share groups, as other shards and handlers ask it: heartbeats, descriptions, and where their partitions begin
(KIP-932).

Operations take and return what msgpack carries. Which records are in flight is kept where the partitions are led; `ShareState`
reaches it.
Source: GroupCoordinatorService, GroupMetadataManager of Kafka 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from broker.kafka.groups.modern.home import HomeOfGroups, ModernCoordinator
from broker.kafka.groups.modern.member import LEAVE, HeartbeatResult
from broker.kafka.groups.router import Operations
from broker.kafka.groups.share.assignor import SIMPLE
from broker.kafka.groups.share.group import ShareGroup
from broker.kafka.groups.share.member import ShareHeartbeat
from broker.kafka.groups.share.messages import (
    AlteredOffsets,
    AlteredTopic,
    AlterShareOffsets,
    DeletedOffsets,
    DeleteShareOffsets,
    DescribedOffsets,
    DescribeShareGroup,
    DescribeShareOffsets,
    PartitionOffset,
    ShareGroupHeartbeat,
    ShareOffset,
    SharePlace,
)
from broker.kafka.groups.share.share_groups import ShareGroups
from broker.wire import codes
from shards.config.image import ClusterImage, Topic
from shards.loop.deferred import MaybeDeferred, then
from shards.loop.turns import Turns

_TOLD_NOTHING = "There is no offset information to delete."


class ShareState(Protocol):
    """The states of share partitions, wherever these are led; a place is (topic id, partition)."""

    def offsets(self, group: str, places: Sequence[SharePlace]) -> MaybeDeferred[list[ShareOffset]]:
        """One for each place."""

    def alter(self, group: str, offsets: Sequence[tuple[SharePlace, int]]) -> MaybeDeferred[list[int]]:
        """Sets the start offset of each place; returns a code for each."""

    def delete(self, group: str, topic_ids: Sequence[UUID] | None) -> MaybeDeferred[int]:
        """Deletes the state of these topics, None: of all that the group has; returns a code."""


class ShareCoordinator(ModernCoordinator[ShareGroups]):
    """The share groups of one shard. `state` reaches share partitions wherever they are led; None: there are none."""

    def __init__(
        self, groups: ShareGroups, image: ClusterImage, turns: Turns, home: HomeOfGroups, *, state: ShareState | None
    ) -> None:
        super().__init__(groups, home)
        self._image = image
        self._turns = turns
        self._partition_states = state
        self.operations: Operations = {
            ShareGroupHeartbeat: self.heartbeat,
            DescribeShareGroup: self.describe,
            DescribeShareOffsets: self.offsets,
            AlterShareOffsets: self.alter_offsets,
            DeleteShareOffsets: self.delete_offsets,
        }

    # --- members -------------------------------------------------------------------------------------------------------

    def heartbeat(self, group: str, fields: Sequence[Any]) -> MaybeDeferred[list[object]]:
        """`fields` of a ShareHeartbeat -> [fields of a HeartbeatResult, partitions as [[topic id, number], ...]].

        Answered at once, but in its turn when the targets of a large group have to be computed: 1,000 members and 10,000
        partitions take 20 ms, and as many connections may ask for it in one pass."""
        request = ShareHeartbeat(*fields)
        request = request._replace(names=None if request.names is None else tuple(request.names))
        if request.epoch != LEAVE and self._groups.is_costly(group, request):
            return self._turns.spawn(self._in_turn(group, request))
        return self._answer(group, request)

    async def _in_turn(self, group: str, request: ShareHeartbeat) -> list[object]:
        async with self._turns.turn():
            return self._answer(group, request)

    def _answer(self, group: str, request: ShareHeartbeat) -> list[object]:
        if self._is_taken(group):
            result = HeartbeatResult(codes.GROUP_ID_NOT_FOUND, f"Group {group} is not a share group.")
        elif request.epoch == LEAVE:
            result = self._groups.leave(group, request.member_id, self._home.now_ms())
        else:
            result = self._groups.heartbeat(group, request, self._home.now_ms())
            self._home.served()
        return result.fields()

    def describe(self, group_id: str) -> Sequence[object]:
        """[state, epoch, assignment epoch, assignor, members]; [] for a group that there is not, ["other"] for one of another
        protocol. A member as [id, rack, epoch, client id, host, names, partitions], partitions by topic id."""
        group = self._groups.get(group_id)
        if group is None:
            return self._undescribed(group_id)
        members = [
            [m.id, m.rack_id, m.epoch, m.client_id, m.client_host, list(m.names), sorted(m.assigned)]
            for m in group.members.values()
        ]
        return [group.state, group.epoch, group.assignment_epoch, SIMPLE, members]

    # --- offsets -------------------------------------------------------------------------------------------------------

    def offsets(
        self, group_id: str, wanted: Sequence[tuple[str, Sequence[int]]] | None
    ) -> MaybeDeferred[DescribedOffsets]:
        """`wanted`: (topic, partitions) each, None: all that the group has."""
        missing: list[tuple[str, str | None, list[PartitionOffset]]] = []
        found: list[tuple[Topic, Sequence[int]]] = []
        if wanted is None:
            group = self._groups.get(group_id)
            found += [] if group is None else self._known(group)
        for name, numbers in wanted or ():
            topic = self._image.topics.get(name)
            if topic is not None:
                found.append((topic, numbers))
            else:
                missing.append((name, None, [_offset(n, codes.UNKNOWN_TOPIC_OR_PARTITION) for n in numbers]))
        places = [SharePlace(topic.id, number) for topic, numbers in found for number in numbers]

        def described(offsets: list[ShareOffset]) -> DescribedOffsets:
            each = iter(offsets)
            answer = [
                (topic.name, topic.id.hex, [_offset(n, *next(each)) for n in numbers]) for topic, numbers in found
            ]
            return DescribedOffsets(codes.NONE, [*answer, *missing])

        return then(self._state().offsets(group_id, places), described) if places else described([])

    def alter_offsets(
        self, group_id: str, wanted: Sequence[tuple[str, Sequence[tuple[int, int]]]]
    ) -> MaybeDeferred[AlteredOffsets]:
        """`wanted`: (topic, (partition, start offset) each) each. Creates the group if it is missing."""
        group = self._groups.get(group_id)
        if self._is_taken(group_id):
            return AlteredOffsets(codes.GROUP_ID_NOT_FOUND, [])
        if group is not None and group.members:
            return AlteredOffsets(codes.NON_EMPTY_GROUP, [])
        topics = {name: self._image.topics.get(name) for name, _ in wanted}
        asked = [
            (SharePlace(topic.id, number), offset)
            for name, parts in wanted
            for number, offset in parts
            if (topic := topics[name]) is not None and 0 <= number < len(topic.leaders)
        ]
        begun = self._groups.initialize(group_id, [(topic_id.hex, number) for (topic_id, number), _ in asked])
        if begun.code:
            return AlteredOffsets(begun.code, [])

        def altered(found: list[int]) -> AlteredOffsets:
            code_of = dict(zip([place for place, _ in asked], found, strict=True))
            return AlteredOffsets(codes.NONE, [_altered(name, topics[name], parts, code_of) for name, parts in wanted])

        return then(self._state().alter(group_id, asked), altered) if asked else altered([])

    def delete_offsets(self, group_id: str, names: Sequence[str]) -> MaybeDeferred[DeletedOffsets]:
        group = self._groups.get(group_id)
        if group is None:
            return DeletedOffsets(codes.GROUP_ID_NOT_FOUND, [])
        if group.members:
            return DeletedOffsets(codes.NON_EMPTY_GROUP, [])
        found = {name: self._image.topics.get(name) for name in names}
        known = {name: topic.id for name, topic in found.items() if topic and topic.id.hex in group.initialized}
        unknown: list[tuple[str, str | None, int, str | None]] = [
            (name, None, codes.UNKNOWN_TOPIC_OR_PARTITION, None if found[name] is None else _TOLD_NOTHING)
            for name in found
            if name not in known
        ]

        def deleted(code: int) -> DeletedOffsets:
            code = code or self._groups.uninitialize(group, [topic_id.hex for topic_id in known.values()]).code
            return DeletedOffsets(
                codes.NONE, [*unknown, *((name, topic_id.hex, code, None) for name, topic_id in known.items())]
            )

        if not known:
            return DeletedOffsets(codes.NONE, unknown)
        return then(self._state().delete(group_id, list(known.values())), deleted)

    def delete(self, group: ShareGroup, forget: Callable[[], int]) -> MaybeDeferred[int]:
        """DeleteGroups: what its partitions keep is gone first, then `forget()` is asked."""
        if group.members:
            return codes.NON_EMPTY_GROUP

        def gone(code: int) -> int:
            return code or (codes.NON_EMPTY_GROUP if group.members else forget())

        return then(self._state().delete(group.id, None), gone)

    # --- small parts ---------------------------------------------------------------------------------------------------

    def _is_taken(self, group_id: str) -> bool:
        """True if that id is of a group of another protocol."""
        return self._home.is_known(group_id) and self._groups.get(group_id) is None

    def _state(self) -> ShareState:
        assert self._partition_states is not None
        return self._partition_states

    def _known(self, group: ShareGroup) -> Iterable[tuple[Topic, list[int]]]:
        """The topics of which the group has a state, with the numbers of their partitions."""
        for topic_id, numbers in group.initialized.items():
            topic = self._image.topics.by_id(UUID(hex=topic_id))
            if topic is not None:
                yield topic, sorted(numbers)


def _offset(number: int, code: int, start_offset: int = -1, leader_epoch: int = 0, lag: int = -1) -> PartitionOffset:
    """An error in reading a state is the absence of it, as in Kafka."""
    return PartitionOffset(number, -1, 0, -1) if code else PartitionOffset(number, start_offset, leader_epoch, lag)


def _altered(
    name: str, topic: Topic | None, parts: Sequence[tuple[int, int]], code_of: Mapping[SharePlace, int]
) -> AlteredTopic:
    unknown = codes.UNKNOWN_TOPIC_OR_PARTITION
    if topic is None:
        return AlteredTopic(name, None, [(number, unknown) for number, _ in parts])
    altered = [(number, code_of.get(SharePlace(topic.id, number), unknown)) for number, _ in parts]
    return AlteredTopic(name, topic.id.hex, altered)
