"""A member of a classic group, the requests and answers about it, and how members agree on a protocol."""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple


class GroupConfig(NamedTuple):
    """Settings of the same names: group.min.session.timeout.ms and so on, in force at this instant."""

    min_session_ms: int
    max_session_ms: int
    max_size: int
    initial_delay_ms: int


class JoinRequest(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_ms: int
    rebalance_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    id_required: bool  # KIP-394: version 4 and later ask a new dynamic member to come back with its id
    can_skip: bool  # KIP-814: version 9 and later understand skip_assignment

    @property
    def asks_for_id(self) -> bool:
        """True if the answer is a member id alone."""
        return self.id_required and not self.member_id and self.instance_id is None


class JoinGroupResult(NamedTuple):
    code: int
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    skip_assignment: bool = False


class SyncGroupResult(NamedTuple):
    code: int
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


Reply = Callable[[object], None]


@dataclass(slots=True, eq=False)
class Member:
    """`deadline_ms`: when the member counts as lost. It does not apply while a member that is not `new` waits for an answer of the
    group."""

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_ms: int
    rebalance_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    deadline_ms: int
    new: bool = True
    assignment: bytes = b""
    joining: Reply | None = None
    syncing: Reply | None = None

    def await_join(self, reply: Reply) -> None:
        """`reply` is called with the answer to its JoinGroup, which waits until the rebalance has all members."""
        self.joining = reply

    def await_sync(self, reply: Reply) -> None:
        """`reply` is called with the answer to its SyncGroup, which waits for the leader's assignment."""
        self.syncing = reply

    @property
    def expires_ms(self) -> int | None:
        waiting = self.joining is not None or self.syncing is not None
        return None if waiting and not self.new else self.deadline_ms

    def metadata(self, protocol: str) -> bytes:
        return next((data for name, data in self.protocols if name == protocol), b"")


def common_protocols(members: Collection[Member]) -> set[str]:
    """The protocols that every one of them supports."""
    count = Counter(name for member in members for name in {name for name, _ in member.protocols})
    return {name for name, supporters in count.items() if supporters == len(members)}


def choose_protocol(members: Collection[Member], leader: str | None) -> str:
    """The protocol that most members prefer, of those that all support; a tie goes by the order of the leader."""
    common = common_protocols(members)
    votes = Counter(next(name for name, _ in member.protocols if name in common) for member in members)
    judge = next((member for member in members if member.id == leader), next(iter(members)))
    order = [name for name, _ in judge.protocols if name in common]
    return max(order, key=lambda name: (votes[name], -order.index(name)))
