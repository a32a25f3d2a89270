"""A verdict from end to end: the course, the records, the findings."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from turnstile.verdict.course import Course, Judged, Times
from turnstile.verdict.finding import Finding
from turnstile.verdict.judge import CHECKS, exit_code, judge, steps_of
from turnstile.verdict.program import Program
from turnstile.verdict.reading import CLIENT_ID, MOST, read_records
from turnstile.verdict.tail import Tail
from turnstile.verdict.timeline import Timeline

PRIVATE = {"group.initial.rebalance.delay.ms": 0}
"""Settings of a cluster that is started for a verdict: a first member of a group need not wait for others."""


@dataclass(frozen=True)
class Verdict:
    """What is to be said of a client: a finding for each check, and the timeline that it rests on."""

    client: str
    findings: Mapping[str, Finding]
    timeline: Timeline
    said: str
    """The last lines that the program wrote."""

    @property
    def exit_code(self) -> int:
        """0; 1 when a check failed; 2 when none could be judged."""
        return exit_code(self.findings)

    def as_json(self) -> dict[str, list[dict[str, str]]]:
        """{"checks": [{"id", "verdict", "evidence", "source"}]}."""
        return {
            "checks": [
                {"id": name, "verdict": each.verdict, "evidence": each.evidence, "source": each.source}
                for name, each in self.findings.items()
            ]
        }


class Reached(Judged, Protocol):
    """A cluster that a program can be pointed at."""

    @property
    def bootstrap(self) -> str: ...


def run(
    cluster: Reached,
    journal: Path,
    command: Sequence[str] | None,
    *,
    times: Times | None = None,
    checks: Iterable[str] = tuple(CHECKS),
    seed: int = 0,
    target: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> Verdict:
    """Judges `command`, or, without one, the client of a cluster in use that `target` names. Raises CannotJudge, OSError."""
    checks = list(checks)
    with tempfile.TemporaryFile() as output, _observed(cluster, journal) as tail:

        def start() -> Program:
            assert command is not None
            return Program(command, cluster.bootstrap, output)

        course = Course(
            cluster, tail, start if command is not None else None, times=times or Times(), steps=steps_of(checks), seed=seed,
            target=target, say=say,
        )  # fmt: skip
        timeline = course.run()
        timeline = replace(timeline, events=[e for e in timeline.events if e.client_id != CLIENT_ID])
        if "delivery" in checks:
            timeline = _with_records(timeline, cluster.bootstrap, is_private=command is not None)
        output.seek(max(output.seek(0, os.SEEK_END) - 2000, 0))
        said = output.read().decode(errors="replace")
    client = subprocess.list2cmdline(command) if command is not None else str(dict(target or {}))
    return Verdict(client, judge(timeline, checks), timeline, said)


@contextmanager
def _observed(cluster: Judged, journal: Path) -> Iterator[Tail]:
    """While the cluster journals what it sees of clients."""
    cluster.set({"turnstile.observe": True})
    tail = Tail(journal)
    tail.start()
    try:
        yield tail
    finally:
        tail.stop()
        cluster.set({"turnstile.observe": None})


def _with_records(timeline: Timeline, bootstrap: str, *, is_private: bool) -> Timeline:
    if not is_private:
        return replace(timeline, skipped={**timeline.skipped, "delivery": "other clients produce here, too"})
    records = read_records(bootstrap)
    if records is None:
        why = f"the log has more than {MOST} records, or could not be read"
        return replace(timeline, skipped={**timeline.skipped, "delivery": why})
    return replace(timeline, records=records)


def say_to_stderr(sentence: str) -> None:
    """Progress, for a person who waits."""
    print(f"  {time.strftime('%H:%M:%S')}  {sentence}", file=sys.stderr, flush=True)
