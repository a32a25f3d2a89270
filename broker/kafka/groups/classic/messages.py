"""The messages from handlers to the home of a classic group; the answer stands at each message (groups/messages.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from broker.kafka.groups.classic.members import JoinRequest


class JoinGroup(NamedTuple):
    """The fields of a JoinGroupResult, once the group has a generation."""

    group: str
    request: JoinRequest


class SyncGroup(NamedTuple):
    """The fields of a SyncGroupResult. `protocol`: (type, name), each None where the version has none; `assignments`:
    (member id, bytes) each, from the leader."""

    group: str
    member: str
    instance: str | None
    generation: int
    protocol: tuple[str | None, str | None]
    assignments: Sequence[tuple[str, bytes]]


class ClassicHeartbeat(NamedTuple):
    """A code."""

    group: str
    member: str
    instance: str | None
    generation: int


class LeaveGroup(NamedTuple):
    """A code for each of `members`: (member id, instance id)."""

    group: str
    members: Sequence[tuple[str, str | None]]


class DescribeClassicGroup(NamedTuple):
    """[state, protocol type, protocol, members], as ClassicCoordinator.describe says."""

    group: str
