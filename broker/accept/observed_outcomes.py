"""The outcomes of observed limits of one shard: counted and journaled here, and nowhere else."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from broker.journal.writer import K_OBSERVED
from broker.metrics.observed_counts import ObservedCounts
from broker.metrics.outcomes import Refusal, refusal_by_pool
from broker.runtime.shard_context import ShardContext
from shards.limits.caps import OBSERVED
from shards.tokens.tokens import Refused

CLOSED, ENDED = "closed", "ended"
"""Reasons in the journal. CLOSED: the decision came after its connection had closed. ENDED: nothing is observed any more,
or the process ended, so no decision comes."""


class Rehearsed(Protocol):
    """An open connection about which observed limits decide. `at_ns`: when that decision began. `user`: given if it is about the
    login."""

    @property
    def number(self) -> int: ...
    @property
    def ip(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def listener(self) -> str: ...
    @property
    def at_ns(self) -> int: ...
    @property
    def user(self) -> str | None: ...


class ObservedOutcomes:
    """`counts`: since the observed limits were last changed."""

    def __init__(self, context: ShardContext) -> None:
        self.counts = ObservedCounts()
        self._tokens = context.tokens
        self._journal = context.journal
        self._counters = context.counters
        self._poller = context.poller

    def count(self, of: Rehearsed, reason: str, limit: str, value: float) -> None:
        """Counts a connection or login that would have been refused, or made wait; `reason`: one of OBSERVED_REASONS."""
        self._counters.add(f"observed_{reason}", 1, of.listener)
        self.counts.add(of.ip, reason, limit, value)

    def turned_away(self, of: Rehearsed, refusal: Refusal) -> None:
        """A connection or login would have been refused: it holds no observed token from here on."""
        reason, limit, value, version = refusal
        self.count(of, reason, limit, value)
        if of.user is None:  # the short way: there may be a storm of them
            self._journal.refused(
                of.number, of.ip, of.port, of.listener, reason=reason, limit=limit, limit_value=value, version=version,
                held_ms=self._took_ms(of), code=K_OBSERVED,
            )  # fmt: skip
            return
        self._journal.add(
            "observed", conn=of.number, ip=of.ip, port=of.port, listener=of.listener, user=of.user, reason=reason,
            limit=limit, limit_value=value, version=version, held_ms=self._took_ms(of),
        )  # fmt: skip

    def note(self, of: Rehearsed, reason: str | None = None) -> None:
        """A decision that did not come at once; without a reason it holds its observed tokens from here on."""
        self._journal.add(
            "observed", conn=of.number, ip=of.ip, port=of.port, listener=of.listener, user=of.user, reason=reason,
            version=self._tokens.version, held_ms=self._took_ms(of),
        )  # fmt: skip

    def _took_ms(self, of: Rehearsed) -> float:
        return (self._poller.now_ns - of.at_ns) / 1e6


@lru_cache(maxsize=256)
def refused_or_would_wait(decision: Refused) -> Refusal:
    """The refusal of an observed cap, with one of OBSERVED_REASONS. Cached, as refusal_by_pool is."""
    refusal = refusal_by_pool(decision._replace(pool=decision.pool[len(OBSERVED) :]))
    waits = decision.rule.wait and not decision.unavailable
    return refusal._replace(reason=refusal.reason.replace("_cap", "_wait")) if waits else refusal
