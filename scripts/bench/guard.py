"""The guard against a slower Turnstile: scores of a run of the benchmarks beside those of ten earlier ones.

    python scripts/bench/run.py --guard --scores build/bench/scores.jsonl      ten times, on a machine that does nothing else
    python scripts/bench/guard.py build/bench/scores.jsonl                     writes scripts/bench/guard.json, to be committed
    make bench-check                                                           measures once more; fails if a score has fallen

A score is a ratio to a peer in the same run, the larger the better (table.Row), so it holds on another machine about as well.
Its tolerance is twice the distance of the worst of the ten runs from their median, and LEAST at least: with scores that scatter
as a normal distribution does, one of a thousand falls out by chance. There are forty scores, so what has fallen is measured a
second time (run.py), and what falls again beside the code of the bounds (reference.py): it fails if it is slower than that.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

NOT_MEASURED = "not measured"
LEAST = 0.03
FEWEST_RUNS = 10
PATH = Path(__file__).with_name("guard.json")


class Bound(NamedTuple):
    """The median of a score, and by which part of it a run may be below."""

    median: float
    tolerance: float

    @property
    def floor(self) -> float:
        return self.median * (1 - self.tolerance)


def bounds(runs: Sequence[Mapping[str, float]]) -> dict[str, Bound]:
    """The bounds of every score that all runs have. Raises ValueError for fewer than FEWEST_RUNS runs."""
    if len(runs) < FEWEST_RUNS:
        raise ValueError(f"{len(runs)} runs are too few for a tolerance: {FEWEST_RUNS} are needed")
    made = {}
    for name in runs[0]:
        if all(name in run for run in runs):
            seen = [run[name] for run in runs]
            median = statistics.median(seen)
            made[name] = Bound(round(median, 4), round(max(LEAST, 2 * (median - min(seen)) / median), 4))
    return made


def fallen(scores: Mapping[str, float], known: Mapping[str, Bound]) -> list[str]:
    """A sentence for each bound that the scores of a run do not hold, or that was not measured."""
    said = []
    for name, bound in known.items():
        score = scores.get(name)
        if score is None:
            said.append(f"{name}: {NOT_MEASURED}")
        elif score < bound.floor:
            said.append(
                f"{name}: {score:.3f} is below {bound.floor:.3f} ({bound.median:.3f} less {bound.tolerance:.1%})"
            )
    return said


def of(scores: Mapping[str, float], known: Mapping[str, Bound]) -> dict[str, Bound]:
    """The bounds of what was measured."""
    return {name: bound for name, bound in known.items() if name in scores}


def load(path: Path = PATH) -> dict[str, Bound]:
    """The committed bounds. Raises FileNotFoundError."""
    return {name: Bound(*values) for name, values in json.loads(path.read_text()).items()}


def save(made: Mapping[str, Bound], path: Path = PATH) -> None:
    path.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")


def read_runs(lines: Iterable[str]) -> list[dict[str, float]]:
    """One JSON object a line, as `run.py --scores` appends them."""
    return [json.loads(line) for line in lines if line.strip()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scores", type=Path, metavar="SCORES", help="a line for each run")
    try:
        made = bounds(read_runs(parser.parse_args().scores.read_text().splitlines()))
    except (OSError, ValueError) as reason:
        print(reason, file=sys.stderr)
        return 1
    save(made)
    for name, bound in sorted(made.items()):
        print(f"{bound.median:8.3f} -{bound.tolerance:5.1%}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
