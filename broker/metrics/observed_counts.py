"""The effects that the observed caps of one shard would have had: connections that they would have refused, or made wait, by cap
and address.

Counted since the observed caps were last changed, so that the numbers are those of the values that are shown beside them.
The counters of shard_counters.py go on from the start of the cluster.

observed_names_are_bounded  At most MOST_LIMITS caps with their values are counted apart, and addresses as TopTalkers keeps them.
every_decision_counts  Those of further caps are in the sums, of no cap.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from broker.journal.schema import WAITS
from broker.metrics.top_talkers import KEPT, TopTalkers, merge_top

MOST_LIMITS: Final = 1024
"""Caps of one shard: overrides make one of each address and number."""
UNAVAILABLE: Final = "shard_unavailable"


class ObservedCap(NamedTuple):
    """A cap or a rate that is observed: the setting, its value, and whether connections would have waited at it."""

    limit: str
    value: float
    waits: bool


class ObservedCounts:
    """The counts of one shard."""

    def __init__(self) -> None:
        self._caps: dict[ObservedCap, int] = {}
        self._addresses = TopTalkers()
        self._others = [0, 0]  # refused, waited
        self._undecided = 0

    def add(self, ip: str, reason: str, limit: str, value: float) -> None:
        """A connection of an address that was admitted, and would not have been; `reason`: one of OBSERVED_REASONS."""
        if reason == UNAVAILABLE:
            self._undecided += 1
            return
        cap = ObservedCap(limit, value, reason in WAITS)
        if cap in self._caps or len(self._caps) < MOST_LIMITS:
            self._caps[cap] = self._caps.get(cap, 0) + 1
        else:
            self._others[cap.waits] += 1
        self._addresses.add(ip, reason)

    def clear(self) -> None:
        """The observed caps have changed."""
        self._caps.clear()
        self._addresses.clear()
        self._others = [0, 0]
        self._undecided = 0

    def describe(self) -> dict[str, object]:
        """{"caps": [[limit, value, waits, connections]], "others": [those refused, those that would have waited, of further caps],
        "top": as of TopTalkers, "undecided": connections}."""
        caps = [[*cap, count] for cap, count in self._caps.items()]
        return {"caps": caps, "others": [*self._others], "top": self._addresses.top(), "undecided": self._undecided}


class ObservedSummary(NamedTuple):
    """The counts of all shards: connections that would have been refused, that would have waited for a slot, of how many
    addresses (`more`: perhaps of more, as the table of one shard is full), and that nothing is known of. `caps`: one row for each
    cap that is counted apart, `by_ip`: as merge_top, the addresses with most."""

    refused: int
    waited: int
    undecided: int
    addresses: int
    more: bool
    caps: list[dict[str, object]]
    by_ip: list[tuple[str, int, int, dict[str, int]]]


def summed(answers: Iterable[Mapping[str, Any]]) -> ObservedSummary:
    """The descriptions of several shards, summed."""
    shard_answers = list(answers)
    caps: dict[ObservedCap, int] = {}
    for answer in shard_answers:
        for limit, value, waits, count in answer["caps"]:
            cap = ObservedCap(limit, value, waits)
            caps[cap] = caps.get(cap, 0) + count
    by_ip = merge_top((answer["top"] for answer in shard_answers), most=KEPT * max(1, len(shard_answers)))
    rows = sorted(caps.items(), key=lambda row: (-row[1], row[0]))
    return ObservedSummary(
        refused=sum(count for cap, count in caps.items() if not cap.waits)
        + sum(answer["others"][0] for answer in shard_answers),
        waited=sum(count for cap, count in caps.items() if cap.waits)
        + sum(answer["others"][1] for answer in shard_answers),
        undecided=sum(answer["undecided"] for answer in shard_answers),
        addresses=len(by_ip),
        more=any(len(answer["top"]) >= KEPT for answer in shard_answers),
        caps=[{**cap._asdict(), "count": count} for cap, count in rows],
        by_ip=by_ip,
    )
