"""One journal, cut into any number of slices of time: the same verdict, evidence and counts as in one piece.

Cuts lie where they hurt: at kills, at changes of the configuration, and between events of one instant. By default each tampering is
cut into one number of slices, one in sixteen into the most, as 40 slices cost what 40 audits do; a sample is cut on Spark
(test_slices_on_spark.py). Those whose verdict hangs on what is carried from slice to slice, and honest journals, are cut into all
numbers; so is each with TURNSTILE_ALL_SLICES=1 (`make slices`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import tampering
from local_rdd import in_slices
from slice_cuts import ALL, CARRIED, SLICES, TURNS, bounds
from storms import write
from tampering import Tampering
from tampering_table import TABLE

from turnstile.pipeline.audit.audit import audit
from turnstile.pipeline.events import spark_journal, spark_rows
from turnstile.pipeline.events.journal import EVENTS, Journal, here
from turnstile.pipeline.events.rows import Rows, RowsHere
from turnstile.pipeline.events.spark_events import read

HONEST = [Tampering(f"honest {name}", name, list, tampering.HELD) for name in ("caps", "tokens", "rates", "quotas")]

CASES = [*HONEST, *TABLE]


def judged(rows: Rows) -> Any:
    return audit(Journal(rows, [], is_live=False)).as_json()


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_rows, "TASK_ROWS", 50)


def slices_of(number: int, one: Tampering) -> Sequence[int]:
    """The numbers of slices of the tampering of this number in the table."""
    if ALL or one.name in CARRIED or one in HONEST:
        return SLICES
    *few, many = SLICES
    return (many,) if number % 16 == 0 else (few[number % len(few)],)


@pytest.mark.parametrize(("number", "one"), list(enumerate(CASES)), ids=[one.name for one in CASES])
def test_cut_anywhere_it_is_judged_as_in_one_piece(number: int, one: Tampering) -> None:
    events = one.how(tampering.copied(one.journal))
    table = pyarrow.Table.from_pylist(events, EVENTS)
    whole = judged(RowsHere(table))
    assert whole["verdict"] == one.verdict
    for slices in slices_of(number, one):
        assert judged(in_slices(table, bounds(events, slices, one.name), seed=slices)) == whole, slices


ON_SPARK = ("honest tokens", "honest quotas", "one more unit than its listener's rate")
"""With an RDD of Spark's own for each; all others share one (test_slices_on_spark.py)."""


@pytest.mark.parametrize("one", [one for one in CASES if one.name in ON_SPARK], ids=lambda one: one.name)
def test_spark_judges_slices_of_parts_as_one_piece(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: Tampering
) -> None:
    events = one.how(tampering.copied(one.journal))
    write(tmp_path, events, parts=5)
    monkeypatch.setattr(spark_journal, "SLICE_ROWS", len(events) // 7)
    monkeypatch.setattr(spark_rows, "TASK_ROWS", max(50, len(events) // 3))
    found = read(spark, [str(tmp_path)])
    assert spark_journal.cut(found.parts.spans, least=1).number >= 5
    mine = here([tmp_path])
    assert mine is not None
    assert judged(found.journal().rows) == judged(mine.rows)


def test_cuts_fall_on_turns_of_every_kind() -> None:
    found = set()
    for one in HONEST:
        events = tampering.copied(one.journal)
        cuts = {cut for slices in SLICES for cut in bounds(events, slices, one.name)}
        found |= {
            (event["kind"], event["mono_ns"] in cuts)
            for event in events
            if {event["mono_ns"], event["mono_ns"] + 1} & cuts
        }
    assert {(kind, first) for kind in TURNS for first in (True, False)} <= found


def test_slices_are_about_equal_and_events_of_one_instant_are_never_cut() -> None:
    spans = [spark_journal.Span(3_000_000, 0, 3_000), spark_journal.Span(2_000_000, 1_000, 2_000)]
    slices = spark_journal.cut(spans, least=1)
    assert slices.number == 5 and list(slices.bounds) == sorted(slices.bounds)
    assert spark_journal.cut([spark_journal.Span(9_000_000, 7, 7)], least=1).number <= 2
    assert spark_journal.cut([], least=4).bounds == ()
