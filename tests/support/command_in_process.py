"""A `turnstile` command in the test's own process, which has imported what a process of its own takes a tenth of a second for.

What a command does to its process is not seen here: signals, its end, descriptors, a terminal. Those have tests with processes
(tests/turnstile/cli/test_main.py and others).
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any
from unittest import mock

from click.testing import CliRunner

from turnstile.cli.main import main

ASKING = {
    "advertise", "config", "connections", "explain", "fault", "quota", "status", "telemetry", "topic", "user",
}  # fmt: skip
"""Commands that ask a cluster and print its answer: they start nothing and handle no signal."""


def runs_here(arguments: tuple[str, ...]) -> bool:
    """True for a command of ASKING. Streams and environment are the process's: no thread beside the main one replaces them."""
    asks = arguments[0] in ASKING or (arguments[0] == "top" and "--once" in arguments)
    return asks and threading.current_thread() is threading.main_thread()


def run_here(arguments: tuple[str, ...], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs `turnstile ARGUMENTS` with these variables beside those of the process; its stdin is empty, its stdout no terminal."""
    runner = CliRunner()
    code: Any = None
    with (
        runner.isolation(env=dict(environment)) as (stdout, stderr, _),
        mock.patch.object(sys, "argv", ["turnstile", *arguments]),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        sys.stdout.flush()
        sys.stderr.flush()
    return subprocess.CompletedProcess(arguments, code, stdout.getvalue().decode(), stderr.getvalue().decode())
