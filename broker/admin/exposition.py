"""`/metrics`: what Redpanda, Kafka's JMX exporter and Turnstile call the counters, in the Prometheus text format.

Redpanda's names are its own. Kafka's are what the JMX exporter's example rules (kafka-kraft-3_0_0.yml) make of its
MBeans: `kafka.server:type=socket-server-metrics` attribute `connection-accept-rate` becomes
`kafka_server_socket_server_metrics_connection_accept_rate`, and so on. Rates are over Kafka's quota window.
What only shards know (quota rates of users, accept rates of IPs) they report as gauges, each with its name and labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from broker.admin.sampler import Member, Sample, Sampler
from broker.journal.schema import REASONS
from broker.shard_counters import BUCKET_BOUNDS_S, BUCKETS, PATHS, RECORDED
from shards.quotas.sharded_quotas import KINDS

Label = dict[str, str]
Gauge = Sequence[Any]  # [name, {label: value}, number], from a shard's describe_gauges
_ACCEPT = "kafka_server_socket_server_metrics_"
REJECTED = "vectorized_kafka_rpc_connections_rejected_total"


class MetricFamily(NamedTuple):
    """A metric, the counter it shows, and its labels beside shard and listener."""

    metric: str
    kind: str
    what: str
    counter: str
    labels: Label


def _gauge(metric: str, what: str, counter: str, **labels: str) -> MetricFamily:
    return MetricFamily(metric, "gauge", what, counter, labels)


def _counter(metric: str, what: str, counter: str, **labels: str) -> MetricFamily:
    return MetricFamily(metric, "counter", what, counter, labels)


_DECISIONS = "Admission decisions, by where they were taken."
_TOKENS = "Connection tokens held here, of all pools."
_BYTES = "Bytes of requests and responses."
_THROTTLED = "Requests answered with a throttle time, by quota."
_THROTTLE_MS = "Throttle time told to clients, in ms, by quota."
_PER_SHARD = (
    _gauge("vectorized_kafka_rpc_active_connections", "Connections open now, as Redpanda names it.", "open"),
    _counter("vectorized_kafka_rpc_connects_total", "Connections admitted, as Redpanda names it.", "admitted"),
    _counter(
        "vectorized_kafka_rpc_connections_wait_rate_total",
        "Connections that waited for a rate limit, as Redpanda names it.",
        "rate_waits",
    ),
    *(_counter("turnstile_decisions_total", _DECISIONS, f"decisions_{path}", path=path) for path in PATHS),
    *(_gauge("turnstile_tokens", _TOKENS, f"tokens_{state}", state=state) for state in ("in_use", "cached")),
    _gauge("turnstile_pools", "Pools this shard keeps memory for.", "pools"),
    _gauge("turnstile_waiting", "Connections waiting for a token or a rate.", "waiting"),
    _gauge("turnstile_held", "Connections held before they are refused, for the rate of their IP.", "held"),
    _gauge("turnstile_muted", "Channels muted by a quota (the delay queue's size).", "muted"),
    _counter("turnstile_reclaims_total", "Times a home asked holders for idle tokens.", "reclaims"),
    _counter("turnstile_borrows_total", "Requests for tokens sent to a home.", "borrows"),
    _counter("turnstile_grants_total", "Tokens granted to other shards.", "grants"),
    _counter("turnstile_malformed_total", "Connections closed for a frame that was no request.", "malformed"),
    _counter("turnstile_requests_total", "Kafka requests answered.", "requests"),
    _counter("turnstile_auth_failures_total", "Failed authentications.", "auth_failures"),
    _counter("turnstile_events_total", "Journal events written.", "events"),
    *(_counter("turnstile_bytes_total", _BYTES, f"bytes_{way}", direction=way) for way in ("in", "out")),
    *(_counter("turnstile_throttled_requests_total", _THROTTLED, f"throttled_{kind}", quota=kind) for kind in KINDS),
    *(_counter("turnstile_throttle_ms_total", _THROTTLE_MS, f"throttle_ms_{kind}", quota=kind) for kind in KINDS),
    _gauge("turnstile_config_version", "Configuration version in force on this shard.", "version"),
    _gauge("turnstile_shard_epoch", "Incarnation of this shard.", "epoch"),
)
_REFUSED = "Connections refused, by what refused them."
_PER_LISTENER = (
    *(
        _counter("turnstile_connections_refused_total", _REFUSED, f"refused_{reason}", reason=reason)
        for reason in REASONS
    ),
    _counter("turnstile_connections_admitted_total", "Connections admitted.", "admitted"),
    _counter("turnstile_connections_closed_total", "Connections that ended.", "closed"),
    _counter("turnstile_connections_lost_total", "Connections that ended with their killed shard.", "lost"),
    _gauge("turnstile_connections_open", "Connections open now.", "open"),
)


class Page:
    """Collects families in order and writes them out."""

    def __init__(self) -> None:
        self._families: dict[str, tuple[str, str, list[str]]] = {}

    def add(self, name: str, kind: str, what: str, labels: Mapping[str, Any], value: float, suffix: str = "") -> None:
        lines = self._families.setdefault(name, (kind, what, []))[2]
        text = ",".join(f'{key}="{_escaped(str(word))}"' for key, word in labels.items())
        lines.append(f"{name}{suffix}{{{text}}} {_number(value)}" if text else f"{name}{suffix} {_number(value)}")

    def __str__(self) -> str:
        out: list[str] = []
        for name, (kind, what, lines) in self._families.items():
            out += [f"# HELP {name} {what}", f"# TYPE {name} {kind}", *lines]
        return "\n".join(out) + "\n"


def exposition(
    sampler: Sampler,
    window_s: float,
    gauges: Mapping[Member, Iterable[Gauge]],
    uptime_s: float,
    *,
    inter_broker: str | None = None,
) -> str:
    """The whole page, as of now. `window_s`: what rates and averages are over; `inter_broker`: the listener whose
    connections the broker's rate does not count."""
    window = sampler.window(window_s)
    now = window[1]
    page = Page()
    for member in now.slots:
        _shard(page, sampler, now, member)
    _histogram(page, sampler, now)
    for broker in sorted({broker for broker, _ in now.slots}):
        _broker(page, sampler, window, broker, [member for member in now.slots if member[0] == broker], inter_broker)
    _reported(page, gauges)
    page.add("turnstile_uptime_seconds", "gauge", "Seconds since the coordinator started.", {}, uptime_s)
    return str(page)


def _shard(page: Page, sampler: Sampler, now: Sample, member: Member) -> None:
    shard = {"broker": str(member[0]), "shard": str(member[1])}
    refused = sum(sampler.refused(now, None, [member]).values())
    page.add(REJECTED, "counter", "Connections refused for a limit, as Redpanda names it.", shard, refused)
    for row in _PER_SHARD:
        page.add(
            row.metric, row.kind, row.what, {**row.labels, **shard}, sampler.total(now, row.counter, None, [member])
        )
    for listener in sampler.layout.listeners:
        labels = {"listener": listener, **shard}
        for row in _PER_LISTENER:
            value = sampler.total(now, row.counter, listener, [member])
            page.add(row.metric, row.kind, row.what, {**row.labels, **labels}, value)


def _histogram(page: Page, sampler: Sampler, now: Sample) -> None:
    """How long borrows took, summed over shards."""
    name, what = "turnstile_rpc_seconds", "Time until a home answered a borrow."
    first = sampler.layout.at["rpc"]
    slots = [sum(each[first + n] for each in now.slots.values()) for n in range(BUCKETS + 1)]
    running = 0
    for bound, count in zip((*BUCKET_BOUNDS_S, math.inf), slots[:BUCKETS], strict=True):
        running += count
        page.add(name, "histogram", what, {"le": _number(bound)}, running, "_bucket")
    page.add(name, "histogram", what, {}, slots[BUCKETS] / 1e9, "_sum")
    page.add(name, "histogram", what, {}, running, "_count")


def _broker(
    page: Page,
    sampler: Sampler,
    window: tuple[Sample, Sample],
    number: int,
    members: list[Member],
    inter_broker: str | None,
) -> None:
    """KIP-612's metrics of one broker."""
    seconds = window[1].mono_s - window[0].mono_s
    broker = {"broker": str(number)}
    accepted = 0
    for listener in sampler.layout.listeners:
        labels = {**broker, "listener": listener}

        def rise(name: str, listener: str = listener) -> int:
            return sampler.rise(window, name, listener, members)

        arrived = sum(rise(counter) for counter in RECORDED)
        if listener != inter_broker or len(sampler.layout.listeners) == 1:
            accepted += arrived
        page.add(
            f"{_ACCEPT}connection_accept_rate",
            "gauge",
            "Connections accepted per second (KIP-612).",
            labels,
            _ratio(arrived, seconds, 0.0),
        )
        page.add(
            f"{_ACCEPT}connection_accept_throttle_time",
            "gauge",
            "Average delay in ms of accepting, by broker and listener rates (KIP-612).",
            labels,
            _ratio(rise("accept_throttle_ms"), rise("accept_throttles"), math.nan),
        )
        page.add(
            f"{_ACCEPT}ip_connection_accept_throttle_time",
            "gauge",
            "Average delay in ms of connections over the rate of their IP (KIP-612).",
            labels,
            _ratio(rise("ip_throttle_ms"), rise("ip_throttles"), math.nan),
        )
        page.add(
            "kafka_network_acceptor_acceptorblocked_percent",
            "gauge",
            "Share of time that accepting was blocked, 0 to 1 (AcceptorBlockedPercent).",
            labels,
            min(1.0, _ratio(rise("blocked_ns") / 1e9 / len(members), seconds, 0.0)),
        )
    page.add(
        f"{_ACCEPT}broker_connection_accept_rate",
        "gauge",
        "Connections accepted per second (KIP-612).",
        broker,
        _ratio(accepted, seconds, 0.0),
    )


def _reported(page: Page, gauges: Mapping[Member, Iterable[Gauge]]) -> None:
    """Gauges that shards report, as they are; the same name and labels from two shards of a broker add up."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for (broker, _), reported in gauges.items():
        for name, labels, value in reported:
            key = (name, tuple(sorted({**labels, "broker": str(broker)}.items())))
            found[key] = found.get(key, 0.0) + value
    for (name, named), value in sorted(found.items()):
        page.add(name, "gauge", "Reported by shards.", dict(named), value)


def _ratio(part: float, whole: float, empty: float) -> float:
    return part / whole if whole > 0 else empty


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf"
    if math.isnan(value):
        return "NaN"
    return repr(int(value)) if float(value).is_integer() else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
