"""The messages from handlers to the home of a classic group; the answer stands at each message (groups/messages.py)."""

from collections.abc import Sequence
from typing import Final, NamedTuple

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


DEAD: Final = "Dead"
"""The state of a group that does not exist."""


class MemberDescription(NamedTuple):
    """A member of a classic group; `metadata`: its bytes for the group's protocol."""

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class ClassicGroupDescription(NamedTuple):
    """A classic group. `protocol`: "" unless the group is stable; `members`: a MemberDescription each."""

    state: str
    protocol_type: str = ""
    protocol: str = ""
    members: Sequence[MemberDescription] = ()


class DescribeClassicGroup(NamedTuple):
    """A ClassicGroupDescription; its state is DEAD if there is no such group in the classic protocol."""

    group: str
