"""The cap of a whole cluster that a plan recommends: room above the most connections that were open at one time, on all
brokers together.

Nothing is left out of it: clients that look like leaks take places, too.
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
        """The command that sets it here, and the one that rehearses it; neither Kafka nor Redpanda has such a cap."""
        return own_commands({CLUSTER_CAP: str(self.cap)})

    def as_json(self) -> dict[str, object]:
        """Plain data."""
        return {**self._asdict(), "settings": {CLUSTER_CAP: str(self.cap)}, "commands": self.commands}


def cluster_cap(peak: int, headroom: Fraction) -> ClusterCap:
    """With that much room above the most that were open."""
    return ClusterCap(raised(peak, headroom), peak)


def most_open(opened_us: Array, closed_us: Array) -> int:
    """The most that were open at one time, of connections in order of arrival: the highest of what_if.levels, without its loop. One
    that closes at the instant of its arrival is open for those before it alone."""
    places = numpy.arange(len(opened_us))
    is_instant = closed_us <= opened_us
    instants = numpy.concatenate(([0], numpy.cumsum(is_instant)))
    alike = numpy.searchsorted(opened_us, opened_us, side="right")
    gone = numpy.searchsorted(numpy.sort(numpy.maximum(closed_us, opened_us)), opened_us, side="right")
    gone -= instants[alike] - instants[places]  # those that come at this instant, and have not come yet
    return int((places + 1 - gone).max(initial=0))
