"""Where tests cut a journal in time: half of the cuts lie where something begins, ends or changes, the others anywhere."""

import os
import random
from collections.abc import Sequence
from typing import Any

from tampering import Tampering

SLICES = (1, 2, 7, 40)
ALL = "TURNSTILE_ALL_SLICES" in os.environ
"""Whether every tampering is cut into every number of slices (`make slices`)."""
TURNS = ("config", "ended", "meter", "shard_lost", "shard_up")
"""Kinds of events that begin, end or change something: a kill, a restart, a version, what a meter goes on from."""

CARRIED = {
    "one more connection than the cap of its address": "ip_cap",
    "cut the last events of a killed process": "refused_with_cause",
    "honest tokens": "used_within_grants",
    "one more unit than its listener's rate": "listener_rate_units",
    "one more unit than the broker's rate": "listener_rate_units",
}
"""Tampering -> the check that says something else where slices lack what is carried into them."""


def sample(cases: Sequence[Tampering]) -> list[Tampering]:
    """The first with each check, the first of each way to tamper (a function, or what it makes), and those of CARRIED."""
    checks, ways, found = {""}, set[str](), list[Tampering]()
    for case in cases:
        way = f"{case.how.__module__}.{case.how.__qualname__}".partition(".<locals>")[0]
        if case.check not in checks or way not in ways or case.name in CARRIED:
            found.append(case)
        checks.add(case.check)
        ways.add(way)
    return found


def bounds(events: Sequence[dict[str, Any]], slices: int, name: str) -> list[int]:
    """The instants at which time is cut, others for each name; a turn is the first of a slice, or the last."""
    chance = random.Random(f"{name} {slices}")
    instants = sorted({event["mono_ns"] for event in events if event["mono_ns"] is not None})[1:]
    chosen = {at_ns + chance.randrange(2) for at_ns in _turns(events, chance)[: slices // 2]}
    rest = [each for each in instants if each not in chosen]
    return sorted(chosen | set(chance.sample(rest, min(len(rest), slices - 1 - len(chosen)))))


def _turns(events: Sequence[dict[str, Any]], chance: random.Random) -> list[int]:
    """Instants of turns in any order, but one of each kind first."""
    of = {kind: [event["mono_ns"] for event in events if event["kind"] == kind and event["mono_ns"]] for kind in TURNS}
    kinds = [mine for mine in of.values() if mine]
    for mine in (kinds, *kinds):
        chance.shuffle(mine)
    others = [at_ns for mine in kinds for at_ns in mine[1:]]
    chance.shuffle(others)
    return [*(mine[0] for mine in kinds), *others]
