"""`turnstile load --apply`: two runs, and what they say side by side."""

import io
from contextlib import contextmanager

from rich.console import Console

from turnstile.load import comparison, side_by_side
from turnstile.load.counters import Counters
from turnstile.load.driver import LoadResult
from turnstile.load.reconciliation import Reconciliation
from turnstile.load.scenario_file import build
from turnstile.load.tally import Tally
from turnstile.load.traffic import TrafficResult

SCENARIO = build(
    {"title": "T", "limits": {"max.connections": 3}, "group": [{"name": "office"}], "traffic": [{"topic": "t"}]}, "t"
)


class Admin:
    """A cluster whose quota window is 4 samples of 2 seconds."""

    def get(self, path):
        assert path == "/v1/cluster_config"
        return {"quota.window.num": 4, "quota.window.size.seconds": 2}


def result(admitted, refused, *, interrupted=False, agree=True, throttled_ms=0.0):
    tally = Tally()
    tally.attempted, tally.admitted, tally.refused = admitted + refused, admitted, refused
    for _ in range(admitted):
        tally.admitted_us.record(1500)
    told = {"responses": int(throttled_ms > 0), "total_ms": throttled_ms, "max_ms": throttled_ms}
    traffic = TrafficResult(produced=1000 + refused, throttled={"t producer": told})
    cluster = Counters(admitted, {"ip_cap": refused} if refused else {})
    verdict = Reconciliation(agree, "they agree" if agree else "they DISAGREE")
    return LoadResult(SCENARIO, [tally], tally, 1.0, interrupted, traffic, cluster, verdict)


def compare(monkeypatch, *results):
    """The comparison, and what happened in which order."""
    happened, runs = [], iter(results)

    @contextmanager
    def in_force(suggestion, admin):
        happened.append(suggestion.commands())
        yield
        happened.append("restored")

    def run():
        happened.append("run")
        return next(runs)

    monkeypatch.setattr(comparison, "in_force", in_force)
    return comparison.compare(SCENARIO, Admin(), run, wait=happened.append), happened


def test_the_second_run_begins_when_the_rates_of_the_first_are_forgotten(monkeypatch):
    both, happened = compare(monkeypatch, result(8, 0), result(3, 5))
    assert happened == ["run", 8.0, ["turnstile config set max.connections 3"], "run", "restored"]
    assert not both.interrupted and not both.disagrees


def test_an_interrupted_first_run_is_the_only_one(monkeypatch):
    both, happened = compare(monkeypatch, result(8, 0, interrupted=True))
    assert happened == ["run"] and both.interrupted and both.limited is None
    assert side_by_side.as_json(both)["with"] is None
    assert compare(monkeypatch, result(8, 0), result(1, 0, interrupted=True))[0].interrupted


def test_either_run_may_disagree_with_the_cluster(monkeypatch):
    assert compare(monkeypatch, result(8, 0, agree=False), result(3, 5))[0].disagrees
    assert compare(monkeypatch, result(8, 0), result(3, 5, agree=False))[0].disagrees


def test_the_table_has_both_runs_in_each_row(monkeypatch):
    both, _ = compare(monkeypatch, result(8, 0), result(3, 5, throttled_ms=12.0))
    out = io.StringIO()
    side_by_side.show(both, Console(file=out, width=120))
    rows = [[cell.strip() for cell in line.strip("│┃ \n").split("│")] for line in out.getvalue().splitlines()]
    assert ["admitted", "8", "3"] in rows and ["refused", "0", "5"] in rows and ["p99 ms", "1.50", "1.50"] in rows
    assert ["records produced", "1,000", "1,005"] in rows
    assert ["t producer", "never throttled", "throttled 1 times, 12 ms on average, 12 ms at most"] in rows
    assert ["refused by", "", "ip_cap 5"] in rows
    assert "with: they agree" in out.getvalue() and "without: they agree" in out.getvalue()
    said = side_by_side.as_json(both)
    assert (said["without"]["refused"], said["with"]["refused"]) == (0, 5)
    assert said["applied"] == {"settings": {"max.connections": "3"}, "quotas": []}
