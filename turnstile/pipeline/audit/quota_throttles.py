"""The check `quota_throttles`: the throttle times in answers to clients are those that meters decided, no more and no fewer.

When a meter throttles a client, its shard journals a `charge` event. When the client is answered, the shard with the connection
journals a `throttled` event, dated at the instant of the charge. The check pairs the two by broker, client, quota, instant, amount
and throttle time.

decided_throttle_is_told  A `charge` that throttles and has no `throttled` event is `exceeded`. It is excused if the client may have
    been gone before the answer. So it is if its connection closed, its shard ended, the configuration changed or its shard decided
    the charge itself, within SPAN_NS of the charge.
told_throttle_was_decided  A `throttled` event without its `charge` is `not justified`. The answer to mutations has only the rest of
    a throttle time, so there it is enough that this rest fits within a throttle time that was decided. A charge of mutations needs
    its `throttled` event only if it was permissive, with a throttle time of LONG_MS or more: only then a rest is certain.

Two kinds of delay are not judged, as the journal lacks what was counted for them: those by the throughput limits of a node, and
those by client quotas of Redpanda's semantics.
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
    """The facts that may explain why a throttle time did not reach its client.

    lives     (broker, shard) -> the first and last mono_ns of each incarnation, in order
    changes   the mono_ns at which versions of the configuration were stored
    unsure    brokers whose journal lacks events
    """

    lives: Mapping[tuple[int, int], Sequence[tuple[int, int]]]
    changes: Sequence[int]
    unsure: frozenset[int]


def throttling(events: Rows) -> Rows:
    """The events that this check needs, with shortened names of clients: `throttled` and `charge` events with a throttle time, the
    charges of stand-ins, and the closes."""
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
    """The findings (FOUND) of the events of some clients. `table`: rows of `throttling`."""
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
        self._is_blurred = False  # a charge of this client can't be read

    def judge(self, rows: list[TableRow]) -> None:
        throttled = [
            row
            for row in rows
            if row["kind"] == "throttled" and (row["throttle_ms"] or 0) > 0 and not _is_unjudged(row["limit"])
        ]
        charges = [row for row in rows if row["kind"] == "charge"]
        throttles = [row for row in charges if row["throttle_ms"] > 0]
        self._is_blurred = any(not placed_detail(row["detail"]) or row["limit"] not in CLIENT_KEYS for row in charges)
        self._found.looked_at(THROTTLES, "throttles", rows[0]["broker"], len(throttled))
        exact: dict[tuple[Any, ...], list[TableRow]] = defaultdict(list)
        for row in throttles:
            if row["limit"] != MUTATION:
                exact[_key(row, placed_detail(row["detail"]).get("asker", -1))].append(row)
        for row in throttled:
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
        mutations = [row for row in throttled if row["limit"] == MUTATION]
        for row in throttles:
            if row["limit"] == MUTATION:
                self._untold_mutation(row, mutations, closes)
        for row in (each for left in exact.values() for each in left):
            self._untold(row, closes, alone)

    def _judge_limit(self, row: TableRow, charge: TableRow) -> None:
        """Compares the quota in an answer with that of the charge. While a change is under way their versions may differ."""
        if row["version"] == charge["version"] and row["limit_value"] != charge["limit_value"]:
            why = f"{client(row)} was throttled by {row['limit']}={row['limit_value']}, but charged by {charge['limit_value']:g}"
            self._add(NOT_JUSTIFIED, why, row)

    def _unjustified(self, row: TableRow) -> None:
        why = f"{client(row)} was throttled for {row['throttle_ms']:,} ms by {row['limit']}, but no meter decided that"
        self._add(NOT_JUSTIFIED, why, row)

    def _untold(self, row: TableRow, closes: Sequence[int], alone: Mapping[Any, Sequence[int]]) -> None:
        asker = placed_detail(row["detail"]).get("asker", -1)
        at_ns = row["mono_ns"]
        own = alone.get((row["limit"], asker), ()) if row["reason"] != STAND_IN else ()
        if not self._may_be_untold(row, asker, closes) and not any(abs(each - at_ns) <= SPAN_NS for each in own):
            self._missing(row)

    def _untold_mutation(self, row: TableRow, throttles: Sequence[TableRow], closes: Sequence[int]) -> None:
        detail = placed_detail(row["detail"])
        if detail.get("strict") or row["bytes"] <= 0 or row["throttle_ms"] < LONG_MS:
            return
        at_ns, until_ns = row["mono_ns"], row["mono_ns"] + row["throttle_ms"] * MS + SPAN_NS
        is_told = any(at_ns - MS <= each["mono_ns"] <= until_ns for each in throttles)
        late = any(at_ns <= each <= until_ns for each in closes)
        if not is_told and not late and not self._may_be_untold(row, detail.get("asker", -1), closes):
            self._missing(row)

    def _missing(self, row: TableRow) -> None:
        why = f"a meter throttled {client(row)} for {row['throttle_ms']:,} ms by {row['limit']}, but no answer told the client"
        self._add(EXCEEDED, why, row)

    def _may_be_untold(self, row: TableRow, asker: int, closes: Sequence[int]) -> bool:
        """True if the client may have been gone before the answer (decided_throttle_is_told)."""
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
    """The fields by which the two events of a throttle are paired. The amount is left out for request_percentage, whose handler
    time is rounded to milliseconds in one of them."""
    amount = None if row["limit"] == REQUEST else row["bytes"]
    return asker, row["limit"], row["mono_ns"], row["throttle_ms"], amount, row["reason"] == STAND_IN


def _covers(charge: TableRow, throttle: TableRow) -> bool:
    """True if a throttle time that an answer to mutations told fits within that of a charge (told_throttle_was_decided)."""
    if charge["limit"] != MUTATION or throttle["throttle_ms"] > charge["throttle_ms"]:
        return False
    passed_ns = (charge["throttle_ms"] - throttle["throttle_ms"]) * MS
    return bool(-MS <= throttle["mono_ns"] - charge["mono_ns"] <= passed_ns + SPAN_NS)
