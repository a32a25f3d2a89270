"""The task of the barrier stage that a worker runs: a driver. Its own file, since a worker imports it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from turnstile.fleet.member import HubUnreachable, Order, play
from turnstile.pipeline.errors import PipelineError


def run(order: Order, _rows: Iterable[int]) -> Iterator[int]:
    """The driver of this task's number. Raises PipelineError, which this command's user is told."""
    from pyspark import BarrierTaskContext

    try:
        play(order, BarrierTaskContext.get().partitionId())
    except HubUnreachable as fault:
        raise PipelineError(str(fault)) from None
    return iter(())
