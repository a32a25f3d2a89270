"""The records of one meter by all shards of a broker, by the charges that they noted."""

from typing import NamedTuple

import numpy
import pyarrow

from shards.limits.client_quota_managers import FETCH, PERCENT_PER_NANO, REQUEST
from turnstile.pipeline.audit.quota_rows import CHARGE
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.sequence import Incarnation

MS = 1_000_000


class RecordedByOthers(NamedTuple):
    """The records of other processes, and the highest quota that they were made under."""

    amount: float
    highest_quota: float


class Recorded(NamedTuple):
    """Charges in order of time. Amounts are in the sensor's own unit; `kept`: without what was taken back, and of a Fetch that was
    throttled nothing. `is_shared`: a part of them was recorded in sensors that clients share."""

    at_ms: arrays.Array
    kept: arrays.Array
    limits: arrays.Array
    shards: arrays.Array
    epochs: arrays.Array
    sums: arrays.Array
    """The sum of all that was added, up to each."""
    is_shared: bool

    def most(self, since_ms: int, at_ms: int) -> float:
        """The most that a sensor that was told of everything holds at an instant, of what was recorded from another one on."""
        first, end = numpy.searchsorted(self.at_ms, since_ms), numpy.searchsorted(self.at_ms, at_ms, side="right")
        before = self.sums[first - 1] if first else 0.0
        return float(self.sums[end - 1] - before) if end > first else 0.0

    def is_of(self, quota: float | None) -> bool:
        """True if all was charged under that quota."""
        return bool((self.limits == quota).all())

    def by_others(self, place: Incarnation, since_ms: int, until_ms: int) -> RecordedByOthers:
        """The records of other processes from an instant to another."""
        first, end = (int(numpy.searchsorted(self.at_ms, each)) for each in (since_ms, until_ms))
        span = slice(first, max(first, end))
        others = (self.shards[span] != place[1]) | (self.epochs[span] != place[2])
        if not others.any():
            return RecordedByOthers(0.0, 0.0)
        return RecordedByOthers(float(self.kept[span][others].sum()), float(self.limits[span][others].max()))


def recorded(rows: pyarrow.Table) -> Recorded:
    """The charges in the NOTED rows of one meter."""
    charges = rows.filter(pyarrow.array(arrays.is_one_of(rows, "what", (CHARGE,))))
    at_ms = arrays.numbers(charges, "at_ns") // MS
    order = numpy.argsort(at_ms, kind="stable")
    quota = rows["quota"][0].as_py()
    amount = arrays.numbers(charges, "amount")[order] * (PERCENT_PER_NANO if quota == REQUEST else 1.0)
    is_empty = (
        (arrays.numbers(charges, "throttle_ms")[order] > 0) if quota == FETCH else numpy.zeros(len(order), dtype=bool)
    )
    accepted = charges["is_accepted"].to_numpy().astype(bool)[order]
    shared = charges["is_shared"].to_numpy().astype(bool)
    return Recorded(
        at_ms=at_ms[order],
        kept=numpy.where(is_empty | ~accepted, 0.0, amount),
        limits=arrays.numbers(charges, "limit_value")[order],
        shards=arrays.numbers(charges, "shard")[order],
        epochs=arrays.numbers(charges, "epoch")[order],
        sums=numpy.cumsum(numpy.where(accepted, numpy.maximum(amount, 0.0), 0.0)),
        is_shared=bool(shared.any()),
    )
