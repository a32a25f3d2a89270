"""An RDD of this process, as far as rows on Spark (spark_rows.py) need one: the same tasks, one after the other, in any order."""

import pickle
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow

from turnstile.pipeline.events import sent_tables
from turnstile.pipeline.events.blobs import packed, parted
from turnstile.pipeline.events.spark_rows import RowsOnSpark, Slices

_FILES: dict[str, Path] = {}
_place_on_spark = sent_tables.place_of


def _place_of(name: str) -> str:
    return str(_FILES[name]) if name in _FILES else _place_on_spark(name)


sent_tables.place_of = _place_of  # tasks of an RDD of this process have their files here


class LocalContext:
    """A SparkContext."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)

    def addFile(self, path: str) -> None:
        _FILES[Path(path).name] = Path(path)

    def parallelize(self, values: Sequence[Any], count: int) -> "LocalRdd":
        return LocalRdd(self, [list(values[number::count]) for number in range(count)])


class LocalRdd:
    """Partitions. What tasks send arrives in another order than it was sent in, as on a cluster."""

    def __init__(self, context: LocalContext, partitions: list[list[Any]]) -> None:
        self.context = context
        self._partitions = partitions

    def mapPartitionsWithIndex(self, make: Callable[[int, Iterable[Any]], Iterable[Any]]) -> "LocalRdd":
        made = [list(make(number, iter(each))) for number, each in enumerate(self._partitions)]
        return LocalRdd(self.context, pickle.loads(pickle.dumps(made)))

    def partitionBy(self, count: int, number: Callable[[int], int]) -> "LocalRdd":
        found: list[list[Any]] = [[] for _ in range(count)]
        for each in self._partitions:
            for pair in each:
                found[number(pair[0])].append(pair)
        for mine in found:
            self.context.random.shuffle(mine)
        return LocalRdd(self.context, found)

    def values(self) -> "LocalRdd":
        return LocalRdd(self.context, [[value for _, value in each] for each in self._partitions])

    def union(self, other: "LocalRdd") -> "LocalRdd":
        return LocalRdd(self.context, [*self._partitions, *other._partitions])

    def persist(self, level: Any) -> "LocalRdd":
        return self

    def unpersist(self) -> None:
        """Nothing is held."""

    def collect(self) -> list[Any]:
        return [value for each in self._partitions for value in each]


def in_slices(table: pyarrow.Table, bounds: Sequence[int], *, parts: int = 3, seed: int = 0) -> RowsOnSpark:
    """Events in slices of time, as if they had been read from so many parts."""
    context, slices = LocalContext(seed), Slices(tuple(bounds))
    size = -(-table.num_rows // parts) or 1
    sent = [
        (task, (number, packed(mine)))
        for number in range(parts)
        for part in [table.slice(number * size, size)]
        for task, mine in parted(part, slices.of(part))
    ]
    pieces = LocalRdd(context, [sent]).partitionBy(slices.number, int).values()
    return RowsOnSpark(pieces, table.schema, slices, table.num_rows)  # type: ignore[arg-type]  # as far as it needs one
