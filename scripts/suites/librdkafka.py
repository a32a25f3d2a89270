"""librdkafka's test-runner: its tests that need a broker, with classic groups and with those of KIP-848.

The source with its tests comes in an npm package that is built from it. Each test runs in a process of its own, as an abort would
take the others with it; several at a time, since they mostly wait.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from scripts.peers import jars
from scripts.suites.sources import kafka_jars, npm_package
from scripts.suites.suite import BUILD, Outcome, Results, Suite, Target, built, end_all, limited

PACKAGE, PACKAGE_VERSION = "@confluentinc/kafka-javascript", "1.10.1"
SHA512 = "KVePUBn21EqCVP9mfxzEuM3SYJHHEF7X+iiC2e43QQgDSyEaksInmCGooT3w5q+cNAdkSCrK71j0ICfqoSqZLw=="
VERSION = "2.15.1"
"""The version of the librdkafka in that package."""
TEST_LIMIT_S = 240.0
AT_ONCE = 3
_SOURCE = BUILD / "librdkafka" / "source"
_TESTS = _SOURCE / "tests"
_RUNNER = _TESTS / "test-runner"
_SCRIPTS = BUILD / "librdkafka" / "kafka" / "bin"
"""Kafka's tools as a distribution has them: some tests make topics and ACLs by these."""


def prepare() -> None:
    """Raises CannotRun."""
    _write_scripts()
    if _RUNNER.exists():
        return
    package = npm_package(PACKAGE, PACKAGE_VERSION, SHA512)
    shutil.rmtree(_SOURCE, ignore_errors=True)
    shutil.copytree(package / "deps" / "librdkafka", _SOURCE)
    for script in (_SOURCE / "configure", _SOURCE / "lds-gen.py"):
        script.chmod(0o755)
    built(["./configure", "--disable-gssapi", "--disable-curl"], _SOURCE)
    for folder in ("src", "src-cpp"):
        built(["make", "-j2", "-C", folder], _SOURCE)
    built(["make", "-j2", "-C", "tests", _RUNNER.name], _SOURCE)


def _write_scripts() -> None:
    path = kafka_jars()
    _SCRIPTS.mkdir(parents=True, exist_ok=True)
    for tool, main in jars.MAINS.items():
        script = _SCRIPTS / f"{tool}.sh"
        script.write_text(f"#!/bin/sh\nexec java {' '.join(jars.JVM_FLAGS)} -cp '{path}' {main} \"$@\"\n")
        script.chmod(0o755)


def remote_tests() -> list[str]:
    """The names in test.c's table that are neither local, nor run by hand, nor of another scenario."""
    table = re.findall(r"_TEST\((\d\w+),\s*([^)]*(?:\([^)]*\))?[^)]*)\)", (_TESTS / "test.c").read_text())
    left_out = ("TEST_F_LOCAL", "TEST_F_MANUAL", '.scenario = "noautocreate"')
    return sorted({name for name, words in table if not any(each in words for each in left_out)})


def run(protocol: str, target: Target, only: str, limit_s: float) -> Results:
    """`protocol`: "classic" or "consumer". Its quick mode: fewer messages, the same tests."""
    conf = target.folder / "test.conf"
    conf.write_text(f"bootstrap.servers={target.bootstrap}\ntest.timeout.multiplier=2\n")
    deadline = time.monotonic() + limit_s
    numbered: dict[str, list[str]] = {}
    for name in remote_tests():
        if only in name:
            numbered.setdefault(name.partition("_")[0], []).append(name)  # the runner chooses by number
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            done = pool.map(partial(_one, protocol, target, deadline), numbered.items())
            return {name: outcome for results in done for name, outcome in results.items()}
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            end_all()
            raise


def _one(protocol: str, target: Target, deadline: float, numbered: tuple[str, list[str]]) -> Results:
    number, names = numbered
    report = target.folder / f"{number}.json"
    env = {
        "TESTS": number,
        "TEST_REPORT": str(report),
        "RDKAFKA_TEST_CONF": str(target.folder / "test.conf"),
        "TEST_KAFKA_VERSION": jars.VERSION,
        "KAFKA_PATH": str(_SCRIPTS.parent),
        "BROKERS": target.bootstrap,
        "LD_LIBRARY_PATH": f"{_SOURCE / 'src'}:{_SOURCE / 'src-cpp'}",
        **({"TEST_CONSUMER_GROUP_PROTOCOL": protocol} if protocol != "classic" else {}),
    }
    left_s = min(deadline - time.monotonic(), TEST_LIMIT_S)
    if left_s > 0:
        limited([str(_RUNNER), "-p1", "-L", "-Q"], target.folder / f"{number}.txt", left_s, cwd=_TESTS, env=env)
    return {name: read(name, report) for name in names}


def read(name: str, report: Path) -> Outcome:
    """The outcome in the report that the runner writes at its end; a runner that aborted wrote none."""
    try:
        state = json.loads(report.read_text())["tests"][name]["state"]
    except (FileNotFoundError, json.JSONDecodeError, KeyError):
        return "fail"
    return "pass" if state == "PASSED" else "skip" if state == "SKIPPED" else "fail"


SUITES = tuple(
    Suite(f"librdkafka-{protocol}", f"librdkafka (`test-runner`, {shown})", VERSION, prepare, partial(run, protocol))
    for protocol, shown in (("classic", "classic groups"), ("consumer", "`TEST_CONSUMER_GROUP_PROTOCOL=consumer`"))
)
