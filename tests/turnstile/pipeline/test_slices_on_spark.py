"""Tampered journals on Spark, in 1, 2, 7 and 40 slices: the same verdict, evidence and counts as in one process.

By default these are the honest journals and a sample of the tamperings, with each check and each way to tamper: a quarter of
them is cut into each number of slices. With TURNSTILE_ALL_SLICES=1 (`make slices`) every tampering is cut into every number.
Tasks run the functions of the pipeline in Spark's Python workers (batched_rdd.py).
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow
import pytest
import tampering
from batched_rdd import Batch
from slice_cuts import ALL, CARRIED, SLICES, bounds, sample
from storms import write
from tampering import HELD, Tampering
from tampering_table import TABLE

from turnstile.pipeline.audit.audit import audit
from turnstile.pipeline.events import spark_rows
from turnstile.pipeline.events.journal import EVENTS, Journal, here
from turnstile.pipeline.events.sent_tables import SentTables
from turnstile.pipeline.events.spark_journal import Sources, rows_of
from turnstile.pipeline.events.spark_rows import Slices

PARTS = 3
JOURNALS = ("caps", "tokens", "rates", "quotas")
CASES = [*(Tampering(f"honest {name}", name, list, HELD) for name in JOURNALS), *(TABLE if ALL else sample(TABLE))]
TURNS = range(len(SLICES) if ALL else 1)


class Written:
    """A tampered journal in a folder, and what one process says of it."""

    def __init__(self, case: Tampering, folder: Path) -> None:
        self.case = case
        self.events = case.how(tampering.copied(case.journal))
        self.folder = folder
        write(folder, self.events, parts=PARTS)
        journal = here([folder])
        assert journal is not None
        self.whole = audit(journal).as_json()
        assert self.whole["verdict"] == case.verdict

    def in_slices(self, batch: Batch, slices: int) -> Callable[[], Any]:
        """The audit of the same in slices of time, on Spark."""
        return partial(self._judged, SimpleNamespace(sparkContext=batch), slices)

    def _judged(self, spark: Any, slices: int) -> Any:
        cuts = Slices(tuple(bounds(self.events, slices, self.case.name)))
        assert cuts.number == slices
        parts = Sources([str(path) for path in sorted(self.folder.iterdir())], [], [])
        rows = rows_of(spark, parts, EVENTS, cuts, len(self.events), {})
        return audit(Journal(rows, [], is_live=False)).as_json()


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_rows, "TASK_ROWS", 50)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[Written]:
    folder = tmp_path_factory.mktemp("tampered")
    return [Written(case, folder / str(number)) for number, case in enumerate(CASES)]


@pytest.mark.parametrize("turn", TURNS)
def test_spark_judges_each_tampering_in_slices_as_one_process_does(
    spark: Any, written: list[Written], turn: int
) -> None:
    batch = Batch(spark.sparkContext)
    slices = [SLICES[(number + turn) % len(SLICES)] for number in range(len(written))]
    judged = batch.made(
        {each.case.name: each.in_slices(batch, count) for each, count in zip(written, slices, strict=True)}
    )
    differ = [
        (each.case.name, count)
        for each, count in zip(written, slices, strict=True)
        if judged[each.case.name] != each.whole
    ]
    assert len(judged) == len(CASES) and not differ
    assert batch.jobs < 100


def forgotten(context: Any, tables: Iterable[pyarrow.Table]) -> SentTables:
    """In place of SentTables: the tables that are carried into the slices are empty."""
    return SentTables(context, [each.slice(0, 0) for each in tables])


def windows_end_with_slices() -> Any:
    """As `spark_rows._in_turn`, but no window goes on in the next slice. A nested function is pickled by value: workers do not have
    this module."""

    def in_turn(held: pyarrow.Schema, kernel: Any, number: int, pieces: Iterable[Any]) -> Iterator[Any]:
        slices = [[spark_rows._gathered(held, [each])] for each in sorted(pieces, key=lambda each: each[0])]
        yield number, spark_rows.packed(pyarrow.concat_tables([kernel(iter(each)) for each in slices or [[]]]))

    return in_turn


def test_slices_that_lack_what_is_carried_into_them_are_judged_otherwise(
    spark: Any, written: list[Written], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_rows, "SentTables", forgotten)
    monkeypatch.setattr(spark_rows, "_in_turn", windows_end_with_slices())
    batch = Batch(spark.sparkContext)
    whole = {each.case.name: each for each in written if each.case.name in CARRIED}
    judged = batch.made({name: each.in_slices(batch, 40) for name, each in whole.items()})
    for name, check in CARRIED.items():
        pairs = zip(judged[name]["checks"], whole[name].whole["checks"], strict=True)
        assert check in [cut["name"] for cut, uncut in pairs if cut != uncut], name
