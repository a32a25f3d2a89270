"""The counts of a journal's followers: folders of Parquet files, one for each batch, and merged so that they stay few.

    OUT/batches=0-63/     the sum of the first 64 batches
    OUT/batches=64-64/    what batch 64 adds

rows_add_up  rows add up: what there is of a key is the sum of its rows, over the folders that stand
whole_uncovered_folders_stand  a folder stands when it is whole (`_SUCCESS`) and no other whole one covers its batches; what is
    covered is deleted when the next batch comes, so that a reader that has just looked still finds it
few_folders_stand  a row is written anew log(batches) / log(MERGED) times, and fewer than MERGED folders of each size stand
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from turnstile.pipeline.errors import NoInput, PipelineError
from turnstile.pipeline.hadoop_files import HadoopFiles
from turnstile.pipeline.paths_and_uris import as_read, under

KEY = ("minute", "ip", "kind", "reason")
COUNTS = "minute timestamp, ip string, kind string, reason string, events long, throttle_ms long"
COLUMNS = tuple(column.split()[0] for column in COUNTS.split(", "))
MERGED = 64
_DONE = "_SUCCESS"


class Batches(NamedTuple):
    """A run of batches, the last included."""

    first: int
    last: int

    @property
    def folder(self) -> str:
        """The name of their folder."""
        return f"batches={self.first}-{self.last}"

    def covers(self, other: Batches) -> bool:
        """True if all of the other's are among these."""
        return self.first <= other.first and other.last <= self.last


def standing(whole: Sequence[Batches]) -> list[Batches]:
    """The folders that no other covers (whole_uncovered_folders_stand)."""
    return [each for each in whole if not any(other != each and other.covers(each) for other in whole)]


def summed(rows: DataFrame, by: Iterable[str] = KEY) -> DataFrame:
    """One row for each value of `by`, with the sums of `events` and `throttle_ms`."""
    sums = (F.sum(name).alias(name) for name in ("events", "throttle_ms"))
    return rows.groupBy(*by).agg(*sums)


class Counts:
    """The folders of `out`, a place as Spark has it."""

    def __init__(self, spark: SparkSession, out: str, *, merged: int = MERGED) -> None:
        self._spark = spark
        self._files = HadoopFiles(spark)
        self._out = out
        self._merged = merged

    def whole(self) -> list[Batches]:
        """The folders that were written to their end."""
        names = (re.fullmatch(r"batches=(\d+)-(\d+)", name) for name in self._files.names(self._out))
        found = [Batches(int(name[1]), int(name[2])) for name in names if name is not None]
        return [each for each in found if self._files.is_there(under(self._place(each), _DONE))]

    def read(self) -> DataFrame:
        """COUNTS, each key once. Raises NoInput when nothing was counted there."""
        stand = standing(self.whole())
        if not stand:
            raise NoInput(
                f"{self._out.removeprefix('file:')} has nothing that `turnstile report --follow` has counted."
            )
        return self._sum(stand)

    def add(self, rows: DataFrame, number: int) -> None:
        """Adds the counts of a batch; may be called again with the same."""
        whole = self.whole()
        stand = standing(whole)
        for each in whole:
            if each not in stand:
                self._files.delete(self._place(each))
        if not any(each.covers(Batches(number, number)) for each in stand):
            self._write(rows, Batches(number, number))
        self._merge(number)

    def _merge(self, number: int) -> None:
        """A folder for each power of `merged` of batches that ends with this one."""
        size = self._merged
        while (number + 1) % size == 0:
            all_of_them = Batches(number + 1 - size, number)
            stand = standing(self.whole())
            if not any(each.covers(all_of_them) for each in stand):
                self._write(self._sum([each for each in stand if all_of_them.covers(each)]), all_of_them)
            size *= self._merged

    def _sum(self, batches: Sequence[Batches]) -> DataFrame:
        return summed(self._spark.read.schema(COUNTS).parquet(*(as_read(self._place(each)) for each in batches)))

    def _write(self, rows: DataFrame, batches: Batches) -> None:
        place = self._place(batches)
        rows.select(*COLUMNS).sortWithinPartitions(*KEY).write.mode("overwrite").parquet(place)
        if not any(name.endswith(".parquet") for name in self._files.names(place)):
            raise PipelineError(
                f"Workers wrote to {self._out} where this machine does not see it: name a folder that all see, or a URI."
            )

    def _place(self, batches: Batches) -> str:
        return under(self._out, batches.folder)
