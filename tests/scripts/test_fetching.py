"""What is fetched from a registry: a second attempt, and one bound on the wait for a registry that does not answer."""

import sys
from pathlib import Path

import pytest
from harness import until

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.peers import fetching


def test_a_command_that_fails_once_has_fetched(tmp_path: Path) -> None:
    fetching.fetch(["sh", "-c", "[ -e again ] || { touch again; exit 1; }"], tmp_path)


def test_a_command_that_has_passed_runs_again(tmp_path: Path) -> None:
    for _ in range(2):
        fetching.fetch(["sh", "-c", "echo x >> runs"], tmp_path)
    assert (tmp_path / "runs").read_text() == "x\nx\n"


def test_a_command_that_fails_twice_is_told_by_its_error_and_not_run_again(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(fetching.Missing, match=r"^sh failed: \[ERROR\] no route$"):
            fetching.fetch(
                ["sh", "-c", "echo x >> runs; echo begun; echo '[ERROR] no route'; echo end; exit 1"], tmp_path
            )
    assert (tmp_path / "runs").read_text() == "x\nx\n"


def test_a_registry_that_does_not_answer_is_left_with_all_that_the_command_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "FETCH_S", 1)
    with pytest.raises(fetching.Missing, match=r"^sh does not end within 1 s$"):
        fetching.fetch(["sh", "-c", "sleep 1000 & echo $! > pid; wait"], tmp_path)
    child = Path("/proc") / (tmp_path / "pid").read_text().strip()
    until(lambda: not child.exists() or "\nState:\tZ" in (child / "status").read_text(), what="the end of its child")


def test_maven_waits_no_half_hour(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAVEN_OPTS", "-Xmx1g")
    fetching.fetch(["sh", "-c", 'echo "$MAVEN_OPTS" > options'], tmp_path)
    assert (tmp_path / "options").read_text().startswith("-Xmx1g -Dmaven.wagon.rto=20000 ")
