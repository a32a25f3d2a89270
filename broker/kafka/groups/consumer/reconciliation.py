"""The way of one member to its target, a step at each heartbeat: what it must give up first, then what is free.

         target has another epoch                     it has given up what it was asked for
STABLE ----------------------------> UNREVOKED ---------------------------------+
   ^  |                                                                          v
   |  +--- nothing to give up ---> what others still hold is waited for: UNRELEASED ---> nothing is: STABLE

assigned_only_if_unheld  A partition is assigned to a member only if no member holds it.
revoking_is_held_until_said  What a member is asked to revoke it holds until it says, in a heartbeat with its partitions,
    that it has them no more.
unsubscribed_is_given_up  A partition of a topic that a member has ceased to ask for is taken from it at once, before the next
    target.
epoch_at_most_the_targets  The epoch of a member does not fall, and is at most that of the target.

Source: CurrentAssignmentBuilder of Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Container

from broker.kafka.groups.consumer.member import MemberState, Reconciled
from broker.kafka.groups.modern.member import NOTHING, TopicIdPartition, TopicIdPartitions


def is_reconciled(now: Reconciled, target_epoch: int) -> bool:
    return now.state is MemberState.STABLE and now.epoch == target_epoch


def reconcile(
    now: Reconciled,
    target: TopicIdPartitions,
    target_epoch: int,
    held: Container[TopicIdPartition],
    owned: TopicIdPartitions | None,
    unsubscribed: TopicIdPartitions = NOTHING,
) -> Reconciled:
    """The next step. `held`: the partitions that any member holds; `owned`: what this one says that it has, None: nothing said;
    `unsubscribed`: what it is assigned of topics that it has just ceased to ask for."""
    unrevoked = now.state is MemberState.UNREVOKED_PARTITIONS and _still_has(now.revoking, owned)
    if unrevoked or is_reconciled(now, target_epoch):
        return _without(now, unsubscribed, owned)
    kept = now.assigned & target
    revoking = now.assigned - kept
    if revoking and _still_has(revoking, owned):
        return Reconciled(MemberState.UNREVOKED_PARTITIONS, now.epoch, kept, revoking)
    wanted = target - kept
    free = frozenset(place for place in wanted if place not in held or place in now.revoking)
    waits = len(free) < len(wanted)
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    return Reconciled(state, target_epoch, kept | free, NOTHING)


def _without(now: Reconciled, unsubscribed: TopicIdPartitions, owned: TopicIdPartitions | None) -> Reconciled:
    """The member in its epoch, less `unsubscribed`."""
    if not unsubscribed:
        return now
    kept, revoking = now.assigned - unsubscribed, now.revoking | unsubscribed
    if _still_has(revoking, owned):
        return Reconciled(MemberState.UNREVOKED_PARTITIONS, now.epoch, kept, revoking)
    return now._replace(assigned=kept)


def _still_has(places: TopicIdPartitions, owned: TopicIdPartitions | None) -> bool:
    return owned is None or not places.isdisjoint(owned)
