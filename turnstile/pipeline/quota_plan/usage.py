"""The usage of clients, as a log tells it: each charge that a client quota would have counted, in order of time."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE, REQUEST
from shards.limits.rate import DEFAULT_WINDOW, Window

KINDS = (PRODUCE, FETCH, REQUEST, MUTATION)


class Charge(NamedTuple):
    """One charge. `at_ms`: epoch milliseconds; `broker`: quotas hold on each by itself; `amount`: bytes, milliseconds of handler
    time, or partitions; `strict`: mutations are refused, and not delayed, when their quota is used up."""

    at_ms: int
    broker: str
    user: str
    client_id: str
    kind: str
    amount: float
    strict: bool = False


class UsageSpan(NamedTuple):
    """The times of the first and the last charge, in UTC."""

    first: datetime
    last: datetime


class Usage(NamedTuple):
    """A log's charges in order of time; lines that were put aside, by reason; what a reader should know of such a log.

    `window`, `mutations`: the windows of the broker that wrote it, or Kafka's.
    """

    uses: list[Charge]
    put_aside: Counter[str]
    notes: list[str]
    window: Window = DEFAULT_WINDOW
    mutations: Window = DEFAULT_WINDOW

    @property
    def kinds(self) -> list[str]:
        """The kinds of quota that anything counted against, in Kafka's order."""
        seen = {use.kind for use in self.uses}
        return [kind for kind in KINDS if kind in seen]

    @property
    def span(self) -> UsageSpan:
        """The times of the first and the last charge; there is one."""
        first, last = (datetime.fromtimestamp(use.at_ms / 1000, UTC) for use in (self.uses[0], self.uses[-1]))
        return UsageSpan(first, last)

    def names(self, column: str) -> set[str]:
        """The users, client ids or brokers that were seen."""
        return {getattr(use, column) for use in self.uses}


def in_order(uses: Sequence[Charge]) -> list[Charge]:
    """The charges by time; those of one millisecond as they were logged."""
    return sorted(uses, key=lambda use: use.at_ms)
