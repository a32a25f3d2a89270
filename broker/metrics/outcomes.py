"""The outcomes of the connections of one listener: counted and journaled here, and nowhere else.

Invariants
decided_and_counted_once  Every accepted connection is admitted or refused exactly once, and counted and journaled as what
    it was. One that was admitted and logs in is decided once more, for its user: if that refuses it, it counts as refused, and
    stays counted as admitted.
refused_is_counted_before_it_is_seen  A refusal is in the counters before its socket is closed or anything is sent on it: a
    program that saw it, and asks the admin API, finds it counted. In the journal it is at the end of the pass.
journal_covers_token_use  `admitted` is journaled after the connection's tokens are taken, `closed` before they are
    released: the interval between the two lies within the time in which the tokens were held (journal/schema.py says what
    follows from it).
"""

from functools import lru_cache
from typing import NamedTuple

from broker.journal.schema import GAVE_UP
from broker.journal.writer import JournalWriter
from broker.metrics.shard_counters import ShardCounters
from broker.metrics.source_counts import SourceCounts
from broker.metrics.top_talkers import TopTalkers
from shards.limits.quota_entities import CONNECTION_RATE
from shards.tokens.tokens import Refused


class Refusal(NamedTuple):
    """The refusal of a connection: `reason` is one of the journal's REASONS, `limit` the name of the setting or quota that
    decided, `value` its value under configuration version `version` (0: no version, as it is not a setting)."""

    reason: str
    limit: str
    value: float
    version: int


@lru_cache(maxsize=256)
def refusal_by_pool(refused: Refused) -> Refusal:
    """A pool's cap refused the connection, or the pool's home did not answer. Cached: an address that goes on connecting at
    its cap gets the same refusal each time."""
    kind = refused.pool.partition(":")[0]
    reason = "shard_unavailable" if refused.unavailable else f"{kind}_cap"
    return Refusal(reason, refused.rule.name, refused.rule.cap or 0, refused.version)


@lru_cache(maxsize=256)
def refusal_by_ip_rate(quota: float, version: int) -> Refusal:
    """The rate of its address refused the connection. Cached: thousands of held connections share one refusal."""
    return Refusal("ip_rate", CONNECTION_RATE, quota, version)


class Outcomes:
    """The outcomes of one listener's connections on one shard. `waited_ms`: from accept(2) to the decision."""

    def __init__(
        self,
        listener: str,
        journal: JournalWriter,
        counters: ShardCounters,
        top_talkers: TopTalkers,
        sources: SourceCounts,
    ) -> None:
        self.listener = listener
        self._journal = journal
        self._counters = counters
        self._top_talkers = top_talkers
        self._sources = sources

    def admitted(self, number: int, ip: str, port: int, version: int, waited_ms: float) -> None:
        """The connection holds all its tokens, taken under configuration version `version`."""
        self._journal.admitted(number, ip, port, self.listener, version, waited_ms)
        self._counters.admitted(self.listener)
        self._sources.add(ip, "admitted")

    def refused(self, number: int, ip: str, port: int, refusal: Refusal, waited_ms: float) -> None:
        """The connection holds no token, and its socket is closed next (refused_is_counted_before_it_is_seen)."""
        reason, limit, value, version = refusal
        self._counters.refused(self.listener, reason)
        self._top_talkers.add(ip, reason)
        self._sources.add(ip, reason)
        self._journal.refused(
            number,
            ip,
            port,
            self.listener,
            reason=reason,
            limit=limit,
            limit_value=value,
            version=version,
            held_ms=waited_ms,
        )

    def admitted_via(self, way: str, number: int, ip: str, port: int, version: int, waited_ms: float) -> None:
        """`admitted`, of a client that a proxy announced; `way`: JSON for the journal, one of few texts."""
        self._journal.add(
            "admitted",
            conn=number,
            ip=ip,
            port=port,
            listener=self.listener,
            version=version,
            held_ms=waited_ms,
            detail=way,
        )
        self._counters.admitted(self.listener)
        self._sources.add(ip, "admitted")

    def refused_via(self, way: str, number: int, ip: str, port: int, refusal: Refusal, waited_ms: float) -> None:
        """`refused`, of a client that a proxy announced."""
        reason, limit, value, version = refusal
        self._counters.refused(self.listener, reason)
        self._top_talkers.add(ip, reason)
        self._sources.add(ip, reason)
        self._journal.add(
            "refused",
            conn=number,
            ip=ip,
            port=port,
            listener=self.listener,
            reason=reason,
            limit=limit,
            limit_value=value,
            version=version,
            held_ms=waited_ms,
            detail=way,
        )

    def authenticated(self, number: int, ip: str, port: int, user: str, version: int, waited_ms: float) -> None:
        """An admitted connection holds a token of its user's pool. `waited_ms`: from its proof to the decision."""
        self._journal.add(
            "authenticated", conn=number, ip=ip, port=port, listener=self.listener, user=user, version=version,
            held_ms=waited_ms,
        )  # fmt: skip

    def login_given_up(self, number: int, ip: str, port: int, user: str, version: int, waited_ms: float) -> None:
        """A connection closed before the home of its user's pool had answered."""
        self._journal.add(
            "authenticated", conn=number, ip=ip, port=port, listener=self.listener, reason=GAVE_UP, user=user,
            version=version, held_ms=waited_ms,
        )  # fmt: skip

    def user_refused(self, number: int, ip: str, port: int, user: str, refusal: Refusal, waited_ms: float) -> None:
        """A connection that was admitted is refused by a limit of its user; it is closed next."""
        reason, limit, value, version = refusal
        self._counters.refused(self.listener, reason)
        self._top_talkers.add(ip, reason)
        self._sources.add(ip, reason)
        self._journal.add(
            "authenticated", conn=number, ip=ip, port=port, listener=self.listener, reason=reason, user=user, limit=limit,
            limit_value=value, version=version, held_ms=waited_ms,
        )  # fmt: skip

    def closed(
        self,
        number: int,
        ip: str,
        port: int,
        *,
        why: str,
        user: str,
        client_id: str | None,
        bytes_moved: int,
        open_ms: float,
    ) -> None:
        """An admitted connection has ended; its tokens are released next."""
        self._journal.closed(
            number, ip, port, self.listener, reason=why, user=user, client_id=client_id, bytes_moved=bytes_moved,
            open_ms=open_ms,
        )  # fmt: skip
        self._counters.closed(self.listener)
