"""A journal's parts as rows on Spark: each part is read once, by a task that sends its events to their slices of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

import numpy
import pyarrow

from turnstile.pipeline.errors import WORKERS_SEE_NO, PipelineError
from turnstile.pipeline.events.blobs import packed, parted
from turnstile.pipeline.events.journal import before_late, read_part
from turnstile.pipeline.events.parts import Span, name_of
from turnstile.pipeline.events.sequence import Incarnation
from turnstile.pipeline.events.spark_rows import Piece, RowsOnSpark, Slices
from turnstile.pipeline.paths_and_uris import as_read

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import Row, SparkSession

SLICE_ROWS = 1_000_000
LEAST_ROWS = 250_000
"""The least rows of a slice, so that a task is worth its start."""
POINTS = 16
Source = tuple[int, str, bytes | None]
"""A part's number, its place, and what is in it where workers can't read it there."""


class Sources(NamedTuple):
    """The parts of a journal by where they are: on a folder that workers see, at URIs, and with this process alone."""

    near: list[str]
    far: list[str]
    sent: list[str]


def cut(spans: Iterable[Span], *, least: int) -> Slices:
    """Slices with about as many events each, at least so many, of what the parts say of themselves."""
    spans = list(spans)
    rows = sum(span.rows for span in spans)
    count = max(min(least, rows // LEAST_ROWS), rows // SLICE_ROWS, 1)
    if count == 1:
        return Slices(())
    points = numpy.concatenate([numpy.linspace(span.low, span.high, POINTS) for span in spans])
    weights = numpy.repeat([span.rows / POINTS for span in spans], POINTS)
    order = numpy.argsort(points)
    until = numpy.cumsum(weights[order]) / weights.sum()
    places = numpy.searchsorted(until, numpy.arange(1, count) / count)
    return Slices(tuple(sorted({int(each) for each in points[order][places]})))


def rows_of(
    spark: SparkSession, sources: Sources, columns: pyarrow.Schema, slices: Slices, rows: int,
    late: Mapping[Incarnation, int],
) -> RowsOnSpark:  # fmt: skip
    """The events of all parts. `late`: incarnation -> the first of its numbers that is left out."""
    pieces = _parts(spark, sources, rows).mapPartitions(partial(_cut, columns, slices, dict(late)))
    return RowsOnSpark(pieces.partitionBy(slices.number, int).values(), columns, slices, rows)


def _parts(spark: SparkSession, sources: Sources, rows: int) -> RDD[Source]:
    """The parts of a journal, in tasks."""
    context = spark.sparkContext
    given = [*((place, None) for place in sources.near), *((place, Path(place).read_bytes()) for place in sources.sent)]
    parts = [(number, place, content) for number, (place, content) in enumerate(given)]
    tasks = max(context.defaultParallelism, rows // LEAST_ROWS)
    found = context.parallelize(parts, max(1, min(len(parts), tasks)))
    if not sources.far:
        return found
    numbers = {name_of(place): number for number, place in enumerate(sources.far, start=len(parts))}
    files = spark.read.format("binaryFile").load([as_read(place) for place in sources.far]).select("path", "content")
    return found.union(files.rdd.map(partial(_of_file, numbers)))


def _of_file(numbers: Mapping[str, int], row: Row) -> Source:
    return numbers[name_of(unquote(row["path"]))], row["path"], bytes(row["content"])


def _cut(
    columns: pyarrow.Schema, slices: Slices, late: Mapping[Incarnation, int], sources: Iterable[Source]
) -> Iterator[tuple[int, Piece]]:
    """The events of parts, each for the task of its slice. A part that is damaged has none, so that they are missing."""
    for number, place, content in sources:
        try:
            table = read_part(place if content is None else pyarrow.BufferReader(content), columns)
        except FileNotFoundError:
            raise PipelineError(WORKERS_SEE_NO.format(name=place)) from None
        except (OSError, pyarrow.ArrowException):
            continue
        table = before_late(table, late)
        for task, part in parted(table, slices.of(table)):
            yield task, (number, packed(part))
