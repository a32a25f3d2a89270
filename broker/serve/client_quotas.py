"""The client quotas of one shard: meters of those in force, and the rehearsal of those that are observed, side by side; the
throughput of the broker as a whole, which is charged beside them; and Redpanda's buckets of clients, in place of the meters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from broker.metrics.quota_events import CHARGES, OBSERVED_CHARGES, QuotaEvents
from broker.metrics.shard_counters import ShardCounters
from broker.runtime.shard_context import ShardContext
from broker.serve.quota_rehearsal import QuotaRehearsal
from broker.serve.redpanda_quotas import RedpandaQuotas
from shards.config.image import ClusterImage
from shards.loop.deferred import Deferred
from shards.quotas.charge_notes import ChargeNotes
from shards.quotas.history_replication import Call
from shards.quotas.rehearsed_quotas import RehearsedQuotas
from shards.quotas.sharded_quotas import ShardedQuotas
from shards.quotas.shared_buckets import SharedBuckets
from shards.quotas.shared_throughput import SharedThroughput

_OBSERVED = "observed_"
"""The prefix of the methods by which the meters of observed quotas call each other."""


class Serve(Protocol):
    """Mesh.serve."""

    def __call__(self, method: str, function: Callable[..., object], /) -> None: ...


class ClientQuotas:
    """`meters`: of the quotas in force; `rehearsal`: of those that are observed, by meters of its own; `throughput`: of all;
    `buckets`: of the quotas in force by Redpanda's semantics, by which no meter is in use."""

    def __init__(
        self,
        meters: ShardedQuotas,
        observed: ShardedQuotas,
        rehearsal: QuotaRehearsal,
        throughput: SharedThroughput,
        buckets: RedpandaQuotas,
    ) -> None:
        self.meters = meters
        self.buckets = buckets
        self.throughput = throughput
        self.rehearsal = rehearsal
        self._observed = observed
        self._each = meters, observed

    def serve_on(self, serve: Serve) -> None:
        """Offers all of them to the other shards."""
        self.throughput.serve_on(serve)
        self.buckets.shared.serve_on(serve)
        self.meters.serve_on(serve)
        self._observed.serve_on(lambda method, function: serve(_OBSERVED + method, function))

    def follow(self) -> None:
        """The image has another version."""
        self.meters.read_quotas()
        self.rehearsal.follow()
        self.buckets.follow()

    def reset(self) -> None:
        """No client has used any of a quota yet."""
        self.meters.reset()
        self.rehearsal.reset()
        self.throughput.reset()
        self.buckets.shared.reset()

    def await_peers(self) -> None:
        """See ShardedQuotas, as of the methods below."""
        for each in self._each:
            each.await_peers()

    def peer_up(self, shard: int) -> None:
        for each in self._each:
            each.replication.send_everything(shard)
        self.throughput.peer_up(shard)
        self.buckets.shared.peer_up(shard)

    def peer_lost(self, shard: int) -> None:
        for each in self._each:
            each.peer_lost(shard)
        self.throughput.peer_lost(shard)
        self.buckets.shared.peer_lost(shard)

    def flush(self) -> None:
        for each in self._each:
            each.flush()

    def expire(self) -> None:
        for each in self._each:
            each.expire()
        self.buckets.shared.expire()


def make_client_quotas(context: ShardContext, call: Call) -> ClientQuotas:
    """The client quotas of a shard. `call`: mesh.call."""

    def now_ms() -> int:
        return context.poller.clock_ns() // 1_000_000

    make = partial(
        ShardedQuotas,
        context.shard,
        context.shards,
        now_ms=now_ms,
        touch=context.poller.touch,
        after=context.timers.after,
        mistaken=context.log.call_mistaken,
        callback_mistaken=context.log.quota_callback_mistaken,
    )
    notes = [
        QuotaEvents(context.journal, lambda: context.image.version, kinds) for kinds in (CHARGES, OBSERVED_CHARGES)
    ]
    throughput = SharedThroughput(context.shard, call=call, now_ms=now_ms, timers=context.timers)
    shared = SharedBuckets(context.shard, context.shards, call=call, now_ms=now_ms, timers=context.timers)
    return side_by_side(
        make,
        context.image,
        call,
        context.counters,
        context.log.call_mistaken,
        notes,
        throughput=throughput,
        buckets=RedpandaQuotas(shared, context),
    )


def side_by_side(
    make: Callable[..., ShardedQuotas],
    image: ClusterImage,
    call: Call,
    counters: ShardCounters,
    mistaken: Callable[[Exception], None],
    notes: Sequence[ChargeNotes | None] = (None, None),
    *,
    throughput: SharedThroughput,
    buckets: RedpandaQuotas,
) -> ClientQuotas:
    """`make(image, call=, notes=)`: the meters of a shard; those in force have the first of `notes`."""

    def call_observed(peer: int, method: str, *args: object) -> Deferred[object]:
        return call(peer, _OBSERVED + method, *args)

    meters = make(image, call=call, notes=notes[0])
    observed = make(RehearsedQuotas(image), call=call_observed, notes=notes[1])
    return ClientQuotas(
        meters, observed, QuotaRehearsal(meters, observed, image, counters, mistaken), throughput, buckets
    )
