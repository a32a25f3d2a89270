"""The home of the groups of the consumer protocol, as other shards and handlers ask it: heartbeats and descriptions.

Operations take and return what msgpack carries. A heartbeat that brings an expression is answered without what this matches;
the topics are matched meanwhile, and the next heartbeats tell, as in Kafka. A heartbeat waits only when its group's
expressions have to be matched anew.
Source: GroupCoordinatorService, GroupMetadataManager of Kafka 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broker.kafka.groups.consumer.consumer_groups import ConsumerGroups
from broker.kafka.groups.consumer.consumer_topics import ConsumerTopics
from broker.kafka.groups.consumer.member import ConsumerMember, Heartbeat
from broker.kafka.groups.modern.home import HomeOfGroups, ModernCoordinator
from broker.kafka.groups.modern.member import LEAVE, LEAVE_STATIC, HeartbeatResult, TopicIdPartitions
from broker.wire import codes
from shards.loop.deferred import MaybeDeferred, gather, then


class ConsumerCoordinator(ModernCoordinator[ConsumerGroups]):
    """The consumer groups of one shard. `topics` matches regular expressions."""

    def __init__(self, groups: ConsumerGroups, topics: ConsumerTopics, home: HomeOfGroups) -> None:
        super().__init__(groups, home)
        self._topics = topics

    def heartbeat(self, group: str, fields: Sequence[object]) -> MaybeDeferred[Sequence[object]]:
        """`fields` of a Heartbeat, `owned` as [[topic id, number], ...] -> [fields of a HeartbeatResult, the same way]."""
        request = heartbeat_of(fields)
        if request.epoch == 0 and self._groups.get(group) is None and not self._home.make_way(group):
            return HeartbeatResult(
                codes.GROUP_ID_NOT_FOUND,
                f"Group {group} is not a consumer group: it is a share group, or has members of the classic protocol, and "
                "no group is converted while it has members.",
            ).fields()
        if request.epoch in (LEAVE, LEAVE_STATIC):
            left = self._groups.leave(group, request.member_id, request.instance_id, request.epoch, self._home.now_ms())
            return left.fields()
        missing = self._groups.unknown_expressions(group)
        if not missing:
            return self._heartbeat(group, request)
        waiting: list[MaybeDeferred[None]] = [self._topics.ask(regex) for regex in missing]
        return then(gather(waiting), lambda _: self._heartbeat(group, request))

    def _heartbeat(self, group: str, request: Heartbeat) -> Sequence[object]:
        result = self._groups.heartbeat(group, request, self._home.now_ms())
        self._home.served()
        for regex in self._groups.unresolved(group) if request.regex else ():
            self._topics.ask(regex).add_callback(lambda _, regex=regex: self._groups.resolve(group, regex))  # type: ignore[misc]
        return result.fields()

    def describe(self, group_id: str) -> Sequence[object]:
        """[state, epoch, assignment epoch, assignor, members]; [] for a group that there is not, ["other"] for one of that
        protocol. A member as [id, instance, rack, epoch, client id, host, names, regex, partitions, target], partitions by
        topic id."""
        group = self._groups.get(group_id)
        if group is None:
            return self._undescribed(group_id)
        members = [self._described(member) for member in group.members.values()]
        return [group.state, group.epoch, group.assignment_epoch, self._groups.assignor(group), members]

    def _described(self, member: ConsumerMember) -> Sequence[object]:
        asked = member.subscription
        return [
            member.id, member.instance_id, member.rack_id, member.epoch, member.client_id, member.client_host,
            list(asked.names), asked.regex, sorted(member.holds), sorted(member.target),
        ]  # fmt: skip


def heartbeat_of(fields: Sequence[Any]) -> Heartbeat:
    """The heartbeat that came over the mesh as `fields`."""
    request = Heartbeat(*fields)
    owned: TopicIdPartitions | None = (
        None if request.owned is None else frozenset((topic, n) for topic, n in request.owned)
    )
    names = None if request.names is None else tuple(request.names)
    return request._replace(owned=owned, names=names, reader=(request.reader[0], request.reader[1]))
