"""Limits of a user's connections, turnstile.max.connections.per.user and turnstile.max.connection.creation.rate.per.user: never
more logged in than allowed, and every login that was refused for its user refused by a limit that was in force, and reached.

A connection counts in its user's pool from its `authenticated` event to its end. Both checks are those of addresses
(open_connection_checks.py, refusal_checks.py), made of rows whose address is the user: so `ip` is the user in what is found.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial

import numpy
import pyarrow

from broker.journal.schema import AFTER_LOGIN, GAVE_UP
from turnstile.pipeline.audit.audit_result import EXCEEDED, HELD, NOT_JUSTIFIED, UNKNOWN, Check
from turnstile.pipeline.audit.connections import CONNECTIONS, INCARNATION, READ, Ends, pair
from turnstile.pipeline.audit.rate_refusals import without_violated_rate
from turnstile.pipeline.audit.refusal_checks import (
    DECISIONS,
    unjustified,
    without_full_pool,
)
from turnstile.pipeline.audit.refusal_checks import READ as REFUSAL
from turnstile.pipeline.audit.refusal_names import FOUND, misnamed
from turnstile.pipeline.audit.unseen import unseen_in
from turnstile.pipeline.events import arrays, open_counts
from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.events.logins import by_user, of_users
from turnstile.pipeline.events.open_counts import PoolCounts
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.events.survey import Survey
from turnstile.pipeline.events.timeline import Timeline

CAP, CAUSED = "user_cap", "user_refused_with_cause"


def logged_in(events: Rows, ends: Ends) -> Rows:
    """CONNECTIONS of users: each from its login to its end, with the user as its `ip`."""
    logins = events.of_kinds(("authenticated", "closed"), (*READ, "user", "reason"))
    return logins.by((*INCARNATION, "conn"), partial(logins_of, ends), CONNECTIONS)


def checks(
    events: Rows, users: Rows, moves: Rows, timeline: Timeline, seen: Survey, incomplete: Collection[int]
) -> list[Check]:
    """Both checks; none where no client logged in. `users`: `logged_in`; `moves`: moves.MOVES; `incomplete`: brokers of which
    events are missing."""
    logins = seen.kinds["authenticated"]
    if not logins:
        return []
    steps = users.each(open_counts.steps, open_counts.STEPS)
    over = steps.swept(["ip"], partial(user_over_the_cap, timeline), open_counts.EXCESS, closes_first=True).to_pylist()
    decided = events.of_kinds(("authenticated",), (*REFUSAL, "user"))
    refused = decided.each(partial(_refused, AFTER_LOGIN), DECISIONS)
    found = refused.each(partial(misnamed, timeline), FOUND).table().to_pylist()
    tried = decided.each(_as_of_addresses, DECISIONS)
    unseen = unseen_in(seen)
    found += without_full_pool(tried, users, timeline, seen, unseen, "ip_cap").to_pylist()
    found += without_violated_rate(refused, moves, unseen, "user_rate").to_pylist()
    return [_capped(over, logins, is_limited=timeline.any_limit("user")), _caused(found, incomplete)]


def logins_of(ends: Ends, table: pyarrow.Table) -> pyarrow.Table:
    """The logins of users in `authenticated` and `closed` events."""
    rows = of_users(table)
    is_login = arrays.is_one_of(rows, "kind", ("authenticated",))
    kinds = pyarrow.array(numpy.where(is_login, "admitted", "closed"), pyarrow.string())
    return pair(ends, rows.set_column(rows.column_names.index("kind"), "kind", kinds).select(READ))


def user_over_the_cap(timeline: Timeline, counted: PoolCounts) -> pyarrow.Table:
    """open_counts.over_the_cap of rows whose address is the user."""
    return open_counts.over_the_cap(timeline, counted._replace(kind="user"))


def _refused(reasons: Sequence[str], table: pyarrow.Table) -> pyarrow.Table:
    refusals = table.filter(pyarrow.array(arrays.is_one_of(table, "reason", reasons)))
    refusals = by_user(refusals).select(DECISIONS.names)
    kinds = pyarrow.array(["refused"] * refusals.num_rows, pyarrow.string())
    return refusals.set_column(refusals.column_names.index("kind"), "kind", kinds).cast(DECISIONS)


def _as_of_addresses(table: pyarrow.Table) -> pyarrow.Table:
    """Refusals by caps as those by an address's cap; clients that gave up, which may have held a token for a moment, as those by
    another cap."""
    refusals = _refused((CAP, GAVE_UP), table)
    is_refusal = arrays.is_one_of(refusals, "reason", (CAP,))
    reasons = pyarrow.array(numpy.where(is_refusal, "ip_cap", "broker_cap"), pyarrow.string())
    return refusals.set_column(refusals.column_names.index("reason"), "reason", reasons).cast(DECISIONS)


def _capped(rows: list[TableRow], logins: int, *, is_limited: bool) -> Check:
    if not is_limited:
        return Check(CAP, HELD, "no cap was set", [])
    if not rows:
        return Check(CAP, HELD, f"{logins} logins, never more connections of a user than allowed", [])
    counts: Counter[int] = Counter()
    for row in rows:
        counts[row["broker"]] += row.pop("excess")
    rows.sort(key=lambda row: row["at_ns"])
    first = rows[0]
    detail = (
        f"{counts.total()} logins beyond the cap; first user {first['pool']} of broker {first['broker']}: {first['open']} open, "
        f"{first['allowed']} allowed, at mono_ns {first['at_ns']}"
    )
    return Check(CAP, EXCEEDED, detail, rows[: open_counts.SHOWN], counts)


def _caused(rows: list[TableRow], incomplete: Collection[int]) -> Check:
    if not rows:
        return Check(CAUSED, HELD, "each login was refused by a limit of its user that was in force, and reached", [])
    counts, shown, is_sure = unjustified(rows, incomplete)
    first = shown[0]
    detail = (
        f"{counts.total()} refused logins; first user {first['ip']} by {first['limit']} of version {first['version']} on broker "
        f"{first['broker']}, at mono_ns {first['at_ns']}: {first['why']}"
    )
    return Check(CAUSED, NOT_JUSTIFIED if is_sure else UNKNOWN, detail, shown, counts)
