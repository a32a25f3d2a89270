"""docs/clients/NAME.md: for each check that a client fails, a command that shows it.

    python scripts/reproductions.py                    makes the pages
    python scripts/reproductions.py --check [NAME ...]  builds the programs and runs each command: does the check still fail?

Made of the reports in docs/clients, of scoreboard/sources.toml and of the programs of the scoreboard. `make test-docs` pastes the
pages of Python's clients, --check does the others, too.

Exit code of --check 0: each check fails, as its page says; 1: not so, or this machine was too busy to judge.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.scoreboard import KAFKA, OLDER_KAFKA

ROOT = Path(__file__).resolve().parents[1]
REPORTS = ROOT / "docs" / "clients"
SOURCES = ROOT / "scripts" / "scoreboard" / "sources.toml"
JAVA = ("producer", "consumer", "admin", "consumer-protocol", "share-consumer")
QUICK = ("backoff",)
"""The checks whose short course shows as much as the whole."""
AFTER = {("sarama", "shutdown"): ("recovery",), ("confluent-kafka", "shutdown"): ("recovery",)}
"""Checks whose refusals a client has to have been through, by its name and the check that then fails: these two have too little
left to send or to commit, and end in time, if they were refused for a second only."""
FAILED = 1
"""The exit code of a verdict in which a check failed."""


class Reproduction(NamedTuple):
    """`program`: its source, from the root of the repository. `command` runs it, once `build` has made it. `topics`: those that it
    needs."""

    program: str
    command: str
    build: str = ""
    topics: tuple[str, ...] = ("orders",)


def _python(program: str, *arguments: str) -> Reproduction:
    return Reproduction(program, " ".join(("python", program, *arguments)))


def _go(name: str) -> Reproduction:
    build = f"go build -C scripts/scoreboard/go -o ../../../build/scoreboard/ ./{name}"
    return Reproduction(f"scripts/scoreboard/go/{name}/main.go", f"build/scoreboard/{name}", build)


def _node(name: str) -> Reproduction:
    program = f"scripts/scoreboard/node/{name}.js"
    return Reproduction(program, f"node {program}", "npm ci --silent --prefix scripts/scoreboard/node")


def _rust() -> Reproduction:
    manifest, target = "scripts/scoreboard/rust/Cargo.toml", "build/scoreboard/rust"
    build = f"cargo build --quiet --release --locked --manifest-path {manifest} --target-dir {target}"
    return Reproduction("scripts/scoreboard/rust/src/main.rs", f"{target}/release/scoreboard", build)


def _java(
    name: str, program: str, arguments: str, made: str = KAFKA, topics: tuple[str, ...] = ("orders",)
) -> Reproduction:
    """The reproduction by a program in Java; `made`: the classes and jars of build/scoreboard that it needs."""
    classpath = f"build/scoreboard/classes-{made}:build/scoreboard/jars-{made}/*"
    command = f"java -cp '{classpath}' {program} {arguments}"
    source = f"scripts/scoreboard/java/src/{program}.java"
    return Reproduction(source, command, f"python scripts/scoreboard.py --build {name}", topics)


def _connect() -> Reproduction:
    program = "scripts/scoreboard/python/connect.py"
    build = "python scripts/scoreboard.py --build connect"
    return Reproduction(program, f"python {program} build/scoreboard/jars-connect", build)


def _spark() -> Reproduction:
    program = "scripts/scoreboard/python/spark_source.py"
    build = "python scripts/scoreboard.py --build spark"
    command = f"sh -c 'exec build/peers/spark/bin/python {program} build/peers/spark-kafka/jars/*.jar'"
    return Reproduction(program, command, build, ("orders", "read"))


REPRODUCTIONS = {
    **{f"java-{role}": _java(f"java-{role}", "Client", role) for role in JAVA},
    **{f"java-{role}-4.1.0": _java(f"java-{role}-4.1.0", "Client", role, OLDER_KAFKA) for role in JAVA[:3]},
    "streams": _java("streams", "Streams", "classic", "streams", ("orders", "read")),
    "streams-protocol": _java("streams-protocol", "Streams", "streams", "streams", ("orders", "read")),
    "connect": _connect(),
    "spark": _spark(),
    "confluent-kafka-protocol": _python("examples/client_to_judge.py", "consumer"),
    "confluent-kafka": _python("examples/client_to_judge.py"),
    "kafka-python": _python("scripts/scoreboard/python/kafka_python_client.py"),
    "aiokafka": _python("scripts/scoreboard/python/aiokafka_client.py"),
    "franz-go": _go("franz"),
    "sarama": _go("sarama"),
    "kafka-go": _go("kafkago"),
    "rskafka": _rust(),
    "kafkajs": _node("kafkajs"),
    "platformatic-kafka": _node("platformatic"),
}


def failing() -> list[str]:
    """The names of the reports in which a check fails."""
    return sorted(path.stem for path in REPORTS.glob("*.json") if _failed(path.stem))


def page(name: str) -> str:
    """The page of a client, of its report. Raises KeyError for one that has no program in REPRODUCTIONS."""
    report, shown = json.loads((REPORTS / f"{name}.json").read_text()), REPRODUCTIONS[name]
    sources = tomllib.loads(SOURCES.read_text()).get(name, {})
    about = {"client": report["client"], "version": report["version"], "measured": report["measured"]}
    lines = HEAD.format(name=name, program=shown.program, **about).splitlines()
    if shown.build:
        lines += ["", "```sh", "# Not run by the tests: it fetches packages", shown.build, "```"]
    first = "# Not run by the tests: its program is built before" if shown.build else "# Takes a minute"
    for check in _failed(name):
        command = f"{_verdict(name, check['id'])}   # exit code {FAILED}"
        lines += ["", f"## `{check['id']}`", "", f"Seen: {check['evidence']}."]
        if check["id"] in sources:
            lines += ["", f"Source: {sources[check['id']]}."]
        lines += ["", "```sh", first, command, "```"]
    return "\n".join(lines) + "\n"


def _failed(name: str) -> list[dict[str, str]]:
    checks = json.loads((REPORTS / f"{name}.json").read_text())["checks"]
    return [check for check in checks if check["verdict"] == "fail"]


def _verdict(name: str, check: str) -> str:
    quick = "--quick " if check in QUICK else ""
    checks = ",".join((*AFTER.get((name, check), ()), check))
    shown = REPRODUCTIONS[name]
    topics = " ".join(f"--topic {topic}" for topic in shown.topics)
    return f"turnstile verdict {quick}{topics} --checks {checks} -- {shown.command}"


HEAD = """# {client}: the checks that it fails

Made by `python scripts/reproductions.py` of [the report]({name}.json) on {version}, measured on {measured}.
*Source* is what the client's source code says of a failure, where it was read. [Clients](../clients.md) has the other checks,
[verdict](../verdict.md) what a check requires. The program is
[{program}](../../{program}), with the client's default settings.

Paste each command in a checkout of this repository. It starts a cluster of its own, takes the program through the part of the
course that the check needs, and prints what the broker saw. Its exit code is 1 if the check fails, 0 if it does not, and 2 if
nothing could be judged.
"""


def check(name: str) -> bool:
    """Builds a client's program and runs its commands; whether each check fails, as the page says."""
    shown, found = REPRODUCTIONS[name], []
    if shown.build:
        subprocess.run(shlex.split(shown.build), cwd=ROOT, check=True)
    for each in _failed(name):
        command = shlex.split(_verdict(name, each["id"]))
        code = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        print(f"{name} {each['id']}: exit code {code}", flush=True)
        found.append(code == FAILED)
    return all(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(failing()):
        parser.error(f"no check fails of {', '.join(sorted(unknown))}: it is one of {', '.join(failing())}")
    names = asked.names or failing()
    if asked.check:
        found = [check(name) for name in names]
        return 0 if all(found) else 1
    for name in names:
        (REPORTS / f"{name}.md").write_text(page(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
