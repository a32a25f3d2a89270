"""The records of a streams group: rows that msgpack carries, and back.

A row of a group is that of `StreamsGroup.take_changes`; one of a member is the list of `to_row`. What no version of this code has
written is refused by TypeError, ValueError or IndexError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broker.kafka.groups.streams import tasks
from broker.kafka.groups.streams.endpoints import Endpoint
from broker.kafka.groups.streams.member import MemberFacts, StreamsMember
from broker.kafka.groups.streams.reconciliation import MemberState, TaskProgress


def to_row(member: StreamsMember) -> list[object]:
    progress = member.progress
    return [
        member.facts, int(progress.state), progress.epoch, member.previous_epoch, tasks.to_row(progress.assigned),
        tasks.to_row(progress.revoking), tasks.to_row(member.target), [[*task, epoch] for task, epoch in member.since.items()],
    ]  # fmt: skip


def from_row(member_id: str, row: Sequence[Any]) -> StreamsMember:
    facts, state, epoch, previous, assigned, revoking, target, since = row
    return StreamsMember(
        id=member_id,
        facts=facts_of(facts),
        progress=TaskProgress(MemberState(state), epoch, tasks.from_row(assigned), tasks.from_row(revoking)),
        previous_epoch=previous,
        target=tasks.from_row(target),
        since={(subtopology, number): began for subtopology, number, began in since},
    )


def facts_of(fields: Sequence[Any]) -> MemberFacts:
    """The facts of a member, from the fields that msgpack carried."""
    facts = MemberFacts(*fields)
    endpoint = None if facts.endpoint is None else Endpoint(*facts.endpoint)
    return facts._replace(endpoint=endpoint, tags=tuple((key, value) for key, value in facts.tags))
