"""The cluster's own counters, over the admin HTTP, and whether they agree with what the driver saw."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from turnstile.admin_client import AdminClient, AdminRefused, AdminUnreachable
from turnstile.load.tally import Tally

ADMITTED = "turnstile_connections_admitted_total"
REFUSED = "turnstile_connections_refused_total"
SETTLE_S = 2.0
"""A shard counts a refusal in the same pass in which it closes the socket, so this is far more than it needs."""


@dataclass(frozen=True)
class Counters:
    """Connections the cluster has admitted and refused since it started, and the incarnation of every shard."""

    admitted: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    epochs: dict[tuple[int, int], int] = field(default_factory=dict)

    def since(self, before: Counters) -> Counters:
        """What happened after `before`; reasons that did not occur are left out."""
        refused = {reason: n - before.refused.get(reason, 0) for reason, n in self.refused.items()}
        changed = {reason: n for reason, n in refused.items() if n}
        return Counters(self.admitted - before.admitted, changed, self.epochs)

    @property
    def refused_in_all(self) -> int:
        """Refusals, of all reasons together."""
        return sum(self.refused.values())


@dataclass(frozen=True)
class Reconciliation:
    """Whether both sides agree, and a sentence about it. `agree` is None where the cluster has no counters."""

    agree: bool | None
    sentence: str


def read(admin: AdminClient) -> Counters | None:
    """The counters behind the admin API; None when nothing there has them, as with a broker that is not Turnstile.

    Raises AdminRefused when the API needs a token, or another one.
    """
    try:
        counters = parse(admin.text("/metrics"))
        shards = admin.get("/v1/shards")["shards"]
    except AdminRefused as fault:
        if fault.status == 401:
            raise
        return None
    except (AdminUnreachable, ValueError, KeyError, TypeError):
        return None
    epochs = {(shard["broker"], shard["shard"]): shard["epoch"] for shard in shards}
    return counters and Counters(counters.admitted, counters.refused, epochs)


def parse(exposition: str) -> Counters | None:
    """Counters from the Prometheus text format, summed over shards and listeners; None when they are not in it.

    Raises ValueError for what is not that format.
    """
    from prometheus_client.parser import text_string_to_metric_families

    refused: dict[str, int] = {}
    admitted, found = 0, False
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            if sample.name == ADMITTED:
                admitted += int(sample.value)
            elif sample.name == REFUSED:
                reason = sample.labels.get("reason", "unknown")
                refused[reason] = refused.get(reason, 0) + int(sample.value)
            found = found or sample.name in (ADMITTED, REFUSED)
    return Counters(admitted, refused) if found else None


def settle(
    admin: AdminClient, before: Counters | None, agree: Callable[[Counters], Reconciliation]
) -> tuple[Counters | None, Reconciliation]:
    """What the cluster counted since `before`, read until it agrees or SETTLE_S are over, and the verdict."""
    if before is None:
        return None, Reconciliation(None, f"no counters to compare with at {admin.url}")
    deadline = time.monotonic() + SETTLE_S
    while True:
        after = read(admin)
        if after is None:
            return None, Reconciliation(False, f"the counters at {admin.url} are gone")
        since = after.since(before)
        verdict = agree(since)
        if verdict.agree or time.monotonic() >= deadline:
            return since, verdict
        time.sleep(0.05)


def reconcile(seen: Tally, counted: Counters, *, traffic: int = 0, shards_died: bool = False) -> Reconciliation:
    """Set what the driver saw beside what the cluster counted.

    `traffic` connections were opened by real clients, which don't say which of theirs were refused, so for them only
    the sum is known. An unanswered connection may have been counted or not. When a shard died, connections it had
    accepted and not answered look refused from outside, and the cluster may have counted them as admitted or never.
    """
    cluster, driver = counted.admitted + counted.refused_in_all, seen.admitted + seen.refused + traffic
    sides = f"driver {seen.admitted} admitted, {seen.refused} refused"
    sides += f", {traffic} of real clients" if traffic else ""
    sides += f"; cluster {counted.admitted} admitted, {counted.refused_in_all} refused"
    if counted.admitted < 0 or counted.refused_in_all < 0:
        return Reconciliation(False, f"{sides}: the cluster's counters started anew")
    if shards_died:
        cut_off = max(0, seen.refused - counted.refused_in_all)
        fits = counted.admitted >= seen.admitted and counted.refused_in_all <= seen.refused + traffic
        fits = fits and cluster <= driver + seen.unanswered
        return Reconciliation(fits, f"{sides}: {_word(fits)}, with {cut_off} cut off when a shard died")
    fits = counted.admitted >= seen.admitted and counted.refused_in_all >= seen.refused
    fits = fits and driver <= cluster <= driver + seen.unanswered
    loose = f", {seen.unanswered} without an answer aside" if seen.unanswered and fits else ""
    return Reconciliation(fits, f"{sides}: {_word(fits)}{loose}")


def _word(fits: bool) -> str:
    return "they agree" if fits else "they DISAGREE"
