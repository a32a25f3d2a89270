"""The members of a group and their ids: members in the order in which they joined, instance ids of static ones, the leader.

Invariants (`check` asserts them)
leader_is_a_member  The leader is a member; while there are members there is one.
static_members_one_to_one  The instance ids of static members and the members they stand for map one to one.

Source: KIP-345 (static members).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from broker.kafka.groups.classic.members import Member, choose_protocol, common_protocols
from broker.wire import codes


@dataclass(slots=True, eq=False)
class Membership:
    """`members` by their ids, `instances`: instance id -> member id."""

    members: dict[str, Member] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    leader: str | None = None

    def joined(self) -> list[Member]:
        """The members that have rejoined and wait for the others."""
        return [member for member in self.members.values() if member.joining is not None]

    def add(self, member: Member) -> None:
        """The first one leads."""
        self.members[member.id] = member
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.id
        if self.leader is None:
            self.leader = member.id

    def remove(self, member: Member) -> None:
        """If the removed member led, the oldest one leads."""
        del self.members[member.id]
        if member.instance_id is not None:
            del self.instances[member.instance_id]
        if self.leader == member.id:
            self.leader = next(iter(self.members), None)

    def expired(self, now_ms: int) -> Iterator[Member]:
        """The members whose session timeout is over, to be removed by the caller. Each is asked when its turn comes, as the removal
        of one may end a phase, which begins the sessions of the others anew."""
        for member in list(self.members.values()):
            expires_ms = member.expires_ms
            if member.id in self.members and expires_ms is not None and expires_ms <= now_ms:
                yield member

    def rename(self, member: Member, member_id: str) -> None:
        """A static member came back without its id: it keeps its place, and the lead if it had that, under another one."""
        assert member.instance_id is not None
        leads = self.leader == member.id
        del self.members[member.id]
        member.id = member_id
        self.members[member_id] = member
        self.instances[member.instance_id] = member_id
        if leads:
            self.leader = member_id

    def identify(self, member_id: str, instance_id: str | None) -> int:
        """NONE for a member, by its own id and, if it is static, that of its instance; else the code that says why not."""
        if instance_id is not None:
            owner = self.instances.get(instance_id)
            if owner is not None and owner != member_id:
                return codes.FENCED_INSTANCE_ID
            return codes.NONE if owner else codes.UNKNOWN_MEMBER_ID
        return codes.NONE if member_id in self.members else codes.UNKNOWN_MEMBER_ID

    def supports_any(self, protocols: Collection[str]) -> bool:
        """True if all members support one of them."""
        return not common_protocols(self.members.values()).isdisjoint(protocols)

    def choose_protocol(self) -> str:
        return choose_protocol(self.members.values(), self.leader)

    def longest_rebalance_ms(self) -> int:
        """The longest that any member gives the others to join or sync; 0 without any."""
        return max((member.rebalance_ms for member in self.members.values()), default=0)

    def check(self) -> None:
        assert (self.leader in self.members) if self.members else self.leader is None, "leader_is_a_member"
        static = {m.instance_id: m.id for m in self.members.values() if m.instance_id is not None}
        assert static == self.instances, "static_members_one_to_one"
