"""Spark's processes killed in the middle of a job: one sentence, exit code 1, no page, no process and no file left."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from harness import until

ROOT = Path(__file__).parents[3]


def of_job(marker: Path) -> dict[int, str]:
    """Processes that have TMPDIR=marker, and their command lines."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"TMPDIR={marker}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found[int(process.name)] = (
                    (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
        except OSError:
            continue
    return found


def is_jvm(command: str) -> bool:
    return "deploy.SparkSubmit" in command


def is_worker(command: str) -> bool:
    return "-m turnstile.pipeline.worker_daemon" in command


def working(marker: Path) -> bool:
    """True if the daemon runs, and a worker that has begun."""
    return sum(map(is_worker, of_job(marker).values())) >= 2


def killed(process: subprocess.Popen[str], marker: Path, victims: Callable[[str], bool]) -> bool:
    """True if the job has ended; else kills its victims. Called again and again, as Spark starts another worker for a later
    stage."""
    for pid, name in of_job(marker).items():
        if victims(name):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    return process.poll() is not None


@pytest.mark.parametrize(
    ("victims", "sentence"),
    [
        (is_jvm, "Spark's JVM ended while the job ran."),
        (is_worker, "A Python worker of Spark's ended while the job ran"),
    ],
    ids=["jvm", "workers"],
)
def test_a_job_whose_processes_are_killed_is_a_sentence(
    spark: Any, tmp_path: Path, victims: Any, sentence: str
) -> None:
    temporary, html, log = tmp_path / "temporary", tmp_path / "plan.html", tmp_path / "conn.csv"
    temporary.mkdir()
    rows = (f"10.0.{number % 200}.{number % 250},{number},{number + 9}" for number in range(300_000))
    log.write_text("ip,opened_at,closed_at\n" + "\n".join(rows) + "\n")
    command = [sys.executable, "-c", "from turnstile.cli.main import main; main()", "plan", "--format", "csv"]
    command += ["--master", "local[2]"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    process = subprocess.Popen(
        [*command, "--input", str(log), "--html", str(html)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip
    try:
        until(lambda: working(temporary) or process.poll() is not None, within_s=100, what="a worker that has begun")
        assert process.poll() is None, process.communicate()
        until(lambda: killed(process, temporary, victims), within_s=100, what="the end of a killed job")
        out, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out, html.exists()) == (1, "", False), said
    assert sentence in said and "Traceback" not in said
    assert list(temporary.iterdir()) == []
    until(lambda: not of_job(temporary), what="the end of workers whose JVM was killed")
