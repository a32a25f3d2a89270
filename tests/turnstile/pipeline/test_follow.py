"""Following a growing journal at a URI: every event is counted once, whatever ends a run."""

from pathlib import Path
from typing import Any

import pytest
from storms import Storm, busy, write

from turnstile.pipeline.counts import Counts, summed
from turnstile.pipeline.errors import NoInput, PipelineError, sentence
from turnstile.pipeline.follow import follow, per_minute


def grow(journal: Path, storm: Storm, number: int, *, parts: int) -> None:
    """One more part of a storm that is cut in so many."""
    size = -(-len(storm.events) // parts)
    write(journal.parent / "aside", storm.events[number * size : (number + 1) * size])
    journal.mkdir(exist_ok=True)
    (journal.parent / "aside" / "0.parquet").rename(journal / f"{number}.parquet")


def expected(storm: Storm) -> dict[tuple[str, str], int]:
    """(ip, reason) -> events."""
    found: dict[tuple[str, str], int] = {}
    for event in storm.events:
        if event["kind"] in ("refused", "throttled"):
            key = event.get("ip") or "", event.get("reason") or event.get("limit") or ""
            found[key] = found.get(key, 0) + 1
    return found


def counted(spark: Any, out: str) -> dict[tuple[str, str], int]:
    rows = summed(Counts(spark, out).read(), ["ip", "reason"]).collect()
    return {(row["ip"], row["reason"]): row["events"] for row in rows}


def test_a_run_cut_off_after_it_wrote_counts_every_event_once(
    spark: Any, far: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second run ends before its batch is noted as done; the third takes that batch again, and what came since.

    A damaged part is passed over: it would end every run.
    """
    storm, add = busy(), Counts.add
    journal, out = f"{far}/journal", f"{far}/out"

    def cut_off(self: Counts, rows: Any, number: int) -> None:
        add(self, rows, number)
        raise PipelineError("killed")

    for number in range(3):
        grow(tmp_path / "journal", storm, number, parts=3)
        (tmp_path / "journal" / "damaged.parquet").write_bytes(b"nothing")
        with monkeypatch.context() as patched:
            if number == 1:
                patched.setattr(Counts, "add", cut_off)
                with pytest.raises(Exception, match="killed") as failed:
                    follow(spark, journal, out, once=True).awaitTermination()
                assert sentence(failed.value) == "killed"
            else:
                follow(spark, journal, out, once=True).awaitTermination()
    assert counted(spark, out) == expected(storm)
    names = sorted(path.name for path in (tmp_path / "out").glob("batches=*"))
    assert names == ["batches=0-0", "batches=1-1", "batches=2-2"]
    with pytest.raises(PipelineError, match="counted with another checkpoint"):
        follow(spark, journal, out, f"{far}/other")


def test_batches_are_merged_in_a_folder_whose_name_is_a_pattern(spark: Any, tmp_path: Path) -> None:
    storm, out = busy(), str(tmp_path / "out [x]")
    for reason in ("user_cap", None):
        storm.add("authenticated", 0, ip="10.9.9.9", user="alice", reason=reason)
    write(tmp_path, storm.events)
    rows = spark.read.parquet(str(tmp_path / "0.parquet"))
    counts = Counts(spark, out, merged=2)
    for number in range(2):
        counts.add(per_minute(rows), number)
    assert [each.folder for each in counts.whole()] == ["batches=0-0", "batches=0-1", "batches=1-1"]
    refused = expected(storm) | {("10.9.9.9", "user_cap"): 1}
    assert counted(spark, out) == {key: 2 * events for key, events in refused.items()}


def test_there_has_to_be_a_journal(spark: Any, far: str, tmp_path: Path) -> None:
    for journal in (f"{far}/nowhere", str(tmp_path / "nowhere")):
        with pytest.raises(NoInput, match="There is no journal at"):
            follow(spark, journal, str(tmp_path / "out"))
