"""The messages from other shards to the home of a group's share partitions; share_homes.py packs and unpacks it for the mesh.

Fields hold what msgpack carries; topic ids are in hex. The answer stands at each message: a code is one of Kafka's error codes.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from broker.kafka.share.share_requests import ShareFetchLimits, ShareRequest


class FetchShares(NamedTuple):
    """The fields of a ShareAnswer."""

    request: ShareRequest
    limits: ShareFetchLimits


class AcknowledgeShares(NamedTuple):
    """The fields of a ShareAnswer."""

    request: ShareRequest


class GiveBackAcquired(NamedTuple):
    """No answer. `acquired`: (topic id, partition, AcquiredRecords) each, of an answer that was withheld."""

    group: str
    member: str
    acquired: Sequence[tuple[str, int, Sequence[object]]]


class EndShareSession(NamedTuple):
    """No answer. `owner`: the connection that began the session and has ended, as (shard, number)."""

    group: str
    member: str
    owner: tuple[int, int]


class ReadShareOffsets(NamedTuple):
    """The fields of a ShareOffset for each of `places`: (topic id, partition)."""

    group: str
    places: Sequence[tuple[str, int]]


class ListSharePlaces(NamedTuple):
    """(topic id, partition) of each partition of which the group has a state in the broker."""

    group: str


class SetShareOffsets(NamedTuple):
    """A code for each of `offsets`: (topic id, partition, start offset)."""

    group: str
    offsets: Sequence[tuple[str, int, int]]


class ForgetShares(NamedTuple):
    """A code. `topic_ids` None: all topics."""

    group: str
    topic_ids: Sequence[str] | None


ShareMessage: TypeAlias = (
    FetchShares
    | AcknowledgeShares
    | GiveBackAcquired
    | EndShareSession
    | ReadShareOffsets
    | ListSharePlaces
    | SetShareOffsets
    | ForgetShares
)
