"""Kafka's own command line tools, from its jars: the command lines of kafka_tools.toml, one after the other."""

from __future__ import annotations

import re
import shlex
import threading
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

from scripts.peers import jars
from scripts.suites.sources import kafka_jars
from scripts.suites.suite import Results, Suite, Target

LIST = Path(__file__).resolve().parent / "kafka_tools.toml"
COMMAND_LIMIT_S = 120.0
# These are told the address in their own words.
_WITHOUT_OPTION = ("kafka-producer-perf-test", "kafka-e2e-latency")


class Command(NamedTuple):
    """A row of kafka_tools.toml, whose head explains it."""

    name: str
    run: str
    exit: int
    says: list[str]
    not_: str | None
    stdin: str
    file: str | None


def commands() -> list[Command]:
    """The list; a command line that comes again has its number behind its name."""
    listed, seen = [], dict[str, int]()
    for row in tomllib.loads(LIST.read_text())["command"]:
        run = row["run"]
        seen[run] = seen.get(run, 0) + 1
        name = run if seen[run] == 1 else f"{run} ({seen[run]})"
        says, not_ = row.get("says", []), row.get("not")
        listed.append(Command(name, run, row.get("exit", 0), says, not_, row.get("stdin", ""), row.get("file")))
    return listed


def prepare() -> None:
    """Raises CannotRun."""
    kafka_jars()


def run(target: Target, only: str, limit_s: float) -> Results:
    """All in one JVM, unless a command hangs: then the next has a new one."""
    chosen = [command for command in commands() if only in command.name]
    results: Results = dict.fromkeys((command.name for command in chosen), "fail")
    deadline = time.monotonic() + limit_s
    tools = jars.Tools()
    try:
        with (target.folder / "output.txt").open("w") as output:
            for command in chosen:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    break
                ran = _call(tools, command, target, min(left_s, COMMAND_LIMIT_S))
                wrong = fault(command, ran)
                results[command.name] = "fail" if wrong else "pass"
                print(
                    f"$ {command.name}\n{ran.out if ran else ''}{ran.err if ran else ''}\n=> {wrong or 'pass'}\n",
                    file=output,
                )
                if ran is None:
                    tools.close()
                    tools = jars.Tools()
    finally:
        tools.close()
    return results


def _call(tools: jars.Tools, command: Command, target: Target, limit_s: float) -> jars.Ran | None:
    """The result of a command; None if it took too long, and its JVM was ended."""
    file = target.folder / "file.json"
    file.write_text(command.file or "")
    words = shlex.split(command.run.format(bootstrap=target.bootstrap, file=file))
    option = () if words[0] in _WITHOUT_OPTION else ("--bootstrap-server", target.bootstrap)
    if words[0] == "kafka-cluster":  # its option belongs to the subcommand
        words, option = [*words, *option], ()
    timer = threading.Timer(limit_s, tools.kill)
    timer.start()
    try:
        return tools(words[0], *option, *words[1:], stdin=command.stdin)
    except ChildProcessError:
        return None
    finally:
        timer.cancel()


def fault(command: Command, ran: jars.Ran | None) -> str | None:
    """The fault of an answer, or None."""
    if ran is None:
        return "it did not end"
    said = ran.out + ran.err
    if ran.code != command.exit:
        return f"exit {ran.code}, not {command.exit}"
    for pattern in command.says:
        if not re.search(pattern, said):
            return f"it does not say {pattern!r}"
    if command.not_ is not None and re.search(command.not_, said):
        return f"it says {command.not_!r}"
    return None


SUITE = Suite("kafka-tools", "Kafka's tools", jars.VERSION, prepare, run, alone=False)
