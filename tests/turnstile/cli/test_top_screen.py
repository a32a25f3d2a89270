"""What `turnstile top` draws: everything there is, and nothing cut off at 80 columns."""

import pytest
from live_view import LIVE
from rich.console import Console

from turnstile.cli.top_screen import render, spark


def drawn(live, width, **options):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(render(live, console, **options))
        return console.export_text()


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_nothing_is_cut_off(width):
    text = drawn(LIVE, width)
    assert "…" not in text
    for part in ("shard_unavailable", "2001:db8:ffff:ffff::1", "1 of 2 shards up", "starting", "max.connections = 100",
                 "12,347/s", "64,885/s", "1.23M", "user \\x1b[31mal", "31 s",
                 "max.connections = 50 (broker 2)", "3 wait to be admitted"):  # fmt: skip
        assert part in text, part
    assert "max.connections.per.ip" not in text
    assert "fd_limit" not in text


def test_each_use_stands_beside_the_limit_of_its_broker():
    rows = [line.split("  ") for line in drawn(LIVE, 80).splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert ["0", "connections of 2001:db8:ffff:ffff::1", "50 of 50 (100 %)"] in cells
    assert ["1", "new connections of 10.0.0.1", "18/s of 20/s (92 %)"] in cells
    assert ["2", "connections of the broker", "40 of 100 (40 %)"] in cells
    text = drawn(LIVE, 80)
    assert "user \\x1b[31malice client app" in drawn(LIVE, 120)
    assert "112 kB/s of 100 kB/s (111 %)" in text and "50 of 50 (100 %) on broker 0" in text
    assert any(
        line.split() == ["1", "user", "bob", "fetch", "85", "kB/s", "of", "100", "kB/s", "(85", "%)", "-"]
        for line in text.splitlines()
    )
    assert "62 others" in text and "1,234" in text
    assert "max.connections" in drawn(LIVE, 120).partition("refused by")[0], "a wide screen says what sets a limit"


def test_limits_that_are_close_are_counted_in_a_line():
    assert "limits: 1 reached, 4 from 90 %, 5 from 80 %" in drawn(LIVE, 80)
    assert "limits: " not in drawn({**LIVE, "close": []}, 80)


def test_the_words_of_the_token_protocol_are_on_a_screen_of_their_own():
    words = ("token", "cached", "rpc", "reclaim", "decided", "in use")
    assert not [word for word in words if word in drawn(LIVE, 120).replace("limits and their use", "")]
    internals = drawn(LIVE, 80, internals=True)
    assert not [word for word in words if word not in internals]
    assert "123k" in internals and "50 %" in internals


def test_a_low_screen_has_all_that_happens_in_its_first_lines():
    text = drawn(LIVE, 80, height=24, keys="q: end").splitlines()[:26]
    assert any("q: end" in line for line in text) and any("user \\x1b" in line for line in text)
    idle = {**LIVE, "top_refused": [], "throttled": []}
    assert "clients with a quota" not in drawn(idle, 80, height=24)


def test_all_rates_are_said_to_be_of_one_window():
    assert "rates: the last second; bars: the last 56 s" in drawn(LIVE, 80)


def test_a_cluster_that_did_nothing_yet_is_drawn_too():
    nothing = {"known": 0, "others_refused": 0, "more": False}
    idle = {
        **LIVE,
        "series": [],
        "top_refused": [],
        "throttled": [],
        "limits": [],
        "uses": [],
        "refused_addresses": nothing,
    }
    text = drawn(idle, 80)
    assert "none" in text
    assert "turnstile config set" in text


def test_trouble_is_said_over_the_last_view():
    text = drawn(LIVE, 100, trouble="no answer, trying again")
    assert "no answer, trying again" in text and "shards up" not in text and "shard_unavailable" in text


def test_bars_reach_from_nothing_to_the_most():
    assert spark([0, 1, 50, 100]) == " ▁▄█"
    assert spark([]) == ""
    assert len(spark([1.0] * 500, 60)) == 60
