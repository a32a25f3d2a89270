"""The check of throttles: a meter decided every throttle that a client was told, and every throttle that was decided was told.

A `throttled` event is written by the shard with the connection, at the instant at which the meter recorded; a `charge` by the
meter's shard. The two are matched by broker, client, quota, instant, amount and throttle time (`quota_throttles`).

decided_throttle_is_told  A throttle that was decided and not told is `exceeded`, unless the client may not have been there to
    be told: its connection closed, its shard ended, its quota changed, or its shard decided the charge itself, all within
    SPAN_NS of it.
told_throttle_was_decided  The answer to mutations tells what is left of the last throttle of its topics, so it need only fit
    within a throttle that was decided. A throttle of mutations that was decided is looked for only if its charge was permissive,
    and it is of LONG_MS or more: that one is told for certain.

Delays by the throughput limits of a node, and by client quotas of Redpanda's semantics, are not judged: what counted for them is
not in the journal.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow
import pyarrow.compute

from broker.journal.schema import CALLBACKS_QUOTA, REDPANDAS_QUOTA, STAND_IN
from shards.limits.client_quota_managers import MUTATION, REQUEST
from shards.limits.node_throughput import NODE_LIMITS
from shards.limits.quota_entities import CLIENT_KEYS
from shards.limits.short_names import short_name
from turnstile.pipeline.audit.audit_result import EXCEEDED, NOT_JUSTIFIED, UNKNOWN
from turnstile.pipeline.audit.quota_findings import Findings, client
from turnstile.pipeline.audit.quota_rows import READ, placed_detail
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.events.rows import Rows

THROTTLES = "quota_throttles"
SPAN_NS = 2_000_000_000
LONG_MS = 5_000
MS = 1_000_000


class Context(NamedTuple):
    """The facts that may have kept a shard from telling a throttle.

    lives     (broker, shard) -> the first and last mono_ns of each incarnation, in order
    changes   when versions were stored
    unsure    brokers of which events are missing
    """

    lives: Mapping[tuple[int, int], Sequence[tuple[int, int]]]
    changes: Sequence[int]
    unsure: frozenset[int]


def throttling(events: Rows) -> Rows:
    """The `throttled` and `charge` events that throttle, the stand-ins' charges, and the closes; with short names."""
    return events.of_kinds(("throttled", "charge", "closed"), READ).each(_throttling, _SCHEMA)


_SCHEMA = pyarrow.schema(
    [
        ("kind", pyarrow.string()),
        ("broker", pyarrow.int32()),
        ("shard", pyarrow.int32()),
        *((name, pyarrow.int64()) for name in ("epoch", "seq", "mono_ns", "bytes", "version")),
        ("throttle_ms", pyarrow.int32()),
        ("limit_value", pyarrow.float64()),
        *((name, pyarrow.string()) for name in ("reason", "user", "client_id", "limit", "detail")),
    ]
)


def _throttling(table: pyarrow.Table) -> pyarrow.Table:
    is_close = arrays.is_one_of(table, "kind", ("closed",))
    throttles = arrays.numbers(table, "throttle_ms") > 0
    kept = table.filter(pyarrow.array(is_close | throttles | arrays.is_one_of(table, "reason", (STAND_IN,))))
    names = {}
    for name in ("user", "client_id"):
        code, texts = arrays.codes(kept, name)
        names[name] = pyarrow.array([short_name(text or "") for text in texts]).take(pyarrow.array(code))
    same = {name: kept[name] for name in _SCHEMA.names if name not in names}
    return arrays.table_of(_SCHEMA, **same, **names)


def told(context: Context, table: pyarrow.Table) -> pyarrow.Table:
    """FOUND of all such events of some clients."""
    found = Findings()
    broker = arrays.numbers(table, "broker")
    (user, _), (name, _) = arrays.codes(table, "user"), arrays.codes(table, "client_id")
    order, starts = arrays.grouped(broker, user, name)
    ends = [*starts[1:], len(order)] if len(starts) else []
    rows = table.take(pyarrow.array(order))
    is_throttle = ~arrays.is_one_of(rows, "kind", ("closed",))
    for first, end in zip(starts, ends, strict=True):
        if is_throttle[first:end].any():
            _Client(context, found).judge(rows.slice(first, end - first).to_pylist())
    return found.table()


class _Client:
    """All throttles of one client at a broker."""

    def __init__(self, context: Context, found: Findings) -> None:
        self._context = context
        self._found = found
        self._is_blurred = False  # a charge can't be read

    def judge(self, rows: list[TableRow]) -> None:
        told = [
            row
            for row in rows
            if row["kind"] == "throttled" and (row["throttle_ms"] or 0) > 0 and not _is_unjudged(row["limit"])
        ]
        charges = [row for row in rows if row["kind"] == "charge"]
        throttles = [row for row in charges if row["throttle_ms"] > 0]
        self._is_blurred = any(not placed_detail(row["detail"]) or row["limit"] not in CLIENT_KEYS for row in charges)
        self._found.looked_at(THROTTLES, "throttles", rows[0]["broker"], len(told))
        exact: dict[tuple[Any, ...], list[TableRow]] = defaultdict(list)
        for row in throttles:
            if row["limit"] != MUTATION:
                exact[_key(row, placed_detail(row["detail"]).get("asker", -1))].append(row)
        for row in told:
            same = exact[_key(row, row["shard"])]
            if row["limit"] == MUTATION:
                if not any(_covers(charge, row) for charge in throttles):
                    self._unjustified(row)
            elif not same:
                self._unjustified(row)
            else:
                self._judge_limit(row, same.pop())
        closes = [row["mono_ns"] for row in rows if row["kind"] == "closed"]
        alone = defaultdict(list)
        for row in charges:
            if row["reason"] == STAND_IN:
                alone[row["limit"], row["shard"]].append(row["mono_ns"])
        mutations = [row for row in told if row["limit"] == MUTATION]
        for row in throttles:
            if row["limit"] == MUTATION:
                self._untold_mutation(row, mutations, closes)
        for row in (each for left in exact.values() for each in left):
            self._untold(row, closes, alone)

    def _judge_limit(self, row: TableRow, charge: TableRow) -> None:
        """An answer tells the quota of its shard's version; while a change is under way that may be another than the meter's."""
        if row["version"] == charge["version"] and row["limit_value"] != charge["limit_value"]:
            why = f"{client(row)} was throttled by {row['limit']}={row['limit_value']}, and charged under {charge['limit_value']:g}"
            self._add(NOT_JUSTIFIED, why, row)

    def _unjustified(self, row: TableRow) -> None:
        why = f"{client(row)} was throttled for {row['throttle_ms']:,} ms by {row['limit']}, and no meter decided that"
        self._add(NOT_JUSTIFIED, why, row)

    def _untold(self, row: TableRow, closes: Sequence[int], alone: Mapping[Any, Sequence[int]]) -> None:
        asker = placed_detail(row["detail"]).get("asker", -1)
        at_ns = row["mono_ns"]
        own = alone.get((row["limit"], asker), ()) if row["reason"] != STAND_IN else ()
        if not self._may_be_untold(row, asker, closes) and not any(abs(each - at_ns) <= SPAN_NS for each in own):
            self._missing(row)

    def _untold_mutation(self, row: TableRow, told: Sequence[TableRow], closes: Sequence[int]) -> None:
        detail = placed_detail(row["detail"])
        if detail.get("strict") or row["bytes"] <= 0 or row["throttle_ms"] < LONG_MS:
            return
        at_ns, until_ns = row["mono_ns"], row["mono_ns"] + row["throttle_ms"] * MS + SPAN_NS
        is_told = any(at_ns - MS <= each["mono_ns"] <= until_ns for each in told)
        late = any(at_ns <= each <= until_ns for each in closes)
        if not is_told and not late and not self._may_be_untold(row, detail.get("asker", -1), closes):
            self._missing(row)

    def _missing(self, row: TableRow) -> None:
        why = f"{client(row)} was to be throttled for {row['throttle_ms']:,} ms by {row['limit']}, and was not told"
        self._add(EXCEEDED, why, row)

    def _may_be_untold(self, row: TableRow, asker: int, closes: Sequence[int]) -> bool:
        """True if its client, connection, shard or quota may have gone before it was told (decided_throttle_is_told)."""
        at_ns = row["mono_ns"]
        lives = self._context.lives.get((row["broker"], asker), ())
        last_ns = max((last_ns for first_ns, last_ns in lives if first_ns <= at_ns + MS), default=0)
        return (
            any(abs(each - at_ns) <= SPAN_NS for each in closes)
            or last_ns <= at_ns + SPAN_NS
            or any(abs(each - at_ns) <= SPAN_NS for each in self._context.changes)
        )

    def _add(self, verdict: str, why: str, row: TableRow) -> None:
        if self._is_blurred or row["broker"] in self._context.unsure:
            verdict, why = UNKNOWN, f"{why}; but events are missing, or can't be read"
        self._found.add(THROTTLES, verdict, why, {**row, "at_ns": row["mono_ns"], "quota": row["limit"]})


def _is_unjudged(limit: str | None) -> bool:
    return limit in NODE_LIMITS or (limit or "").startswith((REDPANDAS_QUOTA, CALLBACKS_QUOTA))


def _key(row: TableRow, asker: int) -> tuple[Any, ...]:
    """The fields that the two events of one throttle have in common. Handler time is told in whole milliseconds, and is left
    out."""
    amount = None if row["limit"] == REQUEST else row["bytes"]
    return asker, row["limit"], row["mono_ns"], row["throttle_ms"], amount, row["reason"] == STAND_IN


def _covers(charge: TableRow, told: TableRow) -> bool:
    """True if what an answer told of mutations is what was left of that charge's throttle (told_throttle_was_decided)."""
    if charge["limit"] != MUTATION or told["throttle_ms"] > charge["throttle_ms"]:
        return False
    passed_ns = (charge["throttle_ms"] - told["throttle_ms"]) * MS
    return bool(-MS <= told["mono_ns"] - charge["mono_ns"] <= passed_ns + SPAN_NS)
