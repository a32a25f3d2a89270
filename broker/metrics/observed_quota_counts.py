"""The effects that the observed client quotas of one shard would have had: requests that they would have throttled, by quota and
client.

Counted since the observed quotas were last changed, so that the numbers are those of the values that are shown beside them.
The counters of shard_counters.py go on from the start of the cluster.

observed_clients_are_bounded  At most MOST_QUOTAS quotas with their values are counted apart, and clients as TopTalkers keeps
    them, by names of at most LONGEST_KNOWN characters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from broker.metrics.top_talkers import KEPT, TopTalkers, merge_top
from shards.limits.short_names import short_name

MOST_QUOTAS: Final = 1024


class WouldThrottle(NamedTuple):
    """A request that an observed quota would have throttled: the kind of quota, its value, for how long, and how many of the
    request's mutations it would have refused; 0 ms where the answer tells no throttle."""

    quota: str
    value: float
    throttle_ms: int
    refused: int = 0


class QuotaTally(NamedTuple):
    """The tally of one quota with its value: requests that it would have throttled, for how long in all, and refused mutations."""

    quota: str
    value: float
    requests: int
    throttle_ms: int
    refused: int

    def plus(self, requests: int, throttle_ms: int, refused: int) -> QuotaTally:
        """The tally with these added."""
        return self._replace(
            requests=self.requests + requests,
            throttle_ms=self.throttle_ms + throttle_ms,
            refused=self.refused + refused,
        )


class ObservedClient(NamedTuple):
    """A client that would have been throttled: in how many requests, by how many that may be too high, and by which quotas."""

    user: str
    client_id: str
    requests: int
    error: int
    quotas: dict[str, int]


class ObservedQuotaCounts:
    """The counts of one shard. `requests`: those that at least one quota would have throttled; `throttle_ms`: the longest of
    each such request, added up."""

    def __init__(self) -> None:
        self._quotas: dict[tuple[str, float], QuotaTally] = {}
        self._clients = TopTalkers()
        self._requests = self._throttle_ms = 0

    def add(self, user: str, client_id: str, would: Sequence[WouldThrottle]) -> None:
        """One request of a client, and what each observed quota would have done to it; at least one."""
        for quota, value, throttle_ms, refused in would:
            place = quota, value
            before = self._quotas.get(place)
            if before is None:
                if len(self._quotas) >= MOST_QUOTAS:
                    continue
                before = QuotaTally(quota, value, 0, 0, 0)
            self._quotas[place] = before.plus(int(throttle_ms > 0), throttle_ms, refused)
        worst = max(would, key=lambda each: each.throttle_ms)
        if not worst.throttle_ms:
            return
        self._requests += 1
        self._throttle_ms += worst.throttle_ms
        self._clients.add(json.dumps([short_name(user), short_name(client_id)]), worst.quota)

    def clear(self) -> None:
        """The observed quotas have changed."""
        self._quotas.clear()
        self._clients.clear()
        self._requests = self._throttle_ms = 0

    def describe(self) -> dict[str, object]:
        """The counts as `summed_quotas` reads them."""
        return {
            "requests": self._requests,
            "throttle_ms": self._throttle_ms,
            "quotas": list(self._quotas.values()),
            "top": self._clients.top(),
        }


class ObservedQuotaSummary(NamedTuple):
    """The counts of all shards; `more`: there are more clients than were counted apart. Most come first."""

    requests: int
    throttle_ms: int
    more: bool
    quotas: list[QuotaTally]
    clients: list[ObservedClient]


def summed_quotas(answers: Iterable[Mapping[str, Any]]) -> ObservedQuotaSummary:
    """The descriptions of several shards, summed."""
    shard_answers = list(answers)
    tallies: dict[tuple[str, float], QuotaTally] = {}
    for quota, value, requests, throttle_ms, refused in (row for answer in shard_answers for row in answer["quotas"]):
        before = tallies.get((quota, value), QuotaTally(quota, value, 0, 0, 0))
        tallies[quota, value] = before.plus(requests, throttle_ms, refused)
    top = merge_top((answer["top"] for answer in shard_answers), most=KEPT * max(1, len(shard_answers)))
    return ObservedQuotaSummary(
        requests=sum(answer["requests"] for answer in shard_answers),
        throttle_ms=sum(answer["throttle_ms"] for answer in shard_answers),
        more=any(len(answer["top"]) >= KEPT for answer in shard_answers),
        quotas=sorted(tallies.values(), key=lambda each: (-each.requests, each.quota, each.value)),
        clients=[_client(*each) for each in top],
    )


def _client(key: str, requests: int, error: int, quotas: dict[str, int]) -> ObservedClient:
    user, client_id = json.loads(key)
    return ObservedClient(user, client_id, requests, error, quotas)
