"""A verdict from end to end: the course, the records, the findings."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypedDict

from turnstile.verdict.course import run_course
from turnstile.verdict.delivered_records import CLIENT_ID, MOST, read_records
from turnstile.verdict.finding import Finding
from turnstile.verdict.judge import CHECKS, exit_code, judge, steps_of
from turnstile.verdict.judged import CannotJudge, Judged
from turnstile.verdict.output import Output
from turnstile.verdict.program import Program, end_all
from turnstile.verdict.tail import Tail
from turnstile.verdict.timeline import Timeline
from turnstile.verdict.times import Times

PRIVATE = {"group.initial.rebalance.delay.ms": 0, "turnstile.shard.timeout.ms": 60_000}
"""Settings of a cluster that is started for a verdict: a first member of a group need not wait for others, and a shard that gets
no CPU is waited for, instead of another one that would get none either."""
OBSERVE = "turnstile.observe"
_LINES = 5


@dataclass(frozen=True)
class Verdict:
    """The verdict on a client: a finding for each check, and the timeline that it rests on."""

    client: str
    findings: Mapping[str, Finding]
    timeline: Timeline
    said: str
    """The last lines that the program wrote."""

    @property
    def exit_code(self) -> int:
        """0; 1 when a check failed; 2 when none could be judged."""
        return exit_code(self.findings)

    def as_json(self) -> dict[str, list[dict[str, object]]]:
        """{"checks": [{"id", "verdict", "evidence", "source"}]}; of a check that judges each API by itself also "apis", the worst
        first: [{"api", "verdict", "throttled", "early", "known"}]."""
        return {"checks": [_as_json(name, finding) for name, finding in self.findings.items()]}


def _as_json(name: str, finding: Finding) -> dict[str, object]:
    found: dict[str, object] = {
        "id": name, "verdict": finding.verdict, "evidence": finding.evidence, "source": finding.source
    }  # fmt: skip
    return {**found, "apis": [each._asdict() for each in finding.apis]} if finding.apis else found


class Reached(Judged, Protocol):
    """A cluster that a program can be pointed at."""

    @property
    def bootstrap(self) -> str: ...


class VerdictOptions(TypedDict, total=False):
    """Options of `run` that callers pass on."""

    times: Times
    checks: Iterable[str]
    seed: int
    say: Callable[[str], None]


def run(
    cluster: Reached,
    journal: Path,
    command: Sequence[str] | None,
    *,
    times: Times | None = None,
    checks: Iterable[str] = tuple(CHECKS),
    seed: int = 0,
    target: Mapping[str, str] | None = None,
    read_at: str | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> Verdict:
    """Judges `command`, or, without one, the client of a cluster in use that `target` names. Raises CannotJudge.

    `read_at`: where the log is read back, if clients have to log in at `cluster.bootstrap`.
    """
    checks, mark = list(checks), uuid.uuid4().hex
    with closing(Output()) as output, _observed(cluster, journal, is_ours=command is not None) as tail:

        def start() -> Program:
            assert command is not None
            return Program(command, cluster.bootstrap, output.fd, mark)

        try:
            timeline = run_course(
                cluster, tail, start if command is not None else None, times=times or Times(), steps=steps_of(checks),
                seed=seed, target=target, say=say,
            )  # fmt: skip
        except CannotJudge as fault:
            raise CannotJudge(_with_words(str(fault), output.last_words())) from None
        finally:
            end_all(mark)
        timeline = replace(timeline, events=[e for e in timeline.events if e.client_id != CLIENT_ID])
        if "delivery" in checks:
            timeline = _with_records(timeline, read_at or cluster.bootstrap, is_private=command is not None)
    client = subprocess.list2cmdline(command) if command is not None else str(dict(target or {}))
    return Verdict(client, judge(timeline, checks), timeline, output.last_words())


def _with_words(sentence: str, said: str) -> str:
    """The sentence, and the last lines that the program wrote."""
    lines = said.strip().splitlines()[-_LINES:]
    return "\n  ".join([f"{sentence}; it wrote:", *lines]) if lines else sentence


@contextmanager
def _observed(cluster: Judged, journal: Path, *, is_ours: bool) -> Iterator[Tail]:
    """Has the cluster journal what it sees of clients inside the block. Raises CannotJudge when it does so for another run."""
    before = cluster.admin.get("/v1/cluster_config", key=OBSERVE)[OBSERVE]
    if before and not is_ours:
        raise CannotJudge(f"another verdict goes on there; if not, `turnstile config unset {OBSERVE}` and try again")
    tail = Tail(journal)
    try:
        cluster.set({OBSERVE: True})
        tail.start()
        yield tail
    finally:
        tail.stop()
        cluster.set({OBSERVE: before or None})


def _with_records(timeline: Timeline, bootstrap: str, *, is_private: bool) -> Timeline:
    if not is_private:
        return replace(timeline, skipped={**timeline.skipped, "delivery": "other clients produce here, too"})
    records = read_records(bootstrap)
    if records is None:
        why = f"the log has more than {MOST} records, or could not be read"
        return replace(timeline, skipped={**timeline.skipped, "delivery": why})
    return replace(timeline, records=records)
