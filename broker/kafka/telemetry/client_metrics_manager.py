"""The client instances of one shard: what is asked of each, when it may ask and push again, and what it pushed last. Pure.

pushes_keep_their_interval  Between two pushes of an instance lies its push interval, but for the first after it has asked
    for its subscriptions and for its last (terminating); between anything and the next time it asks for them, too, unless
    these have changed. After a push for another subscription or of an unknown codec it may ask at once; as in Kafka, that
    does not let it push sooner.
instances_end_with_connections  An instance belongs to the connection on which it was heard of first, and is forgotten with
    it, or when it is silent for three intervals and at least a minute.
instances_are_bounded  There are never more than `turnstile.telemetry.instances.max` instances, and of pushes never more
    than `turnstile.telemetry.kept.bytes`, the last of each instance: those heard of least recently go first. What an
    instance pushed is kept when it is gone.

Times are milliseconds of any one clock that has run for longer than the longest interval. Source: ClientMetricsManager,
ClientMetricsInstance of Kafka 4.1, which keep instances by broker; here each shard keeps those of its connections.
"""

from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol
from uuid import UUID

from broker.kafka.telemetry.subscriptions import (
    RequestedMetrics,
    Subscription,
    asked_of,
    subscription_id,
    subscription_of,
)
from broker.storage.compression import NAMES, NotUnpacked, unpacked
from broker.wire import codes
from shards.config.image import ClusterImage
from shards.uuids import random_uuid, uuid_text

_LEAST_SILENCE_MS = 60_000
_RESERVED = (UUID(int=0), UUID(int=1))
_NEVER_MS = -(10**12)
_TO_ASK_AGAIN = (codes.UNKNOWN_SUBSCRIPTION_ID, codes.UNSUPPORTED_COMPRESSION_TYPE)
INSTANCES_MAX, KEPT_BYTES, MAX_BYTES = (
    "turnstile.telemetry.instances.max", "turnstile.telemetry.kept.bytes", "telemetry.max.bytes",
)  # fmt: skip


class Connected(Protocol):
    """A connection, compared by identity."""

    closed: bool


class Push(NamedTuple):
    """A PushTelemetry request: MetricsData of OTLP, compressed by a codec of compression.NAMES; 0: as it is."""

    subscription_id: int
    terminating: bool
    compression: int
    metrics: bytes


class Instance:
    """A client that asked for its subscriptions, or pushed. `client`: what patterns are compared with, by their names."""

    __slots__ = (
        "asked", "client", "connection", "error", "expires_ms", "got_ms", "id", "pushed_ms", "subscription_id", "terminating",
        "version",
    )  # fmt: skip

    def __init__(self, instance_id: UUID, client: Mapping[str, str], connection: Connected) -> None:
        self.id = instance_id
        self.client = client
        self.connection = connection
        self.asked = RequestedMetrics((), 0)
        self.subscription_id = self.version = 0
        self.error = codes.NONE  # the error of the last push
        self.terminating = False
        self.got_ms = self.pushed_ms = _NEVER_MS
        self.expires_ms = 0

    def may_get(self, now_ms: int) -> bool:
        """True if its interval is over (pushes_keep_their_interval)."""
        if now_ms - max(self.got_ms, self.pushed_ms) >= self.asked.push_interval_ms:
            self.got_ms = now_ms
        elif self.error not in _TO_ASK_AGAIN:
            return False
        self.error = codes.NONE
        return True

    def may_push(self, now_ms: int) -> bool:
        """True if its interval is over (pushes_keep_their_interval)."""
        if self.got_ms <= self.pushed_ms and now_ms - self.pushed_ms < self.asked.push_interval_ms:
            return False
        self.pushed_ms = now_ms
        return True


class Pushed:
    """The last push of an instance, and how often it pushed."""

    __slots__ = ("at_ms", "client", "compression", "errors", "metrics", "pushes")

    def __init__(self) -> None:
        self.client: Mapping[str, str] = {}
        self.compression = self.at_ms = self.pushes = 0
        self.metrics = b""
        self.errors: dict[int, int] = {}
        """The number of pushes that were refused, by error code."""


class Subscriptions(NamedTuple):
    """The answer to GetTelemetrySubscriptions: a Kafka error code, and the instance with what it is asked for."""

    code: int
    instance: Instance


class ClientMetricsManager:
    """Answers both requests of a client instance by error code. `image`: the subscriptions and bounds in force."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._version = 0
        self._subscriptions: list[Subscription] = []
        self._instances: OrderedDict[UUID, Instance] = OrderedDict()
        self._pushed: OrderedDict[UUID, Pushed] = OrderedDict()
        self._kept_bytes = 0

    def image_changed(self, kinds: Collection[str]) -> None:
        """The image has another version, in which records of `kinds` differ."""
        if "client_metrics" not in kinds:
            return
        self._version += 1
        self._subscriptions = [subscription_of(configs) for configs in self._image.client_metrics.values()]

    def reset(self) -> None:
        self._instances.clear()
        self._pushed.clear()
        self._kept_bytes = 0

    # ---- the two requests

    def get(
        self, instance_id: UUID | None, client: Mapping[str, str], connection: Connected, *, now_ms: int
    ) -> Subscriptions:
        """GetTelemetrySubscriptions. `instance_id` None: the client has none yet."""
        instance = self._instance(instance_id or random_uuid(), client, connection, now_ms)
        code = codes.NONE if instance.may_get(now_ms) else codes.THROTTLING_QUOTA_EXCEEDED
        return Subscriptions(code, instance)

    def push(
        self,
        instance_id: UUID | None,
        push: Push,
        client: Mapping[str, str],
        connection: Connected,
        *,
        now_ms: int,
        wall_ms: int,
    ) -> int:
        """PushTelemetry: an error code. `wall_ms`: Unix time, for people."""
        if instance_id is None or instance_id in _RESERVED:
            return codes.INVALID_REQUEST
        instance = self._instance(instance_id, client, connection, now_ms)
        code = self._refusal(instance, push, now_ms) or _unreadable(push)
        instance.terminating, instance.error = push.terminating, code
        self._keep(instance, push, code, wall_ms)
        return code

    def _refusal(self, instance: Instance, push: Push, now_ms: int) -> int:
        """The error of a push, checked in Kafka's order."""
        if instance.terminating:
            return codes.INVALID_REQUEST
        if not instance.may_push(now_ms) and not push.terminating:
            return codes.THROTTLING_QUOTA_EXCEEDED
        if push.subscription_id != instance.subscription_id:
            return codes.UNKNOWN_SUBSCRIPTION_ID
        if push.compression and push.compression not in NAMES:
            return codes.UNSUPPORTED_COMPRESSION_TYPE
        return codes.TELEMETRY_TOO_LARGE if len(push.metrics) > self._image.get(MAX_BYTES) else codes.NONE

    # ---- instances

    def _instance(self, instance_id: UUID, client: Mapping[str, str], connection: Connected, now_ms: int) -> Instance:
        found = self._instances.pop(instance_id, None)
        if found is None or _is_gone(found, now_ms):
            matched = {**client, "client_instance_id": uuid_text(instance_id)}
            found = self._evaluated(Instance(instance_id, matched, connection))
        elif found.version != self._version:
            found = self._evaluated(Instance(instance_id, found.client, connection))
        self._instances[instance_id] = found
        found.expires_ms = now_ms + max(3 * found.asked.push_interval_ms, _LEAST_SILENCE_MS)
        while len(self._instances) > self._image.get(INSTANCES_MAX):
            self._instances.popitem(last=False)
        return found

    def _evaluated(self, instance: Instance) -> Instance:
        instance.version = self._version
        instance.asked = asked_of(instance.client, self._subscriptions)
        instance.subscription_id = subscription_id(instance.asked, instance.id)
        return instance

    def count(self, *, now_ms: int) -> int:
        """The number of instances; forgets those that are gone (instances_end_with_connections)."""
        for instance_id in [each.id for each in self._instances.values() if _is_gone(each, now_ms)]:
            del self._instances[instance_id]
        return len(self._instances)

    # ---- what was pushed

    def _keep(self, instance: Instance, push: Push, code: int, wall_ms: int) -> None:
        """instances_are_bounded. A push without metrics counts, and leaves what was pushed before."""
        kept = self._pushed.pop(instance.id, None) or Pushed()
        self._pushed[instance.id] = kept
        kept.client = instance.client
        if code:
            kept.errors[code] = kept.errors.get(code, 0) + 1
        else:
            kept.pushes += 1
            if push.metrics:
                self._kept_bytes += len(push.metrics) - len(kept.metrics)
                kept.metrics, kept.compression, kept.at_ms = push.metrics, push.compression, wall_ms
        while len(self._pushed) > self._image.get(INSTANCES_MAX):
            self._kept_bytes -= len(self._pushed.popitem(last=False)[1].metrics)
        for oldest in self._pushed.values() if self._kept_bytes > self._image.get(KEPT_BYTES) else ():
            self._kept_bytes -= len(oldest.metrics)
            oldest.metrics = b""
            if self._kept_bytes <= self._image.get(KEPT_BYTES):
                break

    def describe(self, most: int, *, now_ms: int) -> list[dict[str, object]]:
        """The `most` instances heard of last, the latest first, without what they pushed."""
        self.count(now_ms=now_ms)
        ids = dict.fromkeys([*reversed(self._pushed), *reversed(self._instances)])
        return [self._described(each, self._instances.get(each)) for each in [*ids][:most]]

    def _described(self, instance_id: UUID, instance: Instance | None) -> dict[str, object]:
        kept = self._pushed.get(instance_id) or Pushed()
        asked = instance.asked if instance is not None else None
        return {
            **(instance.client if instance is not None else kept.client),
            "connected": instance is not None and not instance.connection.closed,
            "metrics": None if asked is None else [*asked.metrics],
            "push_interval_ms": None if asked is None else asked.push_interval_ms,
            "subscription_id": None if instance is None else instance.subscription_id,
            "pushes": kept.pushes,
            "refused": dict(kept.errors),
            "pushed_at_ms": kept.at_ms or None,
            "bytes": len(kept.metrics),
        }

    def last_push(self, instance_id: str) -> list[object] | None:
        """[Unix ms, compression, metrics]: the last push of an instance, by its spelled id, that was taken; None: none is kept."""
        kept = next((kept for each, kept in self._pushed.items() if uuid_text(each) == instance_id), None)
        return [kept.at_ms, kept.compression, kept.metrics] if kept is not None and kept.metrics else None


def _is_gone(instance: Instance, now_ms: int) -> bool:
    """True if its connection is closed, or it was silent for too long (instances_end_with_connections)."""
    return instance.connection.closed or now_ms > instance.expires_ms


def _unreadable(push: Push) -> int:
    """INVALID_RECORD for metrics that are not of their codec, as what exports them in Kafka would fail."""
    if push.metrics and push.compression:
        try:
            unpacked(push.compression, push.metrics)
        except NotUnpacked:
            return codes.INVALID_RECORD
    return codes.NONE
