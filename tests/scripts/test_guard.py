"""The guard's arithmetic: what ten runs allow the next one, and what it says of one that is worse."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.bench import compare, guard, reference, run
from scripts.bench.guard import FEWEST_RUNS, LEAST, Bound
from scripts.bench.pairs import Figure
from scripts.bench.rounds import Quartiles

TEN = [{"connect": score, "steady": 2.0} for score in (1.5, 1.52, 1.4, 1.48, 1.55, 1.5, 1.51, 1.49, 1.5, 1.53)]


def test_the_tolerance_is_twice_the_distance_of_the_worst_run_from_the_median() -> None:
    found = guard.bounds(TEN)["connect"]
    assert found.median == 1.5
    assert found.tolerance == pytest.approx(2 * (1.5 - 1.4) / 1.5, abs=1e-4)
    assert found.floor == pytest.approx(1.3, abs=1e-3)


def test_scores_that_do_not_scatter_have_the_least_tolerance() -> None:
    assert guard.bounds(TEN)["steady"] == Bound(2.0, LEAST)


def test_fewer_runs_say_too_little() -> None:
    with pytest.raises(ValueError, match="too few"):
        guard.bounds(TEN[: FEWEST_RUNS - 1])


def test_a_score_that_some_runs_lack_has_no_bound() -> None:
    assert guard.bounds([*TEN, {"connect": 1.5}]).keys() == {"connect"}


def test_none_of_the_ten_runs_would_have_failed() -> None:
    known = guard.bounds(TEN)
    assert [sentence for run in TEN for sentence in guard.fallen(run, known)] == []


def test_a_score_below_its_floor_and_one_that_was_not_measured_fail() -> None:
    known = {"connect": Bound(1.5, 0.1), "produce": Bound(1.1, 0.1), "consume": Bound(1.2, 0.1)}
    said = guard.fallen({"connect": 1.34, "produce": 1.0, "new": 0.1}, known)
    assert said == ["connect: 1.340 is below 1.350 (1.500 less 10.0%)", "consume: not measured"]


def test_only_bounds_of_what_was_measured_are_asked_for_by_name() -> None:
    known = {"connect": Bound(1.5, 0.1), "produce": Bound(1.1, 0.1)}
    assert guard.of({"connect": 1.0, "new": 0.1}, known) == {"connect": Bound(1.5, 0.1)}


def test_a_figure_is_slower_than_the_reference_by_a_tenth_in_most_pairs() -> None:
    cost, rate = "server CPU, us per request", "requests/s"
    figures = [
        Figure(cost, 10.0, 12.0, Quartiles(1.2, 1.1, 1.3)),
        Figure(cost, 10.0, 10.5, Quartiles(1.05, 1.02, 1.1)),
        Figure(cost, 10.0, 12.0, Quartiles(1.2, 0.9, 1.3)),
        Figure(rate, 100.0, 80.0, Quartiles(0.8, 0.7, 0.9)),
        Figure(rate, 100.0, 80.0, Quartiles(0.8, 0.7, 1.1)),
        Figure(rate, 100.0, 130.0, Quartiles(1.3, 1.2, 1.4)),
    ]
    assert list(reference.worse("requests", figures)) == [
        "requests: server CPU, us per request: 1.200 of the reference's (1.100 .. 1.300)",
        "requests: requests/s: 0.800 of the reference's (0.700 .. 0.900)",
    ]


def test_each_measure_of_the_guard_is_compared_with_the_reference() -> None:
    assert set(reference.ROWS) == set(run.GUARDED)
    rows = {row for rows in reference.ROWS.values() for row in rows}
    assert rows <= compare.rows((Path("before"), Path("after")), 1.0).keys()


def test_what_is_saved_reads_back(tmp_path) -> None:
    known = guard.bounds(TEN)
    guard.save(known, tmp_path / "guard.json")
    assert guard.load(tmp_path / "guard.json") == known


def test_runs_are_read_from_the_lines_that_were_appended() -> None:
    assert guard.read_runs(['{"a": 1.5}', "", '{"a": 1.25}']) == [{"a": 1.5}, {"a": 1.25}]
