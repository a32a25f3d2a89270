"""Plan, audit, report, follow and load on a Spark master whose workers see nothing of this machine: are the answers those of
local[*]?

A standalone master and two workers, as Spark's `sbin/start-*.sh` start them. Each worker has a network and a clock of its own
(standalone_network.py), a mount namespace in which this checkout, its environment and the driver's folder are empty, and a Python
with pyarrow and numpy alone. What a cluster shares (an NFS, say) is one folder: the inputs, and what the jobs write. Needs root,
for the namespaces. The drivers of a load have a Python without numpy; one of their workers is killed in the middle
(standalone_load.py), which is the last.

    make standalone                      exit code 0: every answer is the same
    python scripts/standalone.py load    load alone
"""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "turnstile" / "pipeline")]

import numpy  # noqa: E402
import pyarrow  # noqa: E402
import pyspark  # noqa: E402
from storms import Storm  # noqa: E402

from scripts import standalone_load  # noqa: E402
from scripts.standalone_network import HOST, Network  # noqa: E402

TURNSTILE = (sys.executable, "-c", "from turnstile.cli.main import main; main()")
SPARK = Path(pyspark.__file__).parent
WORKERS = 2
START_S = 120
PROGRESS = re.compile(r"\w+: .* \(\d+ s\)")
"""A line that says how far a job is."""
MEMORY = "1g"
WHAT_IT_HAS = """
import importlib.util, os
names = ("turnstile", "shards", "broker", "pyspark", "pandas", "numpy", "pyarrow")
print([name for name in names if importlib.util.find_spec(name)], os.listdir("{}"), os.listdir("{}"))
"""


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

    def python(self, *, without: str = "") -> str:
        """A worker's Python, perhaps without one of its libraries."""
        return str(self._home / ("python" if not without else f"python-without-{without}") / "bin" / "python3")

    def sees(self, code: str) -> subprocess.CompletedProcess[str]:
        """What a worker's Python does with some code."""
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
    """What the command says."""
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


FEW_TASKS = ("--conf", "spark.sql.shuffle.partitions=2")
"""The inputs are small."""
JOURNAL = "{shared}/journal"
CAPS = ("--per-ip-cap", "5,20", "--broker-cap", "30")
JOBS = {
    "plan": ("plan", "--input", "{shared}/conn.csv", "--format", "csv", *CAPS, "--json", "--html", "{out}/plan.html"),
    "audit": ("audit", JOURNAL, "--json", "--html", "{out}/audit.html"),
    "report": (
        "report",
        JOURNAL,
        "--json",
        "--html",
        "{out}/report.html",
        "--out",
        "{out}/tables",
        "--out-format",
        "csv",
    ),
    "follow": ("report", JOURNAL, "--follow", "--once", "--out", "{out}/counts"),
    "followed": ("followed", "{out}/counts", "--json"),
}


def answers(cluster: Cluster, job: str, on: str, *options: str, python: str = "") -> dict[str, str]:
    """What a job says, and what it writes; its time goes to stdout."""
    out = cluster.shared / on
    out.mkdir(exist_ok=True)
    began, began_at = time.monotonic(), time.time()
    given = [each.format(shared=cluster.shared, out=out) for each in JOBS[job]]
    done = turnstile(cluster, *given, *FEW_TASKS, *options, python=python)
    if done.returncode:
        sys.exit(f"{job} on {on}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    print(f"  {job:9} {time.monotonic() - began:5.1f} s on {on}", flush=True)
    pages = [page for page in (*out.glob("*.html"), *out.glob("tables/*")) if page.stat().st_mtime >= began_at]
    found = {"its output": done.stdout, **{page.name: page.read_text() for page in pages}}
    return {what: text.replace(str(out), "OUT") for what, text in found.items()}


def compared(cluster: Cluster) -> bool:
    """Whether each job's answer is the same on both masters; says where it is not."""
    is_same = True
    for job in JOBS:
        here = answers(cluster, job, "local", "--master", "local[*]")
        there = answers(cluster, job, "cluster", "--master", cluster.master, python=cluster.python())
        differ = [what for what in here | there if here.get(what) != there.get(what)]
        print(f"{job}: {', '.join(here)}: " + (f"{', '.join(differ)} differ" if differ else "the same"), flush=True)
        for what in differ:
            print(here.get(what), there.get(what), sep="\n")
        is_same &= not differ
    return is_same


def main() -> int:
    """The comparison, and the sentences of what can't be."""
    if os.geteuid() != 0 or shutil.which("java") is None:
        print("skipped: mount namespaces need root, and Spark a JDK")
        return 0
    with running() as cluster:
        seen = cluster.sees(WHAT_IT_HAS.format(ROOT, cluster.driver))
        assert seen.stdout == "['numpy', 'pyarrow'] [] []\n", seen
        print(
            "workers have numpy and pyarrow alone, and see nothing of the checkout and of the driver's folder",
            flush=True,
        )
        is_same = "load" in sys.argv[1:] or jobs(cluster)
        python = cluster.python(without="numpy")
        is_right = standalone_load.run(
            partial(begin, cluster, python=python), cluster.driver, cluster.master, cluster.worker(1)
        )
        assert not list((cluster.driver / "tmp").iterdir()), "temporary files are left"
    return 0 if is_same and is_right else 1


def jobs(cluster: Cluster) -> bool:
    """Whether each job's answer is the same there, and what can't be is one sentence."""
    Storm(1, ips=8).run(400).end().write(cluster.shared / "journal")
    rows = [f"10.0.0.{number % 3},{1000 + number},{1100 + number}" for number in range(600)]
    (cluster.shared / "conn.csv").write_text("ip,opened_at,closed_at\n" + "\n".join(rows) + "\n")
    is_same = compared(cluster)
    for said in refusals(cluster):
        print(said, flush=True)
    return is_same


def refusals(cluster: Cluster) -> Iterator[str]:
    """One sentence each for what workers lack."""
    shutil.copy(cluster.shared / "conn.csv", cluster.driver)
    plan = ("plan", "--format", "csv", "--per-ip-cap", "5", "--master", cluster.master, "--input")
    tries = [
        (*plan, str(cluster.shared / "conn.csv")), cluster.python(without="numpy"), "numpy",
        (*plan, str(cluster.shared / "conn.csv")), cluster.python(without="pyarrow"), "pyarrow",
        (*plan, str(cluster.shared / "conn.csv")), "/nowhere/python3", "/nowhere/python3",
        (*plan, str(cluster.driver / "conn.csv")), cluster.python(), "Workers see no file:",
    ]  # fmt: skip
    for arguments, python, word in zip(tries[::3], tries[1::3], tries[2::3], strict=True):
        done = turnstile(cluster, *arguments, python=str(python))
        said = [line for line in done.stderr.splitlines() if line and not PROGRESS.fullmatch(line)]
        yield f"  exit code {done.returncode}: {' '.join(said)}"
        assert done.returncode == 1 and len(said) == 1 and word in said[0], done.stderr


if __name__ == "__main__":
    sys.exit(main())
