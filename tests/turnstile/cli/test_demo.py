"""What `turnstile demo` prints, on a terminal and in a pipe, and that nothing of it stays."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import harness

STORM = """
import sys
from rich.console import Console
from turnstile.cli.demo import Stage
Stage(Console(highlight=False), sys.argv[1], change_after_s=0.5).storm(sys.argv[2:])
"""
WHO = """
import sys
from rich.console import Console
from turnstile.cli.demo import Stage
Stage(Console(highlight=False), sys.argv[1]).tell_who_was_refused()
"""
REFUSED = "refused: ip_cap "


def test_no_other_display_is_drawn_into_its_lines(tmp_path: Path) -> None:
    """Lines only, as of a log: nothing moves the cursor, which a progress bar of the load does."""
    load = ("load", "--sources", "127.1.0.1", "--rate", "50", "--duration", "4", "--hold", "end", "--bootstrap")
    ours, terminal = pty.openpty()
    limit = ("--set", "kafka_connections_max_per_ip=2")
    with harness.running(tmp_path / "data", *limit) as cluster, os.fdopen(ours, "rb") as screen:
        storm = subprocess.Popen(
            [sys.executable, "-c", STORM, cluster.admin, *load, cluster.bootstrap],
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"},
        )
        os.close(terminal)
        shown = b""
        try:
            while more := screen.read1():
                shown += more
        except OSError:  # the last of the other side is closed
            pass
        assert storm.wait() == 0, shown
    lines = shown.decode().split("\r\n")
    assert sum("admitted" in line for line in lines) >= 2, shown
    assert "the office calls" in shown.decode()
    for line in lines:
        assert "\r" not in line, line
        assert not any(f"\x1b[{move}" in line for move in ("A", "1A", "2K", "?25l")), line


def test_its_end_is_told_in_a_users_words(tmp_path: Path) -> None:
    """Limits and their use; homes and caches are for those who read the code."""
    with harness.running(tmp_path / "data", "--set", "kafka_connections_max_per_ip=2") as cluster:
        environment = {**os.environ, "COLUMNS": "120"}
        told = subprocess.check_output([sys.executable, "-c", WHO, cluster.admin], env=environment, text=True)
    assert "connections of 127.9.0.1" in told
    assert not {"home", "pool", "cached", "tokens"} & set(told.replace(",", " ").split())


def _demo(tmp_path: Path, *options: str) -> "subprocess.Popen[str]":
    """Whose temporary folders are in `tmp_path`, and whose lines are read as they come."""
    return subprocess.Popen(
        [harness.TURNSTILE, "demo", *options],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1", "TURNSTILE_UP_PORT": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def test_it_is_whole_where_there_is_no_checkout(tmp_path: Path) -> None:
    demo = _demo(tmp_path, "--data-dir", "kept")
    said, _ = demo.communicate(timeout=120)
    assert demo.returncode == 0, said
    assert REFUSED in said and "rate" in said
    assert "held" in said and (tmp_path / "kept" / "report.html").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_ctrl_c_ends_its_cluster_and_leaves_no_folder(tmp_path: Path) -> None:
    demo = _demo(tmp_path)
    assert demo.stdout is not None
    with demo.stdout:
        assert any(REFUSED in line for line in demo.stdout)
        os.killpg(demo.pid, signal.SIGINT)
        said = demo.stdout.read()
    assert demo.wait(timeout=20) == 130, said
    assert "Traceback" not in said and said.rstrip().endswith("turnstile: interrupted")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_has_something_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "mine").touch()
    demo = _demo(tmp_path, "--data-dir", "kept")
    said, _ = demo.communicate(timeout=20)
    assert demo.returncode == 2 and "needs a folder of its own" in said
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["mine"]
