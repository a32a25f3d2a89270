"""Events per second, CPU time and memory of audit, report and plan, beside a plain sequential replay and pandas, and how they grow.

python scripts/bench_pipeline.py                        1 and 10 million connections
python scripts/bench_pipeline.py --sizes 1e6,1e7,5e7    takes about ten gigabytes of disk in --work
python scripts/bench_pipeline.py --large 1e8            and of that size the audit of caps on local[2] alone
python scripts/bench_pipeline.py --write                puts the table into docs/internals/benchmarks.md

Each figure is taken in a process of its own, so that none counts what another has left behind. Plan and audit are timed with
their start; making the log and the journal is not timed. Memory is what the process and all below it have resident at most.
The row of DuckDB needs `pip install duckdb`: nothing else does, so it is no dependency of the project.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pyarrow
import pyarrow.parquet

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import make_connlog  # noqa: E402  found once the line above has run
import make_journal  # noqa: E402

from scripts.bench import machine, table  # noqa: E402
from turnstile.pipeline import session  # noqa: E402
from turnstile.pipeline.inputs import reading  # noqa: E402
from turnstile.pipeline.plan import plan  # noqa: E402
from turnstile.pipeline.plan.pieces import PIECES, Slots, spread  # noqa: E402

CAPS = (5, 10, 20, 50, 100, 200)
CHUNK = 1_000_000
SAMPLE_S = 0.5
COLUMNS = (
    "what",
    "connections",
    "seconds",
    "events/s",
    "CPU seconds",
    "CPU us/event",
    "peak GiB",
    "largest GiB",
    "answer",
)
ON_SPARK = ("--master", "local[2]")


class Measured(NamedTuple):
    """One line of the table. An event is an open or a close, of an audit and a report an event of the journal (`events`).

    `peak_bytes`: of all processes together; `largest_bytes`: of the largest.
    """

    what: str
    connections: int
    seconds: float
    cpu_s: float
    peak_bytes: int
    largest_bytes: int
    events: int
    answer: str

    def cells(self) -> tuple[str, ...]:
        """As the table has them."""
        return (
            self.what, f"{self.connections:,}", f"{self.seconds:,.1f}", f"{self.events / self.seconds:,.0f}",
            f"{self.cpu_s:,.1f}", f"{1e6 * self.cpu_s / self.events:.2f}", f"{self.peak_bytes / 2**30:.1f}",
            f"{self.largest_bytes / 2**30:.1f}", self.answer,
        )  # fmt: skip


def measure(what: str, connections: int, folder: Path) -> Measured:
    """Run one of MEASURES in a process of its own. Raises CannotMeasure when it fails."""
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    command = [sys.executable, __file__, "--one", what, "--work", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(scratch)})
    assert process.stdout is not None
    peak_bytes = largest_bytes = 0
    while process.poll() is None:
        resident = [_resident(pid) for pid in machine.tree(process.pid)]
        peak_bytes, largest_bytes = max(peak_bytes, sum(resident)), max(largest_bytes, *resident, 0)
        time.sleep(SAMPLE_S)
    said = process.stdout.read()
    process.stdout.close()
    shutil.rmtree(scratch)
    if process.returncode:
        raise machine.CannotMeasure(f"{what} at {connections:,} connections ended with {process.returncode}")
    one = json.loads(said)
    found = re.search(r"([\d,]+) events", one["answer"])
    events = int(found[1].replace(",", "")) if found else 2 * connections
    return Measured(what, connections, one["seconds"], one["cpu_s"], peak_bytes, largest_bytes, events, one["answer"])


def run_one(what: str, folder: Path) -> None:
    """In the process of its own: one line of JSON on stdout."""
    with MEASURES[what](folder) as run:
        before_s, start = machine.cpu_s(os.getpid()), time.perf_counter()
        answer = run()
        seconds = time.perf_counter() - start
        said = {"seconds": seconds, "cpu_s": machine.cpu_s(os.getpid()) - before_s, "answer": answer}
    print(json.dumps(said))


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


# ---- what is measured


@contextmanager
def plan_of_caps(folder: Path) -> Iterator[Callable[[], str]]:
    """Every cap of CAPS and the recommendation, by the command: here up to some million connections, else on Spark."""
    yield partial(_planned, folder / "log")


@contextmanager
def spark_plan(folder: Path) -> Iterator[Callable[[], str]]:
    """The same on Spark, whatever the size."""
    yield partial(_planned, folder / "log", *ON_SPARK)


def _planned(log: Path, *options: str) -> str:
    caps = ",".join(map(str, CAPS))
    answer = _command("plan", "--input", str(log), "--format", "parquet", "--per-ip-cap", caps, "--json", *options)
    return _refused([each["refused"] for each in answer["candidates"]])


@contextmanager
def spark_alone(folder: Path) -> Iterator[Callable[[], str]]:
    """The plan without its replay, which is below what Spark lets it reach: a start, the log read and sent to the same tasks."""

    def run() -> str:
        from pyspark.sql import functions as F

        with session.session(app="turnstile bench-pipeline") as spark:
            source = reading.load(spark, [str(folder / "log")], "parquet")
            tasks = max(spark.sparkContext.defaultParallelism, -(-source.rows_about // plan.ROWS_PER_TASK))
            needed = ("ip", "opened_us", "closed_us", "bad", "source", "block", "rank")
            arrived = source.arrived.select([name for name in source.arrived.columns if name in needed])
            sent = arrived.mapInArrow(spread(Slots(tasks, 0)), PIECES).repartitionById(tasks, F.col("slot"))
            rows = sent.mapInArrow(_lengths, "length long").agg(F.sum("length")).first()
        return f"{rows[0] / 2**20:,.0f} MiB sent"

    yield run


def _lengths(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    for batch in batches:
        lengths = pyarrow.compute.binary_length(batch.column("rows")).cast("int64")
        yield pyarrow.RecordBatch.from_arrays([lengths], ["length"])


@contextmanager
def duckdb_script(folder: Path) -> Iterator[Callable[[], str]]:
    """Every cap of CAPS as a script would have it: DuckDB reads, codes and sorts the log, and each cap is a loop with a heap.

    SQL alone can't say it: whether a connection is open depends on whether those before it were refused.
    """

    def run() -> str:
        import duckdb  # of this row alone, so not among the project's dependencies: pip install duckdb

        log = folder / "log" / "*.parquet"
        found = duckdb.sql(
            "select dense_rank() over (order by ip) - 1 as ip, epoch_us(opened_at) as opened, epoch_us(closed_at) as closed "
            f"from read_parquet('{log}', file_row_number = true, filename = true) order by opened, filename, file_row_number"
        ).fetchnumpy()
        columns = (found["ip"], found["opened"], found["closed"])
        return _refused([_replayed(columns, cap) for cap in CAPS])

    yield run


@contextmanager
def audit_of_caps(folder: Path) -> Iterator[Callable[[], str]]:
    """All checks of a journal with caps alone, from the start of the command on."""
    yield partial(_audited, folder / "journal")


@contextmanager
def spark_audit_of_caps(folder: Path) -> Iterator[Callable[[], str]]:
    """The same on Spark, whatever the size."""
    yield partial(_audited, folder / "journal", *ON_SPARK)


@contextmanager
def spark_audit_of_tokens(folder: Path) -> Iterator[Callable[[], str]]:
    """With every move of tokens and every unit of rates, on Spark, whatever the size."""
    yield partial(_audited, folder / "journal-with-tokens", *ON_SPARK)


@contextmanager
def report_of_caps(folder: Path) -> Iterator[Callable[[], str]]:
    """Every table and the page of a journal with caps alone, by the command."""

    def run() -> str:
        answer = _command("report", str(folder / "journal"), "--html", str(folder / "report.html"), "--json")
        return f"{answer['events']:,} events"

    yield run


@contextmanager
def audit_of_tokens(folder: Path) -> Iterator[Callable[[], str]]:
    """The same with every move of tokens and every unit of rates."""
    yield partial(_audited, folder / "journal-with-tokens")


def _audited(journal: Path, *options: str) -> str:
    answer = _command("audit", str(journal), "--json", *options)
    return f"{answer['verdict']}: {answer['events']:,} events"


def _command(*arguments: str) -> Any:
    command = [sys.executable, "-c", "from turnstile.cli.main import main; main()", *arguments]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout)


@contextmanager
def plain_replay(folder: Path) -> Iterator[Callable[[], str]]:
    """One loop over the log in order of time, one candidate at a time, as one would write it first."""

    def run() -> str:
        return f"cap {CAPS[0]} refuses {_replayed(_columns(folder / 'log'), CAPS[0]):,}"

    yield run


def _replayed(columns: tuple[Any, Any, Any], cap: int) -> int:
    """How many connections a cap refuses. Columns in order of opening."""
    refused = 0
    open_of: dict[int, int] = {}
    leaving: list[tuple[int, int]] = []
    for first in range(0, len(columns[0]), CHUNK):
        for ip, start, end in zip(*(each[first : first + CHUNK].tolist() for each in columns), strict=True):
            while leaving and leaving[0][0] <= start:
                open_of[heappop(leaving)[1]] -= 1
            count = open_of.get(ip, 0)
            if count >= cap:
                refused += 1
                continue
            open_of[ip] = count + 1
            heappush(leaving, (end, ip))
    return refused


def _refused(every: list[int]) -> str:
    """The answer to all of CAPS."""
    return ", ".join(f"{cap}: {refused:,}" for cap, refused in zip(CAPS, every, strict=True))


@contextmanager
def pandas_sweep(folder: Path) -> Iterator[Callable[[], str]]:
    """How many are open per IP, at every open: the audit's count by pandas, all in memory."""
    import pandas

    def run() -> str:
        ips, opened, closed = _columns(folder / "log")
        # Twice the time, and one more for an open: at one instant closes come first, with a single key to sort by.
        steps = pandas.DataFrame(
            {
                "ip": numpy.concatenate([ips, ips]),
                "at": numpy.concatenate([2 * opened + 1, 2 * closed]),
                "change": numpy.concatenate([numpy.ones(len(ips), "i4"), numpy.full(len(ips), -1, "i4")]),
            }
        )
        del ips, opened, closed
        steps = steps.sort_values("at", ignore_index=True)
        return f"most open {steps.groupby('ip')['change'].cumsum().max():,}"

    yield run


LARGE = "audit on Spark, caps"
MEASURES = {
    "plain replay, one cap": plain_replay,
    "pandas, counting only": pandas_sweep,
    f"DuckDB and a loop, {len(CAPS)} caps": duckdb_script,
    f"plan, {len(CAPS)} caps": plan_of_caps,
    f"plan on Spark, {len(CAPS)} caps": spark_plan,
    "plan on Spark without its replay": spark_alone,
    "audit, caps": audit_of_caps,
    LARGE: spark_audit_of_caps,
    "audit, caps, grants and rates": audit_of_tokens,
    "audit on Spark, caps, grants and rates": spark_audit_of_tokens,
    "report": report_of_caps,
}


def _columns(log: Path) -> tuple[Any, Any, Any]:
    """ip codes, opened_us and closed_us in order of opening."""
    table = (
        pyarrow.parquet.read_table(log, columns=["ip", "opened_at", "closed_at"]).unify_dictionaries().combine_chunks()
    )
    codes = pyarrow.compute.dictionary_encode(table["ip"]).combine_chunks().indices.to_numpy()
    opened, closed = (table[name].cast("i8").to_numpy() for name in ("opened_at", "closed_at"))
    order = numpy.argsort(opened, kind="stable")
    return codes[order], opened[order], closed[order]


# ---- what it is measured on


def make_log(folder: Path, connections: int) -> Path:
    """A generated log as Parquet."""
    ips, nats, leaks = connections // 50, 3, 2
    names = [make_connlog.address(code, ips, nats) for code in range(ips + nats + leaks)]
    made = make_connlog.chunks(connections, 7, ips=ips, nats=nats, leaks=leaks, days=1.0)
    make_connlog.write(folder / "log", "parquet", made, names)
    return folder / "log"


def main() -> int:
    """Arguments in, a table out; 1 when something could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1e6,1e7", help="connections  [default: %(default)s]")
    parser.add_argument("--large", type=float, help=f"connections of one more size, for the row {LARGE!r} alone")
    parser.add_argument("--only", action="append", choices=MEASURES, help="of the rows, this one. May be given again.")
    parser.add_argument("--work", type=Path, help="folder for what is measured on  [default: a temporary one]")
    parser.add_argument("--write", action="store_true", help="put the table into docs/internals/benchmarks.md")
    parser.add_argument("--one", choices=MEASURES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write and given.only:
        parser.error("--write replaces the whole table: not with --only")
    if given.one:
        run_one(given.one, given.work)
        return 0
    rows: list[tuple[str, ...]] = []
    failed = False
    sizes = {int(float(part)): given.only or list(MEASURES) for part in given.sizes.split(",")}
    if given.large:
        sizes[int(given.large)] = [LARGE]
    for size, chosen in sizes.items():
        folder = Path(tempfile.mkdtemp(prefix="turnstile-bench-", dir=given.work))
        try:
            print(f"making {size:,} connections ...", file=sys.stderr, flush=True)
            log = make_log(folder, size)
            make_journal.make_journal(folder / "journal", log, tokens=False)
            if any("grants" in what for what in chosen):
                make_journal.make_journal(folder / "journal-with-tokens", log, tokens=True)
            for what in chosen:
                print(f"measuring {what} ...", file=sys.stderr, flush=True)
                try:
                    rows.append(measure(what, size, folder).cells())
                except machine.CannotMeasure as reason:
                    failed = True
                    rows.append((what, f"{size:,}", *[""] * (len(COLUMNS) - 3), f"not measured: {reason}"))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    table.show_plain("Turnstile pipeline benchmarks", COLUMNS, rows)
    if given.write:
        where = "each line in a process of its own"
        table.write_plain(
            COLUMNS, rows, ROOT / "docs" / "internals" / "benchmarks.md", mark="pipeline table", where=where
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
