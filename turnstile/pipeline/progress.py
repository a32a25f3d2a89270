"""How far a Spark job is, on stderr, when that is a terminal: what is being done, and how many of its tasks are."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from turnstile.pipeline.session import Starting

PERIOD_S = 0.5


class ProgressLine:
    """One line on stderr, drawn anew every PERIOD_S."""

    def __init__(self, what: str) -> None:
        self.step = "starting Spark"
        self._what = what
        self._session: Starting | None = None
        self._done = threading.Event()
        self._stages: set[int] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def watch(self, session: Starting) -> None:
        """From when it has started, tasks of this session are shown too."""
        self._session = session

    def start(self) -> None:
        """Draws the first line at once, the others from a thread."""
        self._draw()
        self._thread.start()

    def end(self) -> None:
        """Clears it."""
        self._done.set()
        self._thread.join(2 * PERIOD_S)
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()

    def _run(self) -> None:
        while not self._done.wait(PERIOD_S):
            try:
                self._draw()
            except Exception:  # a session that is being stopped answers no more
                return

    def _draw(self) -> None:
        session = self._session
        words = self.step
        if session is not None and session.is_ready:
            tasks = self._tasks(session.spark())
            words = tasks if words == "starting Spark" else f"{words}, {tasks}"
        sys.stderr.write(f"\r\x1b[2K{self._what}: {words}")
        sys.stderr.flush()

    def _tasks(self, spark: SparkSession) -> str:
        tracker = spark.sparkContext.statusTracker()
        running = [info for info in map(tracker.getStageInfo, tracker.getActiveStageIds()) if info is not None]
        self._stages.update(info.stageId for info in running)
        ready, total = (sum(getattr(info, name) for info in running) for name in ("numCompletedTasks", "numTasks"))
        return f"stage {len(self._stages)}" + (f", {ready} of {total} tasks" if total else "")


_shown: ProgressLine | None = None


def step(name: str) -> None:
    """Say what is being done from here on, if a line is shown."""
    if _shown is not None:
        _shown.step = name


@contextmanager
def shown(what: str, *, enabled: bool | None = None) -> Iterator[ProgressLine]:
    """While inside, a line on stderr; nothing when stderr is no terminal."""
    global _shown
    line = ProgressLine(what)
    if not (sys.stderr.isatty() if enabled is None else enabled):
        yield line
        return
    _shown = line
    line.start()
    try:
        yield line
    finally:
        _shown = None
        line.end()
