"""Benchmark of the pytest plugin: a suite of 50 tests of another project's shape, beside kfake and Kafka 4.3.

The suite (scripts/bench/suite/) produces, consumes and uses groups with librdkafka. Turnstile is reset before each test; a
peer is one process for the session. What the broker adds to a test is the reset, and its share of the start; all else is the
client's own time, which has the broker's answers in it, and is set beside the peers'.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scripts.bench.machine import CannotMeasure
from scripts.bench.table import Row
from scripts.peers import servers
from scripts.peers.jars import Missing, classpath

SUITE = Path(__file__).resolve().parent / "suite"
TESTS = 50
Times = dict[str, float]
"""Milliseconds a test: `start` (of the cluster, divided among the tests), `reset` and `client`."""

IMPORT = (
    "import time; began = time.perf_counter(); import turnstile; turnstile.Cluster; print(time.perf_counter() - began)"
)


def rows(rounds: int) -> Iterator[Row]:
    """The suite on each broker, in turns."""
    names = {"turnstile": "Turnstile", "kfake": "kfake", "kafka": "Kafka 4.3"}
    try:
        classpath()
        with servers.kfake():
            pass
    except Missing as missing:
        raise CannotMeasure(str(missing)) from missing
    runs: dict[str, list[Times]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            runs[name].append(run(name))
    found = {name: {part: statistics.median(each[part] for each in of) for part in of[0]} for name, of in runs.items()}
    ours, peers = found.pop("turnstile"), found.items()
    added = ours["start"] + ours["reset"]
    yield Row(
        f"a suite of {TESTS} tests on the pytest plugin, what it adds to a test",
        f"{added:.1f} ms (reset {ours['reset']:.1f} ms, start {ours['start'] * TESTS / 1000:.2f} s in all)",
        "; ".join(f"{names[name]} {each['start']:.1f} ms, never reset" for name, each in peers),
        "50 ms",
        added < 50,
    )
    yield Row(
        "- the client's own time, a test",
        f"{ours['client']:.0f} ms",
        "; ".join(
            f"{names[name]} {each['client']:.0f} ms: {ours['client'] / each['client']:.2f} x" for name, each in peers
        ),
    )
    imports = statistics.median(import_ms() for _ in range(5 * rounds))
    yield Row("`import turnstile`, and its `Cluster`", f"{imports:.0f} ms", "", "150 ms", imports < 150)


def run(broker: str) -> Times:
    """One session of the suite. Raises CannotMeasure unless every test passes."""
    with tempfile.TemporaryDirectory(prefix="turnstile-suite-") as folder:
        times = Path(folder) / "times.json"
        environment = {**os.environ, "SUITE_BROKER": broker, "SUITE_TIMES": str(times)}
        done = subprocess.run(command("-p", "no:randomly"), env=environment, capture_output=True, text=True)
        spent = json.loads(times.read_text()) if times.exists() else {"tests": 0}
    if done.returncode != 0 or spent["tests"] != TESTS:
        raise CannotMeasure(f"the suite on {broker}: {(done.stdout + done.stderr).strip()[-300:]}")
    return {part: spent[part] * 1000 / TESTS for part in ("start", "reset", "client")}


def command(*options: str) -> list[str]:
    """pytest over the suite, with nothing of this repository's configuration."""
    plain = ("-q", "-c", os.devnull, "--rootdir", str(SUITE), "-p", "no:cacheprovider")
    return [sys.executable, "-m", "pytest", *plain, *options, str(SUITE)]


def import_ms() -> float:
    """The time of the import in a fresh interpreter, in milliseconds."""
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    return float(done.stdout) * 1000
