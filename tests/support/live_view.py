"""What /v1/live answers, with everything in it that a display has to make room for."""

POINT = {
    "connections": 7, "admitted": 3.0, "closed": 1.0, "refused": {"shard_unavailable": 12_345.6, "ip_cap": 1.0},
    "requests": 64_885.2, "throttled": {"producer_byte_rate": 12.5},
}  # fmt: skip
LIVE = {
    "version": 7,
    "brokers": 3,
    "window_s": 1.0,
    "uptime_s": 3725.0,
    "journal": {"events_dropped": 812, "is_losing": True},
    "listeners": ["EXTERNAL", "INTERNAL"],
    "series": [POINT] * 90,
    "totals": {
        "connections": 12_345,
        "refused": {"shard_unavailable": 1_234_567, "ip_cap": 5, "fd_limit": 0},
        "tokens": {"in_use": 123_456, "cached": 9, "pools": 1_000_000},
        "decisions": {"home": 1, "cached": 2, "rpc": 1},
        "reclaims": 4,
        "waiting": 3,
        "held": 0,
        "muted": 0,
    },
    "uses": [
        {"broker": 0, "what": "connections", "of": "ip:2001:db8:ffff:ffff::1", "used": 50, "limit": 50,
         "by": "kafka_connections_max_per_ip"},
        {"broker": 1, "what": "new_connections", "of": "ip:10.0.0.1", "used": 18.4, "limit": 20.0,
         "by": "connection_creation_rate"},
        {"broker": 2, "what": "connections", "of": "broker", "used": 40, "limit": 100, "by": "max.connections"},
    ],
    "close": [
        {"broker": 0, "what": "connections", "of": "ip", "high": 9, "near": 4, "full": 1, "limits": 64},
        {"broker": 1, "what": "new_connections", "of": "ip", "high": 1, "near": 1, "full": 0, "limits": 2},
    ],
    "throttled": [
        {"broker": 0, "user": "\x1b[31malice", "client_id": "app", "quota": "producer_byte_rate", "throttle_ms": 31_415.9,
         "value": 111_555.0, "limit": 100_000.0},
        {"broker": 2, "user": "", "client_id": "batch", "quota": "request_percentage", "throttle_ms": 20.0, "value": 50.0,
         "limit": None},
    ],
    "within_quota": [
        {"broker": 1, "user": "bob", "client_id": "", "quota": "consumer_byte_rate", "throttle_ms": 0.0, "value": 85_000.0,
         "limit": 100_000.0},
    ],
    "top_refused": [
        {"ip": "2001:db8:ffff:ffff::1", "count": 9, "error": 0, "open": 60, "reasons": {"ip_cap": 8, "ip_rate": 1},
         "uses": [{"broker": broker, "what": "connections", "of": "ip:2001:db8:ffff:ffff::1", "used": used, "limit": 50,
                   "by": "kafka_connections_max_per_ip"} for broker, used in ((0, 50), (1, 10))]},
        {"ip": "10.0.0.1", "count": 5, "error": 0, "open": 0, "reasons": {"ip_rate": 5}, "uses": []},
    ],
    "refused_addresses": {"known": 64, "others_refused": 1_234, "more": False},
    "shards": [
        {
            "broker": 0, "shard": shard, "state": state, "pid": 1_234_567, "connections": 10_000, "config_version": 7,
            "admitted_per_s": 1234.5, "refused_per_s": 9999.0, "tokens": {"in_use": 55_555, "cached": 4},
        }
        for shard, state in ((0, "up"), (1, "starting"))
    ],
    "observed": {
        "refused": 1_204, "waited": 3, "undecided": 0, "addresses": 9, "more": False,
        "caps": [{"limit": "kafka_connections_max_per_ip", "value": 50, "waits": False, "count": 1_204},
                 {"limit": "max.connections", "value": 40, "waits": True, "count": 3}],
        "set": {"kafka_connections_max_per_ip": 50, "max.connections": 40}, "brokers": {},
        "quotas": {
            "set": [{"entity": {"client-id": "<b>app</b>"}, "values": {"producer_byte_rate": 1e6}}],
            "requests": 77, "throttle_ms": 12_500, "more": False,
            "quotas": [
                {"quota": "producer_byte_rate", "value": 1e6, "requests": 77, "throttle_ms": 12_500, "refused": 0}
            ],
            "clients": [
                {"user": "ANONYMOUS", "client_id": "<b>app</b>", "requests": 77, "error": 0,
                 "quotas": {"producer_byte_rate": 77}}
            ],
        },
    },
    "limits": [
        {"name": "max.connections", "broker": None, "value": 100, "set": True},
        {"name": "max.connections.per.ip", "broker": None, "value": 2**31 - 1, "set": False},
        {"name": "max.connections", "broker": 2, "value": 50, "set": True},
    ],
}  # fmt: skip
