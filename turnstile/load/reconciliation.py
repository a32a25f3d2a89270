"""The driver's counts beside those of the cluster: do they agree?

The cluster's counters include other clients'. Where it tells them by address, only those of the driver's own addresses are
judged, and the others are named. A client that uses one of the driver's own addresses can't be told apart from it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from turnstile.admin_client import AdminClient
from turnstile.load.counters import Counters, read
from turnstile.load.tally import Tally

SETTLE_S = 2.0
"""A shard counts a refusal in the same pass in which it closes the socket, so this is far more than it needs."""
STILL_S, STILL_BLOCKED_S = 0.25, 1.5
"""The counts of the driver's own addresses stand still for this long before a run begins; the latter where listeners were
stopped: a rate stops one for a window (quota.window.size.seconds) at most, by default for a second."""
BACKLOG_S = 5.0
"""The longest wait for that: another client at these addresses may never end."""
NAMED = 3
"""Other clients' addresses that the sentence names."""


@dataclass(frozen=True)
class Reconciliation:
    """The agreement of both sides, and a sentence about it. `agree` is None where the cluster has no counters.

    `others`: connections of addresses that the driver does not use, which were left out.
    """

    agree: bool | None
    sentence: str
    others: Mapping[str, int] = field(default_factory=dict)


def baseline(admin: AdminClient, own: Container[str]) -> Counters | None:
    """The counters that a run begins with; None as of `read`.

    Connections of an earlier run from the same addresses may still be in the backlog of a listener that waits for a rate, and
    would be counted as of this one.
    """
    before = read(admin)
    began = changed = time.monotonic()
    while before is not None and _of(before, own):
        still_s = STILL_BLOCKED_S if before.was_blocked else STILL_S
        if time.monotonic() >= min(began + BACKLOG_S, changed + still_s):
            break
        time.sleep(0.05)
        now = read(admin)
        if now is None or _of(now, own) != _of(before, own):
            changed = time.monotonic()
        before = now
    return before


def _of(counters: Counters, own: Container[str]) -> dict[str, dict[str, int]]:
    """The cluster's counts of these addresses; empty where it does not tell them."""
    counts = counters.by_source.counts if counters.by_source is not None else {}
    return {ip: outcomes for ip, outcomes in counts.items() if ip in own}


class SettledCounters(NamedTuple):
    """The counts of the cluster meanwhile, None where it has no counters, and the verdict."""

    cluster: Counters | None
    verdict: Reconciliation


def settle(admin: AdminClient, before: Counters | None, agree: Callable[[Counters], Reconciliation]) -> SettledCounters:
    """Reads the counters until they agree, or SETTLE_S are over."""
    if before is None:
        return SettledCounters(None, Reconciliation(None, f"no counters to compare with at {admin.url}"))
    deadline = time.monotonic() + SETTLE_S
    while True:
        after = read(admin)
        if after is None:
            return SettledCounters(None, Reconciliation(False, f"the counters at {admin.url} are gone"))
        since = after.since(before)
        verdict = agree(since)
        if verdict.agree or time.monotonic() >= deadline:
            return SettledCounters(since, verdict)
        time.sleep(0.05)


def reconcile(
    seen: Tally,
    counted: Counters,
    *,
    traffic: int = 0,
    shards_died: bool = False,
    drivers_lost: bool = False,
    own: Container[str] = (),
) -> Reconciliation:
    """Set what the driver saw beside what the cluster counted.

    `traffic` connections were opened by real clients, which don't say which of theirs were refused, so for them only
    the sum is known. An unanswered connection may have been counted or not. When a shard died, connections it had
    accepted and not answered look refused from outside, and the cluster may have counted them as admitted or never. When a
    driver was lost, the cluster may have counted more than it last said.
    """
    others = counted.of_others(own)
    judged = partial(_judged, seen, traffic=traffic, drivers_lost=drivers_lost)
    if others:
        of_load = judged(counted.of(own))
        of_others = f"{sum(others.values())} more, of {_named(others)}, {'are' if sum(others.values()) > 1 else 'is'} not its own"
        if of_load.agree:
            return Reconciliation(True, f"{of_load.sentence}; {of_others}", others)
        whole = judged(counted)  # the cluster may see the driver under another address (NAT, a proxy)
        return whole if whole.agree else _with_hint(of_load, seen, counted.of(own), traffic, own, f"; {of_others}")
    whole = judged(counted, shards_died=shards_died)
    return whole if whole.agree else _with_hint(whole, seen, counted, traffic, own)


def _judged(
    seen: Tally, counted: Counters, *, traffic: int, drivers_lost: bool, shards_died: bool = False
) -> Reconciliation:
    cluster, driver = counted.admitted + counted.refused_in_all, seen.admitted + seen.refused + traffic
    sides = f"driver {seen.admitted} admitted, {seen.refused} refused"
    sides += f", {traffic} of real clients" if traffic else ""
    sides += f"; cluster {counted.admitted} admitted, {counted.refused_in_all} refused"
    if counted.admitted < 0 or counted.refused_in_all < 0:
        return Reconciliation(False, f"{sides}: the cluster's counters started anew")
    unseen = max(0, cluster - driver - seen.unanswered) if drivers_lost else 0
    if shards_died:
        cut_off = max(0, seen.refused - counted.refused_in_all)
        fits = counted.admitted >= seen.admitted and counted.refused_in_all <= seen.refused + traffic + unseen
        fits = fits and cluster <= driver + seen.unanswered + unseen
        return Reconciliation(
            fits, f"{sides}: {_word(fits)}, with {cut_off} cut off when a shard died{_beyond(unseen)}"
        )
    fits = counted.admitted >= seen.admitted and counted.refused_in_all >= seen.refused
    fits = fits and driver <= cluster <= driver + seen.unanswered + unseen
    loose = f", {seen.unanswered} without an answer aside" if seen.unanswered and fits else ""
    return Reconciliation(fits, f"{sides}: {_word(fits)}{loose}{_beyond(unseen) if fits else ''}")


def _beyond(unseen: int) -> str:
    return f", with {unseen} that lost drivers made after their last word" if unseen else ""


def _with_hint(
    verdict: Reconciliation, seen: Tally, counted: Counters, traffic: int, own: Container[str], addition: str = ""
) -> Reconciliation:
    """A cluster that counted more may have another client at one of the driver's own addresses."""
    more = counted.admitted + counted.refused_in_all - seen.admitted - seen.refused - traffic - seen.unanswered
    if more <= 0 or not own:
        return Reconciliation(False, f"{verdict.sentence}{addition}")
    hint = f"; {more} more from {own}: of another client there, or counted wrongly; --sources with addresses that no other "
    return Reconciliation(False, f"{verdict.sentence}{addition}{hint}client uses tells these apart")


def _named(others: Mapping[str, int]) -> str:
    names = list(others)[:NAMED]
    rest = len(others) - len(names)
    return ", ".join(names) + (f" and {rest} other addresses" if rest else "")


def _word(fits: bool) -> str:
    return "they agree" if fits else "they DISAGREE"
