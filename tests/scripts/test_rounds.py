"""What the rounds of a benchmark say together, and how many of them there are."""

import sys
from pathlib import Path
from typing import NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.bench import compare
from scripts.bench.rounds import (
    CPU,
    FULL,
    MOST,
    OURS,
    RATE,
    Quartiles,
    Rounds,
    measured,
    quartiles,
    take_rounds,
    take_turns,
)


class Run(NamedTuple):
    per_s: float
    cpu_us: float = 1.0


def rounds_of(*rates: tuple[float, float]) -> Rounds[Run]:
    """Of Turnstile and kfake."""
    return Rounds([{OURS: Run(ours, 40.0), "kfake": Run(kfake, 50.0)} for ours, kfake in rates])


def test_quartiles_of_five_rounds_leave_out_the_best_and_the_worst() -> None:
    assert quartiles([9.0, 1.0, 3.0, 2.0, 4.0]) == Quartiles(3.0, 2.0, 4.0)


def test_quartiles_of_three_rounds_are_the_extremes() -> None:
    assert quartiles([9.0, 1.0, 3.0]) == Quartiles(3.0, 1.0, 9.0)


def test_a_cell_has_quartiles_where_there_are_several_rounds() -> None:
    assert Quartiles(0.98, 0.953, 1.02).text(".2f", " x") == "0.98 x (0.95 .. 1.02)"
    assert quartiles([15501.0]).text(",.0f", "/s") == "15,501/s"


def test_figures_scatter_where_their_quartiles_are_more_than_a_fifth_apart() -> None:
    assert not Quartiles(1.0, 0.91, 1.1).scatters
    assert Quartiles(1.0, 0.9, 1.11).scatters


@pytest.mark.parametrize(
    ("rounds", "figures", "taken"),
    [
        (FULL, [1.0] * MOST, FULL),
        (FULL, [1.0, 2.0] * MOST, MOST),
        (FULL, [1.0, 2.0, 2.0, 1.0, *[1.0] * MOST], FULL + 3),
        (FULL - 1, [1.0, 2.0] * MOST, FULL - 1),
        (1, [1.0], 1),
    ],
    ids=["steady", "scattering", "steady with more rounds", "too few to be judged", "one"],
)
def test_a_measure_that_scatters_has_more_rounds(rounds: int, figures: list[float], taken: int) -> None:
    assert len(take_rounds(rounds, figures.__getitem__, [float])) == taken


def test_each_figure_of_a_round_is_judged() -> None:
    assert len(take_rounds(FULL, lambda number: (1.0, number % 2), [lambda each: each[0]])) == FULL
    assert (
        len(take_rounds(FULL, lambda number: (1.0, number % 2), [lambda each: each[0], lambda each: each[1]])) == MOST
    )


def test_a_figure_without_peers_is_judged_itself() -> None:
    figures = iter([1.0, 2.0] * MOST)
    measured(FULL, lambda: next(figures))
    assert len(list(figures)) == MOST


def test_every_second_round_begins_at_the_other_end() -> None:
    order = []

    def run(peer: str, number: int) -> Run:
        order.append((peer, number))
        return Run(1.0)

    found = take_turns(2, {OURS: "a", "kfake": "b", "C loop": "c"}, run, (RATE, CPU))
    assert order == [("a", 0), ("b", 0), ("c", 0), ("c", 1), ("b", 1), ("a", 1)]
    assert found.peers == ["kfake", "C loop"]


def test_turns_go_on_while_a_ratio_scatters_and_not_while_a_figure_does() -> None:
    def of_a_machine_that_changes(factor: float, number: int) -> Run:
        return Run(factor * (1 + number), 1.0)

    def of_a_server_that_changes(factor: float, number: int) -> Run:
        return Run(1.0, factor**number)

    contenders = {OURS: 1.0, "kfake": 2.0}
    steady = take_turns(FULL, contenders, of_a_machine_that_changes, (RATE, CPU))
    assert steady.of(RATE) == quartiles([1.0, 2.0, 3.0, 4.0, 5.0])
    scattering = take_turns(FULL, contenders, of_a_server_that_changes, (RATE, CPU))
    assert scattering.ratio(CPU, "kfake") == quartiles(0.5**number for number in range(MOST))


def test_a_ratio_is_the_median_of_those_of_the_rounds() -> None:
    found = rounds_of((100, 100), (50, 40), (30, 20))
    assert found.ratio(RATE, "kfake") == Quartiles(1.25, 1.0, 1.5)
    assert (found.median_text(RATE), found.median_text(RATE, "kfake")) == ("50/s", "40/s")


def test_a_row_tells_each_peer_with_the_ratio_and_its_quartiles() -> None:
    found = rounds_of((1500, 1000), (1400, 1000), (1600, 1000))
    assert found.beside(RATE) == "kfake 1,000/s: 1.50 x (1.40 .. 1.60)"
    assert found.beside(CPU, RATE) == "kfake 50 us: 0.80 x, 1,000/s"
    assert found.text(RATE) == "1,500/s (1,400 .. 1,600)"


def test_scores_are_the_larger_the_better() -> None:
    assert rounds_of((1500, 1000)).scores("connect") == {"connect: rate, kfake": 1.5, "connect: CPU, kfake": 1.25}


def test_two_checkouts_are_compared_by_medians() -> None:
    assert list(compare._numbers("change", "p50 3.4 ms (3.3 .. 3.6), p99 8.7 ms")) == [
        ("change p50, ms", "3.4"),
        ("change p99, ms", "8.7"),
    ]
    assert list(compare._numbers("replay", "169,209/s (168,000 .. 170,100)")) == [("replay, /s", "169,209")]
