"""Which schedule a seed is, of each kind of schedules.

Of `tokens`, three of four are of the token protocol alone, the fourth goes the whole way of accepting. Of `cluster-cap` and
`cluster-rate`, the limits of a whole cluster, every second one has an observed limit, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from simulation.accept_schedule import AcceptSchedule
from simulation.cluster_cap_schedule import ClusterCapSchedule
from simulation.cluster_rate_schedule import ClusterRateSchedule
from simulation.quota_schedule import QuotaSchedule
from simulation.schedule import Schedule

TOKENS, QUOTAS = "tokens", "quotas"
Log = Callable[[str], None] | None


class Runnable(Protocol):
    """A schedule, whose run raises what does not hold."""

    def run(self) -> object: ...


def _of_tokens(seed: int, log: Log) -> Runnable:
    return AcceptSchedule(seed, log) if seed % 4 == 3 else Schedule(seed, log=log)


KINDS: Mapping[str, Callable[[int, Log], Runnable]] = {
    TOKENS: _of_tokens,
    QUOTAS: QuotaSchedule,
    "cluster-cap": lambda seed, log: ClusterCapSchedule(seed, observes=bool(seed % 2)),
    "cluster-rate": lambda seed, log: ClusterRateSchedule(seed, observes=bool(seed % 2)),
}
LOGGED = (TOKENS, QUOTAS)
"""The kinds of which each step can be told."""


def schedule_of(seed: int, log: Log = None, *, kind: str = TOKENS) -> Runnable:
    """The schedule of a seed, to be run."""
    return KINDS[kind](seed, log)


def failures(seeds: Iterable[int], kind: str = TOKENS) -> list[tuple[int, str]]:
    """The seeds that fail, each with its last line of explanation."""
    found = []
    for seed in seeds:
        try:
            schedule_of(seed, kind=kind).run()
        except Exception as error:
            found.append((seed, f"{type(error).__name__}: {error}"))
    return found
