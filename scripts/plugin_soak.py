"""The pytest plugin under pytest-xdist, again and again: `python scripts/plugin_soak.py [--runs 10] [--workers 4] [--repeat 4]`.

Each run is the suite of scripts/bench/suite/ (50 tests), `repeat` times, in random order, on `workers` clusters. A run is
good when every test passes at the first try, no temporary file is left and no process. The exit code is 1 unless all are.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench.suite_times import TESTS, command  # noqa: E402 - importable only from here on


def main() -> int:
    """Runs and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=4)
    asked = parser.parse_args()
    bad = 0
    for number in range(asked.runs):
        with tempfile.TemporaryDirectory(prefix="turnstile-soak-") as folder:
            began = time.monotonic()
            environment = {**os.environ, "TMPDIR": folder, "SUITE_REPEAT": str(asked.repeat)}
            options = command("-n", str(asked.workers))
            done = subprocess.run(options, env=environment, capture_output=True, text=True)
            passed = int((re.findall(r"(\d+) passed", done.stdout) or ["0"])[-1])
            files, processes = left_behind(Path(folder))
        good = done.returncode == 0 and passed == TESTS * asked.repeat and not files and not processes
        bad += not good
        print(f"run {number + 1}: {passed} passed, exit code {done.returncode}, {len(files)} files left, "
              f"{len(processes)} processes left, {time.monotonic() - began:.0f} s", flush=True)  # fmt: skip
        if not good:
            print("\n".join([done.stdout[-3000:], *files, *processes]), flush=True)
    print(
        f"{asked.runs - bad} of {asked.runs} runs of {TESTS * asked.repeat} tests on {asked.workers} workers were good"
    )
    return 1 if bad else 0


def left_behind(folder: Path) -> tuple[list[str], list[str]]:
    """Files in a run's temporary folder that are not pytest's own, and processes that were started with it."""
    mark = f"TMPDIR={folder}".encode()
    processes = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                processes.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return [str(path) for path in folder.iterdir() if not path.name.startswith("pytest-of-")], processes


if __name__ == "__main__":
    sys.exit(main())
