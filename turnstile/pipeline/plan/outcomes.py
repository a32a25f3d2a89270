"""Candidates over a whole log on Spark: what each would have refused or delayed, and how greedy addresses are, as TELLS.

What only limits addresses is replayed in parallel, many addresses in one task, all candidates in one pass. One address's
replay is sequential by nature, so an address with half of all connections is half of the work of one task. A broker-wide
cap alone is one sequential pass for all its values; a combination with a broker-wide limit is one sequential pass each,
side by side. Only sums leave a task (task_sums.py).
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy
import pyarrow
import pyarrow.compute
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from turnstile.pipeline.plan import what_if
from turnstile.pipeline.plan.candidates import Candidate
from turnstile.pipeline.plan.task_sums import TELLS, Incident, Part, TaskSums

ROWS_PER_TASK = 1_000_000
Batches = Iterator[pyarrow.RecordBatch]


def outcomes(
    arrived: DataFrame, candidates: Sequence[Candidate], count: int, incident: Incident | None = None
) -> DataFrame:
    """TELLS of a log, added up over all tasks. `arrived`: `count` rows of ARRIVALS."""
    numbered = list(enumerate(candidates))
    each = [(number, candidate) for number, candidate in numbered if candidate.is_per_ip]
    totals = [(number, candidate) for number, candidate in numbered if candidate.is_broker_cap_alone]
    rest = [pair for pair in numbered if pair not in each and pair not in totals]
    # The order of the log decides between connections of one instant.
    rows = arrived.withColumn("row", F.monotonically_increasing_id())
    told = _by_address(rows, each, count, incident)
    if totals:
        told = told.unionByName(_by_broker(rows, totals, incident))
    if rest:
        told = told.unionByName(_by_gate(rows, rest, incident))
    return told.groupBy("what", "candidate", "name", "number").agg(F.sum("n").alias("n"))


def caps(candidate: Candidate, names: Sequence[str]) -> what_if.Array | None:
    """A candidate's cap for each address; None when it has none for any. NEVER: none for this one."""
    limits = candidate.connection_limits()
    if limits.same_for_all_ips:
        cap = limits.ip_default.cap
        return None if cap is None else numpy.full(len(names), cap, dtype="i8")
    own = (limits.rule_of(f"ip:{name}").cap for name in names)
    return numpy.fromiter((what_if.NEVER if cap is None else cap for cap in own), dtype="i8", count=len(names))


def _by_address(
    rows: DataFrame, candidates: Sequence[tuple[int, Candidate]], count: int, incident: Incident | None
) -> DataFrame:
    parallelism = rows.sparkSession.sparkContext.defaultParallelism
    tasks = max(parallelism, -(-count // ROWS_PER_TASK))

    def decide(batches: Batches) -> Batches:
        table = _sorted(batches, by_ip=True)
        if table is None:
            return
        part = _part(table)
        tally = TaskSums(part, incident)
        levels, refused = what_if.by_address(
            part.ips, part.opened_us, part.closed_us, candidates, lambda candidate: caps(candidate, part.names)
        )
        for number, indices in refused:
            tally.refused(number, indices)
            tally.affected(number, indices)
        tally.addresses(levels)
        yield tally.batch()

    spread = rows.select("ip", "opened_us", "closed_us", "row").repartition(tasks, "ip")
    return spread.mapInArrow(decide, TELLS)


def _by_broker(rows: DataFrame, candidates: Sequence[tuple[int, Candidate]], incident: Incident | None) -> DataFrame:
    def decide(batches: Batches) -> Batches:
        table = _sorted(batches, by_ip=False)
        if table is None:
            return
        part = _part(table)
        tally = TaskSums(part, incident)
        levels = what_if.levels(part.opened_us, part.closed_us)
        for number, candidate in candidates:
            indices = numpy.flatnonzero(levels > candidate.broker_cap)
            tally.refused(number, indices)
            tally.affected(number, indices)
        tally.broker(levels)
        yield tally.batch()

    return rows.select("ip", "opened_us", "closed_us", "row").repartition(1).mapInArrow(decide, TELLS)


def _by_gate(rows: DataFrame, candidates: Sequence[tuple[int, Candidate]], incident: Incident | None) -> DataFrame:
    by_number = dict(candidates)

    def decide(rows: pyarrow.Table) -> pyarrow.Table:
        number = rows["candidate"][0].as_py()
        table = _sorted(rows.drop(["candidate"]).to_batches(), by_ip=False)
        assert table is not None  # a group has rows
        part = _part(table)
        listeners = pyarrow.compute.dictionary_encode(table["listener"].combine_chunks())
        refused: list[int] = []
        delayed: list[int] = []
        for each in what_if.whole(
            by_number[number], part.opened_us, part.closed_us, part.ips, part.names, listeners.indices.to_numpy(),
            listeners.dictionary.to_pylist(),
        ):  # fmt: skip
            (refused if each.is_refused else delayed).append(each.row)
        tally = TaskSums(part, incident)
        tally.refused(number, numpy.array(refused, dtype="i8"))
        tally.delayed(number, numpy.array(delayed, dtype="i8"))
        tally.affected(number, numpy.array([*refused, *delayed], dtype="i8"))
        return pyarrow.Table.from_batches([tally.batch()])

    numbers = rows.sparkSession.createDataFrame([(number,) for number in by_number], "candidate int")
    each = rows.select("ip", "opened_us", "closed_us", "listener", "row").crossJoin(F.broadcast(numbers))
    return each.groupBy("candidate").applyInArrow(decide, TELLS)


def _sorted(batches: Iterable[pyarrow.RecordBatch], *, by_ip: bool) -> pyarrow.Table | None:
    """A partition as one table in order of arrival, with `ip` dictionary-coded; None when it is empty."""
    every = list(batches)
    if not sum(batch.num_rows for batch in every):
        return None
    table = pyarrow.Table.from_batches(every)
    ips = pyarrow.compute.dictionary_encode(table["ip"].combine_chunks())
    keys = [table["row"].to_numpy(), table["opened_us"].to_numpy()]
    order = numpy.lexsort((*keys, ips.indices.to_numpy()) if by_ip else tuple(keys))
    columns = {name: table[name] for name in table.column_names if name not in ("ip", "row")}
    return pyarrow.table({"ip": pyarrow.chunked_array([ips]), **columns}).take(pyarrow.array(order)).combine_chunks()


def _part(table: pyarrow.Table) -> Part:
    ips = table["ip"].chunk(0)
    closed_us = pyarrow.compute.fill_null(table["closed_us"], int(what_if.NEVER))
    return Part(
        ips.dictionary.to_pylist(), ips.indices.to_numpy(), table["opened_us"].to_numpy(), closed_us.to_numpy(),
        int(what_if.NEVER),
    )  # fmt: skip
