"""Kafka's own answers: builds the Java program beside this file with Maven, and runs scenarios through it."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_CLASSES = HERE / "target" / "classes"
_CLASSPATH = HERE / "target" / "classpath"


class OracleUnavailable(Exception):
    """There is no Maven or no JDK here, or the build failed; says what to do."""


def is_built() -> bool:
    """Whether the program is there and newer than its sources."""
    if not _CLASSPATH.exists():
        return False
    sources = [HERE / "pom.xml", *HERE.glob("src/**/*.java")]
    return all(source.stat().st_mtime <= _CLASSPATH.stat().st_mtime for source in sources)


def build() -> None:
    """Compile, and fetch Kafka's jars into Maven's own repository. Raises OracleUnavailable."""
    if is_built():
        return
    for tool, package in (("mvn", "maven"), ("java", "openjdk-17-jdk-headless")):
        if shutil.which(tool) is None:
            raise OracleUnavailable(f"the oracle needs {tool}: apt-get install {package}")
    goals = ("compile", "dependency:build-classpath", f"-Dmdep.outputFile={_CLASSPATH}")
    command = ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), *goals]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OracleUnavailable(f"the oracle could not be built:\n{(done.stdout + done.stderr).strip()}")
    _CLASSPATH.touch()


def answers(scenarios: Sequence[Sequence[str]]) -> Iterator[list[dict[str, Any]]]:
    """Kafka's answers to each scenario, as they come. RuntimeError if the program gives up."""
    command = ["java", "-Xss512k", "-cp", f"{_CLASSES}:{_CLASSPATH.read_text().strip()}", "turnstile.oracle.Main"]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as lines, tempfile.TemporaryFile("w+") as complaints:
        for scenario in scenarios:
            lines.writelines(line + "\n" for line in scenario)
            lines.write("\n")
        lines.seek(0)
        with subprocess.Popen(command, stdin=lines, stdout=subprocess.PIPE, stderr=complaints, text=True) as java:
            assert java.stdout is not None
            given: list[dict[str, Any]] = []
            finished = 0
            for line in java.stdout:
                if line.strip():
                    given.append(json.loads(line))
                    continue
                yield given
                given = []
                finished += 1
        if java.returncode or finished < len(scenarios):
            complaints.seek(0)
            raise RuntimeError(f"the oracle stopped in scenario {finished}:\n{complaints.read()}")
