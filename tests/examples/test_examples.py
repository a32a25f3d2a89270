"""Every example runs, as its first lines say. What an example needs and this machine has not is named by the skip.

The examples in Go, Java and Node start a cluster of their own: that is what they show. What they compile and fetch stays
in the caches of their tools and in ignored folders, so only the first run on a machine pays for it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from scripts.peers.fetching import MAVEN, Missing, fetch  # noqa: E402
from scripts.peers.servers import find_go  # noqa: E402

EXAMPLES = ROOT / "examples"
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a JVM that lives for some seconds, the quick compiler alone is the cheaper one."""
FETCH_FAILED = re.compile(r"Could not (transfer|resolve)|could not be resolved|UnknownHost|Network is unreachable")


def run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in a folder, with the `turnstile` of this environment on the PATH."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", ""), "/usr/local/go/bin"])
    environment = {**kept, "PATH": path, **environment}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200)


def needs(*tools: str) -> None:
    """Skips the test where a tool is missing."""
    for tool in tools:
        if (find_go() if tool == "go" else shutil.which(tool)) is None:
            pytest.skip(f"{tool} is not installed")


def fetched(*command: str, folder: Path) -> None:
    """Skips the test where a registry does not give what a folder's lock names."""
    try:
        fetch(command, folder)
    except Missing as missing:
        pytest.skip(str(missing))


def passed(done: subprocess.CompletedProcess[str], *said: str) -> None:
    """Asserts that an example passed, and that its tests were run: `said` stands in its output."""
    output = done.stdout + done.stderr
    assert done.returncode == 0 and all(each in output for each in said), output


def test_pytest_example_passes() -> None:
    passed(
        run(ROOT, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "examples/test_with_pytest.py"),
        "3 passed",
    )


def test_unittest_example_passes() -> None:
    passed(run(ROOT, sys.executable, "-m", "unittest", "examples/test_with_unittest.py"), "Ran 2 tests")


def test_go_example_passes() -> None:
    needs("go")
    fetched(find_go() or "go", "mod", "download", folder=EXAMPLES / "go")
    # The first compilation takes three fifths of the time: nothing optimised, nothing for debuggers, little garbage collected.
    quick = ("-gcflags=all=-N -l -dwarf=false", "-ldflags=-s -w", "-vet=off")
    done = run(EXAMPLES / "go", "go", "test", *quick, "-count=1", "-v", ".", GOGC="400")
    passed(done, "--- PASS: TestAnOrderArrives")


def test_java_example_passes() -> None:
    needs("mvn", "javac")
    options = (f"-DargLine={JVM}", "-DfailIfNoTests=true")
    done = run(EXAMPLES / "java", "mvn", "-B", *options, "test", MAVEN_OPTS=f"{JVM} {MAVEN}")
    if done.returncode != 0 and FETCH_FAILED.search(done.stdout):
        pytest.skip("Maven can't fetch what pom.xml names")
    passed(done, "Tests run: 3, Failures: 0, Errors: 0, Skipped: 0")
    [report] = ElementTree.parse(EXAMPLES / "java/target/surefire-reports/TEST-orders.OrdersTest.xml").iterfind(
        "properties/property[@name='surefire.test.class.path']"
    )
    jars = [Path(each) for each in report.attrib["value"].split(os.pathsep) if each.endswith(".jar")]
    lock = (EXAMPLES / "java" / "dependencies.sha256").read_text().split("\n")
    locked = {Path(name).name: digest for digest, name in (line.split() for line in lock if line)}
    assert {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in jars} == locked


def test_node_example_passes() -> None:
    needs("node", "npm")
    folder = EXAMPLES / "node"
    installed = folder / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < (folder / "package-lock.json").stat().st_mtime:
        fetched("npm", "ci", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=1", folder=folder)
    passed(run(folder, "npm", "test"), "pass 3", "fail 0")


@pytest.mark.parametrize("lock", ["go/go.sum", "java/dependencies.sha256", "node/package-lock.json"])
def test_a_lock_has_a_hash_for_each_dependency_and_no_address(lock: str) -> None:
    text = (EXAMPLES / lock).read_text()
    assert not re.search(r"https?:|(^|[\s\"'])/(home|root|tmp|work)/", text)
    if lock.endswith(".json"):
        packages = [each for name, each in json.loads(text)["packages"].items() if name]
        assert packages and all(each["integrity"].startswith("sha512-") for each in packages)
    else:
        assert all(re.search(r"(^[0-9a-f]{64} | h1:\S{44}$)", line) for line in text.splitlines())
