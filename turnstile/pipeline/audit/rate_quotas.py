"""The quotas by which a rate's window is judged: those that were enforced, and that of the cluster which was observed."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from shards.limits.caps import CLUSTER, OBSERVED
from shards.limits.rate import Window
from shards.limits.rate_replay import RateQuotas
from shards.settings.ranges import INT_MAX
from turnstile.pipeline.events.observed_timeline import ObservedTimeline
from turnstile.pipeline.events.timeline import Timeline
from turnstile.pipeline.events.version_limits import VersionLimits

OBSERVED_CLUSTER: Final = OBSERVED + CLUSTER
"""The window of the observed rate of the whole cluster."""


class RateTimelines(NamedTuple):
    """The rates that were enforced, and those that were observed."""

    enforced: Timeline
    observed: ObservedTimeline

    def of(self, window: str) -> Timeline:
        """The timeline of a window."""
        return self.observed if window.startswith(OBSERVED) else self.enforced


class VersionQuotas:
    """The rates of a version, each asked once."""

    def __init__(self, limits: VersionLimits, exempt: Sequence[str]) -> None:
        self.window = Window(*limits.limits.window)
        self._limits = limits
        self._exempt = exempt
        self._known: dict[str, RateQuotas] = {}

    def of(self, key: str) -> RateQuotas:
        """The quotas of `ip:ADDRESS`, `user:NAME`, `listener:NAME`, `cluster` or `observed/cluster`."""
        found = self._known.get(key)
        if found is None:
            kind, _, name = key.partition(":")
            own = _quota(self._limits.rate(kind, name))
            found = RateQuotas(own)
            if kind == "listener":
                found = RateQuotas(own, _quota(self._limits.rate("broker", "")), name in self._exempt)
            self._known[key] = found
        return found


def _quota(rate: float) -> float | None:
    return rate if rate < INT_MAX else None
