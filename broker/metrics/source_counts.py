"""Counts of the connections of each address that one shard has admitted and refused.

A client that knows its own connections, such as `turnstile load`, tells its share of the cluster's counters from that of other
clients by it. The top talkers (top_talkers.py) would not do: their counts are estimates.

Invariants
  counts_are_exact   since the last time that all were forgotten, each decision is counted once, under its address and outcome
  memory_is_bounded  at most MOST addresses of an outcome are kept; one more, and all are forgotten and `forgotten` rises
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, TypedDict

from broker.journal.schema import REASONS

MOST: Final = 16_384
"""Some 2 MB for an outcome."""
OUTCOMES: Final = ("admitted", *REASONS)


class SourceCounts:
    """The counts of one shard, since it started."""

    def __init__(self, most: int = MOST) -> None:
        self.forgotten = 0
        self._most = most
        self._by_outcome: dict[str, dict[str, int]] = {outcome: {} for outcome in OUTCOMES}

    def add(self, ip: str, outcome: str) -> None:
        """One connection; `outcome` is one of OUTCOMES."""
        counts = self._by_outcome[outcome]
        counts[ip] = counts.get(ip, 0) + 1
        if len(counts) > self._most:
            self._forget()

    def describe(self) -> dict[str, object]:
        """{"forgotten": n, "outcomes": {outcome: {ip: count}}}; outcomes that did not occur are left out."""
        return {"forgotten": self.forgotten, "outcomes": {name: of for name, of in self._by_outcome.items() if of}}

    def of(self, ip: str) -> dict[str, int]:
        """{outcome: count} of one address."""
        return {outcome: counts[ip] for outcome, counts in self._by_outcome.items() if ip in counts}

    def _forget(self) -> None:
        self.forgotten += 1
        for counts in self._by_outcome.values():
            counts.clear()


class SourcesAnswer(TypedDict):
    """The admitted and refused connections of each address, since its shard started. Two answers can be subtracted if `shards`,
    `forgotten` and the shards' epochs are the same in both."""

    shards: Annotated[int, "The number of shards that answered."]
    forgotten: Annotated[int, "The number of times that a shard had too many addresses and began anew."]
    sources: Annotated[
        dict[str, dict[str, int]], "Counts by address and by outcome: `admitted`, or the reason of the refusal."
    ]


def summed(answers: Iterable[Mapping[str, Any]]) -> SourcesAnswer:
    """The descriptions of several shards, summed."""
    shards = forgotten = 0
    sources: dict[str, dict[str, int]] = {}
    for answer in answers:
        shards += 1
        forgotten += answer["forgotten"]
        for outcome, counts in answer["outcomes"].items():
            for ip, count in counts.items():
                of_ip = sources.setdefault(ip, {})
                of_ip[outcome] = of_ip.get(outcome, 0) + count
    return {"shards": shards, "forgotten": forgotten, "sources": sources}
