"""What `make demo` prints, seen on a terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import harness

ROOT = Path(__file__).resolve().parents[1]
STORM = """
import sys
from scripts import demo
from turnstile.admin_client import AdminClient
demo.CHANGE_AFTER_S = 0.5
demo.storm(AdminClient(sys.argv[1]), sys.argv[2:])
"""

WHO = """
import os
from scripts import demo
from turnstile.admin_client import AdminClient
demo.tell_who_was_refused(AdminClient(os.environ["TURNSTILE_ADMIN"]))
"""


def test_no_other_display_is_drawn_into_its_lines(tmp_path: Path) -> None:
    """Lines only, as of a log: nothing moves the cursor, which a progress bar of the load does."""
    load = ("load", "--sources", "127.1.0.0/28", "--rate", "50", "--duration", "2", "--bootstrap")
    ours, terminal = pty.openpty()
    with harness.running(tmp_path / "data") as cluster, os.fdopen(ours, "rb") as screen:
        storm = subprocess.Popen(
            [sys.executable, "-c", STORM, cluster.admin, *load, cluster.bootstrap],
            cwd=ROOT,
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, "TURNSTILE_ADMIN": cluster.admin, "TERM": "xterm-256color", "COLUMNS": "120"},
        )
        os.close(terminal)
        shown = b""
        try:
            while more := screen.read1():
                shown += more
        except OSError:  # the last of the other side is closed
            pass
        assert storm.wait() == 0
    lines = shown.decode().split("\r\n")
    assert sum("admitted" in line for line in lines) >= 2, shown
    assert "the office calls" in shown.decode()
    for line in lines:
        assert "\r" not in line, line
        assert not any(f"\x1b[{move}" in line for move in ("A", "1A", "2K", "?25l")), line


def test_its_end_is_told_in_a_users_words(tmp_path: Path) -> None:
    """Limits and their use; homes and caches are for those who read the code."""
    with harness.running(tmp_path / "data", "--set", "kafka_connections_max_per_ip=2") as cluster:
        environment = {**os.environ, "TURNSTILE_ADMIN": cluster.admin, "COLUMNS": "120"}
        told = subprocess.check_output([sys.executable, "-c", WHO], cwd=ROOT, env=environment, text=True)
    assert "connections of 127.9.0.1" in told
    assert not {"home", "pool", "cached", "tokens"} & set(told.replace(",", " ").split())
