"""The terms that many pools have in common, kept once: a million addresses have one rule, a few homes and three modes between them.

terms_never_change  Terms never change: a pool that gets another rule or mode gets other terms.
"""

from enum import StrEnum
from functools import lru_cache
from typing import Final

from shards.limits.caps import CapRule

HERE: Final = -1
_REMEMBERED: Final = 1024  # rules x homes x modes; terms that were dropped are made again, so fewer cost memory only


class PoolMode(StrEnum):
    """The uses that a shard may make of tokens of a pool that it doesn't need. A holder is not RECLAIMING."""

    OPEN = "open"  # cache them
    RECLAIMING = "reclaiming"  # holders were asked to send them home, and not all have answered
    TIGHT = "tight"  # no holder caches any: tokens that are out are in use, or on the way


class Terms:
    """The rule of a pool, the shard that is its home (HERE: this one), its mode, and what follows from them.

    tight  released tokens may not be cached here
    away   1 if the pool has a cap and its home is another shard, 0 if not
    """

    __slots__ = ("away", "home", "mode", "rule", "tight")

    def __init__(self, rule: CapRule, home: int, mode: PoolMode) -> None:
        self.rule = rule
        self.home = home
        self.mode = mode
        self.tight = mode is not PoolMode.OPEN
        self.away = int(home != HERE and rule.cap is not None)


@lru_cache(_REMEMBERED)
def terms_of(rule: CapRule, home: int = HERE, mode: PoolMode = PoolMode.OPEN) -> Terms:
    """The terms of all pools that have these in common."""
    return Terms(rule, home, mode)
