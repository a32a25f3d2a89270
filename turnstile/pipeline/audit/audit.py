"""Checks that no limit was ever exceeded: proved or refuted from a journal alone.

A verdict of `held` needs every event: where the journal is not whole, or does not agree with itself (journal_checks.py), or
what was configured isn't known, nothing is proved and the verdict is `unknown`. A violation is only reported when no missing
event could explain it: connections count as open for no longer than the journal proves (until the last event of a process
that is gone, or before a gap).
"""

from collections.abc import Callable
from typing import NamedTuple

from broker.journal.schema import COORDINATOR
from shards.settings.broker_config import EVERY_BROKER
from turnstile.pipeline.audit import (
    grant_checks,
    journal_checks,
    observed_checks,
    observed_cluster_rate_checks,
    observed_rate_checks,
    open_connection_checks,
    quota_checks,
    rate_checks,
    rate_unit_checks,
    refusal_checks,
    user_checks,
)
from turnstile.pipeline.audit.audit_result import FINDINGS, UNKNOWN, AuditResult, Check
from turnstile.pipeline.audit.connections import ConnectionChecks, Ends, paired
from turnstile.pipeline.audit.moves import moves
from turnstile.pipeline.events.digest import DIGEST, digest, once, sound
from turnstile.pipeline.events.journal import EVENTS, Journal
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.events.survey import Survey, survey


def audit(journal: Journal, say: Callable[[str], None] = lambda name: None) -> AuditResult:
    """Every check over a journal. `say` is told the name of each before it is begun."""
    say("sequence")
    events, seen = _sound(journal.rows)
    if not seen.processes:
        return AuditResult([Check("sequence", UNKNOWN, "the journal has no events", [])], 0, None, {})
    timeline = seen.timeline()
    whole, incomplete = journal_checks.checks(seen, timeline, journal.unreadable, live=journal.is_live)
    say("conservation")
    live = journal.is_live and not journal.unreadable
    ends = Ends.of(seen.ends(live=live), seen.gaps, seen.ended)
    connections = paired(events, ends).kept()
    of_connections = ConnectionChecks(connections, timeline, seen)
    say("caps")
    caps = open_connection_checks.checks(connections, timeline, of_connections.count)
    users = user_checks.logged_in(events, ends).kept()
    moved = moves(events).kept()
    starts = rate_unit_checks.started(moved)
    say("rates")
    rates = [
        *rate_checks.checks(events, timeline, seen, rate_unit_checks.resets(starts)),
        *rate_unit_checks.checks(moved, timeline, seen.gaps, starts, back=bool(seen.back)),
    ]
    say("tokens")
    tokens = grant_checks.checks(moved, connections, users, timeline, seen, incomplete)
    say("refusals")
    refusals = refusal_checks.checks(events, connections, moved, timeline, seen, incomplete)
    refusals += user_checks.checks(events, users, moved, timeline, seen, incomplete)
    connections.forget()
    users.forget()
    say("observed")
    observed = observed_checks.checks(events, timeline, seen, ends, incomplete)
    observed += observed_rate_checks.checks(events, timeline, seen)
    observed += observed_cluster_rate_checks.checks(events, moved, timeline, seen, incomplete)
    moved.forget()
    say("quotas")
    quotas = [
        *quota_checks.checks(events, timeline, seen, incomplete),
        *quota_checks.observed_checks(events, timeline, seen, incomplete),
    ]
    checks = [
        *whole,
        *caps,
        of_connections.acknowledged(),
        *rates,
        of_connections.conserved(),
        *tokens,
        *refusals,
        *observed,
        *quotas,
    ]
    doubted = [_doubted(check, seen) for check in checks]
    return AuditResult(doubted, seen.events, seen.wall, timeline.limits_over_time(), seen.set_ns)


def _doubted(check: Check, seen: Survey) -> Check:
    """A violation that is only found where a process's clock goes back, so that no order is certain, is unknown."""
    brokers = {place[0] for place in seen.back}
    if EVERY_BROKER in check.brokers and brokers:
        brokers.add(EVERY_BROKER)
    if check.verdict not in FINDINGS or (COORDINATOR not in brokers and not brokers.issuperset(check.brokers)):
        return check
    return check._replace(verdict=UNKNOWN, detail=f"{check.detail}; but its processes' mono_ns goes back")


class _SoundEvents(NamedTuple):
    """The events that are judged, and what is known of them."""

    events: Rows
    seen: Survey


def _sound(events: Rows) -> _SoundEvents:
    """Leaves out events that lack broker, shard, epoch or number, and all events that share these but differ: each counts as
    missing."""
    seen = survey(events.each(digest, DIGEST).table())
    if seen.bad:
        events = events.each(sound, EVENTS)
    if not seen.twice:
        return _SoundEvents(events, seen)
    events = events.by(("broker", "shard", "epoch", "seq"), once, EVENTS).kept()
    again = survey(events.each(digest, DIGEST).table())
    return _SoundEvents(events, again._replace(bad=seen.bad, twice=seen.twice))
