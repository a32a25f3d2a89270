"""How far a Spark job is, on stderr, when that is a terminal."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

PERIOD_S = 0.5


@contextmanager
def shown(spark: SparkSession, what: str, *, enabled: bool | None = None) -> Iterator[None]:
    """While inside, one line on stderr that says which tasks are done; nothing when stderr is no terminal."""
    if not (sys.stderr.isatty() if enabled is None else enabled):
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_watch, args=(spark, what, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(2 * PERIOD_S)
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()


def _watch(spark: SparkSession, what: str, done: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    finished: set[int] = set()
    while not done.wait(PERIOD_S):
        stages = []
        for number in tracker.getActiveStageIds():
            info = tracker.getStageInfo(number)
            if info is not None:
                stages.append(info)
                finished.add(number)
        ready = sum(info.numCompletedTasks for info in stages)
        total = sum(info.numTasks for info in stages)
        tasks = f", {ready} of {total} tasks" if total else ""
        sys.stderr.write(f"\r\x1b[2K{what}: stage {len(finished)}{tasks}")
        sys.stderr.flush()
