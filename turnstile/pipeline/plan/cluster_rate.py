"""The rate of a whole cluster that a plan recommends: room above what the arrivals at all brokers together need, by one window.

Like the cap of a cluster it has no overrides, so both variants are one rate:

    simple   room above the smallest rate that refuses none of the log's arrivals
    tight    room above the smallest that refuses at most a share of them, where that is smaller
"""

from collections.abc import Sequence
from typing import NamedTuple

from shards.limits.connection_limits import ConnectionLimits
from shards.limits.rate import Window
from shards.settings.broker_config import CLUSTER_RATE
from shards.settings.errors import ConfigInvalid
from turnstile.pipeline.errors import PipelineError
from turnstile.pipeline.plan.candidates import own_commands
from turnstile.pipeline.plan.cluster_facts import ClusterFacts


class RateVariant(NamedTuple):
    """`rate`: new connections a second; `without_headroom`: what the log alone asks for; `refused`: of its arrivals."""

    name: str
    rate: int
    without_headroom: int
    refused: int
    refused_share: float

    @property
    def commands(self) -> dict[str, list[str]]:
        """The command that sets it here, and the one that rehearses it; neither Kafka nor Redpanda has it."""
        return own_commands({CLUSTER_RATE: str(self.rate)})

    def as_json(self) -> dict[str, object]:
        """Plain data."""
        return {**self._asdict(), "settings": {CLUSTER_RATE: str(self.rate)}, "commands": self.commands}


class TriedRate(NamedTuple):
    """A candidate, and how many of the arrivals it refuses."""

    rate: int
    refused: int
    refused_share: float


class ClusterRate(NamedTuple):
    """`arrivals`: those that asked, of which `refused_then` were refused, by whatever limit. `window`: of the cluster, if the log
    says it; else Kafka's default. `tried`: candidates."""

    arrivals: int
    refused_then: int
    window: Window
    recommended: list[RateVariant]
    tried: list[TriedRate]

    def as_json(self) -> dict[str, object]:
        """Plain data."""
        window = {"num": self.window.samples, "size_ms": self.window.size_ms}
        recommended = {each.name: each.as_json() for each in self.recommended}
        tried = [each._asdict() for each in self.tried]
        return {**self._asdict(), "window": window, "recommended": recommended, "tried": tried}


def cluster_rate(facts: ClusterFacts) -> ClusterRate:
    """The rates that a log's facts ask for."""
    chosen = {"simple": facts.all_in, **({"tight": facts.few_out} if facts.few_out < facts.all_in else {})}
    recommended = [
        RateVariant(name, each.rate, each.without_headroom, each.refused, _share(each.refused, facts))
        for name, each in chosen.items()
    ]
    tried = [TriedRate(rate, refused, _share(refused, facts)) for rate, refused in facts.tried]
    return ClusterRate(facts.arrivals, facts.refused_then, facts.window, recommended, tried)


def check_rates(rates: Sequence[int]) -> None:
    """Raises PipelineError for a candidate that the setting may not have."""
    try:
        for rate in rates:
            ConnectionLimits().with_change(CLUSTER_RATE, str(rate))
    except ConfigInvalid as fault:
        raise PipelineError(f"A candidate can't be set: {fault}") from None


def _share(refused: int, facts: ClusterFacts) -> float:
    return refused / facts.arrivals if facts.arrivals else 0.0
