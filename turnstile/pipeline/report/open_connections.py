"""The open connections of the busiest addresses over time, for the chart of a report."""

from functools import partial

import numpy
import pyarrow
import pyarrow.compute

from turnstile.pipeline.audit.connections import Ends, paired
from turnstile.pipeline.events import arrays, open_counts
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.events.survey import Survey
from turnstile.pipeline.report.sums import add, in_order, top
from turnstile.pipeline.report.time_steps import TimeSteps

SHOWN_IPS = 6
_HELD = pyarrow.schema([("ip", pyarrow.string()), ("open_ns", pyarrow.int64())])
_STEPS = pyarrow.schema(
    [("ip", pyarrow.string()), ("at", pyarrow.float64()), ("at_ns", pyarrow.int64()), ("change", pyarrow.int32())]
)
_PEAKS = pyarrow.schema(
    [("ip", pyarrow.string()), ("at", pyarrow.float64()), ("net", pyarrow.int64()), ("peak", pyarrow.int64())]
)


def open_per_ip(events: Rows, seen: Survey, steps: TimeSteps) -> pyarrow.Table:
    """A row for each step of time and each of the SHOWN_IPS addresses whose connections were open for the most time in all.

    Columns: ip, at (the step), open (the most connections at once in the step), left (the connections at its end). Connections of
    a process that died count until its last event, as in the audit.
    """
    held = paired(events, Ends.of(seen.ends(live=True), [])).kept()
    last_ns = max((each.last_ns for each in seen.processes), default=0)
    longest = partial(top, ("ip",), {"open_ns": "sum"}, SHOWN_IPS, ("-open_ns", "ip"))
    busiest = longest(held.each(partial(_open_ns, last_ns), _HELD).by(("ip",), longest, _HELD).table())
    shown = busiest["ip"].combine_chunks()
    peaks = held.each(partial(_steps, steps, shown), _STEPS).by(("ip", "at"), _peaks, _PEAKS).table()
    held.forget()
    return _levels(in_order(peaks, "ip", "at"))


def _open_ns(last_ns: int, connections: pyarrow.Table) -> pyarrow.Table:
    """The time for which admitted connections were open, summed by address."""
    is_admitted = pyarrow.array(arrays.present(connections, "admitted_ns"))
    admitted = connections.filter(is_admitted)
    end_ns = pyarrow.compute.fill_null(admitted["end_ns"], last_ns)
    open_ns = pyarrow.compute.subtract(end_ns, admitted["admitted_ns"])
    return add(("ip",), {"open_ns": "sum"}, pyarrow.table({"ip": _text(admitted["ip"]), "open_ns": open_ns})).cast(
        _HELD
    )


def _steps(steps: TimeSteps, shown: pyarrow.Array, connections: pyarrow.Table) -> pyarrow.Table:
    """Each open and each close of a connection of the shown addresses, with its step of time."""
    ip = _text(connections["ip"])
    rows = connections.set_column(connections.schema.get_field_index("ip"), "ip", ip)
    changes = open_counts.steps(rows.filter(pyarrow.compute.is_in(ip, shown)))
    at = steps.of_mono(arrays.numbers(changes, "at_ns"))
    return arrays.table_of(_STEPS, at=at, **{name: changes[name] for name in ("ip", "at_ns", "change")})


def _peaks(table: pyarrow.Table) -> pyarrow.Table:
    """For each address and step of time: the net change of its open connections, and the highest sum of changes on the way. A step
    must not be split over several tables."""
    if not table.num_rows:
        return _PEAKS.empty_table()
    (ip, names), at = arrays.codes(table, "ip"), arrays.numbers(table, "at")
    at_ns, change = arrays.numbers(table, "at_ns"), arrays.numbers(table, "change").astype("i8")
    order = numpy.lexsort((change, at_ns, at, ip))
    starts = arrays.begins(ip[order], at[order])
    run = arrays.running(change[order], starts)
    return arrays.table_of(
        _PEAKS,
        ip=[names[code] for code in ip[order][starts]],
        at=at[order][starts],
        net=numpy.add.reduceat(change[order], starts),
        peak=numpy.maximum.reduceat(run, starts),
    )


def _levels(peaks: pyarrow.Table) -> pyarrow.Table:
    """Turns changes into numbers of open connections: a step begins with the sum of the net changes before it."""
    ip, _ = arrays.codes(peaks, "ip")
    net, peak = arrays.numbers(peaks, "net"), arrays.numbers(peaks, "peak")
    left = arrays.running(net, arrays.begins(ip))
    opened = left - net + numpy.maximum(peak, 0)
    return pyarrow.table({"ip": peaks["ip"], "at": peaks["at"], "open": opened, "left": left})


def _text(column: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    return column.cast(pyarrow.string())
