"""A broker's throughput as a whole, in both directions: Redpanda's `kafka_throughput_limit_node_in_bps` and `_out_bps`. Pure.

The shards of the broker share its buckets by shards/quotas/shared_throughput.py.

one_bucket_a_direction  All that is received counts against one bucket, all that is sent against another; both begin empty.
received_before_sent    A request is charged when it arrives, and its answer when it is there: what was sent delays the requests
    that come after it.
a_change_begins_anew    A bucket of another rate is another bucket, and empty; one whose rate stays keeps its tokens.

Source: snc_quota_manager (Redpanda 24.3).
"""

from typing import NamedTuple

from shards.limits.atomic_token_bucket import AtomicTokenBucket

NODE_IN, NODE_OUT = "kafka_throughput_limit_node_in_bps", "kafka_throughput_limit_node_out_bps"
NODE_LIMITS = (NODE_IN, NODE_OUT)


class NodeDelays(NamedTuple):
    """The throttle times of a client, in milliseconds: for what the node received, and for what it sent."""

    in_ms: int
    out_ms: int


class NodeThroughput:
    """Both buckets of a node; a direction without a rate has none."""

    def __init__(self) -> None:
        self._received: AtomicTokenBucket | None = None
        self._sent: AtomicTokenBucket | None = None

    def set_rates(self, in_bps: int | None, out_bps: int | None, *, now_ms: int) -> None:
        """Other limits, in bytes a second (a_change_begins_anew)."""
        self._received = _bucket(self._received, in_bps, now_ms)
        self._sent = _bucket(self._sent, out_bps, now_ms)

    def charge(self, received: int, sent: int, *, now_ms: int) -> NodeDelays:
        """Takes the bytes of requests and of answers, and tells both delays."""
        return NodeDelays(
            0 if self._received is None else self._received.use(received, now_ms=now_ms),
            0 if self._sent is None else self._sent.use(sent, now_ms=now_ms),
        )

    def reset(self, *, now_ms: int) -> None:
        """Resets the rates to those of a node that starts."""
        in_bps, out_bps = _rate(self._received), _rate(self._sent)
        self._received = self._sent = None
        self.set_rates(in_bps, out_bps, now_ms=now_ms)


def _rate(bucket: AtomicTokenBucket | None) -> int | None:
    return None if bucket is None else bucket.rate


def _bucket(before: AtomicTokenBucket | None, rate: int | None, now_ms: int) -> AtomicTokenBucket | None:
    if rate is None or (before is not None and before.rate == rate):
        return None if rate is None else before
    return AtomicTokenBucket(rate, now_ms=now_ms, full=False)
