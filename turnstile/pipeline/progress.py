"""The progress of a job, on stderr: its step, and how many of Spark's tasks are done.

On a terminal one line, drawn anew twice a second. Elsewhere, as in CI, a line every PIPED_S seconds.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from turnstile.pipeline.session import Starting

PERIOD_S = 0.5
PIPED_S = 3.0
SPARK_STARTS = "starting Spark"


class ProgressLine:
    """The progress of a job, said every `period_s` seconds. `step` is what it does now."""

    def __init__(self, what: str, *, terminal: bool, period_s: float | None = None) -> None:
        self.step = "reading"
        self._what = what
        self._terminal = terminal
        self._period_s = period_s or (PERIOD_S if terminal else PIPED_S)
        self._began_s = time.monotonic()
        self._session: Starting | None = None
        self._done = threading.Event()
        self._stages: set[int] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def watch(self, session: Starting) -> None:
        """Shows this session's tasks, too, once it has started."""
        self._session = session
        self.step = SPARK_STARTS

    def start(self) -> None:
        """Draws the first line at once on a terminal; the others come from a thread."""
        if self._terminal:
            self._tell()
        self._thread.start()

    def end(self) -> None:
        """Clears it from a terminal."""
        self._done.set()
        self._thread.join(2 * PERIOD_S)
        if self._terminal:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()

    def _run(self) -> None:
        while not self._done.wait(self._period_s):
            try:
                self._tell()
            except Exception:  # a session that is being stopped answers no more
                return

    def _tell(self) -> None:
        words = f"{self._what}: {self._words()}"
        seconds = time.monotonic() - self._began_s
        sys.stderr.write(f"\r\x1b[2K{words}" if self._terminal else f"{words} ({seconds:.0f} s)\n")
        sys.stderr.flush()

    def _words(self) -> str:
        session = self._session
        if session is None or not session.is_ready:
            return self.step
        tasks = self._tasks(session.spark())
        return tasks if self.step == SPARK_STARTS else f"{self.step}, {tasks}"

    def _tasks(self, spark: SparkSession) -> str:
        tracker = spark.sparkContext.statusTracker()
        running = [info for info in map(tracker.getStageInfo, tracker.getActiveStageIds()) if info is not None]
        self._stages.update(info.stageId for info in running)
        completed, total = (sum(getattr(info, name) for info in running) for name in ("numCompletedTasks", "numTasks"))
        return f"stage {len(self._stages)}" + (f", {completed} of {total} tasks" if total else "")


_shown: ProgressLine | None = None


def step(name: str) -> None:
    """Say what is being done from here on, if a line is shown."""
    if _shown is not None:
        _shown.step = name


@contextmanager
def shown(what: str) -> Iterator[ProgressLine]:
    """Shows progress on stderr while inside; a nested one goes on with the outer line."""
    global _shown
    if _shown is not None:
        yield _shown
        return
    line = _shown = ProgressLine(what, terminal=sys.stderr.isatty())
    line.start()
    try:
        yield line
    finally:
        _shown = None
        line.end()
