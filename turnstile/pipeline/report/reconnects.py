"""The reconnects of refused clients: the time between the refusals of one address."""

from functools import partial

import numpy
import pyarrow

from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.arrays import Array
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.report.sums import first

_RECONNECTS = pyarrow.schema(
    [
        ("ip", pyarrow.string()),
        ("refused", pyarrow.int64()),
        ("median_gap_ms", pyarrow.float64()),
        ("growth", pyarrow.float64()),
    ]
)


def reconnects(events: Rows, most: int) -> pyarrow.Table:
    """The addresses refused most: ip, refused, median_gap_ms between its refusals, and growth: the median gap of their second half
    over that of the first."""
    refused = events.of_kinds(("refused",), ("ip", "mono_ns", "seq"))
    rows = refused.by(("ip",), partial(_gaps, most), _RECONNECTS).table()
    return first(rows, most, "-refused", "ip")


def _gaps(most: int, table: pyarrow.Table) -> pyarrow.Table:
    """_RECONNECTS of the addresses refused most. `table` has all rows of each of its addresses."""
    if not table.num_rows:
        return _RECONNECTS.empty_table()
    ip, names = arrays.codes(table, "ip")
    order = numpy.lexsort((arrays.numbers(table, "seq"), arrays.numbers(table, "mono_ns"), ip))
    at_ns, ip = arrays.numbers(table, "mono_ns")[order], ip[order]
    starts = arrays.begins(ip)
    sizes = numpy.diff(numpy.append(starts, len(ip)))
    ranked = sorted(range(len(starts)), key=lambda number: (-sizes[number], names[ip[starts[number]]] or ""))
    rows = []
    for number in ranked[:most]:
        gaps = numpy.diff(at_ns[starts[number] : starts[number] + sizes[number]]) / 1e6
        half = -(-int(sizes[number]) // 2) - 1  # the first refusal has no gap before it
        early, late = _median(gaps[:half]), _median(gaps[half:])
        growth = late / early if early and late is not None else None
        rows.append((names[ip[starts[number]]], int(sizes[number]), _median(gaps), growth))
    columns = zip(*rows, strict=True)
    return arrays.table_of(_RECONNECTS, **dict(zip(_RECONNECTS.names, map(list, columns), strict=True)))


def _median(values: Array) -> float | None:
    """The median; of an even number of values the lower one in the middle. None if there are no values."""
    if not len(values):
        return None
    return float(numpy.partition(values, (len(values) - 1) // 2)[(len(values) - 1) // 2])
