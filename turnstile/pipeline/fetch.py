"""What a Spark job answers, as a table of this process."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

from turnstile.pipeline.interrupts import ENDING

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame


def fetch(frame: DataFrame) -> pyarrow.Table:
    """All rows. Raises what Spark raises; an interrupt ends the wait at once.

    pyspark's own wait, upon an interrupt, goes on until the job has ended: hence a thread, which ends with the session.
    """
    answer: Future[pyarrow.Table] = Future()

    def run() -> None:
        try:
            answer.set_result(frame.toArrow())
        except BaseException as error:
            answer.set_exception(error)

    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # which the thread keeps: signals are the main thread's
    try:
        threading.Thread(target=run, name="fetch", daemon=True).start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return answer.result()
