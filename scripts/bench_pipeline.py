"""Seconds, CPU time and memory of audit, report, plan and load, each beside a peer in the same run and against its goal.

python scripts/bench_pipeline.py                                  all groups of rows but growth, some 25 minutes on two cores
python scripts/bench_pipeline.py --only growth                    the audit of 100 million connections on local[2], 20 minutes
python scripts/bench_pipeline.py --only plan,report --write       these groups alone; replaces their rows in benchmarks.md
python scripts/bench_pipeline.py --sizes 1e5                      every row at this size, to see that all of it works

Each figure is taken in a process of its own, so that none counts what another has left behind. Times include the start of the
process; inputs are made before, and not timed. Memory is the peak of what a process and all below it have resident.
The row of DuckDB needs `pip install duckdb`: nothing else does, so it is no dependency of the project.
With --write each row is written as soon as it is measured. Ctrl-C ends the run, and shows what was measured until then.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from scripts.bench import machine, table  # noqa: E402  found once the line above has run
from scripts.bench.pipeline import rows  # noqa: E402
from scripts.bench.pipeline.inputs import Inputs  # noqa: E402
from scripts.bench.pipeline.measures import MEASURES  # noqa: E402
from scripts.bench.pipeline.rows import COLUMNS, GROUPS, GROWTH, LOAD, ROWS, Found, Row  # noqa: E402
from scripts.bench.pipeline.runs import end, measure, run_one  # noqa: E402

TARGET = ROOT / "docs" / "internals" / "benchmarks.md"
MARK = "pipeline table"
LOAD_RUNS = ("--connections", "100000", "--rounds", "3")
_began_s = time.monotonic()


def progress(text: str) -> None:
    """Prints progress, with the minutes since the start."""
    minutes, seconds = divmod(int(time.monotonic() - _began_s), 60)
    print(f"{minutes:3}:{seconds:02} {text}", file=sys.stderr, flush=True)


def wanted(groups: list[str], sizes: list[int] | None) -> list[tuple[Row, int]]:
    """Each row with one of its sizes, or of `sizes`; smaller ones come first."""
    chosen = [(row, size) for row in ROWS if row.group in groups for size in (row.sizes if sizes is None else sizes)]
    return sorted(chosen, key=lambda each: each[1])


def run(jobs: list[tuple[Row, int]], work: Path, found: Found, measured: Callable[[], None]) -> None:
    """Measure into `found`, and call `measured` each time. Inputs are made when first needed, and removed with the next size."""
    inputs: Inputs | None = None
    last = None
    try:
        for row, size in jobs:
            if (row.what, size) in found:
                continue
            if inputs is None or size != last:
                if inputs is not None:
                    inputs.remove()
                inputs, last = Inputs(work / str(size), size, progress), size
            kind, _ = MEASURES[row.what]
            source = inputs.path(kind)
            progress(f"measuring {row.what}, {size:,} ...")
            try:
                figures = measure(row.what, source, size, __file__, progress)
                progress(f"  done in {figures.seconds:,.1f} s")
                found[row.what, size] = figures
            except machine.CannotMeasure as reason:
                progress(f"  not measured: {reason}")
                found[row.what, size] = str(reason)
            measured()
    finally:
        if inputs is not None:
            inputs.remove()


def load(*, is_written: bool) -> None:
    """The table of bench_load.py, with fewer and shorter runs than it has by itself. Raises CannotMeasure."""
    progress("measuring a load through Spark beside one from here ...")
    command = [
        sys.executable,
        str(ROOT / "scripts" / "bench_load.py"),
        *LOAD_RUNS,
        *(["--write"] if is_written else []),
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        said = process.communicate()[1]
    finally:
        end(process)
    if process.returncode:
        raise machine.CannotMeasure((said.strip().splitlines() or [f"ended with {process.returncode}"])[-1])


def lines(found: Found, jobs: list[tuple[Row, int]]) -> list[tuple[str, ...]]:
    """The table of what was measured."""
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    measured = [(row, size) for row, size in jobs if (row.what, size) in found]
    return rows.merged([], [line for row, size in measured for line in rows.lines(row, size, found, day)])


def write(fresh: list[tuple[str, ...]]) -> None:
    """Writes rows into benchmarks.md, where those that were not measured stay."""
    kept = rows.merged(table.read_plain(COLUMNS, TARGET, mark=MARK), fresh)
    where = "each row in a process of its own, on the day of its last column"
    table.write_plain(COLUMNS, kept, TARGET, mark=MARK, where=where)


def main() -> int:
    """Arguments in, a table out; 1 when something could not be measured, 130 when interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help=f"groups of rows, of {', '.join(GROUPS)}  [default: all but {GROWTH}]")
    parser.add_argument("--sizes", help="connections, as 1e5,1e6, for every row instead of its own")
    parser.add_argument(
        "--write", action="store_true", help="replace what was measured in docs/internals/benchmarks.md"
    )
    parser.add_argument("--work", type=Path, help="folder for the inputs  [default: a temporary one]")
    parser.add_argument("--one", choices=MEASURES, help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        run_one(given.one, given.source)
        return 0
    groups = given.only.split(",") if given.only else [each for each in GROUPS if each != GROWTH]
    if unknown := sorted(set(groups) - set(GROUPS)):
        parser.error(f"--only {','.join(unknown)}: there are {', '.join(GROUPS)}")
    if given.sizes and given.write:
        parser.error("--write is for rows at their own sizes: not with --sizes")
    jobs = wanted(groups, [int(float(part)) for part in given.sizes.split(",")] if given.sizes else None)
    if given.work is not None:
        try:
            given.work.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            parser.error(f"--work {given.work}: {error.strerror}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found: Found = {}
    code = 0
    try:
        with tempfile.TemporaryDirectory(prefix="turnstile-bench-", dir=given.work) as work:
            run(jobs, Path(work), found, lambda: write(lines(found, jobs)) if given.write else None)
        if LOAD in groups:
            load(is_written=given.write)
    except machine.CannotMeasure as reason:
        progress(f"load through Spark not measured: {reason}")
        code = 1
    except KeyboardInterrupt:
        progress("interrupted")
        code = 130
    finally:
        table.show_plain("Turnstile pipeline benchmarks", COLUMNS, lines(found, jobs))
    return code or int(any(isinstance(each, str) for each in found.values()))


if __name__ == "__main__":
    sys.exit(main())
