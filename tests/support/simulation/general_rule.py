"""The rule of all addresses that no setting names, in a schedule: it changes for most of them at once, and a shard is told so."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from simulation.world import Rules, World

from shards.limits.caps import CapRule

GENERAL_RULE = "ip:"
"""The pool of no address, whose rule is the general one."""


class GeneralRule:
    """That of one schedule, if its world has one; drawn from numbers of its own, so that other schedules stay as they are."""

    def __init__(self, seed: int, world: World, rule_of: Callable[[str], CapRule], ips: Sequence[str]) -> None:
        self._draw = draw = random.Random(f"general {seed}")
        self._world = world
        self._rule_of = rule_of
        self._ips = ips
        self._changes = draw.choice([0.02, 0.03, 0.1])
        self._followers = draw.choice([1.0, 0.7])
        self._backs = draw.choice([0.0, 0.5])

    def first(self, rules: Rules) -> Rules:
        """The first version, in which it is the rule of all addresses."""
        if not self._world.has_general_rules:
            return rules
        rule = self._rule_of(self._ips[0])
        return {**rules, **dict.fromkeys((GENERAL_RULE, *self._ips), rule)}

    def change(self) -> None:
        """Maybe it changes, or changes back; an address that does not follow keeps the rule that it has."""
        world, draw = self._world, self._draw
        if not world.has_general_rules or draw.random() >= self._changes:
            return
        before = world.versions[-1]
        rule = self._rule_of(self._ips[0])
        if draw.random() < self._backs:
            rule = world.versions[-2].get(GENERAL_RULE, rule)
        following = [pool for pool in self._ips if draw.random() < self._followers]
        world.push({**before, **dict.fromkeys((GENERAL_RULE, *following), rule)})

    def how(self, how: str) -> str:
        """How a shard is told what changed."""
        return self._draw.choice(["general", "general", "general", "unknown"]) if self._world.has_general_rules else how
