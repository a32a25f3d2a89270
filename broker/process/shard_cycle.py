"""The steps of a shard's parts, in their order, when its image has another version and at the end of each pass of its loop.

Both orders are invariants, so both are lists here and nowhere else; tests/broker/process/test_shard_cycle.py holds them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.accept.shard_listeners import ShardListeners
    from broker.journal.writer import JournalWriter
    from broker.metrics.shard_counters import ShardCounters
    from broker.process.kafka import Kafka
    from broker.serve.client_quotas import ClientQuotas
    from broker.serve.throttling import Throttling
    from shards.mesh.mesh import Mesh

ImageStep = Callable[[Collection[str]], None]
"""Called with the kinds of records ("topic", "acl", "setting") that differ from those of the version before."""
PassStep = Callable[[], None]


class FollowsImage(Protocol):
    """A part of a shard that follows its image."""

    def image_changed(self, kinds: Collection[str]) -> None: ...


def image_steps(
    kafka: Kafka, throttling: Throttling, clients: FollowsImage, shard_listeners: ShardListeners
) -> list[ImageStep]:
    """The steps at another version of the image, before it is enforced on tokens:

    access              what is asked from here on is allowed by the new rules
    logs                the logs of topics that are gone, or replaced by others of their name, are closed
    shares, topics      (after logs) share groups, and groups' expressions, forget these topics
    telemetry           (the subscriptions of client instances)
    throttling          quotas of clients
    clients             throughput of the broker; faults: listeners answer by the new ones, which may end connections
    shard_listeners     rates and caps: when this last step returns, no unit granted under an older version can be spent
    """
    followers: list[FollowsImage] = [
        kafka.access,
        kafka.logs,
        kafka.shares,
        kafka.topics,
        kafka.telemetry,
        throttling,
        clients,
        shard_listeners,
    ]
    return [each.image_changed for each in followers]


def pass_steps(
    shard_listeners: ShardListeners, journal: JournalWriter, counters: ShardCounters, quotas: ClientQuotas, mesh: Mesh
) -> list[PassStep]:
    """At the end of a pass of the poller:

    shard_listeners   answers waiting connections, so that their admissions and refusals are in the journal written next
    journal           the `closed` of each connection that ended is on its way to disk before ...
    counters          (requests, which are plain numbers during a pass)
    quotas            (what requests were charged elsewhere)
    mesh              ... the tokens it released leave for other shards, where they may be taken again
    """
    return [shard_listeners.flush, journal.flush, counters.flush, quotas.flush, mesh.flush]
