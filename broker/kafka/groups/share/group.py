"""A share group: its members, their requests, and what they are assigned (KIP-932). No I/O and no clock; `now_ms` comes in.

A partition may be read by several members, so no member waits until another gives something up: a member has its target from its
next heartbeat on. Only partitions that were initialized for the group are assigned. A heartbeat that brings topics is answered
first and initializes them; the next heartbeat raises the epoch and assigns them, as in Kafka.

Invariants (`check` asserts all but the last)
share_epochs_never_fall  No epoch falls while its member stays; member epoch <= assignment epoch <= group epoch.
targets_are_initialized_partitions  A target consists of initialized partitions of topics that its member asked for when the
    target was made.
told_members_have_their_target  What a member of the assignment epoch was told is its target, less what it has ceased to ask for
    since the target was made.

Source: GroupMetadataManager.shareGroupHeartbeat, ShareGroup of Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from broker.kafka.groups.modern.member import (
    LEAVE,
    HeartbeatResult,
    TopicIdPartitions,
    fenced,
    too_many_members,
    unknown_member,
)
from broker.kafka.groups.modern.modern_group import ModernGroup, fingerprint_of
from broker.kafka.groups.modern.topics import GroupTopics
from broker.kafka.groups.share.assignor import ShareSubscriber, simple
from broker.kafka.groups.share.member import ShareGroupConfig, ShareHeartbeat, ShareMember
from broker.wire import codes

COSTLY = 1000
"""Members and partitions whose targets are made anew in a millisecond or two."""


@dataclass(slots=True, kw_only=True, eq=False)
class ShareGroup(ModernGroup[ShareMember]):
    """`initialized`: the partitions, by topic id, of which the group has a state."""

    initialized: dict[str, frozenset[int]] = field(default_factory=dict)
    _pending: bool = True  # whether partitions may be initialized that are in no target

    @property
    def state(self) -> str:
        """The state, as ListGroups and ShareGroupDescribe spell it."""
        return "Stable" if self.members else "Empty"

    def check(self) -> None:
        """Raises AssertionError when an invariant does not hold."""
        assert all(member.epoch <= self.assignment_epoch for member in self.members.values()), "share_epochs_never_fall"
        assert self.assignment_epoch <= self.epoch, "share_epochs_never_fall"
        for member in self.members.values():
            if member.epoch == self.assignment_epoch:
                assert member.assigned <= member.target, "told_members_have_their_target"
                assert self.epoch > self.assignment_epoch or member.assigned == member.target, (
                    "told_members_have_their_target"
                )

    # --- requests --------------------------------------------------------------------------------------------------

    def heartbeat(
        self, request: ShareHeartbeat, config: ShareGroupConfig, topics: GroupTopics, now_ms: int
    ) -> HeartbeatResult:
        """NONE with the member's epoch, or the code of the first rule that the request breaks."""
        refused = self._refuses(request, config)
        if refused is not None:
            return refused
        member = self.members.setdefault(request.member_id, ShareMember(request.member_id))
        before, assigned = member.facts(), member.assigned
        changed = member.update(request)
        asked = self._update_target(config, topics, now_ms, changed=changed)
        if member.epoch != self.assignment_epoch:
            member.previous_epoch, member.epoch = member.epoch, self.assignment_epoch
            member.assigned = self._subscribed(member, topics)
        elif changed:
            member.assigned = self._subscribed(member, topics)
        member.session_deadline_ms = now_ms + config.session_ms
        if member.facts() != before:
            self._changed.add(member.id)
        self.initialize(self._missing(asked))
        is_full = request.epoch == 0 or request.names is not None
        assignment = member.assigned if is_full or member.assigned != assigned else None
        return HeartbeatResult(codes.NONE, None, member.id, member.epoch, config.heartbeat_ms, assignment)

    def leave(self, member_id: str, now_ms: int) -> HeartbeatResult:
        if member_id not in self.members:
            return unknown_member(self.id, member_id)
        self._remove(self.members[member_id], now_ms)
        return HeartbeatResult(codes.NONE, None, member_id, LEAVE)

    def initialize(self, partitions: Iterable[tuple[str, Collection[int]]]) -> None:
        """There is a state of these partitions from now on: (topic id, numbers)."""
        for topic_id, numbers in partitions:
            known = self.initialized.get(topic_id, frozenset())
            self.initialized[topic_id] = known.union(numbers)
            self._pending = self._group_changed = True

    def uninitialize(self, topic_ids: Iterable[str]) -> None:
        """There is none any more."""
        for topic_id in topic_ids:
            if self.initialized.pop(topic_id, None) is not None:
                self._pending = self._group_changed = True

    def _refuses(self, request: ShareHeartbeat, config: ShareGroupConfig) -> HeartbeatResult | None:
        member = self.members.get(request.member_id)
        if member is None:
            if len(self.members) >= config.max_size:
                return too_many_members("share", config.max_size)
            return None if request.epoch == 0 else unknown_member(self.id, request.member_id)
        if request.epoch in (0, member.epoch, member.previous_epoch):
            return None  # the epoch before: the answer with the present one may have been lost
        return fenced(member.epoch, request.epoch)

    # --- what a request costs ----------------------------------------------------------------------------------------

    def is_costly(self, request: ShareHeartbeat, topics: GroupTopics) -> bool:
        """True if the request may make the targets of all members anew, and members and partitions are many."""
        member = self.members.get(request.member_id)
        same = member is not None and request.names in (None, member.names) and not self._may_update_target(topics)
        return not same and len(self.members) + sum(map(len, self.initialized.values())) > COSTLY

    # --- what is kept ------------------------------------------------------------------------------------------------

    def _row(self) -> list[object]:
        places = [[topic_id, sorted(numbers)] for topic_id, numbers in sorted(self.initialized.items()) if numbers]
        return [self.epoch, self.assignment_epoch, self.fingerprint, places]

    # --- epochs and targets ------------------------------------------------------------------------------------------

    def _release(self, member: ShareMember) -> None:
        self._pending = True

    def _update_target(
        self, config: ShareGroupConfig, topics: GroupTopics, now_ms: int, *, changed: bool
    ) -> dict[str, tuple[str, int]]:
        """Raises the epoch if members ask for something else than before, and makes the targets of a new epoch, if their time has
        come. Returns the topics that members ask for; none, if nothing can have changed."""
        if not changed and not self._may_update_target(topics):
            return {}
        asked = self._asked(topics)
        fingerprint = fingerprint_of(sorted(asked.values())) if asked else ""
        self._topics_version = topics.version
        if self.epoch == self.assignment_epoch:
            changed = changed or fingerprint != self.fingerprint or (self._pending and self._is_unassigned(asked))
        self.fingerprint = fingerprint
        self._pending = False
        if changed:
            self._raise_epoch()
        if self.epoch != self.assignment_epoch and self._may_assign(config.assignment_interval_ms, now_ms):
            self._assign(asked, now_ms)
        return asked

    def _may_update_target(self, topics: GroupTopics) -> bool:
        """True if targets may have to be made anew though no member asks for something else."""
        return self._pending or topics.version != self._topics_version or self.epoch != self.assignment_epoch

    def _subscribed(self, member: ShareMember, topics: GroupTopics) -> TopicIdPartitions:
        """The part of a member's target that it still subscribes to: the target may be that of an earlier subscription."""
        if self.epoch == self.assignment_epoch:
            return member.target
        found = (topics.get(name) for name in member.names)
        ids = {topic[0] for topic in found if topic is not None}
        return frozenset(place for place in member.target if place[0] in ids)

    def _assign(self, asked: dict[str, tuple[str, int]], now_ms: int) -> None:
        numbers = {
            topic_id: [number for number in self.initialized.get(topic_id, ()) if number < size]
            for topic_id, size in asked.values()
        }
        members = [
            ShareSubscriber(m.id, frozenset(asked[name][0] for name in m.names if name in asked), m.target)
            for m in self.members.values()
        ]
        self._set_targets(simple(members, numbers), now_ms)

    def _asked(self, topics: GroupTopics) -> dict[str, tuple[str, int]]:
        """The id and size of each topic that a member asks for and that there is."""
        found = ((name, topics.get(name)) for name in sorted({n for m in self.members.values() for n in m.names}))
        return {name: topic for name, topic in found if topic is not None}

    def _is_unassigned(self, asked: dict[str, tuple[str, int]]) -> bool:
        """True if what is assigned of a topic is not what is initialized of it."""
        assigned: dict[str, set[int]] = {}
        for member in self.members.values():
            for topic_id, number in member.target:
                assigned.setdefault(topic_id, set()).add(number)
        return any(
            assigned.get(topic_id, set()) != self.initialized.get(topic_id, frozenset())
            for topic_id, _ in asked.values()
        )

    def _missing(self, asked: dict[str, tuple[str, int]]) -> list[tuple[str, Collection[int]]]:
        """The partitions that members ask for and that are not initialized."""
        missing: list[tuple[str, Collection[int]]] = []
        for topic_id, size in asked.values():
            known = self.initialized.get(topic_id, frozenset())
            if len(known) < size:
                missing.append((topic_id, set(range(size)) - known))
        return missing
