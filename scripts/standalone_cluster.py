"""A Spark master with two workers that see nothing of this machine, and commands whose jobs run there.

Each worker has a network and a clock of its own (standalone_network.py), a mount namespace in which this checkout, its environment
and the driver's folder are empty, and a Python with pyarrow and numpy alone. What a cluster shares (an NFS, say) is one folder.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy
import pyarrow
import pyspark

from scripts.bench import machine
from scripts.standalone_network import HOST, Network

ROOT = Path(__file__).resolve().parents[1]
TURNSTILE = (sys.executable, "-c", "from turnstile.cli.main import main; main()")
SPARK = Path(pyspark.__file__).parent
WORKERS = 2
START_S = 120
MEMORY = "1g"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


class Executor(NamedTuple):
    """A process that runs tasks of one job, on a worker of that number."""

    pid: int
    worker: int
    log: Path

    def tasks(self) -> tuple[int, int]:
        """How many tasks it has begun and finished."""
        if not self.log.exists():
            return 0, 0
        said = self.log.read_text()
        return said.count("Executor: Running task"), said.count("Executor: Finished task")


class Cluster:
    """A master with two workers; `shared`: the one folder that workers see, `driver`: one that they do not."""

    def __init__(self, folder: Path) -> None:
        self.shared, self.driver = folder / "shared", folder / "driver"
        for each in (self.shared, self.driver):
            each.mkdir()
        self._home = folder / "workers"
        self._network = Network(WORKERS)
        self._processes: list[subprocess.Popen[bytes]] = []
        self.master = ""

    def start(self) -> None:
        """Returns when the master knows both workers."""
        (self._home / "spark").mkdir(parents=True)
        self._make_python()
        self._network.make()
        port, page = _free_port(), _free_port()
        self.master = f"spark://{HOST}:{port}"
        options = ["--host", HOST, "--port", str(port), "--webui-port", str(page)]
        self._launch([], HOST, "master", SPARK, "org.apache.spark.deploy.master.Master", *options)
        for number in range(WORKERS):
            address = self._network.address(number)
            options = ["--host", address, "--cores", "1", "--memory", MEMORY, "--webui-port", "0", self.master]
            options = ["--work-dir", str(self._home / f"work{number}"), *options]
            self._launch(
                self._hidden(number),
                address,
                f"worker{number}",
                self._home / "spark",
                "org.apache.spark.deploy.worker.Worker",
                *options,
            )
        until = time.monotonic() + START_S
        while (self._home / "master.log").read_text().count("Registering worker") < WORKERS:
            if time.monotonic() > until or any(process.poll() is not None for process in self._processes):
                sys.exit("\n".join(path.read_text()[-2000:] for path in self._home.glob("*.log")))
            time.sleep(0.2)

    def end(self) -> None:
        """Ends all of it."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait()
        self._network.end()

    def worker(self, number: int) -> int:
        """The process of a worker, whose executors are below it."""
        return self._processes[1 + number].pid

    def executors(self) -> list[Executor]:
        """The executors that run."""
        found = []
        for number in range(WORKERS):
            for pid in machine.tree(self.worker(number))[1:]:
                with contextlib.suppress(OSError):
                    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                    if EXECUTOR in words:
                        job, name = (words[words.index(option) + 1] for option in ("--app-id", "--executor-id"))
                        found.append(Executor(pid, number, self._home / f"work{number}" / job / name / "stderr"))
        return found

    def python(self, *, without: str = "") -> str:
        """A worker's Python, perhaps without one of its libraries."""
        return str(self._home / ("python" if not without else f"python-without-{without}") / "bin" / "python3")

    def sees(self, code: str) -> subprocess.CompletedProcess[str]:
        """The output of some code in a worker's Python."""
        return subprocess.run([*self._hidden(), self.python(), "-c", code], capture_output=True, text=True, check=False)

    def _make_python(self) -> None:
        for without in ("", "numpy", "pyarrow"):
            home = Path(self.python(without=without)).parents[1]
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
            [packages] = home.glob("lib/python*/site-packages")
            for library in (numpy, pyarrow):
                if library.__name__ == without:
                    continue
                source = Path(library.__file__).parent
                for each in (source, source.with_name(f"{source.name}.libs")):
                    if each.exists():
                        shutil.copytree(each, packages / each.name, copy_function=_link)

    def _hidden(self, number: int = 0) -> list[str]:
        """The command before a command of a worker: it sees no folder of the driver's, and has Spark in a place of its own."""
        hidden = [self.driver, ROOT, *([] if SPARK.is_relative_to(ROOT) else [SPARK])]
        here = [f"mount --bind {SPARK} {self._home / 'spark'}", *(f"mount -t tmpfs none {each}" for each in hidden)]
        mounts = [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            f'{" && ".join(here)} && exec "$@"',
            "sh",
        ]
        return [*self._network.within(number), *mounts]

    def _launch(self, before: list[str], address: str, name: str, home: Path, kind: str, *options: str) -> None:
        with (self._home / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [*before, str(home / "bin" / "spark-class"), kind, *options],
                    stdout=log,
                    stderr=log,
                    cwd="/",
                    env={**_plain_environment(), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": address},
                )
            )


def _plain_environment() -> dict[str, str]:
    """This process's, but for what names its Python and its Spark."""
    mine = ("VIRTUAL_ENV", "PYTHONPATH", "PYSPARK_PYTHON", "SPARK_HOME")
    return {name: value for name, value in os.environ.items() if name not in mine}


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        return int(sock.getsockname()[1])


def turnstile(cluster: Cluster, *arguments: str, python: str = "") -> subprocess.CompletedProcess[str]:
    """The output of the command."""
    process = begin(cluster, *arguments, python=python)
    out, err = process.communicate()
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def begin(cluster: Cluster, *arguments: str, python: str = "") -> subprocess.Popen[str]:
    """The command, in the driver's folder, with temporary files in it."""
    (cluster.driver / "tmp").mkdir(exist_ok=True)
    environment = {
        **_plain_environment(),
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": HOST,
        "TMPDIR": str(cluster.driver / "tmp"),
    }
    if python:
        environment["PYSPARK_PYTHON"] = python
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*TURNSTILE, *arguments], stdout=pipe, stderr=pipe, text=True, env=environment, cwd=cluster.driver
    )


@contextlib.contextmanager
def running() -> Iterator[Cluster]:
    """A cluster with its folder, which goes with it."""
    with tempfile.TemporaryDirectory(prefix="turnstile-standalone-") as folder:
        cluster = Cluster(Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.end()
