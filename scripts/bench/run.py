"""`make bench`: every figure of the budget in one run, beside a bare C accept loop, kfake and a real Kafka.

    python scripts/bench/run.py [--quick] [--only NAME]... [--write]
    python scripts/bench/run.py --guard [--check] [--scores FILE]

--quick measures for seconds instead of minutes; its figures scatter. --write puts the table into docs/internals/benchmarks.md.
--guard measures what has a peer in the same run, for a few minutes. --check does so, too; it fails for a figure that is worse than
its committed bound (guard.py) twice in a row, and slower than in the checkout that the bounds were measured on (reference.py).
--scores adds a line to a file from which the bounds are made.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from scripts.bench import (  # noqa: E402 - importable only from here on
    borrow,
    consuming,
    guard,
    held,
    producing,
    reference,
    rehearsing,
    replaying,
    requests,
    rounds,
    scaling,
    secured,
    suite_times,
    table,
    tokens,
    wire,
)
from scripts.bench.machine import CannotMeasure  # noqa: E402
from scripts.bench.table import Row  # noqa: E402

FULL, QUICK = wire.Effort(rounds=rounds.FULL, seconds=3.0), wire.Effort(rounds=1, seconds=1.0)
GUARD = wire.Effort(rounds=3, seconds=2.0)
_NOT_MEASURED = "not measured"
GUARDED = (
    "connections", "refusals", "tls", "sasl", "requests", "metered", "shards", "produce", "produce-tls", "produce-sasl",
    "consume",
)  # fmt: skip


def main() -> int:
    """Measures and prints. Exit code 1: something could not be measured or, with --check, is worse than the bounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--guard", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--scores", type=Path, metavar="FILE")
    asked = parser.parse_args()
    guarded = asked.guard or asked.check
    effort = GUARD if guarded else QUICK if asked.quick else FULL
    wanted = asked.only or (GUARDED if guarded else None)
    if asked.check and not guard.PATH.exists():
        parser.error(f"there are no bounds yet: see {guard.__file__}")
    known = guard.load() if asked.check else {}
    with ExitStack() as stack:
        ways = measures(stack, effort)
        measured = {name: _rows(name, ways[name]) for name in ways if not wanted or name in wanted}
        scores = _scores(measured)
        bounds = guard.of(scores, known) if asked.only else known
        worse = guard.fallen(scores, bounds)
        slow = _fallen(measured, known)
        if slow:
            _say(worse)
            print("measuring once more what is worse than its bound:", file=sys.stderr)
            again = {name: _rows(name, ways[name]) for name in slow}
            worse = guard.fallen(scores | _scores(again), bounds)
            slow = _fallen(again, known)
    if slow and not any(sentence.endswith(guard.NOT_MEASURED) for sentence in worse):
        worse = _beside_the_reference(slow)
    rows = [row for found in measured.values() for row in found]
    failed = any(row.value.startswith(_NOT_MEASURED) for row in rows)
    table.show(rows)
    if asked.write:
        table.write(rows, ROOT / "docs" / "internals" / "benchmarks.md")
    if asked.scores and not failed:
        with asked.scores.open("a") as file:
            print(json.dumps(scores), file=file)
    _say(worse)
    return 1 if failed or worse else 0


def _fallen(measured: Mapping[str, Iterable[Row]], known: Mapping[str, guard.Bound]) -> dict[str, list[str]]:
    """The sentences of guard.fallen of each measure that has any."""
    scores = {name: _scores({name: rows}) for name, rows in measured.items()}
    said = {name: guard.fallen(part, guard.of(part, known)) for name, part in scores.items()}
    return {name: sentences for name, sentences in said.items() if sentences}


def _beside_the_reference(slow: Mapping[str, list[str]]) -> list[str]:
    """Measures what is in `slow` beside the reference: a sentence for each figure that is worse. The sentences of `slow` if the
    reference can't be measured."""
    worse = [sentence for sentences in slow.values() for sentence in sentences]
    _say(worse)
    print(f"beside {reference.COMMIT[:8]}: {', '.join(slow)}", file=sys.stderr)
    try:
        return [*reference.slower(slow, ROOT)]
    except CannotMeasure as reason:
        print(reason, file=sys.stderr)
        return worse


def _rows(name: str, measure: Callable[[], Iterator[Row]]) -> list[Row]:
    print(f"measuring {name} ...", file=sys.stderr, flush=True)
    try:
        return list(measure())
    except CannotMeasure as reason:
        return [Row(name, f"{_NOT_MEASURED}: {reason}")]


def _scores(measured: Mapping[str, Iterable[Row]]) -> dict[str, float]:
    return {name: score for rows in measured.values() for row in rows for name, score in row.scores.items()}


def _say(worse: Iterable[str]) -> None:
    for sentence in worse:
        print(f"worse than the bounds: {sentence}", file=sys.stderr)


def measures(stack: ExitStack, effort: wire.Effort) -> dict[str, Callable[[], Iterator[Row]]]:
    """The measures by name, in the order in which they are taken. The servers start with the first that needs them."""
    quick = effort is not FULL
    share = {QUICK: 0.2, GUARD: 0.5}.get(effort, 1.0)
    runs = 1 if quick else effort.rounds  # of what takes as long as it takes
    fields: list[wire.Field] = []

    def on_the_field(measure: Callable[[wire.Field], Iterator[Row]]) -> Callable[[], Iterator[Row]]:
        def run() -> Iterator[Row]:
            if not fields:
                fields.append(wire.Field(stack, effort))
                if fields[0].missing:
                    print(f"without kfake: {fields[0].missing}", file=sys.stderr)
            return measure(fields[0])

        return run

    return {
        "start-up": lambda: wire.start_up(effort.rounds),
        "decisions": lambda: tokens.decisions(100_000 if quick else 1_000_000, runs),
        "across": lambda: tokens.across(10_000 if quick else 50_000, runs),
        "borrow": lambda: borrow.rows(1000 if quick else 5000, 50_000 if quick else 1_000_000, runs),
        "replay": lambda: replaying.rows(200_000 if quick else 1_000_000, runs),
        "held": lambda: held.rows(2000 if quick else 10_000, 3.0 if quick else 5.0, runs),
        "idle": lambda: wire.idle(runs),
        "config": lambda: wire.config_change(runs),
        "connections": on_the_field(wire.connections),
        "refusals": on_the_field(wire.refusals),
        "tls": lambda: secured.connections("TLS", effort),
        "sasl": lambda: secured.connections("SASL PLAIN", effort),
        "requests": on_the_field(requests.small),
        "metered": lambda: requests.metered(effort),
        "shards": lambda: scaling.rows(effort),
        "rehearsal": lambda: rehearsing.rows(effort),
        "suite": lambda: suite_times.rows(runs),
        "produce": lambda: producing.rows(runs, share),
        "produce-tls": lambda: secured.produce("TLS", runs, share),
        "produce-sasl": lambda: secured.produce("SASL PLAIN", runs, share),
        "consume": lambda: consuming.rows(runs, share),
    }


if __name__ == "__main__":
    sys.exit(main())
