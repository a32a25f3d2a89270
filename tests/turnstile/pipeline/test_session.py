"""The session of a command: nothing of it outlives the command, and Spark's failures are one sentence."""

import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from harness import until
from py4j import java_gateway

from turnstile.pipeline import jvm, session
from turnstile.pipeline.errors import PipelineError, known, sentence

COMMAND = (sys.executable, "-c", "from turnstile.cli.main import main; main()")
ROOT = Path(__file__).parents[3]


class PySparkException(Exception):
    """Recognised by its name: whoever imports the errors need not import pyspark."""


LOST = "Job aborted: Lost task 0.3 in stage 1.0 (TID 3) (10.0.0.7 executor 1): "


class Py4JNetworkError(PySparkException):
    """As py4j names it when the JVM is gone."""


def test_an_interrupt_is_quiet_and_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    """Interrupted while the JVM starts: exit code 130, one line, and no process or file is left."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    log = tmp_path / "conn.csv"
    log.write_text("ip,opened_at\n10.0.0.1,1000\n")
    process = subprocess.Popen(
        [*COMMAND, "plan", "--input", str(log), "--format", "csv", "--master", "local[2]"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
        start_new_session=True,
    )
    until(
        lambda: list(temporary.glob("*/stderr")) or process.poll() is not None,
        what="the folder of a JVM that is launched",
    )
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to all of the group
    _, said = process.communicate(timeout=120)
    *progress, last = filter(None, said.splitlines())
    assert (process.returncode, last) == (130, "turnstile: interrupted")
    assert all(line.startswith("plan: ") for line in progress)  # on a slow machine
    assert list(temporary.iterdir()) == []
    assert not [pid for pid in Path("/proc").glob("[0-9]*") if str(temporary) in _command(pid)]


def test_an_interrupt_that_another_thread_takes_while_a_session_begins_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python runs the handler in the main thread, whatever signals that thread blocks: here before `starting` has the session
    that it is to end."""
    ended = []
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    before = signal.set_wakeup_fd(writer.fileno())

    class Begun:
        def __init__(self, *_: Any) -> None:
            assert other.ident is not None
            signal.pthread_kill(other.ident, signal.SIGINT)
            assert reader.recv(1)  # by the handler in C; the one in Python is due

        def end(self, *, gently: bool) -> None:
            ended.append(gently)

    monkeypatch.setattr(session, "Starting", Begun)
    other.start()
    try:
        with pytest.raises(KeyboardInterrupt), session.starting():
            threading.Event().wait(60)
        assert ended == [False]
    finally:
        signal.set_wakeup_fd(before)
        over.set()
        other.join()
        reader.close()
        writer.close()


def test_a_spark_that_is_not_there_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", "/nowhere")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(PipelineError, match="/nowhere/bin/spark-submit: No such file"):
        jvm.launch({}, "")
    assert list(tmp_path.iterdir()) == []


def test_what_the_jvm_said_is_read_before_its_folder_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "stderr").write_text("ERROR StandaloneSchedulerBackend: All masters are unresponsive! Giving up.\n")
    machine = jvm.Jvm(subprocess.Popen(["cat"], stdin=subprocess.PIPE), folder)

    def fail(*_: Any) -> None:
        raise RuntimeError("no context")

    monkeypatch.setattr(jvm, "launch", lambda *_: (machine, {}))
    monkeypatch.setattr(session, "_connect", fail)
    with pytest.raises(PipelineError, match="did not start on spark://h:1: The Spark master does not answer"):
        session._start("spark://h:1", "app", {})
    assert not folder.exists()


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return ""


def test_a_task_does_not_collect_what_its_worker_had_before_the_fork(spark: Any) -> None:
    def frozen(_: int) -> int:
        import gc

        return gc.get_freeze_count()

    assert spark.sparkContext.parallelize([0], 1).map(frozen).collect()[0] > 10_000


def test_py4j_says_nothing_of_its_own(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    """py4j logs what interrupts a call through the root logger, with a traceback; that record is dropped."""
    for path in (java_gateway.__file__, __file__):
        logging.getLogger().handle(logging.LogRecord("root", logging.ERROR, path, 1, "KeyboardInterrupt", None, None))
    assert [record.pathname for record in caplog.records] == [__file__]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            PySparkException("ModuleNotFoundError: No module named 'pyarrow'\n at x"),
            "The Python of a worker has no pyarrow",
        ),
        (
            PySparkException(f"{LOST}\nModuleNotFoundError: No module named 'numpy'"),
            "of worker 10.0.0.7 has no numpy: workers",
        ),
        (
            PySparkException(f'{LOST} java.io.IOException: Cannot run program "py": error=2'),
            "Workers can't start py: let",
        ),
        (
            PySparkException("File file:/mine/conn.csv does not exist"),
            "Workers see no file:/mine/conn.csv: put it where",
        ),
        (PySparkException("x.errors.PipelineError: Workers wrote.\n at y"), "Workers wrote."),
        (PySparkException("a\nCaused by: java.lang.OutOfMemoryError: Java heap space"), "--conf spark.driver.memory"),
        (
            PySparkException(
                "Total size of serialized results of 9 tasks (1.1 GiB) is bigger than spark.driver.maxResultSize (1.0 GiB)"
            ),
            "--conf spark.driver.maxResultSize=4g",
        ),
        (PySparkException("java.io.IOException: No space left on device"), "The disk is full"),
        (PySparkException("Job aborted\n at x\nCaused by: java.io.IOException: odd"), "java.io.IOException: odd"),
        (Py4JNetworkError("Answer from Java side is empty"), "Spark's JVM ended"),
    ],
)
def test_a_failure_of_spark_is_one_sentence(error: Exception, words: str) -> None:
    said = sentence(error)
    assert said is not None and words in said and "\n" not in said


def test_a_failure_of_the_product_is_not_made_a_sentence() -> None:
    assert sentence(ZeroDivisionError("a defect")) is None


def test_without_a_jdk_the_set_up_says_that_no_archive_was_made_and_goes_on():
    command = [sys.executable, "-m", "turnstile.pipeline.class_archive"]
    done = subprocess.run(command, env={**os.environ, "PATH": "", "JAVA_HOME": ""}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("No class-data archive, Spark jobs start slower: Spark needs Java 17")


def test_a_lost_worker_is_one_sentence() -> None:
    text = (
        "Job aborted due to stage failure: ... barrier task ResultTask(0, 1) finished unsuccessfully.\nExecutorLostFailure "
        "(executor 1 exited unrelated to the running tasks) Reason: worker lost: 10.0.0.7:36145 got disassociated\n\tat org.x"
    )
    assert known(text) == "Spark lost a worker while the job ran: worker lost: 10.0.0.7:36145 got disassociated."
