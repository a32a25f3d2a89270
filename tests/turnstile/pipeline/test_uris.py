"""A journal at a URI is judged as one of this machine is, its damaged parts included."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from storms import Storm

from turnstile.pipeline.audit.audit import audit
from turnstile.pipeline.errors import NoInput, PipelineError, sentence
from turnstile.pipeline.events.journal import here
from turnstile.pipeline.events.spark_events import read
from turnstile.pipeline.hadoop_files import HadoopFiles
from turnstile.pipeline.inputs.connection_logs import contents, explained, load


def test_a_data_directory_at_a_uri_gives_the_answer_of_its_path(spark: Any, far: str, tmp_path: Path) -> None:
    folder = Storm(1).run(60).end().write(tmp_path / "data" / "journal")
    (folder / "b0-s1-e000001-000000000003.parquet").write_bytes(b"nothing")
    (folder / "b1-s0-e000001-000000000000.parquet").write_bytes((folder / "0.parquet").read_bytes()[:-9])
    found = read(spark, [f"{far}/data"])
    mine = here([folder])
    assert mine is not None
    assert [part.broker for part in found.unreadable] == [0, 1]
    expected = audit(mine).as_json()
    for journal in (found.journal(fetched=True), found.journal()):
        assert _without_places(audit(journal).as_json(), f"{far}/data/journal") == _without_places(
            expected, str(folder)
        )


def _without_places(answer: Any, place: str) -> str:
    return repr(answer).replace(place, "PLACE")


def test_there_has_to_be_a_journal_at_a_uri(spark: Any, far: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name, words in (("nowhere", "There is no journal at"), ("empty", "has no journal in it")):
        with pytest.raises(NoInput, match=words):
            read(spark, [f"{far}/{name}"])


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("s3a://bucket/j", "Spark lacks org.apache.hadoop.fs.s3a.S3AFileSystem: add the package"),
        ("odd://bucket/j", "Spark knows no filesystem odd://."),
        ("hdfs://nowhere.invalid:8020/j", "There is no host nowhere.invalid."),
    ],
)
def test_a_filesystem_that_is_not_there_is_one_sentence(spark: Any, uri: str, words: str) -> None:
    with pytest.raises(Exception) as failed:
        HadoopFiles(spark).check(uri)
    said = sentence(failed.value)
    assert said is not None and said.startswith(words)


def test_a_log_at_a_uri_is_read(spark: Any, far: str, tmp_path: Path) -> None:
    (tmp_path / "conn.csv").write_text("ip,opened_at\n10.0.0.1,1000\n10.0.0.2,1001\n")
    assert contents(load(spark, [f"{far}/conn.csv"], "csv")).total == 2
    with pytest.raises(NoInput, match="There is no"):
        load(spark, [f"{far}/nothing.csv"], "csv")


def test_a_log_that_workers_do_not_see_is_not_called_damaged() -> None:
    """Spark calls every failure to read a file FAILED_READ_FILE."""
    text = "[FAILED_READ_FILE.FILE_NOT_EXIST] x\nCaused by: java.io.FileNotFoundException: File file:/a/c.csv does not exist"
    with (
        pytest.raises(PipelineError, match="Workers see no file:/a/c"),
        explained(["/a/c.csv"], "csv"),
    ):
        raise PySparkException(text)


def test_what_is_written_to_a_uri_is_there(spark: Any, far: str, tmp_path: Path) -> None:
    files = HadoopFiles(spark)
    files.write(f"{far}/new/page.html", "<p>ünï".encode())
    assert (tmp_path / "new" / "page.html").read_text() == "<p>ünï"
    assert files.names(f"{far}/new") == ["page.html"]
    files.delete(f"{far}/new")
    assert not files.is_there(f"{far}/new")
