"""The verdict on real clients, one small program each: docs/clients.md.

    python scripts/scoreboard.py [--write | --page | --build] [NAME ...]

Builds what needs building under build/scoreboard, judges each client by the whole course (a minute and a half, and three times),
and prints what was found. `--write` keeps it: a report as JSON for each in docs/clients, and the page made of all reports that
are there. `--page` measures nothing, and makes that page again; `--build` only builds.

What a client's source says of a line stands in scoreboard/sources.toml. Where a check or a program was changed after a report,
its `changed_since` says so by check, until it is measured again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import turnstile
from turnstile.verdict.judge import CHECKS
from turnstile.verdict.judged import CannotJudge
from turnstile.verdict.run import PRIVATE
from turnstile.verdict.times import Times

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.peers import environments, fetching, jars
from scripts.suites.table import END, PROGRAMS

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "scripts" / "scoreboard"
PYTHON = HERE / "python"
BUILD = ROOT / "build" / "scoreboard"
REPORTS = ROOT / "docs" / "clients"
PAGE = ROOT / "docs" / "clients.md"
KAFKA, OLDER_KAFKA = jars.VERSION, "4.1.0"
CONNECT_S = 120.0  # Spark takes half a minute on a busy machine
WORSE = ("unjudged", "pass", "warn", "fail")
MARKS = {"pass": "pass", "warn": "*warn*", "fail": "**fail**", "unjudged": "–"}


class Client(NamedTuple):
    """`shown`: the library. `folder`: that of its program in scripts/scoreboard, and of BUILDS. `topics`: those of its cluster."""

    shown: str
    folder: str
    command: list[str]
    version: str
    topics: dict[str, int] = {"orders": 1}  # noqa: RUF012 (never changed)


def _python(program: Path, package: str, shown: str, *arguments: str) -> Client:
    return Client(shown, "python", [sys.executable, str(program), *arguments], version(package))


def _librdkafka(shown: str = "", *arguments: str) -> Client:
    import confluent_kafka

    name = f"librdkafka {confluent_kafka.libversion()[0]} (confluent-kafka){shown}"
    return _python(ROOT / "examples" / "client_to_judge.py", "confluent-kafka", name, *arguments)


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


def _java(role: str, shown: str, kafka: str = KAFKA) -> Client:
    command = ["java", "-cp", f"{BUILD / f'classes-{kafka}'}:{BUILD / f'jars-{kafka}'}/*", "Client", role]
    return Client(f"Apache Kafka's {shown} (Java)", f"java-{kafka}", command, kafka)


def _streams(protocol: str, shown: str) -> Client:
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    command = ["java", quiet, "-cp", f"{BUILD / 'classes-streams'}:{BUILD / 'jars-streams'}/*", "Streams", protocol]
    return Client(f"Kafka Streams, {shown}", "java-streams", command, KAFKA, {"orders": 1, "read": 1})


def _connect() -> Client:
    command = [sys.executable, str(PYTHON / "connect.py"), str(BUILD / "jars-connect")]
    return Client("Kafka Connect, standalone: a file source and a file sink", "java-connect", command, KAFKA)


def _spark() -> Client:
    """The client Spark; its Python and jars are made once, in build/peers. Raises fetching.Missing."""
    pinned = (ROOT / "scripts" / "peers" / "spark" / "requirements.txt").read_text().splitlines()
    told = next(line.split()[0].partition("==")[2] for line in pinned if line.startswith("pyspark=="))
    command = [environments.python("spark"), str(PYTHON / "spark_source.py"), *jars.spark_kafka_jars()]
    return Client("Spark's source and sink for Kafka", "spark", command, told, {"orders": 1, "read": 1})


def _go_version(module: str) -> str:
    rows = (line.split() for line in (HERE / "go" / "go.mod").read_text().splitlines())
    return next((row[-1 if row[-1] != "indirect" else -3] for row in rows if module in row), "")


def clients() -> dict[str, Callable[[], Client]]:
    """The makers of the clients by name, in the order of the page."""
    return {
        **{
            f"java-{role}{'' if kafka == KAFKA else f'-{kafka}'}": partial(_java, role, role, kafka)
            for kafka in (KAFKA, OLDER_KAFKA)
            for role in ("producer", "consumer", "admin")
        },
        "java-consumer-protocol": partial(_java, "consumer-protocol", "consumer, `group.protocol=consumer`"),
        "java-share-consumer": partial(_java, "share-consumer", "share consumer"),
        "streams": partial(_streams, "classic", "classic protocol"),
        "streams-protocol": partial(_streams, "streams", "`group.protocol=streams`"),
        "connect": _connect,
        "spark": _spark,
        "confluent-kafka": _librdkafka,
        "confluent-kafka-protocol": partial(_librdkafka, ", `group.protocol=consumer`", "consumer"),
        "kafka-python": partial(_python, PYTHON / "kafka_python_client.py", "kafka-python", "kafka-python"),
        "aiokafka": partial(_python, PYTHON / "aiokafka_client.py", "aiokafka", "aiokafka"),
        "franz-go": partial(_go, "franz", "github.com/twmb/franz-go", "franz-go"),
        "sarama": partial(_go, "sarama", "github.com/IBM/sarama", "sarama"),
        "kafka-go": partial(_go, "kafkago", "github.com/segmentio/kafka-go", "segmentio/kafka-go"),
        "rskafka": partial(_rust, "rskafka"),
        "kafkajs": partial(_node, "kafkajs.js", "kafkajs"),
        "platformatic-kafka": partial(_node, "platformatic.js", "@platformatic/kafka"),
    }


def _maven(where: str, kafka: str, pom: str = "pom.xml") -> str:
    copy = f"mvn -q -B -f {pom} dependency:copy-dependencies -Dkafka.version={kafka}"
    return f"{copy} -DoutputDirectory={{build}}/jars-{where}"


def _javac(where: str, program: str) -> str:
    return f"javac -cp '{{build}}/jars-{where}/*' -d {{build}}/classes-{where} src/{program}.java"


BUILDS = {
    "go": ["go build -o {build}/ ./..."],
    "node": ["npm ci --silent"],
    "rust": ["cargo build --quiet --release --locked --target-dir {build}/rust"],
    **{f"java-{kafka}": [_maven(kafka, kafka), _javac(kafka, "Client")] for kafka in (KAFKA, OLDER_KAFKA)},
    "java-streams": [_maven("streams", KAFKA, "../../peers/streams/pom.xml"), _javac("streams", "Streams")],
    "java-connect": [_maven("connect", KAFKA, "../../peers/connect/pom.xml")],
}


def build(folder: str) -> None:
    """Makes the programs of a folder. Raises CalledProcessError."""
    BUILD.mkdir(parents=True, exist_ok=True)
    for command in BUILDS.get(folder, ()):
        where = HERE / folder.partition("-")[0]
        subprocess.run(command.format(build=BUILD), shell=True, check=True, cwd=where)


def merged(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The report of several runs, in the order of their checks: of each check the verdict that most runs gave, of equally many
    the worse one, with the evidence of the first run that gave it; `runs` are the verdicts of all."""
    checks = []
    for alike in zip(*(report["checks"] for report in reports), strict=True):
        given = [each["verdict"] for each in alike]
        verdict = max(set(given), key=lambda one: (given.count(one), WORSE.index(one)))
        checks.append({**next(each for each in alike if each["verdict"] == verdict), "runs": given})
    return {**reports[-1], "checks": checks}


def judge(client: Client, copies: int) -> dict[str, Any]:
    """The report of one run of a client. Raises CannotJudge."""
    with turnstile.Cluster(topics=client.topics, shards=2, limits=PRIVATE) as cluster:
        found = cluster.verdict(client.command, times=Times(copies=copies, connect_s=CONNECT_S))
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
        marks = " | ".join(_mark(report, check) + ("?" if check in changed else "") for check in shown)
        lines.append(
            f"| [{report['client']}](clients/{name}.json) | {report['version']} | {report['measured']} | {marks} |"
        )
    for name in order:
        report = reports[name]
        lines += ["", f"## {report['client']}, {report['version']}", "", *_section(report, sources.get(name, {}))]
        if any(each["verdict"] == "fail" for each in report["checks"]):
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

`python scripts/scoreboard.py --write` makes this page: it runs [`turnstile verdict`](verdict.md) on a small program for each client
(`scripts/scoreboard/`), with the client's default settings. A client's name links to its whole report.

How to read a mark:

- *pass*, *warn* and *fail* were measured. *pass 2/3* is the verdict of two runs of three.
- – is *not judged*: the client gave no occasion, or the machine was too busy to tell. The report says which.
- A *?* follows a mark that was measured before the check or the program was changed.

Each line was measured on its date, with Turnstile of that date, on two cores. Lines of 2026-11-28 and later are of three runs, at
a higher priority than all other work on that machine. Earlier lines are of one run on a busy machine (a load of 20 to 35). A
verdict is about the small program as well as about the client: `shutdown`, for one, depends on how the program closes its client.

Below, *Source* is what the client's source code says of a finding. It was read, and not measured unless it says *seen*.
*Confirmed* means that the code explains the finding, and names file, function and version.
"""


def _check(report: dict[str, Any], check: str) -> dict[str, Any]:
    return next(each for each in report["checks"] if each["id"] == check)


def _verdict(report: dict[str, Any], check: str) -> str:
    return str(_check(report, check)["verdict"])


def _mark(report: dict[str, Any], check: str) -> str:
    """The verdict, and of how many runs where others gave another one."""
    verdict, runs = _verdict(report, check), _check(report, check).get("runs", [])
    alike = runs.count(verdict)
    return MARKS[verdict] + (f" {alike}/{len(runs)}" if alike < len(runs) else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true", help="keep the reports, and write the page")
    parser.add_argument("--page", action="store_true", help="only make the page again, of the reports that are there")
    parser.add_argument("--build", action="store_true", help="only build the programs")
    parser.add_argument("--copies", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3, help="of each client, as a verdict of one run may be chance")
    chosen = parser.parse_args()
    if chosen.page:
        PAGE.write_text(page())
        return 0
    makers = clients()
    if unknown := set(chosen.names) - set(makers):
        parser.error(f"no client is called {', '.join(sorted(unknown))}: {', '.join(makers)}")
    for name in chosen.names or makers:
        try:
            client = makers[name]()
            build(client.folder)
            if chosen.build:
                continue
            report = merged([judge(client, chosen.copies) for _ in range(chosen.runs)])
        except (CannotJudge, OSError, fetching.Missing, subprocess.CalledProcessError) as fault:
            print(f"{name}: {fault}", flush=True)
            continue
        print(f"{name} {report['version']}", flush=True)
        for each in report["checks"]:
            print(f"    {_mark(report, each['id']):>12}  {each['id']}: {each['evidence']}", flush=True)
        if chosen.write:
            REPORTS.mkdir(exist_ok=True)
            (REPORTS / f"{name}.json").write_text(json.dumps(report, indent=2) + "\n")
            PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
