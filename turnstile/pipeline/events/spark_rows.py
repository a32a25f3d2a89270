"""Rows on Spark (rows.py): each kernel is a task's work, on its executors."""

from collections.abc import Iterator, Sequence

import pyarrow
import pyarrow.compute
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from turnstile.pipeline.events import spark_sweep, sweep
from turnstile.pipeline.events.rows import Carry, Kernel, Rows
from turnstile.pipeline.fetch import fetch

TASK_ROWS = 500_000
_TASK = "task"


class RowsOnSpark:
    """A DataFrame. `rows`: about how many there are, for the number of tasks."""

    def __init__(self, frame: DataFrame, rows: int) -> None:
        self.frame = frame
        self._rows = rows

    def of_kinds(self, kinds: Sequence[str], columns: Sequence[str]) -> Rows:
        return self._with(self.frame.where(F.col("kind").isin(*kinds)).select(*columns))

    def each(self, kernel: Kernel, schema: pyarrow.Schema) -> Rows:
        def run(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            for batch in batches:
                yield from kernel(pyarrow.Table.from_batches([batch])).to_batches()

        return self._with(self.frame.mapInArrow(run, sweep.ddl(schema)))

    def by(self, keys: Sequence[str], kernel: Kernel, schema: pyarrow.Schema) -> Rows:
        def run(table: pyarrow.Table) -> pyarrow.Table:
            return kernel(table.drop_columns([_TASK]))

        tasks = max(1, self._rows // TASK_ROWS)
        task = F.pmod(F.xxhash64(*keys), F.lit(tasks))
        return self._with(self.frame.withColumn(_TASK, task).groupBy(_TASK).applyInArrow(run, sweep.ddl(schema)))

    def by_in_time(self, keys: Sequence[str], kernel: Kernel, schema: pyarrow.Schema, carry: Carry) -> Rows:
        steps, _ = spark_sweep.sliced(self.frame, rows=self._rows, keys=keys)
        if "is_hot" not in steps.columns:
            return self.by(keys, kernel, schema)
        hot = steps.where("is_hot").drop("is_hot")
        ends = fetch(hot.groupBy("slice").applyInArrow(_of_slice(carry.ends), f"slice int, {sweep.ddl(carry.schema)}"))
        numbers = sorted(ends["slice"].unique().to_pylist())
        each = [ends.filter(pyarrow.compute.equal(ends["slice"], number)).drop_columns(["slice"]) for number in numbers]
        carried = dict(zip(numbers, carry.carried(each), strict=True))

        def run(table: pyarrow.Table) -> pyarrow.Table:
            before = carried[table["slice"][0].as_py()]
            rows = table.drop_columns(["slice"])
            return kernel(pyarrow.concat_tables([before, rows.cast(before.schema)]))

        found = hot.groupBy("slice").applyInArrow(run, sweep.ddl(schema))
        rest = self._with(steps.where(~F.col("is_hot")).drop("is_hot", "slice"))
        return rest.by(keys, kernel, schema).and_(self._with(found))

    def swept(
        self, kinds: Sequence[str], judge: sweep.Judge, schema: pyarrow.Schema, *, closes_first: bool
    ) -> pyarrow.Table:
        steps, slices = spark_sweep.sliced(self.frame, rows=self._rows)
        return fetch(spark_sweep.judged(steps, slices, kinds, judge, schema, closes_first=closes_first)).cast(schema)

    def and_(self, other: Rows) -> Rows:
        assert isinstance(other, RowsOnSpark)
        return RowsOnSpark(self.frame.unionByName(other.frame), self._rows)

    def kept(self) -> Rows:
        return self._with(self.frame.persist(StorageLevel.MEMORY_AND_DISK))

    def forget(self) -> None:
        self.frame.unpersist()

    def table(self) -> pyarrow.Table:
        return fetch(self.frame)

    def _with(self, frame: DataFrame) -> "RowsOnSpark":
        return RowsOnSpark(frame, self._rows)


def _of_slice(kernel: Kernel) -> Kernel:
    """The same, with the number of the slice beside each row."""

    def run(table: pyarrow.Table) -> pyarrow.Table:
        found = kernel(table.drop_columns(["slice"]))
        number = pyarrow.repeat(table["slice"][0], found.num_rows)
        return found.add_column(0, "slice", number)

    return run
