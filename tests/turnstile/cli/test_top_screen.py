"""What `turnstile top` draws: everything there is, and nothing cut off at 80 columns."""

import pytest
from rich.console import Console

from turnstile.cli.top_screen import amount, render, spark

POINT = {
    "connections": 7, "admitted": 3.0, "closed": 1.0, "refused": {"shard_unavailable": 12_345.6, "ip_cap": 1.0},
    "requests": 64_885.2,
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
    "top_refused": [{"ip": "2001:db8:ffff:ffff::1", "count": 9, "reasons": {"ip_cap": 8, "ip_rate": 1}}],
    "shards": [
        {
            "broker": 0, "shard": shard, "state": state, "pid": 1_234_567, "connections": 10_000, "config_version": 7,
            "admitted_per_s": 1234.5, "refused_per_s": 9999.0, "tokens": {"in_use": 55_555, "cached": 4},
        }
        for shard, state in ((0, "up"), (1, "starting"))
    ],
    "limits": [
        {"name": "max.connections", "value": 100, "set": True},
        {"name": "max.connections.per.ip", "value": 2**31 - 1, "set": False},
    ],
}  # fmt: skip


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_nothing_is_cut_off(width):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(render(LIVE, console))
        text = console.export_text()
    assert "…" not in text
    for part in ("shard_unavailable", "2001:db8:ffff:ffff::1", "1 of 2 shards up", "starting", "max.connections = 100",
                 "12.3k/s", "64.9k/s", "123.5k", "decided cached", "50%", "waiting"):  # fmt: skip
        assert part in text, part
    assert "max.connections.per.ip" not in text
    assert "fd_limit" not in text


def test_a_cluster_that_did_nothing_yet_is_drawn_too():
    idle = {**LIVE, "series": [], "top_refused": [], "limits": []}
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(render(idle, console))
        text = console.export_text()
    assert "nobody" in text
    assert "turnstile config set" in text


def test_bars_reach_from_nothing_to_the_most():
    assert spark([0, 1, 50, 100]) == " ▁▄█"
    assert spark([]) == ""
    assert len(spark([1.0] * 500, 60)) == 60


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (9999, "9999"), (12_345, "12.3k"), (1_234_567, "1.2M"), (12e9, "12.0G")]
)
def test_amounts_are_short(value, text):
    assert amount(value) == text
