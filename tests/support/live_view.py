"""What /v1/live answers, with everything in it that a display has to make room for."""

POINT = {
    "connections": 7, "admitted": 3.0, "closed": 1.0, "refused": {"shard_unavailable": 12_345.6, "ip_cap": 1.0},
    "requests": 64_885.2, "throttled": {"producer_byte_rate": 12.5},
}  # fmt: skip
LIVE = {
    "version": 7,
    "uptime_s": 3725.0,
    "listeners": ["EXTERNAL", "INTERNAL"],
    "series": [POINT] * 90,
    "totals": {
        "connections": 12_345,
        "refused": {"shard_unavailable": 1_234_567, "ip_cap": 5, "fd_limit": 0},
        "tokens": {"in_use": 123_456, "cached": 9, "pools": 1_000_000},
        "decisions": {"home": 1, "cached": 2, "rpc": 1},
        "waiting": 3,
        "held": 0,
        "muted": 0,
    },
    "throttled": [
        {"user": "\x1b[31malice", "client_id": "app", "quota": "producer_byte_rate", "throttle_ms": 31_415.9, "value": 5.0},
        {"user": "", "client_id": "batch", "quota": "request_percentage", "throttle_ms": 20.0, "value": 50.0},
    ],
    "top_refused": [{"ip": "2001:db8:ffff:ffff::1", "count": 9, "reasons": {"ip_cap": 8, "ip_rate": 1}}],
    "shards": [
        {
            "broker": 0, "shard": shard, "state": state, "pid": 1_234_567, "connections": 10_000, "config_version": 7,
            "admitted_per_s": 1234.5, "refused_per_s": 9999.0, "tokens": {"in_use": 55_555, "cached": 4},
        }
        for shard, state in ((0, "up"), (1, "starting"))
    ],
    "limits": [
        {"name": "max.connections", "broker": None, "value": 100, "set": True},
        {"name": "max.connections.per.ip", "broker": None, "value": 2**31 - 1, "set": False},
        {"name": "max.connections", "broker": 2, "value": 50, "set": True},
    ],
}  # fmt: skip
