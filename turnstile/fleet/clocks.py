"""The offset of another machine's clock from this one's, from questions and answers.

bound   whatever an answer's way took in either direction, the clock is ahead by `ahead_s`, give or take `within_s`, as long as
        neither clock jumped between question and answer
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Reading(NamedTuple):
    """Asked and answered by the clock here, and what the clock there said in between, in seconds."""

    asked_s: float
    there_s: float
    answered_s: float


class Offset(NamedTuple):
    """The offset of a clock."""

    ahead_s: float
    within_s: float


def offset(readings: Iterable[Reading]) -> Offset:
    """The offset by the reading with the shortest way: its answer was given at most half of that from the middle."""
    best = min(readings, key=lambda each: each.answered_s - each.asked_s)
    return Offset(best.there_s - (best.asked_s + best.answered_s) / 2, (best.answered_s - best.asked_s) / 2)
