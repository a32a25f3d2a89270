"""Client quotas by Redpanda's semantics (`turnstile.quota.semantics=redpanda`) on one shard: charges clients, and tells of delays.

No delay is longer than `max_kafka_throttle_delay_ms`. What a delay does is up to the module that charges: throughput_limit.py holds
the next Produce or Fetch of the connection, broker/kafka/quotas/mutations.py refuses a topic. ShareFetch and handler time cost
nothing: Redpanda has neither.
"""

from __future__ import annotations

from broker.journal.schema import REDPANDAS_QUOTA
from broker.runtime.shard_context import ShardContext
from broker.serve.call import Call
from broker.serve.channel import Channel
from broker.wire import apis
from shards.limits.client_quota_managers import MUTATION
from shards.limits.quota_entities import REDPANDAS, SEMANTICS
from shards.limits.redpanda_precedence import RedpandaMatch, user_of
from shards.loop.deferred import MaybeDeferred, then
from shards.quotas.shared_buckets import SharedBuckets


class RedpandaQuotas:
    """`shared`: the buckets; there are no quotas in them by Kafka's semantics."""

    def __init__(self, shared: SharedBuckets, context: ShardContext) -> None:
        self.shared = shared
        self._image = context.image
        self._journal = context.journal
        self._counters = context.counters

    def follow(self) -> None:
        """The image has another version."""
        is_redpandas = self._image.get(SEMANTICS) == REDPANDAS
        self.shared.set_quotas(self._image.quotas if is_redpandas else {})

    def in_use(self, kind: str) -> bool:
        """True while any client has a quota of the kind."""
        return self.shared.in_use(kind)

    def match(self, kind: str, user: str, client_id: str | None) -> RedpandaMatch:
        """The rule that holds for a client. `user`: the name in its principal."""
        return self.shared.match(kind, user_of(user), client_id or "")

    def charge(self, kind: str, user: str, client_id: str | None, amount: int) -> MaybeDeferred[int]:
        """Takes bytes or partitions of a client's bucket, if it has one; the delay in milliseconds. It is not to be cancelled."""
        key = self.match(kind, user, client_id).key
        return 0 if key is None else then(self.shared.charge(kind, key, amount), self._capped)

    def record_delay(
        self, channel: Channel, client_id: str | None, *, kind: str, api_key: int, amount: int, ms: int
    ) -> None:
        """Counts and journals a delay that the client is told."""
        limit = self.match(kind, channel.user, client_id).limit if ms else None
        if limit is None:
            return
        self._counters.throttled(kind, ms)
        self._journal.throttled(
            channel.id, channel.ip, channel.port, channel.listener, user=channel.user, client_id=client_id,
            api=apis.api_name(api_key), amount=amount, throttle_ms=ms, limit=REDPANDAS_QUOTA + kind, limit_value=limit,
            version=self._image.version, at_ms=0,
        )  # fmt: skip

    def record_mutation_delay(self, call: Call, partitions: int, ms: int) -> None:
        """As record_delay, for a request that creates or deletes partitions."""
        if call.channel is not None:
            self.record_delay(
                call.channel, call.client_id, kind=MUTATION, api_key=call.api_key, amount=partitions, ms=ms
            )

    def _capped(self, delay_ms: int) -> int:
        most_ms: int = self._image.get("max_kafka_throttle_delay_ms")
        return min(delay_ms, most_ms)
