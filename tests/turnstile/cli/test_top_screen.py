"""What `turnstile top` draws: everything there is, and nothing cut off at 80 columns."""

import pytest
from live_view import LIVE
from rich.console import Console

from turnstile.cli.top_screen import amount, render, spark


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_nothing_is_cut_off(width):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(render(LIVE, console))
        text = console.export_text()
    assert "…" not in text
    for part in ("shard_unavailable", "2001:db8:ffff:ffff::1", "1 of 2 shards up", "starting", "max.connections = 100",
                 "12.3k/s", "64.9k/s", "123.5k", "user \\x1b[31malice client app", "31.4k ms",
                 "max.connections = 50 (broker 2)", "decided cached", "50%", "waiting"):  # fmt: skip
        assert part in text, part
    assert "max.connections.per.ip" not in text
    assert "fd_limit" not in text


def test_a_cluster_that_did_nothing_yet_is_drawn_too():
    idle = {**LIVE, "series": [], "top_refused": [], "throttled": [], "limits": []}
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(render(idle, console))
        text = console.export_text()
    assert "none" in text
    assert "turnstile config set" in text


def test_trouble_is_said_over_the_last_view():
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(render(LIVE, console, "no answer, trying again"))
        text = console.export_text()
    assert "no answer, trying again" in text and "shards up" not in text and "shard_unavailable" in text


def test_bars_reach_from_nothing_to_the_most():
    assert spark([0, 1, 50, 100]) == " ▁▄█"
    assert spark([]) == ""
    assert len(spark([1.0] * 500, 60)) == 60


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (9999, "9999"), (12_345, "12.3k"), (1_234_567, "1.2M"), (12e9, "12.0G")]
)
def test_amounts_are_short(value, text):
    assert amount(value) == text
