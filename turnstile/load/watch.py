"""A run as it is seen while it lasts: where each driver stands, their sum for a line of progress, and that nothing listens."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from turnstile.load.raw_sockets import DriverError
from turnstile.load.spec import LoadScenario
from turnstile.load.tally import COUNTS

MANY_FAILURES = 50
"""Connects that failed, with none that succeeded, after which the run is given up: nothing listens there."""


class WorkerProgress(NamedTuple):
    """The progress of a driver: counts per group (tally.COUNTS), open connections, errno of the last failed connect."""

    counts: list[tuple[int, ...]]
    open_now: int
    last_error: int
    settled: bool


@dataclass(frozen=True)
class Watch:
    """A moment of a run: sums over groups and drivers, by name as in tally.COUNTS."""

    seconds: float
    counts: dict[str, int]
    open_now: int

    def __str__(self) -> str:
        counts = self.counts
        return (
            f"{counts['attempted']:,} attempted, {counts['admitted']:,} admitted, {counts['refused']:,} refused, "
            f"{counts['connect_errors'] + counts['closed_by_broker']:,} broken, {self.open_now:,} open"
        )


class Lookout:
    """Looks at where the drivers of a run stand."""

    def __init__(self, scenario: LoadScenario, bootstrap: str, began_s: float, watch: Callable[[Watch], None]) -> None:
        """`began_s`: by time.monotonic. `watch` is told of each look."""
        self.began_s = began_s
        self._bootstrap = bootstrap
        self._many = min(MANY_FAILURES, scenario.clients or 1)
        self._watch = watch

    def look(self, latest: Sequence[WorkerProgress]) -> None:
        """Raises DriverError when nothing listens."""
        now = _sum(latest, max(0.0, time.monotonic() - self.began_s))
        self._watch(now)
        nothing = now.counts["admitted"] + now.counts["refused"] == 0
        if nothing and now.counts["connect_errors"] >= self._many:
            raise DriverError(_nothing_listens(self._bootstrap, latest))


def _sum(latest: Sequence[WorkerProgress], seconds: float) -> Watch:
    counts = dict.fromkeys(COUNTS, 0)
    for progress in latest:
        for group in progress.counts:
            for name, value in zip(COUNTS, group, strict=True):
                counts[name] += value
    return Watch(seconds, counts, sum(progress.open_now for progress in latest))


def _nothing_listens(bootstrap: str, latest: Sequence[WorkerProgress]) -> str:
    errors = {os.strerror(progress.last_error) for progress in latest if progress.last_error}
    return f"Nothing answers at {bootstrap}: {', '.join(sorted(errors))}. Is the cluster up (turnstile status)?"
