"""The tools that the benchmarks measure with: the C programs compiled on the spot, process trees, CPU time and memory."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from turnstile.admin_client import AdminClient

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build" / "bench"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_SETTLE_S = 30
SHARDS = 2
API_VERSIONS = bytes.fromhex("0000001b0012000300000001000562656e6368000662656e636804312e3000")
_TRACKED = Path("/proc/sys/net/netfilter")


class CannotMeasure(Exception):
    """Something the benchmarks need is not on this machine, or did not do its part; one sentence."""


class Server(NamedTuple):
    """A server under test: its port, the process at the root of its tree (`pid`), and its admin API if it has one.

    `ports`: of all listeners of a Turnstile, by name; `port` is the first.
    """

    port: int
    pid: int
    admin: AdminClient | None = None
    ports: Mapping[str, int] = {}


class Load(NamedTuple):
    """The measurements of one run of the client. `cpu_us`: server CPU per connection or request, all its processes.

    `failed`: connections that could not be begun, or ended within an answer or between two.
    """

    per_s: float
    cpu_us: float
    p50_us: float
    p99_us: float
    answered: int
    refused: int
    failed: int


def binary(name: str) -> str:
    """The compiled C program of this name. Raises CannotMeasure without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise CannotMeasure("The benchmarks compile their client with cc: apt-get install gcc libc6-dev")
    source, target = HERE / f"{name}.c", BUILD / name
    changed = max(each.stat().st_mtime for each in (source, *HERE.glob("*.h")))
    if not target.exists() or target.stat().st_mtime < changed:
        BUILD.mkdir(parents=True, exist_ok=True)
        subprocess.run([compiler, "-O2", "-o", str(target), str(source), "-ldl"], check=True)
    return str(target)


@contextmanager
def accept_loop(answer_bytes: int = 0, processes: int = SHARDS, certificate: Sequence[str] = ()) -> Iterator[Server]:
    """The bare C accept loop, as many processes as Turnstile has shards. `answer_bytes`: the size of its answer to each read; 0: it
    closes. `certificate`: the files of a certificate and its key; then it speaks TLS."""
    command = [binary("accept_loop"), str(processes), str(answer_bytes), *certificate]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        yield Server(int(process.stdout.readline()), process.pid)
    finally:
        process.stdin.close()
        process.wait(timeout=10)
        process.stdout.close()


@contextmanager
def turnstile(*options: str, port: int = 0, shards: int = SHARDS, checkout: Path | None = None) -> Iterator[Server]:
    """A cluster of one broker, as a user starts it, journal and counters on, in a temporary directory.

    `checkout`: runs the code in that folder, which has a .venv; None: the code of this environment.
    """
    binaries = Path(sys.executable).parent if checkout is None else checkout / ".venv" / "bin"
    with TemporaryDirectory(prefix="turnstile-bench-") as home:
        command = [str(binaries / "turnstile"), "up", "--json", "--shards", str(shards)]
        command += ["--admin-port", "0", "--data-dir", f"{home}/data", *options]
        command += [] if "--listener" in options else ["--port", str(port)]
        with open(f"{home}/err", "wb") as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line.startswith("{"):
                raise CannotMeasure(f"turnstile up failed: {Path(home, 'err').read_text().strip()[-300:]}")
            said = json.loads(line)
            ports = {each["name"]: int(each["address"].rpartition(":")[2]) for each in said["listeners"]}
            yield Server(next(iter(ports.values())), process.pid, AdminClient(said["admin"]), ports)
        finally:
            process.terminate()
            process.wait(timeout=20)
            process.stdout.close()


def tree(pid: int) -> list[int]:
    """A process and everything below it."""
    tasks = Path(f"/proc/{pid}/task")
    if not tasks.exists():
        return []
    children: list[str] = []
    with suppress(FileNotFoundError):  # it has ended meanwhile
        for task in tasks.glob("*/children"):  # of a JVM, any thread starts processes
            with suppress(FileNotFoundError, ProcessLookupError):
                children += task.read_text().split()
    return [pid, *(below for child in children for below in tree(int(child)))]


def cpu_s(pid: int) -> float:
    """CPU time of the whole tree so far, user and system, of living and of reaped children."""
    total = 0
    for each in tree(pid):
        words = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        total += sum(map(int, words[11:15]))
    return total / TICKS_PER_S


def settle(*servers: Server) -> None:
    """Waits until the servers use next to no CPU, at most _SETTLE_S: a converter imports pyarrow at a journal's first events, which
    takes seconds."""
    for _ in range(_SETTLE_S):
        before_s = sum(cpu_s(server.pid) for server in servers)
        time.sleep(1)
        if sum(cpu_s(server.pid) for server in servers) - before_s < 0.03:
            return


def memory_bytes(pid: int) -> int:
    """Memory of the whole tree; pages shared by several processes count once (PSS)."""
    total = 0
    for each in tree(pid):
        for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


def drive(server: Server, mode: str, **values: Any) -> Load:
    """Run the C client against `server`. Raises CannotMeasure when nothing came back."""
    before = cpu_s(server.pid)
    command = [binary("client"), mode, str(server.port), *(f"{name}={value}" for name, value in values.items())]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    spent = cpu_s(server.pid) - before
    done = said["answered"] + said["refused"]
    if not done:
        raise CannotMeasure(f"the client got no answer: {said}")
    _check_tracking()
    cpu_us = spent / done * 1e6
    return Load(cpu_us=cpu_us, **{name: said[name] for name in Load._fields if name != "cpu_us"})


def _check_tracking() -> None:
    """Raises CannotMeasure when the kernel's table of tracked connections is full, as packets are dropped then."""
    count, most = (_TRACKED / f"nf_conntrack_{name}" for name in ("count", "max"))
    if count.exists() and int(count.read_text()) > 0.95 * int(most.read_text()):
        raise CannotMeasure(
            "the kernel tracks connections, and its table is full (nf_conntrack_max): remove the NAT rules that containers "
            "have left (iptables -t nat -S), and wait for two minutes"
        )


def admin_of(server: Server) -> AdminClient:
    """The admin API of a Turnstile."""
    assert server.admin is not None
    return server.admin


def put(server: Server, upsert: dict[str, Any]) -> None:
    """Change settings of a Turnstile; returns when they are enforced."""
    admin_of(server).put("/v1/cluster_config", {"upsert": upsert, "remove": []})


def put_quota(server: Server, entity: dict[str, str], quota: dict[str, float]) -> None:
    """Set quotas of one entity; returns when they are enforced."""
    admin_of(server).put("/v1/quotas", {"alter": [{"entity": entity, "set": quota, "remove": []}]})


def answers(port: int) -> bool:
    """True if a broker on this port answers ApiVersions right now."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
            sock.sendall(API_VERSIONS)
            return bool(sock.recv(4096))
    except OSError:
        return False


def answer_bytes(port: int) -> int:
    """The size of the answer to ApiVersions, with its length prefix."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
        sock.sendall(API_VERSIONS)
        return 4 + int.from_bytes(sock.recv(4), "big")


def held(port: int, ip: str, count: int) -> list[socket.socket]:
    """`count` admitted connections from `ip`; close them yourself."""
    opened = []
    for _ in range(count):
        sock = socket.create_connection(("127.0.0.1", port), timeout=5, source_address=(ip, 0))
        opened.append(sock)
        sock.sendall(API_VERSIONS)
        if not sock.recv(4096):
            raise CannotMeasure(f"{ip} was refused below its cap")
    return opened


def since(began: float) -> float:
    """Seconds since a time.perf_counter()."""
    return time.perf_counter() - began
