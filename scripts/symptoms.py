"""The log of a real client that is refused or throttled: the table of docs/symptoms.md.

    python scripts/symptoms.py [--write] [NAME ...]

Each client (its program is a `symptoms` in scripts/scoreboard) produces two records of 50 KB to a cluster that has just started,
with its default settings and logs, under one limit at a time. Shown are the lines that it printed, most frequent first, and what
its call returned. `--write` keeps those of all clients in docs/symptoms.md. Needs what `python scripts/scoreboard.py` has built,
and kcat, a package of Debian.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import turnstile

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.scoreboard import BUILD, HERE, KAFKA, ROOT, clients

PAGE = ROOT / "docs" / "symptoms.md"
BEGIN, END = "<!-- table: scripts/symptoms.py -->", "<!-- end of table -->"
SHOWN_LINES = 2
LONGEST = 230
TIMEOUT_S = 80

JARS = BUILD / "symptoms-jars"
PROGRAMS = {
    "java-producer": [
        "java",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-cp",
        f"{JARS}/*",
        str(HERE / "java" / "symptoms" / "Symptoms.java"),
    ],
    "confluent-kafka": [sys.executable, str(HERE / "python" / "symptoms.py"), "confluent-kafka"],
    "kcat": [sys.executable, str(HERE / "python" / "symptoms.py"), "kcat"],
    "kafka-python": [sys.executable, str(HERE / "python" / "symptoms.py"), "kafka-python"],
    "aiokafka": [sys.executable, str(HERE / "python" / "symptoms.py"), "aiokafka"],
    "franz-go": [str(BUILD / "symptoms"), "franz-go"],
    "sarama": [str(BUILD / "symptoms"), "sarama"],
    "kafka-go": [str(BUILD / "symptoms"), "kafka-go"],
    "kafkajs": ["node", str(HERE / "node" / "symptoms.js"), "kafkajs"],
    "platformatic-kafka": ["node", str(HERE / "node" / "symptoms.js"), "platformatic"],
}
"""kcat, and those of scripts/scoreboard.py that have a log or return an error; rskafka has its own of neither."""


class Said(NamedTuple):
    """The output of a client, without the parts that differ from run to run: lines by how often, and the result of its call."""

    lines: Counter[str]
    returned: str


@contextmanager
def at_its_cap(cluster: turnstile.Cluster) -> Iterator[None]:
    cluster.set(per_ip=0)
    yield


@contextmanager
def over_its_rate(cluster: turnstile.Cluster) -> Iterator[None]:
    host, port = cluster.bootstrap.split(":")
    cluster.quota("ip=127.0.0.1", connection_creation_rate=1)
    for _ in range(20):  # what Kafka's windows let through at once is used up
        socket.create_connection((host, int(port))).close()
    yield


@contextmanager
def without_a_slot(cluster: turnstile.Cluster) -> Iterator[None]:
    host, port = cluster.bootstrap.split(":")
    cluster.set({"max.connections": 1})
    with socket.create_connection((host, int(port))):
        yield


@contextmanager
def throttled(cluster: turnstile.Cluster) -> Iterator[None]:
    cluster.quota("client-id=symptoms", producer_byte_rate=1000)
    yield


Situation = Callable[[turnstile.Cluster], AbstractContextManager[None]]
SITUATIONS: dict[str, Situation] = {
    "refused: at the cap of its address": at_its_cap,
    "refused: over the creation rate of its address": over_its_rate,
    "waiting for a slot of `max.connections`": without_a_slot,
    "throttled for 40 s by `producer_byte_rate`": throttled,
}


_TRACEBACK = re.compile(r"\s|$|Traceback|Exception ignored|\w+Error: ")
"""Lines of a traceback, which name files of this machine; and empty ones."""


def said(command: list[str], situation: Situation) -> Said:
    """Runs a client in a situation, on a cluster of its own."""
    with turnstile.Cluster(topics={"orders": 1}, shards=2) as cluster, situation(cluster):
        program = subprocess.Popen(
            command,
            env={**os.environ, "TURNSTILE_BOOTSTRAP": cluster.bootstrap},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        try:
            printed, _ = program.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            program.kill()
            printed, _ = program.communicate()
    lines = [_without_what_differs(line) for line in printed.splitlines() if not _TRACEBACK.match(line)]
    returned = next((line for line in lines if line.startswith("returned after")), f"nothing after {TIMEOUT_S} s")
    return Said(Counter(line for line in lines if line != returned), returned)


def _without_what_differs(line: str) -> str:
    """A line without times, ports and numbers of connections."""
    line = re.sub(r"'?127\.0\.0\.1'?(:|, |@)\d+|localhost:\d+", "BROKER", line)
    line = re.sub(r"BROKER<-\d+", "BROKER", line)
    line = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\dZ]*", "TIME", line)
    line = re.sub(r"%(\d)\|\d+\.\d+\|", r"%\1|TIME|", line)
    return re.sub(r"0x[0-9a-f]+|\b\d+ms\b|[0-9a-f]{8}-[0-9a-f-]{27}", "#", line.strip())


def cell(found: Said) -> str:
    """A cell of the table: the lines seen most, and what was returned."""
    shown = [f"{times} x `{_cut(line)}`" for line, times in found.lines.most_common(SHOWN_LINES)] or ["logs nothing"]
    return "<br>".join([*shown, f"-> `{_cut(found.returned)}`"])


def _cut(line: str) -> str:
    line = line.replace("`", "'").replace("|", "¦")
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."


def table(found: dict[str, dict[str, Said]]) -> list[str]:
    judged = {name: make() for name, make in clients().items() if name in PROGRAMS}
    shown = {name: f"{known.shown} {known.version}" for name, known in judged.items()} | {"kcat": _kcat()}
    lines = [f"Measured {datetime.now(UTC):%Y-%m-%d} by `python scripts/symptoms.py --write`."]
    head = ["", "| client | what it logs, and what its call returns |", "|---|---|"]
    for situation in SITUATIONS:
        lines += ["", f"### {situation[0].upper()}{situation[1:]}", *head]
        for name, told in found.items():
            lines.append(f"| {shown[name]} | {cell(told[situation])} |")
    return lines


def _kcat() -> str:
    """The name of kcat with its version and that of its librdkafka, where it is installed."""
    if shutil.which("kcat") is None:
        return "kcat"
    told = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=True).stdout
    version, librdkafka = (re.search(rf"{word} ([\d.]+)", told) for word in ("Version", "librdkafka"))
    return f"kcat {version and version[1]} (librdkafka {librdkafka and librdkafka[1]})"


def build() -> None:
    """The Go program, and Java's jars with a log that is seen. Raises CalledProcessError."""
    subprocess.run(["go", "build", "-o", f"{BUILD}/", "./symptoms"], cwd=HERE / "go", check=True)
    if not JARS.exists():
        jars = [jar for jar in (BUILD / f"jars-{KAFKA}").glob("*.jar") if not jar.name.startswith("slf4j-nop")]
        JARS.mkdir()
        for jar in jars:
            (JARS / jar.name).hardlink_to(jar)
        copy = ("dependency:copy", "-Dartifact=org.slf4j:slf4j-simple:1.7.36", f"-DoutputDirectory={JARS}")
        subprocess.run(["mvn", "-q", "-B", *copy], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    asked = parser.parse_args()
    if asked.write and asked.names:
        parser.error("--write makes the whole table: name no client")
    build()
    found: dict[str, dict[str, Said]] = {}
    for name in asked.names or PROGRAMS:
        if name == "kcat" and shutil.which("kcat") is None:
            print("kcat is not installed (apt-get install kcat): left out")
            continue
        found[name] = {}
        for situation, made in SITUATIONS.items():
            found[name][situation] = told = said(PROGRAMS[name], made)
            print(f"{name}, {situation}")
            for line, times in told.lines.most_common(6):
                print(f"  {times} x {line}")
            print(f"  {told.returned}", flush=True)
    if asked.write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text("\n".join([before + BEGIN, *table(found), END]) + rest.partition(END)[2])


if __name__ == "__main__":
    main()
