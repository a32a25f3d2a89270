"""Waiting for a job's answer."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from turnstile.pipeline.spark_table import fetch


def _waits(folder: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A job that tells that it runs, and ends when it is told to."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        Path(folder, "runs").touch()
        while not Path(folder, "may end").exists():
            time.sleep(0.01)
        yield from batches

    return run


def test_it_is_what_the_job_answers(spark: Any) -> None:
    assert fetch(spark.range(3)).to_pydict() == {"id": [0, 1, 2]}


def test_it_raises_what_spark_raises(spark: Any) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        fetch(spark.sql("select 1 / id from range(2)"))


def test_an_interrupt_does_not_wait_for_the_end_of_the_job(spark: Any, tmp_path: Path) -> None:
    """Which comes after the interrupt only."""

    def interrupt() -> None:
        while not (tmp_path / "runs").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    thread = threading.Thread(target=interrupt)
    thread.start()  # with the signal blocked: it is the main thread's
    with pytest.raises(KeyboardInterrupt):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        fetch(spark.range(1).mapInArrow(_waits(str(tmp_path)), "id long"))
    thread.join()
    (tmp_path / "may end").touch()
