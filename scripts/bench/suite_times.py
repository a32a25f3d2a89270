"""Benchmark of the pytest plugin: a suite of 50 tests of another project's shape, beside kfake and Kafka 4.3.

The suite (scripts/bench/suite/) produces, consumes and uses groups with librdkafka. Turnstile is reset before each test; a
peer is one process for the session. What the broker adds to a test is the reset, and its share of the start; all else is the
client's own time, which has the broker's answers in it, and is set beside the peers'.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from scripts.bench.machine import CannotMeasure
from scripts.bench.rounds import OURS, Quantity, quartiles, take_turns
from scripts.bench.table import Row
from scripts.peers import servers
from scripts.peers.fetching import Missing
from scripts.peers.jars import classpath

SUITE = Path(__file__).resolve().parent / "suite"
TESTS = 50
BROKERS = {OURS: "turnstile", "kfake": "kfake", "Kafka 4.3": "kafka"}
"""Name -> the suite's name of it."""


class Times(NamedTuple):
    """Milliseconds a test; `start` is that of the cluster, divided among the tests."""

    start: float
    reset: float
    client: float


START, RESET = (Quantity(attrgetter(part), ".1f", " ms") for part in ("start", "reset"))
CLIENT = Quantity(attrgetter("client"), ".0f", " ms")
ADDED = Quantity(lambda times: times.start + times.reset, ".1f", " ms")
IMPORT = (
    "import time; began = time.perf_counter(); import turnstile; turnstile.Cluster; print(time.perf_counter() - began)"
)


def rows(rounds: int) -> Iterator[Row]:
    """The suite on each broker, in turns."""
    try:
        classpath()
        servers.kfake_binary()
    except Missing as missing:
        raise CannotMeasure(str(missing)) from missing
    found = take_turns(rounds, BROKERS, lambda broker, _: run(broker), (CLIENT,))
    start_s = found.of(START).median * TESTS / 1000
    yield Row(
        f"a suite of {TESTS} tests on the pytest plugin, what it adds to a test",
        f"{found.text(ADDED)}: reset {found.median_text(RESET)}, start {start_s:.2f} s in all",
        "; ".join(f"{name} {found.median_text(START, name)}, never reset" for name in found.peers),
        "50 ms",
        found.of(ADDED).median < 50,
    )
    yield Row("- the client's own time, a test", found.median_text(CLIENT), found.beside(CLIENT))
    imports = quartiles(import_ms() for _ in range(5 * rounds))
    yield Row("`import turnstile`, and its `Cluster`", imports.text(".0f", " ms"), "", "150 ms", imports.median < 150)


def run(broker: str) -> Times:
    """One session of the suite. Raises CannotMeasure unless every test passes."""
    with tempfile.TemporaryDirectory(prefix="turnstile-suite-") as folder:
        times = Path(folder) / "times.json"
        environment = {**os.environ, "SUITE_BROKER": broker, "SUITE_TIMES": str(times)}
        done = subprocess.run(command("-p", "no:randomly"), env=environment, capture_output=True, text=True)
        spent = json.loads(times.read_text()) if times.exists() else {"tests": 0}
    if done.returncode != 0 or spent["tests"] != TESTS:
        raise CannotMeasure(f"the suite on {broker}: {(done.stdout + done.stderr).strip()[-300:]}")
    return Times(*(spent[part] * 1000 / TESTS for part in Times._fields))


def command(*options: str) -> list[str]:
    """pytest over the suite, with nothing of this repository's configuration."""
    plain = ("-q", "-c", os.devnull, "--rootdir", str(SUITE), "-p", "no:cacheprovider")
    return [sys.executable, "-m", "pytest", *plain, *options, str(SUITE)]


def import_ms() -> float:
    """The time of the import in a fresh interpreter, in milliseconds."""
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    return float(done.stdout) * 1000
