"""Starts real clusters for tests, through the command a user runs, and sees to it that nothing of them is left."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import prefork
from command_in_process import run_here, runs_here
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from turnstile.admin_client import AdminClient, AdminError

TURNSTILE = str(Path(sys.executable).parent / "turnstile")
T = TypeVar("T")
PATIENCE_S = 60.0
"""For what happens at once on an idle machine; one that is busy elsewhere takes a part of it, a test that fails takes all of it."""


class Cluster:
    """A running `turnstile up`; `listeners[name][broker]` is (host, port)."""

    def __init__(
        self,
        data_dir: Path,
        *options: str,
        brokers: int = 1,
        shards: int = 2,
        descriptors: int | None = None,
        within: Sequence[str] = (),
    ) -> None:
        """`descriptors`: how many each process may have open; `within`: a command that runs the one behind it."""
        self.data_dir = data_dir
        limited = [*within] if descriptors is None else [*within, "prlimit", f"--nofile={descriptors}"]
        command = [*limited, TURNSTILE, "up", "--json", "--data-dir", str(data_dir), "--admin-port", "0"]
        command += ["--brokers", str(brokers), "--shards", str(shards), "--end-with-pid", str(os.getpid())]
        if "--listener" not in options and "--port" not in options:
            command += ["--port", "0"]
        if "--journal" not in options:
            command += ["--journal", "spool"]  # a second of processor time less for each cluster that ends
        self.errors = data_dir.with_suffix(".stderr")
        self.process: subprocess.Popen[str] | prefork.Forked
        with self.errors.open("ab") as errors:
            if limited:
                self.process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=errors, text=True)
            else:
                self.process = prefork.fork([*command, *options], errors)
        line = self._first_line()
        self.started: dict[str, Any] = json.loads(line)
        self.admin: str = self.started["admin"]
        self.client = AdminClient(self.admin, timeout_s=PATIENCE_S)
        self.listeners: dict[str, list[tuple[str, int]]] = {}
        for each in self.started["listeners"]:
            host, _, port = each["address"].rpartition(":")
            self.listeners.setdefault(each["name"], []).append((host.strip("[]"), int(port)))

    def _first_line(self) -> str:
        assert self.process.stdout is not None
        said = select.poll()
        said.register(self.process.stdout, select.POLLIN)
        line = self.process.stdout.readline() if said.poll(int(1000 * PATIENCE_S)) else ""
        if not line.startswith("{") or line == "{\n":  # an error is an object of several lines
            self.process.kill()
            self.process.wait()
            line += self.process.stdout.read()
            self.process.stdout.close()
            raise AssertionError(f"turnstile up said {line!r}: {self.errors.read_text()}")
        return line

    @property
    def address(self) -> tuple[str, int]:
        """Of broker 0, on the first listener."""
        return next(iter(self.listeners.values()))[0]

    @property
    def bootstrap(self) -> str:
        host, port = self.address
        return f"{host}:{port}"

    def get(self, path: str) -> Any:
        """The JSON of an answer. Raises AdminRefused or AdminUnreachable."""
        return self.client.get(path)

    def put(self, path: str, body: Any) -> Any:
        return self.client.put(path, body)

    def metrics(self) -> list[Metric]:
        """The families of /metrics."""
        return list(text_string_to_metric_families(self.client.text("/metrics")))

    def metric(self, *names: str, **labels: str) -> float:
        """The sum of the samples of these names that have these labels. Only their lines are parsed, as the page has hundreds
        of others."""
        begins = tuple(name + after for name in names for after in "{ ")
        lines = [line for line in self.client.text("/metrics").splitlines() if line.startswith(begins)]
        families = text_string_to_metric_families("\n".join(lines) + "\n")
        samples = (sample for family in families for sample in family.samples)
        return sum(each.value for each in samples if labels.items() <= each.labels.items())

    def decided(self) -> float:
        """How many connections the shards have admitted or refused since the cluster started."""
        return self.metric("turnstile_connections_admitted_total", "turnstile_connections_refused_total")

    def until_decided(self, count: int) -> None:
        """Waits until the shards have admitted or refused `count` connections more than now: a storm goes on."""
        before = until(self.decided, what="a first decision")
        until(lambda: self.decided() >= before + count, what=f"{count} more decisions")

    def set(self, name: str, value: Any) -> None:
        """Sets a setting; when this returns, it is enforced."""
        self.put("/v1/cluster_config", {"upsert": {name: value}, "remove": []})

    def unset(self, name: str) -> None:
        self.put("/v1/cluster_config", {"upsert": {}, "remove": [name]})

    def reset(self) -> None:
        """As it was when it started, without its connections; counters and journal go on."""
        self.client.post("/v1/reset")

    def turnstile(self, *arguments: str, expect: int = 0) -> str:
        """What a turnstile command says, run against this cluster as a user would."""
        run = self._run(*arguments, expect=expect)
        return run.stdout + run.stderr

    def told(self, *arguments: str, expect: int = 0) -> Any:
        """The JSON that a turnstile command prints. On a busy machine it may say on stderr how far it is."""
        return json.loads(self._run(*arguments, "--json", expect=expect).stdout)

    def _run(self, *arguments: str, expect: int) -> subprocess.CompletedProcess[str]:
        """A command that does no more than ask the cluster runs in this process (command_in_process.py), any other in its own."""
        named = {"TURNSTILE_ADMIN": self.admin}
        run = (
            run_here(arguments, named)
            if runs_here(arguments)
            else subprocess.run(
                [TURNSTILE, *arguments], env={**os.environ, **named}, capture_output=True, text=True, timeout=120
            )
        )
        assert run.returncode == expect, f"{arguments}: exit {run.returncode}\n{run.stdout}\n{run.stderr}"
        return run

    def shard_pid(self, shard: int, broker: int = 0) -> int:
        return next(
            each["pid"]
            for each in self.get("/v1/shards")["shards"]
            if (each["broker"], each["shard"]) == (broker, shard)
        )

    def processes(self) -> list[int]:
        """The supervisor and every process below it."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [self.process.pid, *map(int, children)]

    def stop(self) -> None:
        """Ends the cluster as Ctrl-C does, and asserts that nothing of it is left."""
        if self.process.poll() is None:
            processes = self.processes()
            self.process.send_signal(signal.SIGINT)
            assert self.process.wait(timeout=PATIENCE_S) == 0, self.errors.read_text()
            assert [pid for pid in processes if _alive(pid)] == []
        assert self.process.stdout is not None
        self.process.stdout.close()

    def kill(self) -> None:
        """Ends the cluster without warning: kill -9 of the supervisor."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def running(data_dir: Path, *options: str, **size: Any) -> Iterator[Cluster]:
    """A cluster for one `with` block."""
    cluster = Cluster(data_dir, *options, **size)
    try:
        yield cluster
    finally:
        cluster.stop()


@contextmanager
def audited(data_dir: Path, *options: str, **size: Any) -> Iterator[Cluster]:
    """A cluster for one `with` block, whose journal holds in the audit when it has ended."""
    with running(data_dir, *options, **size) as cluster:
        yield cluster
    done = subprocess.run([TURNSTILE, "audit", str(data_dir)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def until(condition: Callable[[], T], *, within_s: float = PATIENCE_S, what: str = "condition") -> T:
    """Waits until `condition()` is true, asking again and again: for what other processes do, which no event here tells.

    What takes long is asked for less often, as asking costs both sides.
    """
    begun = time.monotonic()
    while True:
        try:
            value = condition()
        except (OSError, AdminError):
            value = None  # type: ignore[assignment]
        if value:
            return value
        waited_s = time.monotonic() - begun
        if waited_s > within_s:
            raise AssertionError(f"{what} did not hold within {within_s} s")
        time.sleep(min(max(0.01, waited_s / 10), 0.1))


def connect(address: tuple[str, int], ip: str | None = None) -> socket.socket:
    """A TCP connection from `ip`, any address of 127.0.0.0/8."""
    sock = socket.socket()
    sock.settimeout(PATIENCE_S)
    try:
        if ip is not None:
            sock.bind((ip, 0))
        sock.connect(address)
    except OSError:
        sock.close()
        raise
    return sock


_API_VERSIONS = bytes.fromhex("00000011 0012 0000 00000001 0007 74657374696e67".replace(" ", ""))


def admitted(sock: socket.socket) -> bool:
    """Whether the broker let this connection in: it answers ApiVersions. A refused one is closed before any byte."""
    try:
        sock.sendall(_API_VERSIONS)
        answer = sock.recv(4)
    except (ConnectionResetError, BrokenPipeError):
        return False
    if not answer:
        return False
    rest = int.from_bytes(answer, "big")
    while rest:
        rest -= len(sock.recv(rest))
    return True


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
