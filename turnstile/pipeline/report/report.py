"""A report: its tables, what changed meanwhile, the caps in force, and sums of the whole."""

import io
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypedDict

import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.events.digest import DIGEST, digest
from turnstile.pipeline.events.journal import EVENTS, Journal
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.events.set_clock import clock_set_s
from turnstile.pipeline.events.survey import Survey, survey
from turnstile.pipeline.events.timeline import Timeline
from turnstile.pipeline.events.version_limits import UNLIMITED
from turnstile.pipeline.report.report_tables import LOGGED_IN, TABLES, Source
from turnstile.pipeline.report.time_steps import TimeSteps

MARKS = 200
REPORTED = EVENTS
"""The columns that a report reads of an event."""
_FACTS = pyarrow.schema([(name, pyarrow.int64()) for name in ("events", "first_us", "last_us", "offset_ns")])


class Summary(TypedDict):
    """A summary of the journal's events. `refused_logins`: admitted connections that were refused at login for their user. `first`
    and `last`: epoch seconds, None without events. `clock_set_s`: by how much the wall clock was set meanwhile, in seconds."""

    events: int
    first: float | None
    last: float | None
    admitted: int
    refused: int
    refused_logins: int
    throttled: int
    clock_set_s: float


class _Facts(NamedTuple):
    """The number of events, the times of the first and the last in epoch seconds (None without events), and the wall clock minus
    mono_ns."""

    events: int
    first_s: float | None
    last_s: float | None
    offset_ns: int


class Built(NamedTuple):
    """A report's tables, as Arrow has them and as rows for the page, and its summary."""

    tables: dict[str, pyarrow.Table]
    rows: dict[str, list[TableRow]]
    marks: list[tuple[float, str]]
    caps: dict[str, list[tuple[float, float | None]]]
    bucket_s: float
    summary: Summary
    unreadable: list[str]


def build(journal: Journal, say: Callable[[str], None] = lambda name: None) -> Built:
    """Every table of the report over a journal's REPORTED rows. `say` is called with the name of each before it is begun."""
    say("events")
    events = journal.rows.kept()
    facts = _facts(events)
    first_s, last_s, offset_ns = facts.first_s or 0.0, facts.last_s or 0.0, facts.offset_ns
    seen = survey(events.each(digest, DIGEST).table())
    summary: Summary = {
        "events": facts.events,
        "first": facts.first_s,
        "last": facts.last_s,
        "admitted": seen.kinds["admitted"],
        "refused": seen.kinds["refused"],
        "refused_logins": 0,
        "throttled": seen.kinds["throttled"],
        "clock_set_s": clock_set_s(seen.set_ns),
    }
    steps = TimeSteps.over(first_s, last_s, offset_ns)
    source = Source(events, seen, steps)
    tables = {}
    for name, make in TABLES.items():
        say(name.replace("_", " "))
        tables[name] = make(source)
    events.forget()
    rows = {name: table.to_pylist() for name, table in tables.items()}
    summary["refused_logins"] = sum(row["count"] for row in rows["logins"] if row["outcome"] != LOGGED_IN)
    shown = list(dict.fromkeys(row["ip"] for row in rows["open_per_ip"]))
    timeline = seen.timeline()
    caps = _caps(timeline, shown, offset_ns, first_s=first_s, last_s=last_s)
    marks = _marks(seen, timeline, offset_ns)
    return Built(tables, rows, marks, caps, steps.bucket_s, summary, [part.sentence for part in journal.unreadable])


def in_files(built: Built, format: str) -> dict[str, bytes]:
    """Each table as a file, by its name, of Parquet or CSV."""
    return {f"{name}.{format}": _in_file(table, format) for name, table in built.tables.items()}


def _in_file(table: pyarrow.Table, format: str) -> bytes:
    content = io.BytesIO()
    if format == "csv":
        pyarrow.csv.write_csv(table, content)
    else:
        pyarrow.parquet.write_table(table, content)
    return content.getvalue()


def _facts(events: Rows) -> _Facts:
    parts = events.each(_facts_of, _FACTS).table()
    low, high = (pyarrow.compute.min_max(parts[name]).as_py() for name in ("first_us", "last_us"))
    first_us, last_us = low["min"], high["max"]
    return _Facts(
        events=pyarrow.compute.sum(parts["events"]).as_py() or 0,
        first_s=None if first_us is None else first_us / 1e6,
        last_s=None if last_us is None else last_us / 1e6,
        offset_ns=pyarrow.compute.max(parts["offset_ns"]).as_py() or 0,
    )


def _facts_of(table: pyarrow.Table) -> pyarrow.Table:
    span = pyarrow.compute.min_max(table["ts_us"]).as_py()
    offset_ns = pyarrow.compute.subtract(pyarrow.compute.multiply(table["ts_us"], 1000), table["mono_ns"])
    row = {"events": table.num_rows, "first_us": span["min"], "last_us": span["max"]}
    return pyarrow.Table.from_pylist([{**row, "offset_ns": pyarrow.compute.max(offset_ns).as_py()}], _FACTS)


def _marks(seen: Survey, timeline: Timeline, offset_ns: int) -> list[tuple[float, str]]:
    """(epoch seconds, text) of two kinds of marks, the first MARKS of each: a change came into force, a shard was lost."""
    first: dict[int, int] = {}
    for event in seen.told:
        if event.kind == "config":
            first.setdefault(event.version, event.at_ns)
    changes = [
        (first[version], ", ".join(timeline.changed(version))) for version in timeline.versions if version in first
    ]
    gone = [(at_ns, f"shard {shard} of broker {broker} lost") for (broker, shard, _), at_ns in seen.lost.items()]
    shown = [*[each for each in changes if each[1]][:MARKS], *sorted(gone)[:MARKS]]
    return sorted(((at_ns + offset_ns) / 1e9, text) for at_ns, text in shown)


def _caps(
    timeline: Timeline, ips: Sequence[str], offset_ns: int, *, first_s: float, last_s: float
) -> dict[str, list[tuple[float, float | None]]]:
    """The cap of each address over time, as steps; None: it has no cap from then on."""
    caps: dict[str, list[tuple[float, float | None]]] = {}
    for ip in ips:
        steps: list[tuple[float, float | None]] = []
        for number, period in enumerate(timeline.periods):
            cap = timeline.allowed(number, 0, "ip", ip)
            at = max(first_s, (period.start_ns + offset_ns) / 1e9)
            steps.append((at, float(cap) if cap < min(UNLIMITED, 2**31 - 1) else None))
        if any(cap is not None for _, cap in steps):
            caps[ip] = [*steps, (last_s, steps[-1][1])]
    return caps
