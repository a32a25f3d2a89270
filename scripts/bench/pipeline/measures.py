"""The measures of the benchmark of the pipeline: the commands, the same functions in one process, and scripts for the same answer.

Each is a function of the folder that `inputs.py` fills, and returns its answer as text, which peers have in common. Commands
are timed with their start, scripts with what they import.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.parquet

from scripts.bench.machine import CannotMeasure
from scripts.bench.pipeline.inputs import JOURNAL, LOG, REQUESTS, TOKENS

ROOT = Path(__file__).resolve().parents[3]
CAPS = (5, 10, 20, 50, 100, 200)
ON_SPARK = ("--master", "local[2]")
QUOTA = "client-id=<default> producer_byte_rate=100000"


def _command(*arguments: str) -> Any:
    """The answer of a command of turnstile in JSON. Raises CannotMeasure with its last line when it fails."""
    command = [sys.executable, "-c", "from turnstile.cli.main import main; main()", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if not done.stdout:
        raise CannotMeasure((done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1])
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise CannotMeasure(answer["error"])
    return answer


# ---- plan


def plan(log: Path, *options: str) -> str:
    """Every cap of CAPS and the recommendation, by the command."""
    caps = ",".join(map(str, CAPS))
    answer = _command("plan", "--input", str(log), "--format", "parquet", "--per-ip-cap", caps, *options)
    return _refused([each["refused"] for each in answer["candidates"]])


def ten_lines(log: Path) -> str:
    """Every cap of CAPS by a loop as one would write it first: addresses one by one, the closes of each in a heap."""
    table = pyarrow.parquet.read_table(log, columns=["ip", "opened_at", "closed_at"]).sort_by("opened_at")
    of_ip: dict[str, list[tuple[int, int]]] = {}
    columns = [table["ip"].to_pylist(), *(table[name].cast("i8").to_pylist() for name in ("opened_at", "closed_at"))]
    for ip, opened, closed in zip(*columns, strict=True):
        of_ip.setdefault(ip, []).append((opened, closed))
    return _refused([sum(_refused_of(spans, cap) for spans in of_ip.values()) for cap in CAPS])


def _refused_of(spans: list[tuple[int, int]], cap: int) -> int:
    """How many connections of one address a cap refuses."""
    refused = 0
    closes: list[int] = []
    for opened, closed in spans:
        while closes and closes[0] <= opened:
            heappop(closes)
        if len(closes) < cap:
            heappush(closes, closed)
        else:
            refused += 1
    return refused


def duckdb_and_loop(log: Path) -> str:
    """Every cap of CAPS as a script: DuckDB reads, codes and sorts the log, and each cap is a loop over all with one heap.

    SQL alone can't say it: whether a connection is open depends on whether those before it were refused.
    """
    try:
        import duckdb  # of this row alone, so not among the project's dependencies
    except ImportError:
        raise CannotMeasure("needs `pip install duckdb`") from None
    rows = f"read_parquet('{log / '*.parquet'}', file_row_number = true, filename = true)"
    found = duckdb.sql(
        "select dense_rank() over (order by ip) - 1 as ip, epoch_us(opened_at) as opened, epoch_us(closed_at) as closed "
        f"from {rows} order by opened, filename, file_row_number"
    ).fetchnumpy()
    return _refused([_refused_of_all((found["ip"], found["opened"], found["closed"]), cap) for cap in CAPS])


def _refused_of_all(columns: tuple[Any, Any, Any], cap: int) -> int:
    """How many connections a cap refuses; columns in order of opening, turned into numbers a million at a time."""
    refused, step = 0, 1_000_000
    open_of: dict[int, int] = {}
    leaving: list[tuple[int, int]] = []
    for first in range(0, len(columns[0]), step):
        for ip, start, end in zip(*(each[first : first + step].tolist() for each in columns), strict=True):
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


# ---- audit and report


def audit(journal: Path, *options: str) -> str:
    """All checks, by the command. Raises CannotMeasure where it does not hold: the journal is within its limits."""
    answer = _command("audit", str(journal), *options)
    return _held(answer["verdict"], answer["events"])


def audit_here(journal: Path) -> str:
    """An audit in one process, whatever the size."""
    from turnstile.pipeline.audit.audit import audit as run
    from turnstile.pipeline.events.journal import here

    read = here([journal])
    assert read is not None  # as its size does not matter
    answer = run(read, lambda _: None).as_json()
    return _held(answer["verdict"], answer["events"])


def _held(verdict: str, events: int) -> str:
    if verdict != "held":
        raise CannotMeasure(f"the audit says {verdict!r} of a journal within its limits")
    return f"{events:,} events"


def report(journal: Path, *options: str) -> str:
    """Every table and the page, by the command."""
    answer = _command("report", str(journal), "--html", str(journal.parent / "report.html"), *options)
    return f"{answer['events']:,} events"


def most_open(log: Path) -> str:
    """How many are open per IP, at every open: the audit's count alone, by pandas, all in memory."""
    import pandas

    table = (
        pyarrow.parquet.read_table(log, columns=["ip", "opened_at", "closed_at"]).unify_dictionaries().combine_chunks()
    )
    codes = pyarrow.compute.dictionary_encode(table["ip"]).combine_chunks().indices.to_numpy()
    opened, closed = (table[name].cast("i8").to_numpy() for name in ("opened_at", "closed_at"))
    # Twice the time, and one more for an open: at one instant closes come first, with a single key to sort by.
    steps = pandas.DataFrame(
        {
            "ip": numpy.concatenate([codes, codes]),
            "at": numpy.concatenate([2 * opened + 1, 2 * closed]),
            "change": numpy.concatenate([numpy.ones(len(codes), "i4"), numpy.full(len(codes), -1, "i4")]),
        }
    ).sort_values("at", ignore_index=True)
    return f"most open {steps.groupby('ip')['change'].cumsum().max():,}"


# ---- quotas


def plan_quotas(requests: Path) -> str:
    """One quota on a request log, and the recommendation, by the command."""
    answer = _command("plan", "--quotas", "--input", str(requests), "--format", "kafka-requests", "--quota", QUOTA)
    return f"{answer['charges']:,} charges"


def lines_parsed(requests: Path) -> str:
    """The lines read by json alone, with nothing computed."""
    with requests.open() as file:
        parsed = [json.JSONDecoder().raw_decode(line.partition("request:")[2])[0] for line in file]
    return f"{len(parsed):,} lines"


MEASURES: dict[str, tuple[str, Callable[[Path], str]]] = {
    "audit, caps": (JOURNAL, audit_here),
    "audit on Spark, caps": (JOURNAL, lambda journal: audit(journal, *ON_SPARK)),
    "audit, caps, grants and rates": (TOKENS, audit_here),
    "audit on Spark, caps, grants and rates": (TOKENS, lambda journal: audit(journal, *ON_SPARK)),
    "pandas, counting only": (LOG, most_open),
    f"plan, {len(CAPS)} caps": (LOG, plan),
    f"plan on Spark, {len(CAPS)} caps": (LOG, lambda log: plan(log, *ON_SPARK)),
    f"ten lines of Python, {len(CAPS)} caps": (LOG, ten_lines),
    f"DuckDB and a loop, {len(CAPS)} caps": (LOG, duckdb_and_loop),
    "report": (JOURNAL, report),
    "report on Spark": (JOURNAL, lambda journal: report(journal, *ON_SPARK)),
    "plan --quotas": (REQUESTS, plan_quotas),
    "json.loads of each request": (REQUESTS, lines_parsed),
}
"""Measure -> the input that it reads, and the function that does it."""
