"""Which schedule a seed is: three of four are of the token protocol alone, the fourth goes the whole way of accepting.

Schedules of client quotas have seeds of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from simulation.accept_schedule import AcceptSchedule
from simulation.quota_schedule import QuotaSchedule
from simulation.schedule import Schedule


def schedule_of(
    seed: int, log: Callable[[str], None] | None = None, *, quotas: bool = False
) -> Schedule | AcceptSchedule | QuotaSchedule:
    """The schedule of a seed, to be run."""
    if quotas:
        return QuotaSchedule(seed, log)
    return AcceptSchedule(seed, log) if seed % 4 == 3 else Schedule(seed, log=log)


def failures(seeds: Iterable[int], quotas: bool = False) -> list[tuple[int, str]]:
    """The seeds that fail, each with its last line of explanation."""
    found = []
    for seed in seeds:
        try:
            schedule_of(seed, quotas=quotas).run()
        except Exception as error:
            found.append((seed, f"{type(error).__name__}: {error}"))
    return found
