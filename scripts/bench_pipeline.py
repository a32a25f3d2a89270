#!/usr/bin/env python3
"""Events per second and memory of audit and plan, beside a plain sequential replay and pandas, and how they grow.

scripts/bench_pipeline.py                        1 and 10 million connections
scripts/bench_pipeline.py --sizes 50000000       takes about ten gigabytes of disk in --work
"""

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pyarrow
import pyarrow.parquet

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import make_connlog  # noqa: E402  found once the line above has run

from journal.segment import SCHEMA  # noqa: E402
from pipeline import audit, events, inputs, plan, session  # noqa: E402
from pipeline.candidates import Candidate  # noqa: E402
from pipeline.progress import shown  # noqa: E402

CAPS = (5, 10, 20, 50, 100, 200)
CHUNK = 1_000_000
SECOND_NS = 1_000_000_000


class Measured(NamedTuple):
    """One line of the table."""

    what: str
    connections: int
    seconds: float
    peak_bytes: int
    answer: str


def measure(what: str, connections: int, run: Callable[[], str]) -> Measured:
    """Time a call, and sample the resident memory of this process and all below it."""
    peak, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.25):
            peak[0] = max(peak[0], sum(_resident(pid) for pid in _family(os.getpid())))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    start = time.perf_counter()
    answer = run()
    seconds = time.perf_counter() - start
    done.set()
    thread.join()
    found = Measured(what, connections, seconds, peak[0], answer)
    print(row(found), flush=True)
    return found


def row(found: Measured) -> str:
    """As a line of the table."""
    rate = 2 * found.connections / found.seconds
    return (
        f"| {found.what} | {found.connections:,} | {found.seconds:,.1f} | {rate:,.0f} | {found.peak_bytes / 2**30:.1f} | "
        f"{found.answer} |"
    )


def _family(pid: int) -> list[int]:
    found = [pid]
    for each in found:
        try:
            for task in Path(f"/proc/{each}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


# ---- what is measured


def spark_plan(spark: Any, log: Path) -> str:
    """Every cap of CAPS and the recommendation."""
    with shown(spark, "plan"):
        source = inputs.load(spark, [str(log)], "parquet")
        found = plan.plan(source, [Candidate(per_ip_cap=cap) for cap in CAPS])
    source.connections.unpersist()
    spark.catalog.clearCache()
    return f"cap {CAPS[0]} refuses {found.candidates[0]['refused']:,}"


def spark_audit(spark: Any, journal: Path) -> str:
    """All checks."""
    with shown(spark, "audit"):
        found = audit.audit(events.read(spark, [journal]))
    spark.catalog.clearCache()
    return found.verdict


def plain_replay(log: Path) -> str:
    """One loop over the log in order of time, one candidate at a time, as one would write it first."""
    ips, opened, closed = _columns(log)
    refused = 0
    open_of: dict[int, int] = {}
    leaving: list[tuple[int, int]] = []
    for ip, start, end in zip(ips.tolist(), opened.tolist(), closed.tolist(), strict=True):
        while leaving and leaving[0][0] <= start:
            open_of[heappop(leaving)[1]] -= 1
        count = open_of.get(ip, 0)
        if count >= CAPS[0]:
            refused += 1
            continue
        open_of[ip] = count + 1
        heappush(leaving, (end, ip))
    return f"cap {CAPS[0]} refuses {refused:,}"


def pandas_sweep(log: Path) -> str:
    """How many are open per IP, at every open: the audit's count by pandas, all in memory."""
    import pandas

    ips, opened, closed = _columns(log)
    steps = pandas.DataFrame(
        {
            "ip": numpy.concatenate([ips, ips]),
            "at": numpy.concatenate([opened, closed]),
            "change": numpy.concatenate([numpy.ones(len(ips), "i8"), numpy.full(len(ips), -1, "i8")]),
        }
    ).sort_values(["ip", "at", "change"])
    return f"most open {steps.groupby('ip')['change'].cumsum().max():,}"


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


def make_journal(folder: Path, log: Path) -> Path:
    """The journal of one broker with four shards that admitted all of the log, with a cap that nobody reaches."""
    journal = folder / "journal"
    journal.mkdir()
    seq = [0] * 4
    _part(journal / "config.parquet", 1, seq, kind=["config"], mono_ns=numpy.array([1]), version=numpy.array([1]),
          detail=['{"full":true,"changes":[["setting","/kafka_connections_max_per_ip","1000000"]]}'])  # fmt: skip
    first = 0
    for number, path in enumerate(sorted(log.glob("*.parquet"))):
        table = pyarrow.parquet.read_table(path)
        count = table.num_rows
        ips = pyarrow.compute.cast(table["ip"], pyarrow.string()).combine_chunks()
        opened, closed = (table[name].cast("i8").to_numpy() * 1000 for name in ("opened_at", "closed_at"))
        conn = numpy.arange(first + 1, first + count + 1)
        first += count
        at_ns = numpy.concatenate([opened, numpy.maximum(closed, opened + 1)])
        both = pyarrow.concat_arrays([ips, ips])
        kinds = pyarrow.array(["admitted"] * count + ["closed"] * count)
        version = numpy.concatenate([numpy.ones(count, "i8"), numpy.zeros(count, "i8")])
        _part(journal / f"part-{number:05d}.parquet", 2 * count, seq, kind=kinds, mono_ns=at_ns, ip=both,
              conn=numpy.concatenate([conn, conn]), version=version)  # fmt: skip
    return journal


def _part(path: Path, count: int, seq: list[int], **given: Any) -> None:
    """One part; connections go to the shards in turn, and every shard's events are numbered."""
    conn = given.get("conn", numpy.zeros(count, "i8"))
    shard = conn % 4
    numbers = numpy.zeros(count, "i8")
    for each in range(4):
        mine = numpy.flatnonzero(shard == each)
        numbers[mine] = seq[each] + numpy.arange(len(mine))
        seq[each] += len(mine)
    constant = {"broker": 0, "epoch": 1, "listener": "EXTERNAL"}
    columns = {}
    for field in SCHEMA:
        kind = pyarrow.string() if pyarrow.types.is_dictionary(field.type) else field.type
        if field.name in given:
            columns[field.name] = pyarrow.array(given[field.name]).cast(kind)
        elif field.name in constant:
            columns[field.name] = pyarrow.repeat(constant[field.name], count).cast(kind)
        elif field.name == "ts":
            columns[field.name] = pyarrow.array(given["mono_ns"] // 1000).cast(kind)
        elif field.name in ("seq", "shard"):
            columns[field.name] = pyarrow.array(numbers if field.name == "seq" else shard).cast(kind)
        else:
            columns[field.name] = pyarrow.nulls(count, kind)
    pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="zstd", compression_level=1)


def main() -> None:
    """Arguments in, a table out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000000,10000000", help="connections  [default: %(default)s]")
    parser.add_argument("--work", type=Path, help="folder for what is measured on  [default: a temporary one]")
    given = parser.parse_args()
    print("| what | connections | seconds | events/s | peak GiB | answer |\n|---|---:|---:|---:|---:|---|")
    for size in [int(float(part)) for part in given.sizes.split(",")]:
        folder = Path(tempfile.mkdtemp(prefix="turnstile-bench-", dir=given.work))
        try:
            log = make_log(folder, size)
            journal = make_journal(folder, log)
            measure("plain replay, one cap", size, lambda: plain_replay(log))  # noqa: B023  called at once
            measure("pandas, counting only", size, lambda: pandas_sweep(log))  # noqa: B023
            with session.session(app="turnstile bench-pipeline") as spark:
                measure(f"plan, {len(CAPS)} caps", size, lambda: spark_plan(spark, log))  # noqa: B023
                measure("audit", size, lambda: spark_audit(spark, journal))  # noqa: B023
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
