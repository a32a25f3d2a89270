"""The limits of a pool: a cap on its open connections, a rate of new ones; and which of several caps rules."""

from collections.abc import Iterable
from typing import Final, NamedTuple

OBSERVED: Final = "observed/"
"""The beginning of the key of an observed pool, such as `observed/ip:10.0.0.1`: its tokens are those of the connections that the
observed caps would have admitted (observed_limits.py)."""
GENERAL: Final = "general/"
"""Stands before a kind of pools in the names of changed rules: the rule of the pools of that kind that no setting names. That rule
is the one of the pool without a name, `ip:`."""
CLUSTER: Final = "cluster"
"""The key of the pool of all connections to all brokers (shards/tokens/cluster_pool.py), and of the rate of new ones
(shards/rates/cluster_rate.py)."""
OF_CLUSTER: Final = (CLUSTER, OBSERVED + CLUSTER)
"""The keys of what all brokers have together, enforced and observed."""


class CapRule(NamedTuple):
    """The limit of a pool: `cap` open connections (None: unlimited, still counted), given by the setting `name`.

    `name` is "" when unlimited. `wait` is KIP-402's `max.connections`: over the cap a connection waits for a slot,
    first come, first served, where every other setting refuses at once.
    """

    cap: int | None
    name: str
    wait: bool = False


class RateRule(NamedTuple):
    """A limit on new connections a second, given by the setting or quota key `name`; None and "" when unlimited."""

    rate: float | None
    name: str


UNLIMITED = CapRule(None, "")
NO_RATE = RateRule(None, "")


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
