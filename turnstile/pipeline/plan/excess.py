"""The connections of each entity (address or user) above each cap (its *excess*), and the entities that a task must tell all of.

levels_above_the_cap_are_refused  under a cap of C exactly the connections of levels above C are refused (what_if.py), so an
    override that is at least an entity's peak spares the excess of that entity, and of no other
greatest_of_each_part_are_kept  `kept` has, for every cap, the KEPT entities of highest excess of its part, and the MOST of
    highest peak; among equals those of lowest number. So what the tasks keep has as many for the whole log
high_levels_are_told_in_steps  levels above EXACT are told in steps (`stepped`), each connection at the next step. Above a step
    are as many as before, so the excess at every step is exact; a log in which nothing closes has as many levels as
    connections, and few steps
"""

from typing import NamedTuple

import numpy

from turnstile.pipeline.events.arrays import Array

MOST = 20
"""The number of overrides that are recommended at most, and of entities that are looked at for leaks."""
KEPT = 2 * MOST
"""Enough for MOST to be left when all that are looked at are left out as leaks."""
EXACT_BITS = 12
EXACT = 1 << EXACT_BITS


def stepped(levels: Array) -> Array:
    """Each level, or the least step that is no smaller: a number with EXACT_BITS leading bits, then zeros."""
    if not len(levels) or levels.max() <= EXACT:
        return levels
    _, bits = numpy.frexp((levels - 1).astype("f8"))
    drop = numpy.maximum(bits.astype("i8") - EXACT_BITS, 0)
    steps: Array = ((levels - 1 >> drop) + 1 << drop).astype("i8")
    return numpy.where(levels > EXACT, steps, levels)


class LevelCounts(NamedTuple):
    """Levels, in steps, and how many connections are on each."""

    levels: Array
    counts: Array


class Excess:
    """The excess of the entities of one part, by number."""

    def __init__(self, sizes: Array, levels: Array, peaks: Array) -> None:
        """`sizes`: how many connections each entity has; `levels`: of these, entity after entity."""
        # An entity that has a connection of some level has one of each below, so no place is empty.
        self._ends = numpy.cumsum(peaks)
        self._peaks = peaks
        self._counts = numpy.bincount(numpy.repeat(self._ends - peaks, sizes) + levels - 1, minlength=peaks.sum())
        self._until = numpy.concatenate(([0], numpy.cumsum(self._counts)))

    def above(self, cap: int, entities: Array) -> Array:
        """The excess of each of these, whose peaks are above the cap."""
        ends = self._ends[entities]
        found: Array = self._until[ends] - self._until[ends - self._peaks[entities] + cap]
        return found

    def histogram(self, entity: int) -> LevelCounts:
        """The histogram of one entity."""
        end, peak = int(self._ends[entity]), int(self._peaks[entity])
        levels = stepped(numpy.arange(1, peak + 1))
        starts = numpy.flatnonzero(numpy.diff(levels, prepend=0))
        return LevelCounts(levels[starts], numpy.add.reduceat(self._counts[end - peak : end], starts))

    def highest(self) -> Array:
        """The MOST entities of highest peak, highest first."""
        return numpy.argsort(-self._peaks, kind="stable")[:MOST]

    def kept(self) -> Array:
        """The entities of greatest_of_each_part_are_kept."""
        kept = [self.highest()]
        cap = 1
        active = numpy.flatnonzero(self._peaks > cap)
        while len(active) > KEPT:
            kept.append(_greatest(active, self.above(cap, active)))
            cap = int(stepped(numpy.array([cap + 1]))[0])
            active = active[self._peaks[active] > cap]
        return numpy.unique(numpy.concatenate([*kept, active]))


def _greatest(entities: Array, excess: Array) -> Array:
    """The KEPT entities of greatest excess, of more than that."""
    least = numpy.partition(excess, -KEPT)[-KEPT]
    above = entities[excess > least]
    return numpy.concatenate([above, entities[excess == least][: KEPT - len(above)]])
