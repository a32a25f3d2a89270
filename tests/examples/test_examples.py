"""Every example runs, as its first line says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "command",
    [
        ["pytest", "-q", "-p", "no:cacheprovider", "examples/test_with_pytest.py"],
        ["unittest", "examples/test_with_unittest.py"],
    ],
    ids=["pytest", "unittest"],
)
def test_runs(command: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
