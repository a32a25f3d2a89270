"""Main of the process that converts the journal."""

from __future__ import annotations

import os
import signal

from broker.process.after_fork import keep_own_sockets
from broker.process.start_reports import is_starting
from broker.runtime.logger import RateLimitedLogger
from shards.config.cluster_plan import ClusterPlan


def run(plan: ClusterPlan, report_to: int, epoch: int) -> int:
    """Turns finished spools into Parquet parts until SIGTERM, then those that are left. Says nothing while the cluster
    starts: if it can't, one process says why, and what was not converted is converted by the next cluster."""
    from broker.journal import converter

    keep_own_sockets(plan, (-2, -2))
    stop, wake = os.pipe()
    signal.signal(signal.SIGTERM, lambda number, frame: os.write(wake, b"!"))
    logger = RateLimitedLogger(process="converter")

    def log(sentence: str) -> None:
        if not is_starting(report_to):
            logger.warning(sentence)

    converter.run(plan.journal_dir, stop=stop, parts=plan.journal_parts, log=log)
    return 0
