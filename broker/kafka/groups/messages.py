"""The messages from handlers to the home of a group, whatever its protocol; those of one protocol stand in its room's messages.py.

Every message names its group first, but for ListGroups, which is for every shard; router.py packs and unpacks it for the mesh.
Fields hold what msgpack carries. The answer stands at each message: a code is one of Kafka's error codes.
"""

from collections.abc import Sequence
from typing import NamedTuple


class GroupListing(NamedTuple):
    """A group; `kind` is its type in ListGroups: classic, consumer, share or streams."""

    group: str
    protocol_type: str
    state: str
    kind: str


class ListGroups(NamedTuple):
    """A GroupListing of each group that is at home in the shard."""


class DeleteGroup(NamedTuple):
    """A code."""

    group: str


class CommitOffsets(NamedTuple):
    """A code. `offsets`: (topic, topic id in hex, partition, offset, leader epoch, metadata) each; `generation`: or the member
    epoch, of a member of the consumer protocol; `version`: that of OffsetCommit."""

    group: str
    member: str
    instance: str | None
    generation: int
    offsets: Sequence[tuple[str, str, int, int, int, str]]
    version: int


class CommitOffsetsInTransaction(NamedTuple):
    """A code. `producer`: (transactional id, producer id, epoch, whether by the second version of the protocol)."""

    group: str
    member: str
    instance: str | None
    generation: int
    offsets: Sequence[tuple[str, str, int, int, int, str]]
    producer: tuple[str, int, int, bool]


class FetchOffsets(NamedTuple):
    """[code, offsets], as GroupCoordinator.fetch says. `places`: (topic, partition) each; None: all that are committed."""

    group: str
    places: Sequence[tuple[str, int]] | None
    stable: bool
    member: str | None = None
    epoch: int = -1


class DeleteOffsets(NamedTuple):
    """[code, a code for each of `places`]: (topic, partition)."""

    group: str
    places: Sequence[tuple[str, int]]
