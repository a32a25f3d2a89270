"""The commands as a user runs them: as processes, with their exit codes, on this machine's Spark and on a cluster's."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from storms import Storm

from broker.journal.writer import JournalWriter
from turnstile.pipeline.jvm import OPTIONS, class_archive
from turnstile.pipeline.session import LITTLE

ROOT = Path(__file__).parents[3]


MAIN = "from turnstile.cli.main import main; main()"


def turnstile(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", MAIN, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)


@pytest.fixture(autouse=True)
def _needs_java() -> None:
    """As `spark` says, which these tests leave to others: their commands start their own."""
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("no JDK: Spark can't start")


def test_plan_on_a_cluster_of_two_workers(tmp_path: Path) -> None:
    log = tmp_path / "conn.csv"
    rows = [f"10.0.0.{number % 3},{1000 + number},{1100 + number}" for number in range(60)]
    log.write_text("ip,opened_at,closed_at\n" + "\n".join(rows) + "\n")
    arguments = ("--input", str(log), "--format", "csv", "--per-ip-cap", "5,20", "--broker-cap", "30", "--json")
    # Executors for sixty rows never earn back a second compiler; with the driver's class archive they start in half the time.
    little = f"spark.executor.extraJavaOptions={LITTLE[OPTIONS]} -XX:SharedArchiveFile={class_archive()}"
    done = turnstile("plan", *arguments, "--master", "local-cluster[2,1,1024]", "--conf", little)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [one["refused"] for one in answer["candidates"]] == [45, 30]
    assert answer["connections"] == 60 and answer["bad_rows"] == 0


def test_audit_of_what_was_left_in_the_spool(tmp_path: Path) -> None:
    """Segments of a writer that is gone are made parts first; an exceeded cap is exit code 1."""
    journal = JournalWriter(tmp_path / "journal", 0, 0, 1)
    journal.config(1, [["setting", "/kafka_connections_max_per_ip", "2"]], full=True)
    for number in range(1, 4):
        journal.admitted(number, "10.0.0.1", 40_000 + number, "EXTERNAL", 1)
    journal.close()
    done = turnstile("audit", str(tmp_path), "--json")
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    assert answer["verdict"] == "exceeded"
    [cap] = [check for check in answer["checks"] if check["name"] == "ip_cap"]
    assert cap["verdict"] == "exceeded"
    assert cap["evidence"][0]["connections"] == ["0/0/1/3", "0/0/1/2", "0/0/1/1"]


def test_a_plan_of_a_data_directory_has_what_is_in_its_spool_and_takes_no_second(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path / "journal", 0, 0, 1)
    for number in range(1, 4):
        journal.admitted(number, "10.0.0.1", 40_000 + number, "EXTERNAL", 1)
    journal.close()
    command = ("plan", "--format", "journal", "--per-ip-cap", "2", "--input", str(tmp_path))
    done = turnstile(*command, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["connections"] == 3
    done = turnstile(*command, "--input", str(tmp_path / "journal"))
    assert (done.returncode, done.stderr.strip()) == (
        1, "plan takes only one journal: two clusters use the same numbers for their connections.",
    )  # fmt: skip


def test_unknown_is_exit_code_2(tmp_path: Path) -> None:
    storm = Storm(1).run(40)
    storm.events.pop(10)
    done = turnstile("audit", str(storm.write(tmp_path)))
    assert done.returncode == 2, done.stderr
    assert "unknown" in done.stdout and "seq" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["audit", "nowhere"], 2, "There is no journal at nowhere."),
        (["plan", "--input", "x", "--format", "zeek", "--per-ip-cap", "five"], 2, "not a list of whole numbers"),
        (["plan", "--input", "x", "--format", "csv", "--columns", "ip"], 2, "not of the form"),
        (
            ["plan", "--input", "x", "--format", "csv", "--overrides", "10.0.0.1", "--per-ip-cap", "5"],
            1,
            "can't be set",
        ),
        (["report", "x", "--follow"], 2, "--follow needs --out"),
        (["report", "x", "--html", "nowhere/r.html"], 1, "there is no folder nowhere"),
        (["plan", "--input", "x", "--format", "csv", "--html", "nowhere/p.html"], 1, "there is no folder nowhere"),
        (["plan", "--input", "x", "--format", "csv", "--conf", "memory=1g"], 2, "not of the form spark."),
        (["audit", "x", "--html", "no/such/folder/page.html"], 2, "there is no folder"),
    ],
)
def test_wrong_use_is_one_sentence(arguments: list[str], code: int, sentence: str) -> None:
    done = turnstile(*arguments)
    assert done.returncode == code
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_libraries_there_is_a_sentence_that_helps(tmp_path: Path) -> None:
    """The core's dependencies alone: a stand-in of the interpreter's finder does not know the others."""
    hidden = "import importlib.util as u; f = u.find_spec; u.find_spec = lambda n, p=None: None if n == 'pyspark' else f(n, p)"
    command = [sys.executable, "-c", f"{hidden}; from turnstile.cli.main import main; main()", "audit", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 2
    assert "This needs pyspark: pip install 'turnstile-kafka[pipeline]'." in done.stderr


def test_a_plan_without_the_libraries_says_so_whatever_it_counts_by(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("ip,opened,closed,user\n")
    hidden = "import sys; sys.modules |= dict.fromkeys(('numpy', 'pandas', 'pyarrow', 'pyspark'))"
    command = [
        sys.executable,
        "-c",
        f"{hidden}; from turnstile.cli.main import main; main()",
        "plan",
        "--format",
        "csv",
    ]
    command += ["--input", str(tmp_path / "log.csv"), "--by", "user"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 1
    assert "pip install 'turnstile-kafka[pipeline]'." in done.stderr and "Traceback" not in done.stderr


def test_a_report_of_a_small_journal_needs_no_jvm(tmp_path: Path) -> None:
    journal = Storm(1).run(60).write(tmp_path / "journal")
    html, out = tmp_path / "report.html", tmp_path / "tables"
    done = turnstile("report", str(journal), "--html", str(html), "--out", str(out), PATH="/nowhere", JAVA_HOME="")
    assert done.returncode == 0, done.stderr
    assert "events" in done.stdout and html.exists() and (out / "decisions.parquet").exists()


def test_a_page_that_can_not_be_written_whole_stays_as_it_was(tmp_path: Path) -> None:
    """As on a full disk: no file may have more than a kilobyte."""
    journal = Storm(1).run(60).write(tmp_path / "journal")
    html = tmp_path / "report.html"
    html.write_text("the one before")
    script = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)); {MAIN}"
    command = [sys.executable, "-c", script, "report", str(journal), "--html", str(html)]
    # Python would keep the bytecode of what it imports cut off, too.
    kept = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=kept)
    assert (done.returncode, "File too large" in done.stderr, "Traceback" in done.stderr) == (1, True, False), (
        done.stderr
    )
    assert html.read_text() == "the one before"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["journal", "report.html"]


def test_without_a_jdk_there_is_a_sentence_that_helps(tmp_path: Path) -> None:
    storm = Storm(1).run(5).write(tmp_path)
    done = turnstile("audit", str(storm), "--master", "local[1]", PATH="/nowhere", JAVA_HOME="")
    assert done.returncode == 2
    assert "Spark needs Java 17" in done.stderr and "apt-get install" in done.stderr
