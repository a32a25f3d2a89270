"""The cap of a whole cluster that a plan recommends: room above the most connections that were open at one time, on all
brokers together.

Clients that look like leaks count, too: they take places.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy

from shards.settings.broker_config import CLUSTER_CAP
from turnstile.pipeline.events.arrays import Array
from turnstile.pipeline.plan.candidates import own_commands
from turnstile.pipeline.plan.variants import raised


class ClusterCap(NamedTuple):
    """`cap`: what is recommended; `without_headroom`: the most that were open at one time."""

    cap: int
    without_headroom: int

    @property
    def commands(self) -> dict[str, list[str]]:
        """The commands that set and rehearse the cap in Turnstile; neither Kafka nor Redpanda has such a cap."""
        return own_commands({CLUSTER_CAP: str(self.cap)})

    def as_json(self) -> dict[str, object]:
        """Plain data."""
        return {**self._asdict(), "settings": {CLUSTER_CAP: str(self.cap)}, "commands": self.commands}


def cluster_cap(peak: int, headroom: Fraction) -> ClusterCap:
    """The cap with `headroom` above `peak`, the most connections that were open at one time."""
    return ClusterCap(raised(peak, headroom), peak)


def most_open(opened_us: Array, closed_us: Array) -> int:
    """The most connections that were open at one time: the highest of what_if.levels, without its loop. They are in order of
    arrival. A connection that closes at the instant of its arrival is no longer open for the next one."""
    places = numpy.arange(len(opened_us))
    is_instant = closed_us <= opened_us
    instants = numpy.concatenate(([0], numpy.cumsum(is_instant)))
    alike = numpy.searchsorted(opened_us, opened_us, side="right")
    gone = numpy.searchsorted(numpy.sort(numpy.maximum(closed_us, opened_us)), opened_us, side="right")
    gone -= instants[alike] - instants[places]  # connections that arrive at this instant, but later
    return int((places + 1 - gone).max(initial=0))
