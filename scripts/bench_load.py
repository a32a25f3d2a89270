"""A load whose drivers are tasks of Spark, beside the same load from processes of this machine: connections a second.

python scripts/bench_load.py               200,000 connections, five pairs of runs
python scripts/bench_load.py --write       puts the table into docs/internals/benchmarks.md

Both have as many drivers, on the machine that the cluster runs on, too, so what Spark takes for itself is missing to them. Runs
are made in pairs, one of each, in one session that is warm; a ratio is the median of the pairs'. CPU is the whole driver's:
its processes, and with Spark its JVM. What comes before the first connection is told apart: slots, drivers and clocks for each
run, and once the start of the session.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from scripts.bench import machine, table  # noqa: E402
from turnstile.fleet import job  # noqa: E402
from turnstile.load.driver import LoadResult, run  # noqa: E402
from turnstile.load.sources import Sources  # noqa: E402
from turnstile.load.spec import ClientGroup, LoadScenario  # noqa: E402
from turnstile.pipeline.session import session  # noqa: E402

GOAL = 1.05
COLUMNS = (
    "what",
    "connections",
    "connections/s",
    "CPU us each",
    "before the first, s",
    "seconds : here",
    "CPU : here",
    "goal",
)


class Run(NamedTuple):
    """The seconds of one load: from the first connection to the last, of all processors, and before the first."""

    seconds: float
    cpu_s: float
    before_s: float


def one(load: Callable[[], LoadResult]) -> Run:
    """A load that is right on both sides. Raises CannotMeasure."""
    cpu_s, began_s = machine.cpu_s(os.getpid()), time.monotonic()
    result = load()
    whole_s, cpu_s = time.monotonic() - began_s, machine.cpu_s(os.getpid()) - cpu_s
    if result.total.admitted != result.total.attempted or not result.reconciliation.agree:
        raise machine.CannotMeasure(f"not all was admitted: {result.reconciliation.sentence}")
    return Run(result.seconds, cpu_s, whole_s - result.seconds)


def rows(connections: int, drivers: int, rounds: int) -> list[tuple[str, ...]]:
    """One row from here, one through Spark."""
    group = ClientGroup(clients=connections, sources=Sources("127.1.0.0/20"))
    scenario = LoadScenario(name="bench", groups=(group,), close="rst")
    with machine.turnstile() as server:
        began_s = time.monotonic()
        with session(f"local[{drivers}]", app="turnstile bench-load", conf=job.SETTINGS) as spark:
            start_s = time.monotonic() - began_s
            to = (scenario, f"127.0.0.1:{server.port}", machine.admin_of(server))
            loads = (lambda: run(*to, processes=drivers), lambda: job.run(spark, *to))
            for load in loads:
                one(load)  # warm
            pairs = []
            for _ in range(rounds):
                machine.settle(server)
                here = one(loads[0])
                machine.settle(server)
                pairs.append((here, one(loads[1])))
    seconds, cpu = (statistics.median(there[at] / here[at] for here, there in pairs) for at in (0, 1))
    made = []
    for side, name in enumerate((f"load, {drivers} driver(s) here", f"load through Spark, {drivers} slot(s)")):
        taken_s, cpu_s, before_s = (statistics.median(pair[side][at] for pair in pairs) for at in range(3))
        start = f"{before_s:.1f}, session {start_s:.1f}" if side else f"{before_s:.1f}"
        judged = (f"{seconds:.2f}", f"{cpu:.2f}", f"{GOAL:.2f}") if side else ("", "", "")
        each = f"{1e6 * cpu_s / connections:,.0f}"
        made.append((name, f"{connections:,}", f"{connections / taken_s:,.0f}", each, start, *judged))
    return made


def main() -> int:
    """Arguments in, a table out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=200_000, help="of each run  [default: %(default)s]")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of runs  [default: %(default)s]")
    parser.add_argument("--drivers", type=int, default=1, help="of each run  [default: %(default)s]")
    parser.add_argument("--write", action="store_true", help="put the table into docs/internals/benchmarks.md")
    given = parser.parse_args()
    found = rows(given.connections, given.drivers, given.rounds)
    table.show_plain("A load through Spark", COLUMNS, found)
    if given.write:
        where = "drivers and cluster share the machine"
        path = ROOT / "docs" / "internals" / "benchmarks.md"
        table.write_plain(COLUMNS, found, path, mark="load table", where=where)
    return 0


if __name__ == "__main__":
    sys.exit(main())
