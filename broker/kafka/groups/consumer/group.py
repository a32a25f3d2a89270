"""A group of the consumer protocol: the requests of its members (KIP-848). No I/O and no clock; `now_ms` comes in.

A heartbeat is answered at once. It tells what the member asks for and what it has; the answer tells what it is to have.

Source: GroupMetadataManager.consumerGroupHeartbeat, ConsumerGroup of Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from broker.kafka.groups.consumer.group_state import ConsumerGroupState, Topics
from broker.kafka.groups.consumer.member import ConsumerGroupConfig, ConsumerMember, Heartbeat
from broker.kafka.groups.modern.member import (
    LEAVE_STATIC,
    NOTHING,
    HeartbeatResult,
    TopicIdPartition,
    fenced,
    too_many_members,
    unknown_member,
)
from broker.wire import codes


@dataclass(slots=True, kw_only=True, eq=False)
class ConsumerGroup(ConsumerGroupState):
    """One group."""

    # --- requests --------------------------------------------------------------------------------------------------

    def unknown_expressions(self, topics: Topics) -> set[str]:
        """The expressions that have to be matched with the topics once more before the next heartbeat can be answered."""
        if topics.version == self._topics_version and self.epoch == self.assignment_epoch:
            return set()
        return {regex for regex in self.resolved if regex and not topics.knows(regex)}

    def unresolved(self) -> set[str]:
        """The expressions that members brought and that have never been matched for this group."""
        return {m.subscription.regex for m in self.members.values() if m.subscription.regex} - self.resolved

    def resolve(self, regex: str) -> None:
        """The matches of an expression are known: the next heartbeat takes them up."""
        self.resolved.add(regex)
        self._topics_version = -1

    def heartbeat(
        self, request: Heartbeat, config: ConsumerGroupConfig, topics: Topics, now_ms: int
    ) -> HeartbeatResult:
        """NONE with the member's epoch, or the code of the first rule that the request breaks."""
        if len(self.members) >= config.max_size and request.member_id not in self.members:
            return too_many_members("consumer", config.max_size)
        refused = self._refuses(request)
        if refused is not None:
            return refused
        fault = topics.fault(request.regex) if request.regex else None
        if fault is not None:
            return HeartbeatResult(
                codes.INVALID_REGULAR_EXPRESSION, f"SubscribedTopicRegex {request.regex} can't be used: {fault}."
            )
        member = self._join(request, now_ms) if request.epoch == 0 else self.members[request.member_id]
        before = member.facts()
        changed = member.update(request)
        self._update_target_assignment(config, topics, now_ms, changed=changed)
        assigned = member.progress.assigned
        self._advance(member, request.owned, topics, now_ms, changed=changed)
        member.session_deadline_ms = now_ms + config.session_ms
        if member.facts() != before:
            self._changed.add(member.id)
        assignment = member.progress.assigned if request.is_full or member.progress.assigned != assigned else None
        return HeartbeatResult(codes.NONE, None, member.id, member.epoch, config.heartbeat_ms, assignment)

    def leave(self, member_id: str, instance_id: str | None, epoch: int, now_ms: int) -> HeartbeatResult:
        """A member leaves: for good by LEAVE; by LEAVE_STATIC it keeps its place until its session is over."""
        refused = self._unknown(member_id, instance_id)
        if refused is not None:
            return refused
        member = self.members[member_id]
        if epoch == LEAVE_STATIC:
            self._hold(member, member.progress._replace(epoch=LEAVE_STATIC, revoking=NOTHING), now_ms)
            self._changed.add(member.id)
        else:
            self._remove(member, now_ms)
            self._forget_expressions()
        return HeartbeatResult(codes.NONE, None, member_id, epoch)

    def remove(self, member_id: str, instance_id: str | None, now_ms: int) -> int:
        """Removes a member for an administrator's LeaveGroup: a static member may be named by its instance id alone."""
        if instance_id is not None and not member_id:
            member_id = self.instances.get(instance_id, "")
        refused = self._unknown(member_id, instance_id)
        if refused is not None:
            return refused.code
        self._remove(self.members[member_id], now_ms)
        self._forget_expressions()
        return codes.NONE

    def may_commit(
        self,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        version: int | None,
        places: Iterable[TopicIdPartition],
    ) -> int:
        """NONE if this identity may commit offsets of `places`, else the code. `version` is that of OffsetCommit; None: in a
        transaction. A member may commit with an earlier epoch what it has had since then (KIP-1251)."""
        anonymous = epoch == -1 and not member_id and instance_id is None
        if (epoch < 0 and not self.members) or (version is None and anonymous):
            return codes.NONE
        member = self.members.get(member_id)
        if member is None:
            return codes.UNKNOWN_MEMBER_ID
        if version is not None and version < 9:
            return codes.UNSUPPORTED_VERSION
        if epoch == member.epoch:
            return codes.NONE
        since = [member.since.get(place) for place in places]
        is_current = epoch < member.epoch and all(each is not None and each <= epoch for each in since)
        return codes.NONE if is_current else codes.STALE_MEMBER_EPOCH

    def subscribes_to(self, topic: str, topics: Topics) -> bool:
        return any(
            topic in asked.names
            or (asked.regex in self.resolved and asked.regex and topic in topics.matching(asked.regex, asked.reader))
            for asked in {member.subscription for member in self.members.values()}
        )

    # --- identity ------------------------------------------------------------------------------------------------

    def _refuses(self, request: Heartbeat) -> HeartbeatResult | None:
        """A member that joins is refused only where its instance id is in use by another member."""
        if request.epoch == 0:
            holder = self.instances.get(request.instance_id) if request.instance_id is not None else None
            if holder is not None:
                return self._unreleased(self.members[holder], request)
            return None
        unknown = self._unknown(request.member_id, request.instance_id)
        return unknown or _fenced(self.members[request.member_id], request)

    def _unreleased(self, holder: ConsumerMember, request: Heartbeat) -> HeartbeatResult | None:
        if holder.epoch == LEAVE_STATIC:
            return None
        return HeartbeatResult(
            codes.UNRELEASED_INSTANCE_ID,
            f"Member {request.member_id} can't take instance id {request.instance_id}: member {holder.id} has it.",
        )

    def _unknown(self, member_id: str, instance_id: str | None) -> HeartbeatResult | None:
        if instance_id is not None:
            holder = self.instances.get(instance_id)
            if holder is None:
                return HeartbeatResult(codes.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
            if holder != member_id:
                return HeartbeatResult(
                    codes.FENCED_INSTANCE_ID, f"Static member {member_id} was fenced by member {holder}."
                )
            return None
        if member_id in self.members:
            return None
        return unknown_member(self.id, member_id)

    def _join(self, request: Heartbeat, now_ms: int) -> ConsumerMember:
        """A new member, one that joins once more, or one that takes the place of its instance."""
        holder = self.instances.get(request.instance_id) if request.instance_id is not None else None
        if holder is not None:
            return self._replace(self.members[holder], request.member_id, now_ms)
        member = self.members.get(request.member_id)
        if member is not None and request.instance_id in (None, member.instance_id):
            return member
        if member is not None:
            self._remove(member, now_ms)  # another instance by the same id: it begins anew
            self._forget_expressions()
        member = ConsumerMember(request.member_id, request.instance_id)
        self._add(member)
        self._changed.add(member.id)
        return member


def _fenced(member: ConsumerMember, request: Heartbeat) -> HeartbeatResult | None:
    """The previous epoch is accepted where the last answer may have been lost: the member owns no more than it was assigned."""
    if request.epoch == member.epoch:
        return None
    repeated = request.epoch == member.previous_epoch and request.epoch < member.epoch
    if repeated and request.owned is not None and request.owned <= member.progress.assigned:
        return None
    return fenced(member.epoch, request.epoch)
