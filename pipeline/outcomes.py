"""Candidates over a whole log on Spark: which connections each would have refused or delayed, and every IP's levels.

What only limits addresses is replayed address by address, in parallel. One address's replay is sequential by nature, so an
address with half of all connections is half of the work of one task. A broker-wide cap alone is one sequential pass for
all its values; a combination with a broker-wide limit is one sequential pass each, side by side.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy
import pyarrow
import pyarrow.compute
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline import replay
from pipeline.candidates import Candidate

HISTOGRAM = -1
"""In place of a candidate's number: `n` connections of `ip` have level `level`."""
BROKER_HISTOGRAM = -2
"""The same for the broker as one pool; no ip."""
RESULT = "candidate int, ip string, opened_us long, row long, level long, n long, reason string, is_refused boolean"
ARRIVALS = ("ip", "opened_us", "closed_us", "listener", "row")
ROWS_PER_TASK = 1_000_000
Table = pyarrow.Table
Array = numpy.ndarray[Any, Any]


def arrivals(connections: DataFrame) -> DataFrame:
    """CONNECTIONS -> ARRIVALS; `row` is the log's order."""
    return connections.select(
        "ip",
        F.unix_micros("opened_at").alias("opened_us"),
        F.coalesce(F.unix_micros("closed_at"), F.lit(int(replay.NEVER))).alias("closed_us"),
        "listener",
        F.monotonically_increasing_id().alias("row"),
    )


def outcomes(arrived: DataFrame, candidates: Sequence[Candidate], count: int) -> DataFrame:
    """RESULT: a row per refused or delayed connection and candidate, and the histograms. `count` rows of ARRIVALS."""
    numbered = list(enumerate(candidates))
    each = [(number, candidate) for number, candidate in numbered if candidate.is_per_ip]
    totals = [(number, candidate) for number, candidate in numbered if candidate.is_broker_cap_alone]
    rest = [pair for pair in numbered if pair not in each and pair not in totals]
    found = _by_address(arrived, each, count)
    if totals:
        found = found.unionByName(_by_broker(arrived, totals))
    if rest:
        found = found.unionByName(_by_gate(arrived, rest))
    return found


def _by_address(arrived: DataFrame, candidates: Sequence[tuple[int, Candidate]], count: int) -> DataFrame:
    parallelism = arrived.sparkSession.sparkContext.defaultParallelism
    tasks = max(parallelism, -(-count // ROWS_PER_TASK))

    def decide(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        table = _sorted(batches, by_ip=True)
        if table is not None:
            yield from _decide_addresses(table, candidates)

    spread = arrived.select(*ARRIVALS).repartition(tasks, "ip")
    return spread.mapInArrow(decide, RESULT)


def _decide_addresses(table: Table, candidates: Sequence[tuple[int, Candidate]]) -> Iterator[pyarrow.RecordBatch]:
    codes = table["ip"].chunk(0).indices.to_numpy()
    names = table["ip"].chunk(0).dictionary.to_pylist()
    opened_us, closed_us, row = (table[name].to_numpy() for name in ("opened_us", "closed_us", "row"))
    starts = numpy.flatnonzero(numpy.concatenate(([True], codes[1:] != codes[:-1])))
    ends = numpy.append(starts[1:], len(codes))
    settings = {number: candidate.settings(["L"]) for number, candidate in candidates}
    caps = {id(candidate): settings[number] for number, candidate in candidates}
    free = numpy.ones(len(codes), dtype="i8")
    out = _Rows()
    # A single connection is level 1 and within any rate: only a cap of 0 could refuse it.
    is_trivial = (ends - starts == 1) & (not _any_zero(candidates))
    for start, end in zip(starts[~is_trivial].tolist(), ends[~is_trivial].tolist(), strict=True):
        part = slice(start, end)
        ip = names[codes[start]]
        free[part], refused = replay.per_ip(
            opened_us[part], closed_us[part], candidates, lambda candidate, ip=ip: caps[id(candidate)].ip_cap(ip).cap
        )
        for number, reason, indices in refused:
            out.refused(number, ip, opened_us[part][indices], row[part][indices], reason)
        if len(out) > 100_000:
            yield out.batch()
    out.histogram(HISTOGRAM, codes, names, free)
    yield out.batch()


def _any_zero(candidates: Iterable[tuple[int, Candidate]]) -> bool:
    return any(
        candidate.per_ip_cap == 0 or candidate.ip_rate == 0 or ":0" in candidate.overrides
        for _, candidate in candidates
    )


def _by_broker(arrived: DataFrame, candidates: Sequence[tuple[int, Candidate]]) -> DataFrame:
    def decide(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        table = _sorted(batches, by_ip=False)
        if table is None:
            return
        opened_us, row = table["opened_us"].to_numpy(), table["row"].to_numpy()
        levels = replay.levels(opened_us, table["closed_us"].to_numpy())
        ips = table["ip"].chunk(0)
        out = _Rows()
        for number, candidate in candidates:
            for indices in _chunks(numpy.flatnonzero(levels > candidate.broker_cap)):
                out.refused(number, ips.take(pyarrow.array(indices)), opened_us[indices], row[indices], "broker_cap")
                yield out.batch()
        out.histogram(BROKER_HISTOGRAM, numpy.zeros(len(levels), dtype="i4"), [None], levels)
        yield out.batch()

    return arrived.select(*ARRIVALS).repartition(1).mapInArrow(decide, RESULT)


def _by_gate(arrived: DataFrame, candidates: Sequence[tuple[int, Candidate]]) -> DataFrame:
    by_number = dict(candidates)

    def decide(table: Table) -> Table:
        number = table["candidate"][0].as_py()
        table = _sorted(table.drop(["candidate"]).to_batches(), by_ip=False)
        opened_us, row = table["opened_us"].to_numpy(), table["row"].to_numpy()
        ips, listeners = table["ip"].chunk(0), pyarrow.compute.dictionary_encode(table["listener"].combine_chunks())
        decisions = list(
            replay.whole(
                by_number[number], opened_us, table["closed_us"].to_numpy(), ips.indices.to_numpy(),
                ips.dictionary.to_pylist(), listeners.indices.to_numpy(), listeners.dictionary.to_pylist(),
            )
        )  # fmt: skip
        out = _Rows()
        for is_refused, reason in sorted({(each.is_refused, each.reason) for each in decisions}):
            mine = [each.index for each in decisions if (each.is_refused, each.reason) == (is_refused, reason)]
            indices = numpy.array(mine, dtype="i8")
            out.refused(number, ips.take(pyarrow.array(indices)), opened_us[indices], row[indices], reason, is_refused)
        return pyarrow.Table.from_batches([out.batch()])

    numbers = arrived.sparkSession.createDataFrame([(number,) for number in by_number], "candidate int")
    each = arrived.select(*ARRIVALS).crossJoin(F.broadcast(numbers))
    return each.groupBy("candidate").applyInArrow(decide, RESULT)


def _sorted(batches: Iterable[pyarrow.RecordBatch], *, by_ip: bool) -> Table | None:
    """A partition as one table in order of arrival, with `ip` dictionary-coded; None when it is empty."""
    table = Table.from_batches(batches) if (batches := list(batches)) else None
    if table is None or not table.num_rows:
        return None
    ips = pyarrow.compute.dictionary_encode(table["ip"].combine_chunks())
    keys = [table["row"].to_numpy(), table["opened_us"].to_numpy()]
    order = numpy.lexsort((*keys, ips.indices.to_numpy()) if by_ip else tuple(keys))
    columns = {name: table[name] for name in table.column_names if name != "ip"}
    return pyarrow.table({"ip": pyarrow.chunked_array([ips]), **columns}).take(pyarrow.array(order)).combine_chunks()


def _chunks(indices: Array) -> Iterator[Array]:
    for start in range(0, len(indices), 100_000):
        yield indices[start : start + 100_000]


class _Rows:
    """Rows of RESULT being gathered, column by column."""

    def __init__(self) -> None:
        self._batches: list[Table] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def refused(self, number: int, ip: Any, opened_us: Array, row: Array, reason: str, is_refused: bool = True) -> None:
        """Connections that a candidate refuses or delays; `ip` is one for all, or an array."""
        count = len(row)
        ips = pyarrow.array([ip]).take(pyarrow.array(numpy.zeros(count, dtype="i8"))) if isinstance(ip, str) else ip
        nothing = pyarrow.nulls(count, pyarrow.int64())
        self._add(
            count, number, ips, pyarrow.array(opened_us), pyarrow.array(row), nothing, nothing, reason, is_refused
        )

    def histogram(self, number: int, codes: Array, names: Sequence[str | None], levels: Array) -> None:
        """How many connections of each name have each level."""
        width = int(levels.max()) + 1
        both, counts = numpy.unique(codes.astype("i8") * width + levels, return_counts=True)
        ips = pyarrow.array(names, pyarrow.string()).take(pyarrow.array(both // width))
        nothing = pyarrow.nulls(len(both), pyarrow.int64())
        self._add(
            len(both), number, ips, nothing, nothing, pyarrow.array(both % width), pyarrow.array(counts), "", False
        )

    def batch(self) -> pyarrow.RecordBatch:
        """Everything so far, and start anew."""
        table = pyarrow.concat_tables([_schema().empty_table(), *self._batches]).combine_chunks()
        self._batches, self._count = [], 0
        return table.to_batches()[0] if table.num_rows else pyarrow.RecordBatch.from_pylist([], schema=_schema())

    def _add(self, count: int, number: int, ips: Any, *columns: Any) -> None:
        *arrays, reason, is_refused = columns
        plain = ips.dictionary.take(ips.indices) if pyarrow.types.is_dictionary(ips.type) else ips
        constants = [pyarrow.repeat(reason, count), pyarrow.repeat(is_refused, count)]
        rows = [pyarrow.array(numpy.full(count, number, dtype="i4")), plain, *arrays, *constants]
        self._batches.append(Table.from_arrays(rows, schema=_schema()))
        self._count += count


def _schema() -> pyarrow.Schema:
    kinds = {"string": pyarrow.string(), "int": pyarrow.int32(), "long": pyarrow.int64(), "boolean": pyarrow.bool_()}
    return pyarrow.schema([(name, kinds[kind]) for name, kind in (field.split() for field in RESULT.split(", "))])
