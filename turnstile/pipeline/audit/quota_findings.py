"""The findings of the checks of client quotas: rows of which each broker's first are kept, and all are counted."""

from collections import Counter
from collections.abc import Sequence
from heapq import nsmallest
from typing import Any

import pyarrow

from turnstile.pipeline.audit.audit_result import HELD, WORST_FIRST, Check
from turnstile.pipeline.events.arrays import TableRow

SHOWN = 10
FOUND = pyarrow.schema(
    [
        *((name, pyarrow.string()) for name in ("check", "verdict", "why")),
        ("broker", pyarrow.int32()),
        ("shard", pyarrow.int32()),
        *((name, pyarrow.int64()) for name in ("epoch", "seq", "at_ns")),
        *((name, pyarrow.string()) for name in ("quota", "user", "client_id")),
        ("count", pyarrow.int64()),
    ]
)
"""`count`: how many there are of that check, verdict and broker, beside the first of them; 0 beside the others. Of verdict HELD:
how many of what `why` says were looked at."""
_SHOWN_COLUMNS = [name for name in FOUND.names if name not in ("check", "verdict", "count")]


class Findings:
    """Gathers rows of FOUND."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, int], list[TableRow]] = {}
        self._counts: Counter[tuple[str, str, int]] = Counter()
        self._looked: Counter[tuple[str, str, int]] = Counter()

    def add(self, check: str, verdict: str, why: str, row: TableRow, count: int = 1) -> None:
        """One thing that was found; `row` has the columns of FOUND that say where."""
        key = check, verdict, row["broker"]
        self._counts[key] += count
        rows = self._rows.setdefault(key, [])
        rows.append({**{name: row.get(name) for name in _SHOWN_COLUMNS}, "why": why})
        if len(rows) > 100 * SHOWN:
            self._rows[key] = nsmallest(SHOWN, rows, key=_instant)

    def looked_at(self, check: str, what: str, broker: int, count: int = 1) -> None:
        """Counts things that a check has judged."""
        self._looked[check, what, broker] += count

    def table(self) -> pyarrow.Table:
        """FOUND."""
        made = [
            {"check": check, "verdict": HELD, "why": what, "broker": broker, "count": count}
            for (check, what, broker), count in self._looked.items()
        ]
        for key, rows in self._rows.items():
            check, verdict, _ = key
            for number, row in enumerate(nsmallest(SHOWN, rows, key=_instant)):
                made.append({**row, "check": check, "verdict": verdict, "count": 0 if number else self._counts[key]})
        return pyarrow.Table.from_pylist(made, FOUND)


def check_of(name: str, rows: Sequence[TableRow], if_held: str) -> Check:
    """The check of that name. `if_held`: what it says when nothing was found, with {what} for how many were looked at."""
    faults = [row for row in rows if row["check"] == name and row["verdict"] != HELD]
    if not faults:
        looked: Counter[str] = Counter()
        for row in rows:
            if row["check"] == name:
                looked[row["why"]] += row["count"]
        return Check(
            name, HELD, if_held.format_map(_Counted({what: f"{count:,}" for what, count in looked.items()})), []
        )
    verdict = next(each for each in WORST_FIRST if any(row["verdict"] == each for row in faults))
    counts: Counter[int] = Counter()
    shown = []
    for row in faults:
        if row["verdict"] == verdict:
            counts[row["broker"]] += row["count"]
            shown.append({key: row[key] for key in _SHOWN_COLUMNS})
    shown = nsmallest(SHOWN, shown, key=_instant)
    more = f" (and {counts.total() - 1} more)" if counts.total() > 1 else ""
    return Check(name, verdict, f"{shown[0]['why']}{more}", shown, +counts)


class _Counted(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "0"


def _instant(row: TableRow) -> tuple[Any, ...]:
    return row["at_ns"] or 0, row["broker"], row["shard"] or 0, row["epoch"] or 0, row["seq"] or 0


def client(row: TableRow, user: str = "user", client_id: str = "client_id") -> str:
    """A client or a meter as a sentence names it."""
    of = [f"user={row[user]}"] if row[user] else []
    of += [f"client-id={row[client_id]}"] if row[client_id] else []
    return ", ".join(of) or "a client without names"
