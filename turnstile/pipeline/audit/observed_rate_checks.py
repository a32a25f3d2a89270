"""Checks that observed creation rates (docs/rehearsal.md) answered by Kafka's arithmetic, and that each decision names one of them.

observed_rates  Each home's answers are done again in their order (shards/limits/observed_windows.py): a shorter delay is
    `exceeded`, a longer one `not justified`. A connection that a rate would have refused names a rate that its version
    observes, with its value. What a home answered after a gap in its numbers is not judged.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import pyarrow

from shards.limits.caps import RateRule
from shards.limits.observed_windows import ADDRESS, USER, ObservedWindows
from shards.limits.rate_replay import RateQuotas
from turnstile.pipeline.audit.audit_result import EXCEEDED, NOT_JUSTIFIED, UNKNOWN, Check
from turnstile.pipeline.audit.quota_findings import FOUND, Findings, check_of
from turnstile.pipeline.audit.refusal_names import INCARNATION
from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.events.observed_timeline import ObservedTimeline
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.events.sequence import Incarnation, first_gaps
from turnstile.pipeline.events.survey import Survey
from turnstile.pipeline.events.timeline import Timeline

NAME = "observed_rates"
BY_HOME, BY_CORE = "refused", "refused_by_core"
HELD_TEXT = (
    "{arrivals} arrivals at observed rates, each answered as Kafka's arithmetic says; {refused} would have been refused by them, "
    "{refused_by_core} before them by a rate of a core"
)
"""A rate of a core is asked first, on the shard itself: a connection that it would have refused asks no other."""
READ = (*INCARNATION, "seq", "mono_ns", "ip", "user", "listener", "bytes", "throttle_ms", "version", "detail")
_NAMED = (*INCARNATION, "seq", "mono_ns", "ip", "user", "reason", "limit", "limit_value", "version")


def checks(events: Rows, enforced: Timeline, seen: Survey) -> list[Check]:
    """The check, if any home answered, or any core."""
    if not seen.kinds["observed_rate"]:
        return []
    timeline = ObservedTimeline(enforced)
    until = {place: gap.first for place, gap in first_gaps(seen.gaps).items()}
    answers = events.of_kinds(("observed_rate",), READ).by(INCARNATION, partial(answered, timeline, until), FOUND)
    decided = events.of_kinds(("observed",), _NAMED).each(partial(named, timeline), FOUND)
    found = [*answers.table().to_pylist(), *decided.table().to_pylist()]
    return [check_of(NAME, found, HELD_TEXT)] if found else []  # else only the rate of the whole cluster was asked


def answered(timeline: ObservedTimeline, until: Mapping[Incarnation, int], table: pyarrow.Table) -> pyarrow.Table:
    """FOUND of the answers of some homes, which are all there."""
    found = Findings()
    homes: dict[Incarnation, _Home] = {}
    for row in table.sort_by([(name, "ascending") for name in (*INCARNATION, "seq")]).to_pylist():
        place = row["broker"], row["shard"], row["epoch"]
        if row["seq"] < until.get(place, row["seq"] + 1):
            homes.setdefault(place, _Home(timeline, found)).note({**row, "at_ns": row["mono_ns"]})
    return found.table()


class _Arrivals(NamedTuple):
    """The arrivals that a row tells of. `names`: of addresses or of users (`what`); none where it is about a listener."""

    what: str
    names: Sequence[str]
    number: int
    is_begun: bool
    is_back: bool

    @classmethod
    def of(cls, row: TableRow) -> "_Arrivals":
        """Raises ValueError, TypeError or AttributeError for a row that can't be read."""
        detail = json.loads(row["detail"])
        what = USER if row["user"] is not None or USER in detail else ADDRESS
        number, name, names = row["bytes"] or 1, row[what], detail.get(what, [])
        if name is not None:
            names = [name] * number
        is_begun = bool(detail.get("began"))
        is_told = is_begun or row["listener"] is not None or (names and isinstance(names, list))
        if not is_told or not all(isinstance(each, str) for each in names):
            raise ValueError("no arrival is told")
        return cls(what, names, number, is_begun, bool(detail.get("back")))


class _Home:
    """The windows of one process. `windows`: None while they are not known."""

    def __init__(self, timeline: ObservedTimeline, found: Findings) -> None:
        self._timeline = timeline
        self._found = found
        self._windows: ObservedWindows | None = None

    def note(self, row: TableRow) -> None:
        try:
            arrivals = _Arrivals.of(row)
        except (ValueError, TypeError, AttributeError):
            self._found.add(NAME, UNKNOWN, "an answer of an observed rate can't be read", row)
            self._windows = None
            return
        if row["version"] not in self._timeline.versions:
            self._windows = None
            return
        if arrivals.is_begun:
            window = self._timeline.limits(row["version"], row["broker"]).limits.window
            self._windows = ObservedWindows(window)
        elif self._windows is not None:
            self._judge(self._windows, row, arrivals)

    def _judge(self, windows: ObservedWindows, row: TableRow, arrivals: "_Arrivals") -> None:
        now_ms, at, listener = row["mono_ns"] // 1_000_000, (row["version"], row["broker"]), row["listener"]
        if listener is None:
            self._judge_each(windows, row, arrivals)
        elif arrivals.is_back:
            windows.take_back(listener, self._quotas(*at, listener), arrivals.number, now_ms=now_ms)
        else:
            for answer, count in windows.arrive(listener, self._quotas(*at, listener), arrivals.number, now_ms=now_ms):
                self._compare(row, f"an arrival at {listener}", answer.ms, count)

    def _judge_each(self, windows: ObservedWindows, row: TableRow, arrivals: "_Arrivals") -> None:
        """Arrivals from addresses, or logins of users, that were answered alike."""
        at, now_ms = (row["version"], row["broker"]), row["mono_ns"] // 1_000_000
        arrive, of = (windows.log_in, "a login of") if arrivals.what == USER else (windows.arrive_from, "an arrival of")
        quotas = {
            name: self._timeline.observed_rate(*at, f"{arrivals.what}:{name}").rate
            for name in dict.fromkeys(arrivals.names)
        }
        beyond = dict(arrive(arrivals.names, quotas, now_ms=now_ms))
        for place, name in enumerate(arrivals.names):
            self._compare(row, f"{of} {name}", beyond.get(place, 0), 1)

    def _compare(self, row: TableRow, what: str, should: int, arrivals: int) -> None:
        """Judges the delay with which so many were answered."""
        self._found.looked_at(NAME, "arrivals", row["broker"], arrivals)
        said = row["throttle_ms"] or 0
        if said != should:
            verdict = EXCEEDED if said < should else NOT_JUSTIFIED
            why = f"{what} was answered with {said:,} ms; by Kafka's arithmetic {should:,} ms"
            for _ in range(arrivals):
                self._found.add(NAME, verdict, why, row)

    def _quotas(self, version: int, broker: int, listener: str) -> RateQuotas:
        own, of_broker = (
            self._timeline.observed_rate(version, broker, pool).rate for pool in (f"listener:{listener}", "broker")
        )
        exempt = listener == self._timeline.limits(version, broker).inter_broker
        return RateQuotas(own, None if exempt else of_broker, exempt)


_RATED = {"ip_rate": "ip:{ip}", "core_rate": "core:{ip}", "user_rate": "user:{user}"}


def named(timeline: ObservedTimeline, table: pyarrow.Table) -> pyarrow.Table:
    """FOUND of decisions by rates that their version does not observe so."""
    found = Findings()
    for row in table.to_pylist():
        pool = _RATED.get(row["reason"], "").format(**row)
        if not pool:
            continue
        found.looked_at(NAME, BY_CORE if row["reason"] == "core_rate" else BY_HOME, row["broker"])
        if row["version"] not in timeline.versions:
            continue
        rule: RateRule = timeline.observed_rate(row["version"], row["broker"], pool)
        if RateRule(row["limit_value"], row["limit"]) != rule:
            observes = "no such rate" if rule.rate is None else f"{rule.name}={rule.rate:g}"
            by = f"{row['limit']}={row['limit_value']:g}"
            why = f"{row['user'] or row['ip']} would have been refused by {by}; that version observes {observes}"
            found.add(NAME, NOT_JUSTIFIED, why, {**row, "at_ns": row["mono_ns"]})
    return found.table()
