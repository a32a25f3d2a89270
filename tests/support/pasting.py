"""A shell into which a page of the documents is pasted, in a clone of its own and on a machine of its own.

The machine is a network namespace, so that ports 9092 and 9644 are free whatever else runs here, and a process namespace,
whose end is the end of every process that the page started. The clone is a folder of links to this one.
"""

from __future__ import annotations

import os
import queue
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

from pages import PASTED, ROOT, Block, Command

from scripts.peers import fetching, jars

NAMESPACES = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
NOT_LINKED = {".git", "build", "out"}
COMMAND_TIMEOUT_S = 280
_NUMBER = re.compile(r"\d+(?:[.,:T+-]+\d+)*(?: (?:ms|s|min|h)\b)?")
_PROGRESS = re.compile(r"(?!held:)\w+: .+ \(\d+ s\)$")
"""A line that says how far a command is, which a terminal does not keep. A verdict, which ends with a time as well, is none."""
_TIDY = """
ip link set lo up
make() { command make --dry-run "$@" > /dev/null; }  # they take minutes: what they run has tests of its own
"""


class PasteFailed(AssertionError):
    """A block did not do what its page says; the message has the block and what it printed."""


def allowed() -> bool:
    """Whether this user may make namespaces."""
    return subprocess.run([*NAMESPACES, "ip", "link", "set", "lo", "up"], capture_output=True).returncode == 0


def clone(folder: Path) -> Path:
    """A folder that looks like a clone of this one after `make setup`, in which files may be made."""
    folder.mkdir()
    for each in ROOT.iterdir():
        if each.name not in NOT_LINKED:
            (folder / each.name).symlink_to(each)
    return folder


def kafka_tools(folder: Path) -> bool:
    """Puts `kafka-configs.sh` and its like into a folder, as Kafka's bin has them; False where there is no Maven."""
    folder.mkdir()
    try:
        path = jars.classpath()
    except fetching.Missing:
        return False
    for name, main in jars.MAINS.items():
        script = folder / f"{name}.sh"
        script.write_text(f'#!/bin/sh\nexec java {" ".join(jars.JVM_FLAGS)} -cp "{path}" {main} "$@"\n')
        script.chmod(0o755)
    return True


class Shell:
    """A context manager; its blocks share folders, variables and processes, as what is pasted into a terminal does."""

    def __init__(self, folder: Path, path: list[Path]) -> None:
        self._folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "TURNSTILE_"))}
        words = [str(ROOT / ".venv" / "bin"), *map(str, path), str(Path(sys.executable).parent), os.environ["PATH"]]
        self._shell = subprocess.Popen(
            [*NAMESPACES, "bash", "--norc", "--noprofile"],
            cwd=folder,
            env={**kept, "PATH": os.pathsep.join(words), "COLUMNS": "132", "TZ": "UTC", "TMPDIR": str(folder.parent)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._said: queue.Queue[str] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._commands = 0
        self.run(_TIDY)

    def _listen(self) -> None:
        assert self._shell.stdout is not None
        for line in self._shell.stdout:
            self._said.put(line)
        self._said.put("")

    def run(self, command: str, timeout_s: float = COMMAND_TIMEOUT_S) -> tuple[int, str]:
        """Runs what is pasted; returns its exit code and what it printed. Raises PasteFailed when it takes too long."""
        assert self._shell.stdin is not None
        self._commands += 1
        text, printed = (self._folder.parent / f"{kind}-{self._commands}" for kind in ("pasted", "printed"))
        text.write_text(command)
        began = time.monotonic()
        self._shell.stdin.write(f". {text} < /dev/null > {printed} 2>&1; echo $?\n")
        self._shell.stdin.flush()
        try:
            answer = self._said.get(timeout=timeout_s)
        except queue.Empty:
            raise PasteFailed(f"after {timeout_s} s there is no end of:\n{command}\n{printed.read_text()}") from None
        if not answer.strip().isdigit():
            raise PasteFailed(f"the shell ended at:\n{command}\n{answer}{printed.read_text()}")
        print(f"{time.monotonic() - began:5.1f} s  {command.strip().splitlines()[0]}")  # shown of a page that fails
        return int(answer), printed.read_text()

    def paste(self, block: Block) -> None:
        """Does with a block what docs/README.md says of its kind. Raises PasteFailed."""
        if block.file is not None:
            (self._folder / block.file).write_text(block.text)
        if block.language in PASTED:
            for command in block.commands:
                self._paste_command(block, command)
        elif block.language == "python":
            self._run_python(block)

    def _paste_command(self, block: Block, command: Command) -> None:
        code, printed = self.run(command.text)
        if code != command.exit_code:
            raise PasteFailed(f"{block}: exit code {code} of\n{command.text}\n{printed}")
        if command.shown and (missing := first_unlike(command.shown, printed)) is not None:
            raise PasteFailed(f"{block}: {missing!r} is not printed by\n{command.text}\n{printed}")

    def _run_python(self, block: Block) -> None:
        """A file with tests is run by pytest, any other by python."""
        name = f"block_{block.line}.py"
        (self._folder / name).write_text(block.text)
        tests = any(line.startswith("def test_") for line in block.lines)
        code, printed = self.run(
            f"python -m pytest -q -p no:cacheprovider -p no:randomly {name}" if tests else f"python {name}"
        )
        if code:
            raise PasteFailed(f"{block}: exit code {code}\n{printed}")

    def listening(self) -> list[str]:
        """Ports on which something still listens, in hexadecimal: what a page forgot to end."""
        _, printed = self.run("cat /proc/net/tcp /proc/net/tcp6")
        rows = (line.split() for line in printed.splitlines())
        return [row[1].rpartition(":")[2] for row in rows if len(row) > 3 and row[3] == "0A"]

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self._shell.kill()  # `unshare`; with it the namespaces and all that is in them
        self._shell.wait()
        self._listener.join()
        for pipe in (self._shell.stdin, self._shell.stdout):
            assert pipe is not None
            pipe.close()


def first_unlike(shown: list[str], printed: str) -> str | None:
    """The first line of `shown` that was not printed in its place, whatever its numbers; `...` stands for any lines."""
    rest = [_likeness(line) for line in printed.splitlines() if line.strip() and not _PROGRESS.match(line)]
    gap = False
    for line in shown:
        if not line.strip():
            continue
        if line.strip() == "...":
            gap = True
            continue
        like = _likeness(line)
        if like not in (rest if gap else rest[:1]):
            return line
        del rest[: rest.index(like) + 1]
        gap = False
    return None if gap or not rest else f"(the end, before {rest[0]!r})"


def _likeness(line: str) -> str:
    """A line without what differs from run to run: numbers, times, and how wide a column is."""
    return " ".join(_NUMBER.sub("#", line.split("   # ")[0]).split())
