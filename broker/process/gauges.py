"""The gauges of /metrics that only a shard can compute: rates of the clients metered at home here, and queues.

Names are those of Kafka's JMX beans as the exporter's example rules spell them: the attribute byte-rate of
kafka.server:type=Produce,user=,client-id= becomes kafka_server_quota_byte_rate{resource="Produce",user,clientId}, and a user or
client id that the quota does not tell apart is no label. At most MOST clients are shown, those idle for an hour not at all;
a name of more than LONGEST_KNOWN characters is shown as its beginning and a digest (shards/limits/short_names.py).
"""

from __future__ import annotations

import time

from broker.runtime.journal_loss import JournalLoss
from broker.runtime.shard_context import ShardContext
from broker.serve.muted import Muted
from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE, REQUEST
from shards.quotas.meters import KINDS
from shards.quotas.sharded_quotas import ShardedQuotas

MOST = 200
QUOTA = "kafka_server_quota_"
BEANS = {PRODUCE: "Produce", FETCH: "Fetch", REQUEST: "Request", MUTATION: "ControllerMutation"}
"""The type of Kafka's MBean for each kind of quota, which is the label `resource`."""
ATTRIBUTES = {PRODUCE: "byte_rate", FETCH: "byte_rate", REQUEST: "request_time", MUTATION: "tokens"}


def describe_gauges(meters: ShardedQuotas, muted: Muted) -> list[list[object]]:
    """[[metric name, {label: value}, number]]."""
    rows: list[list[object]] = [
        [f"kafka_server_{BEANS[kind].lower()}_queue_size", {}, muted.sizes[kind]] for kind in KINDS
    ]
    exempt = meters.exempt_percent()
    if exempt is not None:
        rows.append(["kafka_server_request_exempt_request_time", {}, exempt])
    for user, client_id, rate in meters.mutation_rates(MOST):
        rows.append([f"{QUOTA}mutation_rate", _labels(MUTATION, user, client_id), rate])
    for kind, user, client_id, value, throttle_ms in meters.describe(MOST):
        labels = _labels(kind, user, client_id)
        rows.append([f"{QUOTA}{ATTRIBUTES[kind]}", labels, value])
        if throttle_ms is not None:
            rows.append([f"{QUOTA}throttle_time", labels, throttle_ms])
    return rows


def _labels(kind: str, user: str, client_id: str) -> dict[str, str]:
    named = {"user": user, "clientId": client_id}
    return {"resource": BEANS[kind], **{label: name for label, name in named.items() if name}}


class ShardGauges:
    """The gauges of one shard in its counters' file, and the counters that its parts keep as plain numbers."""

    def __init__(self, context: ShardContext, muted: Muted, meters: ShardedQuotas) -> None:
        self._tokens = context.tokens
        self._log = context.log
        self._meters = meters
        self._sharing: list[str] = []
        self._counters = context.counters
        self._journal = context.journal
        self._poller = context.poller
        self._loss = JournalLoss(context.journal, context.log)
        self._muted = muted
        self._counted: dict[str, int] = {}

    def set(self) -> None:
        """Brings the file up to date; to be called a few times a second."""
        tokens, counters = self._tokens, self._counters
        totals = tokens.totals()
        counters.set("tokens_in_use", totals.in_use)
        counters.set("tokens_cached", totals.cached)
        counters.set("pools", totals.pools)
        counters.set("muted", len(self._muted))
        self._loss.tick(time.monotonic())
        counters.set("losing_events", self._loss.is_losing)
        sensors = self._meters.sensors()
        counters.set("quota_sensors", sensors.kept)
        counters.set("quotas_shared", len(sensors.sharing))
        self._tell_sharing(sensors.sharing)
        counters.set("longest_callback_us", self._poller.stalls.longest_ns // 1000)
        for name, value in (
            ("decisions_home", tokens.decided_home),
            ("decisions_cached", tokens.decided_cached),
            ("decisions_rpc", tokens.decided_rpc),
            ("borrows", tokens.borrows),
            ("reclaims", tokens.reclaims),
            ("events", self._journal.written),
            ("events_dropped", self._journal.dropped),
            ("quota_sensors_evicted", sensors.evicted),
            ("stalls", self._poller.stalls.count),
        ):
            if value > (counted := self._counted.get(name, 0)):  # `events` falls by those that were lost with a file
                counters.add(name, value - counted)
                self._counted[name] = value

    def _tell_sharing(self, sharing: list[str]) -> None:
        if sharing and not self._sharing:
            self._log.warning("too many client names: new clients of a default quota share it", quotas=sharing)
        elif self._sharing and not sharing:
            self._log.info("every client of a default quota has it alone again")
        self._sharing = sharing
