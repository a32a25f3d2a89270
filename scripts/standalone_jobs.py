"""The jobs part of standalone.py: answers of a cluster beside those of one process, also with an executor killed in the middle."""

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from metered import run as metered
from storms import Storm, write

from scripts.standalone_check import Check
from scripts.standalone_cluster import Cluster, begin, turnstile

WAIT_S = 120
LOOK_S = 0.02
PROGRESS = re.compile(r"\w+: .* \(\d+ s\)")
"""A line that says how far a job is."""
CONNECTIONS = 240_000
LOGS = 4
STEPS = 600_000
"""The steps of a storm: enough events for several slices of time."""
ROUNDS = 12
"""The rounds of a storm: a process is killed and a cap changed at the end of each."""
FEW_TASKS = ("--conf", "spark.sql.shuffle.partitions=2")
"""The inputs are small."""
OUTPUT = "its output"
CAPS = ("--per-ip-cap", "5,20", "--broker-cap", "30")


class Kill(NamedTuple):
    """An executor is killed in the middle of a job, with these options, when it has finished so many tasks and is in another."""

    after: int
    name: str = "a worker killed"
    options: tuple[str, ...] = ()


ALONE = partial(Kill, name="its only worker killed", options=("--conf", "spark.cores.max=1"))
"""One executor has done it all, so that nothing is left of it, and another, which starts then, goes on."""


class Job(NamedTuple):
    """A command; its options where it is done by one process; its exit code."""

    arguments: tuple[str, ...]
    here: tuple[str, ...] = ()
    code: int = 0
    kills: tuple[Kill, ...] = ()


LOCAL = ("--master", "local[*]")
"""For jobs that only Spark does."""
JOBS = {
    "plan": Job(
        ("plan", "--input", "{shared}/log", "--format", "csv", *CAPS, "--json", "--html", "{out}/plan.html"), kills=(Kill(1),)
    ),
    "audit": Job(("audit", "{shared}/storm", "--json", "--html", "{out}/audit.html"), code=1, kills=(Kill(4), ALONE(12))),
    "report": Job(
        ("report", "{shared}/storm", "--json", "--html", "{out}/report.html", "--out", "{out}/tables", "--out-format", "csv"),
        kills=(Kill(2),),
    ),
    "audit of quotas": Job(("audit", "{shared}/quotas", "--json", "--html", "{out}/quotas.html"), kills=(Kill(3),)),
    "follow": Job(("report", "{shared}/small", "--follow", "--once", "--out", "{out}/counts"), here=LOCAL),
    "followed": Job(("followed", "{out}/counts", "--json"), here=LOCAL),
}  # fmt: skip


class Answer(NamedTuple):
    """The output and the files of a job."""

    code: int
    texts: dict[str, str]
    said: str


def make_inputs(cluster: Cluster) -> None:
    """A journal that exceeds a cap for an instant, one of quotas, a small one, and a log of connections in several files."""
    _storm().write(cluster.shared / "storm", parts=LOGS)
    Storm(1, ips=8).run(400).end().write(cluster.shared / "small")
    quotas = metered(0)
    assert quotas is not None
    write(cluster.shared / "quotas", quotas, parts=LOGS)
    (cluster.shared / "log").mkdir()
    rows = [
        f"10.0.{number % 7}.{number % 11},{1000 + number // 9},{1100 + number // 9 + number % 50}"
        for number in range(CONNECTIONS)
    ]
    for number in range(LOGS):
        text = "\n".join(("ip,opened_at,closed_at", *rows[number::LOGS]))
        (cluster.shared / "log" / f"{number}.csv").write_text(f"{text}\n")


def _storm() -> Storm:
    storm = Storm(1, ips=8)
    for number in range(ROUNDS):
        for _ in range(STEPS // ROUNDS):
            (storm.arrive if storm.random.random() < 0.6 else storm.leave)()
        if number == ROUNDS // 2:
            caps, storm.caps = storm.caps, {name: cap + 10 for name, cap in storm.caps.items()}
            for _ in range(30):
                storm.arrive()
            storm.caps = caps
        storm.change()
        storm.kill()
    return storm.end()


def checks(cluster: Cluster, name: str) -> Iterator[Check]:
    """A job by one process and by the cluster, whole and with kills. `name`: of JOBS; "followed" needs "follow" before."""
    job = JOBS[name]
    here = _answer(cluster, "here", begin(cluster, *_given(cluster, job, "here"), *job.here))
    if here.code != job.code:
        yield Check(name, f"exit code {here.code} of one process: {here.said}", "")
        return
    options = (*FEW_TASKS, "--master", cluster.master)
    there = _answer(cluster, "there", _begun(cluster, job, "there", options))
    yield Check(name, _differences(here, there), _told(here))
    for kill in job.kills:
        process = _begun(cluster, job, "killed", (*options, *kill.options))
        lost, wrong = _kill_executor(cluster, process, kill.after)
        killed = _answer(cluster, "killed", process)
        yield Check(f"{name}, {kill.name}", wrong or _differences(here, killed), f"{_told(here)}; {lost}")


def _begun(cluster: Cluster, job: Job, on: str, options: tuple[str, ...]) -> "subprocess.Popen[str]":
    return begin(cluster, *_given(cluster, job, on), *options, python=cluster.python())


def _given(cluster: Cluster, job: Job, on: str) -> list[str]:
    out = cluster.shared / on
    out.mkdir(exist_ok=True)
    return [each.format(shared=cluster.shared, out=out) for each in job.arguments]


def _answer(cluster: Cluster, on: str, process: "subprocess.Popen[str]") -> Answer:
    """Once it has ended. Pages and tables of another job have gone."""
    out, said = process.communicate()
    folder = cluster.shared / on
    pages = sorted((*folder.glob("*.html"), *folder.glob("tables/*")))
    texts = {OUTPUT: out, **{page.name: page.read_text() for page in pages}}
    for page in pages:
        page.unlink()
    return Answer(process.returncode, {what: text.replace(str(folder), "OUT") for what, text in texts.items()}, said)


def _kill_executor(cluster: Cluster, process: "subprocess.Popen[str]", after: int) -> tuple[str, str]:
    """Kills the first executor that has finished so many tasks and is in another. What was lost, and what is wrong."""
    until_s = time.monotonic() + WAIT_S
    while process.poll() is None and time.monotonic() < until_s:
        for executor in cluster.executors():
            begun, finished = executor.tasks()
            if after <= finished < begun:
                os.kill(executor.pid, signal.SIGKILL)
                return (
                    f"lost worker {executor.worker}'s process, after {finished} of its tasks, in another",
                    "",
                )
        time.sleep(LOOK_S)
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    return "", f"no worker was in the middle of a task after {after} others"


def _differences(here: Answer, there: Answer) -> str:
    if there.code != here.code:
        return f"exit code {there.code}, of one process {here.code}: {there.said}"
    differ = [what for what in here.texts | there.texts if here.texts.get(what) != there.texts.get(what)]
    return "".join(
        f"{what} differs: {there.texts.get(what)}\nof one process: {here.texts.get(what)}\n" for what in differ
    )


def _told(answer: Answer) -> str:
    said = json.loads(answer.texts[OUTPUT] or "{}")
    facts = "".join(f", {name} {said[name]}" for name in ("verdict", "events", "connections") if name in said)
    pages = [name for name in answer.texts if name != OUTPUT]
    return f"as of one process: exit code {answer.code}{facts}, {len(pages)} pages and tables"


def quota_plan(cluster: Cluster) -> Check:
    """One process plans quotas, so no worker has a part that could be lost; with --master it says so."""
    name = "plan of quotas"
    plan = ("plan", "--quotas", "--input", str(cluster.shared / "quotas"), "--format", "journal", "--json")
    done, refused = turnstile(cluster, *plan), turnstile(cluster, *plan, "--master", cluster.master)
    if done.returncode or "recommended" not in done.stdout:
        return Check(name, f"exit code {done.returncode}: {done.stdout}{done.stderr}", "")
    said = json.loads(refused.stdout or "{}").get("error", "")
    if refused.returncode != 2 or "--master does not go with --quotas" not in said:
        return Check(name, f"with --master exit code {refused.returncode}: {refused.stdout}{refused.stderr}", "")
    recommended = len(json.loads(done.stdout)["recommended"])
    return Check(name, "", f"exit code 0, {recommended} recommended, by one process; with --master exit code 2: {said}")


def refusals(cluster: Cluster) -> Iterator[Check]:
    """Each thing that workers lack is reported as one sentence."""
    log, unseen = (str(folder / "conn.csv") for folder in (cluster.shared, cluster.driver))
    for place in (log, unseen):
        Path(place).write_text("ip,opened_at,closed_at\n10.0.0.1,1000,1100\n")
    tries = [
        (log, cluster.python(without="numpy"), "numpy"),
        (log, cluster.python(without="pyarrow"), "pyarrow"),
        (log, "/nowhere/python3", "/nowhere/python3"),
        (unseen, cluster.python(), "Workers see no file:"),
    ]
    once = ("--conf", "spark.task.maxFailures=1")
    plan = ("plan", "--format", "csv", "--per-ip-cap", "5", "--master", cluster.master, *FEW_TASKS, *once, "--input")
    for place, python, word in tries:
        done = turnstile(cluster, *plan, place, python=python)
        said = [line for line in done.stderr.splitlines() if line and not PROGRESS.fullmatch(line)]
        is_right = done.returncode == 1 and len(said) == 1 and word in said[0]
        fault = "" if is_right else f"exit code {done.returncode}: {done.stderr}"
        yield Check("plan without what it needs", fault, f"exit code 1, {' '.join(said)}")
