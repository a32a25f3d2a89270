"""A cap on how many connections of a pool may be open at once, and which of several caps rules."""

from collections.abc import Iterable
from typing import NamedTuple


class CapRule(NamedTuple):
    """What limits a pool: `cap` open connections (None: unlimited, still counted), given by the setting `name`.

    `name` is "" when unlimited. `wait` is KIP-402's `max.connections`: over the cap a connection waits for a slot,
    first come, first served, where every other setting refuses at once.
    """

    cap: int | None
    name: str
    wait: bool = False


UNLIMITED = CapRule(None, "")


def tightest(rules: Iterable[CapRule]) -> CapRule:
    """The rule with the lowest cap; UNLIMITED when none has one.

    At equal caps a rule that refuses wins over one that waits (the waiter would only be refused later), and among
    those the first one given.
    """
    chosen = UNLIMITED
    for rule in rules:
        if rule.cap is None:
            continue
        if chosen.cap is None or (rule.cap, rule.wait) < (chosen.cap, chosen.wait):
            chosen = rule
    return chosen
