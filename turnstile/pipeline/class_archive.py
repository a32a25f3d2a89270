"""Make the class-data archive of this environment: `python -m turnstile.pipeline.class_archive`, once, at set-up.

A Spark job of a few seconds spends half of them on loading classes. A JVM with such an archive (JDK's AppCDS) maps them from
a file instead. The archive holds the classes that small jobs of each kind used. The JVM silently ignores an archive of another
JVM or Spark.
"""

import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from turnstile.pipeline import jvm
from turnstile.pipeline.errors import PipelineError
from turnstile.pipeline.events.spark_events import SCHEMA, read
from turnstile.pipeline.inputs.connection_logs import load
from turnstile.pipeline.plan.candidates import Candidate
from turnstile.pipeline.plan.plan import plan
from turnstile.pipeline.report.report import REPORTED, build
from turnstile.pipeline.session import SMALL, session

_CSV = "ip,opened_at,closed_at\n10.0.0.1,2026-01-05T10:00:00Z,2026-01-05T10:00:09Z\n10.0.0.2,1767607200,\n"
_ZEEK = "#fields\tts\tid.orig_h\tid.orig_p\tid.resp_p\tproto\tduration\n1767607200.5\t10.0.0.1\t5000\t9092\ttcp\t9\n"


def make(target: Path) -> None:
    """Run the jobs once and write the archive. Raises PipelineError when Spark can't start."""
    target.parent.mkdir(parents=True, exist_ok=True)
    made = target.with_suffix(f".{os.getpid()}")
    options = f"{SMALL[jvm.OPTIONS]} {jvm.MAKE_ARCHIVE}={made}"
    try:
        with tempfile.TemporaryDirectory(prefix="turnstile-") as folder:
            _run_jobs(Path(folder), options)
        if not made.exists():
            raise PipelineError(f"The JVM wrote no class-data archive to {target.parent}.")
        made.replace(target)
    finally:
        made.unlink(missing_ok=True)


def _run_jobs(folder: Path, java_options: str) -> None:
    with session("local[2]", small=True, conf={jvm.OPTIONS: java_options}) as spark:
        for name, text in (("csv", _CSV), ("zeek", _ZEEK)):
            (folder / name).write_text(text)
            plan(load(spark, [str(folder / name)], name), [Candidate(cap=1), Candidate(broker_cap=1)])
        _write_journal(spark, folder / "journal")
        build(read(spark, [str(folder / "journal")]).journal(columns=REPORTED))


def _write_journal(spark: SparkSession, folder: Path) -> None:
    columns = [name.split()[0] for name in SCHEMA.split(", ")]
    constant = {"broker": 0, "shard": 0, "epoch": 1, "conn": 1, "ip": "10.0.0.1"}
    kinds = ("shard_up", "admitted", "closed", "refused", "throttled")
    events = [{"kind": kind, "mono_ns": number, "seq": number, **constant} for number, kind in enumerate(kinds)]
    rows = [tuple(event.get(name) for name in columns) for event in events]
    spark.createDataFrame(rows, SCHEMA).coalesce(1).write.parquet(str(folder))


if __name__ == "__main__":
    try:
        make(jvm.class_archive())
    except (PipelineError, OSError) as fault:
        # The set-up goes on: nothing but the start of Spark jobs depends on the archive, and without a JDK there are none.
        print(f"No class-data archive, Spark jobs start slower: {fault}", file=sys.stderr)
