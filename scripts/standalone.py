"""Checks plan, audit, report, follow and load on a Spark master whose workers see nothing of this machine against the answers of
one process.

A standalone master and two workers, as Spark's `sbin/start-*.sh` start them (standalone_cluster.py). Each job is done by one
process, by the cluster, and by the cluster while one of its workers' processes is killed in the middle (standalone_jobs.py): exit
code, verdict, evidence, counts and pages have to be the same. A load can't be repeated: the report has to name what a lost driver
did (standalone_load.py). Needs root, for namespaces.

    make standalone                            a line for each check; exit code 0: all are right
    python scripts/standalone.py audit load    these alone, of: plan, audit, report, "audit of quotas", follow, more, load
"""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "turnstile" / "pipeline"), str(ROOT / "tests" / "support")]

from scripts import standalone_jobs, standalone_load  # noqa: E402  found once the line above has run
from scripts.standalone_check import Check  # noqa: E402
from scripts.standalone_cluster import Cluster, begin, running  # noqa: E402

OTHERS = ("more", "load")
"""Checks besides the jobs: `more`, of what one process does alone and of what workers lack; `load`, which ends a worker."""
WHAT_IT_HAS = """
import importlib.util, os
names = ("turnstile", "shards", "broker", "pyspark", "pandas", "numpy", "pyarrow")
print([name for name in names if importlib.util.find_spec(name)], os.listdir("{}"), os.listdir("{}"))
"""


def checks(cluster: Cluster) -> Iterator[Check]:
    """Runs the chosen checks, one after the other."""
    seen = cluster.sees(WHAT_IT_HAS.format(ROOT, cluster.driver))
    yield Check(
        "workers",
        "" if seen.stdout == "['numpy', 'pyarrow'] [] []\n" else f"{seen.stdout}{seen.stderr}",
        "they have numpy and pyarrow alone, and see nothing of the checkout and of the driver's folder",
    )
    chosen = sys.argv[1:] or [*standalone_jobs.JOBS, *OTHERS]
    if chosen != ["load"]:
        standalone_jobs.make_inputs(cluster)
    for name in chosen:
        if name in standalone_jobs.JOBS:
            yield from standalone_jobs.checks(cluster, name)
    if "more" in chosen:
        yield standalone_jobs.quota_plan(cluster)
        yield from standalone_jobs.refusals(cluster)
    if "load" in chosen:
        turnstile = partial(begin, cluster, python=cluster.python(without="numpy"))
        yield from standalone_load.checks(turnstile, cluster.driver, cluster.master, cluster.worker(1))
    left = [path.name for path in (cluster.driver / "tmp").glob("*")]
    yield Check("temporary files", ", ".join(left), "none is left")


def main() -> int:
    """Prints a line for each check, and how many are wrong."""
    if os.geteuid() != 0 or shutil.which("java") is None:
        print("skipped: mount namespaces need root, and Spark a JDK")
        return 0
    began_s = time.monotonic()
    count, wrong = 0, 0
    with running() as cluster:
        for check in checks(cluster):
            count, wrong = count + 1, wrong + bool(check.fault)
            print(f"{time.monotonic() - began_s:4.0f} s  {check}", flush=True)
    print(f"{count} checks, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
