"""HELP texts of the metrics that Kafka has as MBeans, by their names in the Prometheus exporter's spelling, and of Turnstile's own
beside them."""

from __future__ import annotations

_SOCKET_SERVER = "kafka_server_socket_server_metrics_"
_HELP = {
    f"{_SOCKET_SERVER}connection_accept_rate": (
        "Connections accepted per second: of a listener, or of an address that has a rate (KIP-612)."
    ),
    "turnstile_user_connection_accept_rate": "Logins per second of a user that has a rate.",
    f"{_SOCKET_SERVER}broker_connection_accept_rate": "Connections accepted per second (KIP-612).",
    f"{_SOCKET_SERVER}connection_accept_throttle_time": (
        "Average delay of accepting, by broker and listener rates, in milliseconds (KIP-612)."
    ),
    f"{_SOCKET_SERVER}ip_connection_accept_throttle_time": (
        "Average delay of connections over the rate of their IP, in milliseconds (KIP-612)."
    ),
    "kafka_network_acceptor_acceptorblockedpercent_count": (
        "Nanoseconds for which accepting was blocked (the count of AcceptorBlockedPercent)."
    ),
    "turnstile_accept_blocked_ratio": "Share of time that accepting was blocked, within the quota window.",
    "kafka_server_request_exempt_request_time": (
        "Handler time of requests that no quota throttles, in percent of one thread (KIP-124)."
    ),
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent": (
        "Share of time for which the request handlers of the broker were idle since they were started (0 to 1)."
    ),
    "kafka_server_fetchsessioncache_numincrementalfetchsessions": "Fetch sessions in the caches (KIP-227).",
    "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached": "Partitions of these fetch sessions (KIP-227).",
    "kafka_server_sharesessioncache_sharesessionscount": "Share sessions of the broker (KIP-932).",
    "kafka_server_sharesessioncache_sharepartitionscount": "Partitions of these share sessions (KIP-932).",
    "turnstile_share_partitions": "Partitions of share groups whose state the broker keeps.",
    "kafka_server_client_metrics_instance_count": (
        "Client instances whose telemetry the broker knows, each once for every shard that knows it (KIP-714)."
    ),
    "kafka_server_quota_byte_rate": "Bytes produced or fetched per second by a client under a quota, by `resource`.",
    "kafka_server_quota_request_time": "Handler time of a client under a quota, in percent of one thread (KIP-124).",
    "kafka_server_quota_tokens": "Tokens left in the bucket of a client's mutation quota (KIP-599).",
    "kafka_server_quota_mutation_rate": "Partition mutations per second of a client (KIP-599).",
    "kafka_server_quota_throttle_time": "Average throttle time of a client in milliseconds, by the quota `resource`.",
    **{
        f"kafka_server_{bean}_queue_size": f"Channels muted by the {quota} quota (the delay queue's size)."
        for bean, quota in (
            ("produce", "produce"), ("fetch", "fetch"), ("request", "request"), ("controllermutation", "mutation"),
        )
    },
}  # fmt: skip


def help_of(name: str) -> str:
    """The HELP text of a gauge; its name in words for one that is not listed here."""
    return _HELP.get(name) or name.replace("_", " ").capitalize() + "."
