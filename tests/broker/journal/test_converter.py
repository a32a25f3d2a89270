"""The converter: every segment becomes one part, also when a writer or a converter dies."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow.parquet
import pytest

from broker.journal import converter, reader, spool
from broker.journal.writer import JournalWriter


def write(folder: Path, count: int, *, epoch: int = 1) -> None:
    journal = JournalWriter(folder, 0, 0, epoch)
    for number in range(count):
        journal.admitted(number + 1, "10.0.0.1", 1, "L", 1)
    journal.close()


def seqs(folder: Path) -> list[int]:
    return [event["seq"] for event in reader.events(folder)]


def test_a_part_has_the_same_events_and_the_segment_goes(tmp_path: Path) -> None:
    write(tmp_path, 1000)
    before = reader.read_table(tmp_path)
    assert converter.finish(tmp_path) == 1000
    assert reader.read_table(tmp_path).to_pylist() == before.to_pylist()
    assert list(spool.spool_folder(tmp_path).iterdir()) == []
    assert [path.name for path in tmp_path.glob("*.parquet")] == ["b0-s0-e000001-000000000000.parquet"]


@pytest.mark.parametrize("cut", [1, 63, 64, 65, 130])
def test_a_torn_tail_is_cut_to_whole_events(tmp_path: Path, cut: int) -> None:
    write(tmp_path, 10)
    path = next(spool.spool_folder(tmp_path).glob("*.spool"))
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    converter.finish(tmp_path)
    assert seqs(tmp_path) == list(range(10 - -(-cut // spool.ROW)))


def test_a_torn_definition_and_a_tail_of_zeros_are_cut(tmp_path: Path) -> None:
    write(tmp_path, 1)
    path = next(spool.spool_folder(tmp_path).glob("*.spool"))
    whole = path.read_bytes()
    path.write_bytes(whole + spool.define(9, b"x" * 500)[:128])
    assert len(reader.read_table(tmp_path)) == 1
    path.write_bytes(whole + bytes(640))
    assert len(reader.read_table(tmp_path)) == 1


def test_dying_between_the_rename_and_the_delete_doubles_nothing(tmp_path: Path) -> None:
    write(tmp_path, 10)
    path = next(spool.spool_folder(tmp_path).glob("*.spool"))
    data = path.read_bytes()
    converter.finish(tmp_path)
    path.write_bytes(data)
    assert seqs(tmp_path) == list(range(10))
    converter.finish(tmp_path)
    assert seqs(tmp_path) == list(range(10))


def test_a_live_segment_stays_and_is_in_the_snapshot(tmp_path: Path) -> None:
    write(tmp_path, 10, epoch=1)
    journal = JournalWriter(tmp_path, 0, 0, 2)
    journal.admitted(1, "10.0.0.1", 1, "L", 1)
    journal.flush(0)
    assert converter.finish(tmp_path) == 10
    into = tmp_path / "snapshot"
    into.mkdir()
    assert reader.snapshot(tmp_path, into) is not None
    assert [path.name for path in into.iterdir()] == ["b0-s0-e000002-000000000000.parquet"]
    journal.close()
    assert reader.snapshot(tmp_path, into) is None


def test_the_oldest_parts_go_first(tmp_path: Path) -> None:
    for epoch in range(1, 5):
        write(tmp_path, 100, epoch=epoch)
        converter.finish(tmp_path)
        for path in tmp_path.glob(f"*e00000{epoch}*"):
            os.utime(path, (epoch, epoch))
    size = max(path.stat().st_size for path in tmp_path.glob("*.parquet"))
    assert converter.delete_oldest(tmp_path, size * 2) == 2
    assert sorted(event["epoch"] for event in reader.events(tmp_path))[::100] == [3, 4]


def test_what_is_no_segment_is_set_aside(tmp_path: Path) -> None:
    spool.spool_folder(tmp_path).mkdir()
    (spool.spool_folder(tmp_path) / "b0-s0-e000001-000000000000.spool").write_bytes(b"not a spool" * 100)
    assert converter.finish(tmp_path) == 0
    assert [path.suffix for path in spool.spool_folder(tmp_path).iterdir()] == [".bad"]


def test_run_finishes_everything_before_it_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "nice", lambda _: 0)  # for a process that ends with it; this one goes on
    stop, stopping = os.pipe()
    thread = threading.Thread(target=converter.run, args=(tmp_path,), kwargs={"stop": stop})
    thread.start()
    write(tmp_path, 10)
    os.close(stopping)
    thread.join(30)
    os.close(stop)
    assert len(list(tmp_path.glob("*.parquet"))) == 1


def test_parts_declare_the_columns_spark_reads(tmp_path: Path) -> None:
    write(tmp_path, 3)
    converter.finish(tmp_path)
    schema = pyarrow.parquet.read_schema(next(tmp_path.glob("*.parquet")))
    assert str(schema.field("ts").type) == "timestamp[us, tz=UTC]"
    assert str(schema.field("port").type) == "int32"


def test_without_the_libraries_the_spool_stays_and_the_oldest_segments_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(converter, "find_spec", lambda name: None)
    for epoch in (1, 2, 3):
        write(tmp_path, 100, epoch=epoch)
    segments = sorted(spool.spool_folder(tmp_path).glob("*.spool"))
    stop, ended = os.pipe()
    os.close(ended)
    monkeypatch.setattr(os, "nice", lambda by: 0)
    converter.run(tmp_path, stop=stop, keep_bytes=segments[0].stat().st_size * 2)
    os.close(stop)
    assert sorted(spool.spool_folder(tmp_path).glob("*.spool")) == segments[1:]
    assert list(tmp_path.glob("*.parquet")) == []
    monkeypatch.undo()
    assert converter.finish(tmp_path) == 200


def test_a_converter_that_is_killed_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    """It is stopped by itself where a part is written and has no name yet."""
    write(tmp_path, 1000)
    code = f"""
import os, signal
from pathlib import Path
from broker.journal import converter
os.rename = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
converter.convert(next(Path({str(spool.spool_folder(tmp_path))!r}).iterdir()), Path({str(tmp_path)!r}))
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    (unfinished,) = tmp_path.glob(".*")
    assert converter.finish(tmp_path) == 1000
    assert unfinished.exists(), "written a moment ago"
    long_ago_s = time.time() - 3600
    os.utime(unfinished, (long_ago_s, long_ago_s))
    converter.finish(tmp_path)
    assert not unfinished.exists()
    assert seqs(tmp_path) == list(range(1000))


def test_a_cluster_ends_without_importing_pandas(tmp_path: Path) -> None:
    write(tmp_path, 10)
    code = f"""
import sys
from pathlib import Path
from broker.journal import converter
assert converter.finish(Path({str(tmp_path)!r})) == 10
sys.exit("pandas" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_part_that_a_living_converter_writes_stays(tmp_path: Path) -> None:
    write(tmp_path, 1)
    mine = tmp_path / f".b0-s0-e000001-000000000000.{os.getpid()}.aside"
    mine.touch()
    assert converter.delete_unfinished(tmp_path, now_s=time.time() + 3600) == 0
    assert mine.exists()
