"""The verdict on real clients, one small program each: docs/clients.md.

    python scripts/scoreboard.py [--write | --page] [NAME ...]

Builds what needs building under build/scoreboard, judges each client by the whole course (a minute and a half), and prints what
was found. `--write` keeps it: a report as JSON for each in docs/clients, and the page made of all reports that are there.
`--page` measures nothing, and makes that page again.

What a client's source says of a line stands in scoreboard/sources.toml. Where a check or a program was changed after a report,
its `changed_since` says so by check, until it is measured again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import turnstile
from turnstile.verdict.judge import CHECKS
from turnstile.verdict.judged import CannotJudge
from turnstile.verdict.run import PRIVATE
from turnstile.verdict.times import Times

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.suites.table import END, PROGRAMS

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "scripts" / "scoreboard"
PYTHON = HERE / "python"
BUILD = ROOT / "build" / "scoreboard"
REPORTS = ROOT / "docs" / "clients"
PAGE = ROOT / "docs" / "clients.md"
KAFKA = "4.1.0"
MARKS = {"pass": "pass", "warn": "*warn*", "fail": "**fail**", "unjudged": "–"}


class Client(NamedTuple):
    """`shown`: the library. `build`: what makes its program, in the folder `scripts/scoreboard/<folder>`."""

    shown: str
    folder: str
    command: list[str]
    version: str


def _python(program: Path, package: str, shown: str) -> Client:
    return Client(shown, "python", [sys.executable, str(program)], version(package))


def _go(program: str, module: str, shown: str) -> Client:
    return Client(shown, "go", [str(BUILD / program)], _go_version(module))


def _node(program: str, package: str) -> Client:
    found = HERE / "node" / "node_modules" / package / "package.json"
    told = json.loads(found.read_text())["version"] if found.exists() else ""
    return Client(package, "node", ["node", str(HERE / "node" / program)], told)


def _rust(crate: str) -> Client:
    locked = tomllib.loads((HERE / "rust" / "Cargo.lock").read_text())["package"]
    told = next(package["version"] for package in locked if package["name"] == crate)
    return Client(crate, "rust", [str(BUILD / "rust" / "release" / "scoreboard")], told)


def _java(role: str) -> Client:
    command = ["java", "-cp", f"{BUILD / 'classes'}:{BUILD / 'jars'}/*", "Client", role]
    return Client(f"Apache Kafka's {role} (Java)", "java", command, KAFKA)


def _go_version(module: str) -> str:
    rows = (line.split() for line in (HERE / "go" / "go.mod").read_text().splitlines())
    return next((row[-1 if row[-1] != "indirect" else -3] for row in rows if module in row), "")


def clients() -> dict[str, Client]:
    return {
        "java-producer": _java("producer"),
        "java-consumer": _java("consumer"),
        "java-admin": _java("admin"),
        "confluent-kafka": _python(
            ROOT / "examples" / "client_to_judge.py", "confluent-kafka", f"librdkafka {_librdkafka()} (confluent-kafka)"
        ),
        "kafka-python": _python(PYTHON / "kafka_python_client.py", "kafka-python", "kafka-python"),
        "aiokafka": _python(PYTHON / "aiokafka_client.py", "aiokafka", "aiokafka"),
        "franz-go": _go("franz", "github.com/twmb/franz-go", "franz-go"),
        "sarama": _go("sarama", "github.com/IBM/sarama", "sarama"),
        "kafka-go": _go("kafkago", "github.com/segmentio/kafka-go", "segmentio/kafka-go"),
        "rskafka": _rust("rskafka"),
        "kafkajs": _node("kafkajs.js", "kafkajs"),
        "platformatic-kafka": _node("platformatic.js", "@platformatic/kafka"),
    }


def _librdkafka() -> str:
    import confluent_kafka

    return str(confluent_kafka.libversion()[0])


BUILDS = {
    "go": ["go build -o {build}/ ./..."],
    "node": ["npm ci --silent"],
    "rust": ["cargo build --quiet --release --locked --target-dir {build}/rust"],
    "java": [
        "mvn -q -B dependency:copy-dependencies -DoutputDirectory={build}/jars",
        "javac -cp '{build}/jars/*' -d {build}/classes src/Client.java",
    ],
}


def build(folder: str) -> None:
    """Makes the programs of a folder. Raises CalledProcessError."""
    BUILD.mkdir(parents=True, exist_ok=True)
    for command in BUILDS.get(folder, ()):
        subprocess.run(command.format(build=BUILD), shell=True, check=True, cwd=HERE / folder)


def judge(name: str, client: Client, copies: int) -> dict[str, Any]:
    """The report of a client."""
    with turnstile.Cluster(topics={"orders": 1}, shards=2, limits=PRIVATE) as cluster:
        found = cluster.verdict(client.command, times=Times(copies=copies))
    about = {"client": client.shown, "version": client.version, "measured": f"{datetime.now(UTC):%Y-%m-%d}"}
    return {**about, "turnstile": version("turnstile-kafka"), **found.as_json()}


def page() -> str:
    """docs/clients.md, of the reports that are there."""
    reports = {path.stem: json.loads(path.read_text()) for path in sorted(REPORTS.glob("*.json"))}
    order = [name for name in clients() if name in reports]
    sources = tomllib.loads((HERE / "sources.toml").read_text())
    shown = [name for name in CHECKS if any(_verdict(reports[each], name) != "unjudged" for each in order)]
    lines = [HEAD, "| client | version | measured | " + " | ".join(f"`{name}`" for name in shown) + " |"]
    lines.append("|---" * (3 + len(shown)) + "|")
    for name in order:
        report = reports[name]
        changed = report.get("changed_since", {})
        marks = " | ".join(MARKS[_verdict(report, check)] + ("?" if check in changed else "") for check in shown)
        lines.append(
            f"| [{report['client']}](clients/{name}.json) | {report['version']} | {report['measured']} | {marks} |"
        )
    for name in order:
        lines += ["", f"## {reports[name]['client']}", "", *_section(reports[name], sources.get(name, {}))]
        if any(each["verdict"] == "fail" for each in reports[name]["checks"]):
            lines += ["", f"[A command for each check that fails](clients/{name}.md)"]
    return "\n".join([*lines, *_kept()]) + "\n"


def _kept() -> list[str]:
    """The sections that people write and that scripts/suites makes, as they are."""
    _, begun, rest = PAGE.read_text().partition(PROGRAMS)
    return ["", PROGRAMS + rest.partition(END)[0] + END] if begun else []


def _section(report: dict[str, Any], sources: dict[str, str]) -> list[str]:
    """A line for each check that it did not pass, or that there is more to say of."""
    changed, lines = report.get("changed_since", {}), []
    for each in report["checks"]:
        check = each["id"]
        if each["verdict"] not in ("fail", "warn") and check not in sources and check not in changed:
            continue
        lines.append(f"- `{check}`, {each['verdict']}: {each['evidence']}.")
        if check in changed:
            lines.append(f"  - Measured before a change: {changed[check]}.")
        if check in sources:
            lines.append(f"  - Source: {sources[check]}.")
    return lines or ["Nothing to complain of."]


HEAD = """# How real clients live with limits

Made by `python scripts/scoreboard.py --write`: [`turnstile verdict`](verdict.md) on a small program for each client
(`scripts/scoreboard/`), with the client's default settings. Only what was measured stands here; – is *not judged*: the client
gave no occasion. A name links to the whole report.

**To be read with care.** Each client was measured once, by turnstile of the date in its line, on two cores that did much else at
the same time (a load of 20 to 35). What a busy machine may have spoiled is – as well, and the report says
so. A verdict is of the small program, too, how it closes its client included. Below a line stands what the client's source says of
it, read and not measured: *confirmed* names the file, the function and the version. A *?* marks what was measured before the check
or the program was changed.
"""


def _verdict(report: dict[str, Any], check: str) -> str:
    return str(next(each["verdict"] for each in report["checks"] if each["id"] == check))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true", help="keep the reports, and write the page")
    parser.add_argument("--page", action="store_true", help="only make the page again, of the reports that are there")
    parser.add_argument("--copies", type=int, default=5)
    chosen = parser.parse_args()
    if chosen.page:
        PAGE.write_text(page())
        return 0
    names = chosen.names or list(clients())
    for folder in dict.fromkeys(clients()[name].folder for name in names):
        build(folder)
    for name in names:
        try:
            report = judge(name, clients()[name], chosen.copies)
        except (CannotJudge, OSError) as fault:
            print(f"{name}: {fault}", flush=True)
            continue
        print(f"{name} {report['version']}", flush=True)
        for each in report["checks"]:
            print(f"    {each['verdict']:>8}  {each['id']}: {each['evidence']}", flush=True)
        if chosen.write:
            REPORTS.mkdir(exist_ok=True)
            (REPORTS / f"{name}.json").write_text(json.dumps(report, indent=2) + "\n")
            PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
