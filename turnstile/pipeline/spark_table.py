"""The answer of a Spark job, as a table of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnstile.pipeline.interrupts import in_thread

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame


def fetch(frame: DataFrame) -> pyarrow.Table:
    """All rows. Raises what Spark raises; an interrupt ends the wait at once.

    On an interrupt pyspark waits until the job ends. So a thread waits, and it ends with the session.
    """
    return in_thread(frame.toArrow).result()
