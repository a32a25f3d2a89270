"""The state of a group of the consumer protocol: members, epochs, the target, and the holder of each partition (KIP-848).

A change of what members ask for, or of the topics they name, raises the epoch of the group; the target of that epoch is made
by an assignor, and each member comes to it by itself (reconciliation.py).

Invariants (`check` asserts them)
no_partition_held_twice  No partition is held by two members; `holders` maps what members hold to them.
static_ids_map_one_to_one  The instance ids of static members and the members they stand for map one to one.
member_epochs_never_fall  No epoch falls while its member stays, but for LEAVE_STATIC and the return from it; member epoch
    <= assignment epoch <= group epoch.
no_partition_targeted_twice  No partition is in the targets of two members.

Source: KIP-848; ModernGroup, TargetAssignmentBuilder of Kafka 4.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from broker.kafka.groups.consumer.assignors import ASSIGNORS, Subscriber
from broker.kafka.groups.consumer.member import (
    ConsumerGroupConfig,
    ConsumerMember,
    MemberState,
    Reconciled,
    Subscription,
)
from broker.kafka.groups.consumer.reconciliation import is_reconciled, reconcile
from broker.kafka.groups.modern.member import NOTHING, TopicIdPartition, TopicIdPartitions
from broker.kafka.groups.modern.modern_group import ModernGroup, fingerprint_of
from broker.kafka.groups.modern.topics import GroupTopics

AT_ONCE = 1000
"""Members that one call of `tick` fences."""


class Topics(GroupTopics, Protocol):
    """The topics of the cluster with those that regular expressions match."""

    def fault(self, regex: str) -> str | None:
        """The error of the regular expression; None: it has none."""

    def knows(self, regex: str) -> bool:
        """True if `matching` has an answer for it yet."""

    def matching(self, regex: str, reader: tuple[str, str]) -> Collection[str]:
        """The names that an expression matches and that the client may see."""


@dataclass(slots=True, kw_only=True, eq=False)
class ConsumerGroupState(ModernGroup[ConsumerMember]):
    """`instances`: the ids of members by instance id; `holders`: the ids of members by the partition that they hold."""

    instances: dict[str, str] = field(default_factory=dict)
    holders: dict[TopicIdPartition, str] = field(default_factory=dict)
    resolved: set[str] = field(default_factory=set)
    """Expressions that were matched with the topics (`resolve`); others match nothing yet."""

    @property
    def state(self) -> str:
        """The state, as ListGroups and ConsumerGroupDescribe spell it."""
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        settled = all(is_reconciled(member.progress, self.assignment_epoch) for member in self.members.values())
        return "Stable" if settled else "Reconciling"

    def check(self) -> None:
        """Raises AssertionError when an invariant does not hold."""
        held = Counter(place for member in self.members.values() for place in member.holds)
        assert all(count == 1 for count in held.values()), "no_partition_held_twice"
        assert self.holders == {place: m.id for m in self.members.values() for place in m.holds}, (
            "no_partition_held_twice"
        )
        static = {m.instance_id: m.id for m in self.members.values() if m.instance_id is not None}
        assert static == self.instances, "static_ids_map_one_to_one"
        assert all(member.epoch <= self.assignment_epoch for member in self.members.values()), (
            "member_epochs_never_fall"
        )
        assert self.assignment_epoch <= self.epoch, "member_epochs_never_fall"
        aimed = Counter(place for member in self.members.values() for place in member.target)
        assert all(count == 1 for count in aimed.values()), "no_partition_targeted_twice"

    # --- time ------------------------------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> None:
        """Fences members whose sessions are over, and those that did not revoke in time: AT_ONCE of them; the rest stay due."""
        for member in self._overdue(now_ms)[:AT_ONCE]:
            self._remove(member, now_ms)
        self._forget_expressions()

    def assignor(self, config: ConsumerGroupConfig) -> str:
        """The one that most members ask for, of those that the broker has; else the broker's first."""
        asked = Counter(m.assignor for m in self.members.values() if m.assignor in config.assignors)
        return next((name for name, _ in asked.most_common(1) if name), config.assignors[0])

    # --- what is kept ------------------------------------------------------------------------------------------------

    def _row(self) -> list[object]:
        return [self.epoch, self.assignment_epoch, self.fingerprint]

    def restore(self, member: ConsumerMember, session_ms: int, now_ms: int) -> None:
        """Takes in a member of before this process: its session begins anew."""
        member.session_deadline_ms = now_ms + session_ms
        if member.progress.state is MemberState.UNREVOKED_PARTITIONS and member.epoch >= 0:
            member.revoke_deadline_ms = now_ms + member.rebalance_ms
        self._add(member)
        self.holders.update(dict.fromkeys(member.holds, member.id))
        if member.subscription.regex:
            self.resolved.add(member.subscription.regex)

    # --- members -------------------------------------------------------------------------------------------------

    def _replace(self, member: ConsumerMember, member_id: str, now_ms: int) -> ConsumerMember:
        """A static member came back: it goes on with what it had, under another id and from epoch 0."""
        del self.members[member.id]
        self._changed |= {member.id, member_id}
        member.id = member_id
        self._add(member)
        self._hold(member, member.progress._replace(epoch=0), now_ms)
        member.previous_epoch = 0
        return member

    def _add(self, member: ConsumerMember) -> None:
        self.members[member.id] = member
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.id

    def _release(self, member: ConsumerMember) -> None:
        if member.instance_id is not None:
            del self.instances[member.instance_id]
        for place in member.holds:
            del self.holders[place]

    def _forget_expressions(self) -> None:
        """Forgets expressions that no member has any more. Called once after members were removed, as it looks at all members."""
        if self.resolved:
            self.resolved &= {each.subscription.regex or "" for each in self.members.values()}

    # --- epochs, target, progress ------------------------------------------------------------------------------------

    def _update_target_assignment(
        self, config: ConsumerGroupConfig, topics: Topics, now_ms: int, *, changed: bool
    ) -> None:
        """Raises the epoch if members ask for something else than before, and makes the target of a new epoch, if its time has
        come."""
        may_assign = self.epoch > self.assignment_epoch and self._may_assign(config.assignment_interval_ms, now_ms)
        if not changed and topics.version == self._topics_version and not may_assign:
            return
        asked = self._asked(topics)
        fingerprint = _fingerprint(asked)
        self._topics_version = topics.version
        self.resolved &= {each.regex or "" for each in asked}
        changed = changed or (fingerprint != self.fingerprint and self.epoch == self.assignment_epoch)
        self.fingerprint = fingerprint
        if changed:
            self._raise_epoch()
        if self.epoch == self.assignment_epoch or not self._may_assign(config.assignment_interval_ms, now_ms):
            return
        ids = {subscription: frozenset(sizes) for subscription, sizes in asked.items()}
        members = [Subscriber(m.id, m.instance_id, ids[m.subscription], m.target) for m in self.members.values()]
        sizes = {topic: size for each in asked.values() for topic, size in each.items()}
        self._set_targets(ASSIGNORS[self.assignor(config)](members, sizes), now_ms)

    def _asked(self, topics: Topics) -> dict[Subscription, dict[str, int]]:
        """The ids and sizes of the topics that there are, for each subscription that members have."""
        return {
            asked: self._asked_by(asked, topics) for asked in {member.subscription for member in self.members.values()}
        }

    def _asked_by(self, asked: Subscription, topics: Topics) -> dict[str, int]:
        matched = topics.matching(asked.regex, asked.reader) if asked.regex and asked.regex in self.resolved else ()
        return dict(filter(None, (topics.get(name) for name in sorted({*asked.names, *matched}))))

    def _advance(
        self, member: ConsumerMember, owned: TopicIdPartitions | None, topics: Topics, now_ms: int, *, changed: bool
    ) -> None:
        """`changed`: the member subscribes to other topics than before."""
        target, unsubscribed = member.target, NOTHING
        if changed or self.epoch > self.assignment_epoch:  # the target is that of other subscriptions
            subscribed = self._asked_by(member.subscription, topics)
            target = frozenset(place for place in target if place[0] in subscribed)
            if changed:
                unsubscribed = frozenset(place for place in member.progress.assigned if place[0] not in subscribed)
        progress = reconcile(member.progress, target, self.assignment_epoch, self.holders, owned, unsubscribed)
        if progress != member.progress:
            self._hold(member, progress, now_ms)

    def _hold(self, member: ConsumerMember, progress: Reconciled, now_ms: int) -> None:
        for place in member.holds:
            del self.holders[place]
        if progress.epoch != member.epoch:
            member.previous_epoch = member.epoch
        member.progress = progress
        member.since = {place: member.since.get(place, progress.epoch) for place in member.holds}
        self.holders.update(dict.fromkeys(member.holds, member.id))
        unrevoked = progress.state is MemberState.UNREVOKED_PARTITIONS and progress.epoch >= 0
        member.revoke_deadline_ms = now_ms + member.rebalance_ms if unrevoked else None
        self.changed_ms = now_ms


def _fingerprint(asked: Mapping[Subscription, Mapping[str, int]]) -> str:
    facts = sorted((repr(subscription), sorted(sizes.items())) for subscription, sizes in asked.items() if sizes)
    return fingerprint_of(facts) if facts else ""
