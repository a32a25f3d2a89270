"""Replays of all candidates over a whole log on Spark (replays.py), as rows of TELLS. The log is read once for all of it
(replay_pieces.py), and only sums leave a task (task_sums.py).
"""

from collections.abc import Sequence

import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from turnstile.pipeline.inputs.entities import IP, EntityType
from turnstile.pipeline.plan.candidates import Candidate
from turnstile.pipeline.plan.replay_pieces import PIECES, Batches, spread
from turnstile.pipeline.plan.replays import Replays
from turnstile.pipeline.plan.task_sums import TELLS, Incident


def outcomes(
    arrived: DataFrame,
    candidates: Sequence[Candidate],
    tasks: int,
    incident: Incident | None = None,
    by: EntityType = IP,
    *,
    with_peak: bool = False,
) -> DataFrame:
    """TELLS of a log. `arrived`: ARRIVALS. `tasks`: how many share the entities; `with_peak`: as of Replays."""
    replays = Replays(candidates, tasks, by, with_peak=with_peak)

    def decide(batches: Batches) -> Batches:
        first = next(batches, None)
        while first is not None and not first.num_rows:
            first = next(batches, None)
        if first is not None:
            slot = first.column("slot")[0].as_py()
            yield from replays.decided(slot, _chained(first, batches), incident)

    pieces = arrived.select(*replays.columns, *_places(arrived)).mapInArrow(spread(replays.slots, by), PIECES)
    return pieces.repartitionById(replays.slots.total, F.col("slot")).mapInArrow(decide, TELLS)


def _places(arrived: DataFrame) -> tuple[str, ...]:
    """The columns that say where in the log a row is, as far as there are such."""
    return tuple(name for name in ("source", "block", "rank") if name in arrived.columns)


def _chained(first: pyarrow.RecordBatch, rest: Batches) -> Batches:
    yield first
    yield from rest
