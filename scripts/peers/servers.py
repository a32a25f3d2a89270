"""Other people's brokers, started on free loopback ports to compare with: a real Kafka, and kfake.

Each is a context manager whose value is a Server; leaving it ends exactly the process it started.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from scripts.peers.fetching import Missing, fetch
from scripts.peers.jars import BUILD, HERE, JVM_FLAGS, VERSION, Tools, classpath

START_TIMEOUT_S = 180.0


class Server(NamedTuple):
    """A running peer: where clients connect ("host:port,..."), and its process id."""

    bootstrap: str
    pid: int


def free_port() -> int:
    """A TCP port of 127.0.0.1 on which nothing listens right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def kfake(brokers: int = 1, *, partitions: int = 10, options: Sequence[str] = ()) -> Iterator[Server]:
    """franz-go's fake cluster, built on first use; a topic it makes by itself has so many partitions. `options`: of its security,
    see kfake/main.go. Raises Missing without Go, or when it can't be built."""
    command = [kfake_binary(), "-brokers", str(brokers), "-partitions", str(partitions), *options]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        yield Server(process.stdout.readline().strip(), process.pid)
    finally:
        process.stdin.close()
        process.wait(timeout=10)
        process.stdout.close()


def find_go() -> str | None:
    """The go command, also where its installer has put it and the PATH does not say so."""
    return shutil.which("go") or shutil.which("/usr/local/go/bin/go")


def kfake_binary() -> str:
    """The path of kfake, which is built where it is missing or its source has changed. Raises Missing."""
    go = find_go()
    if go is None:
        raise Missing("Go is not installed, so kfake can't be built")
    binary, source = BUILD / "kfake", HERE / "kfake"
    if not binary.exists() or any(f.stat().st_mtime > binary.stat().st_mtime for f in source.iterdir()):
        BUILD.mkdir(parents=True, exist_ok=True)
        fetch([go, "build", "-o", binary, "."], source)
    return str(binary)


@contextmanager
def kafka(
    settings: Mapping[str, str] | None = None,
    *,
    port: int = 0,
    brokers: int = 1,
    heap: str = "1g",
    features: Sequence[str] = (),
    version: str = VERSION,
) -> Iterator[Server]:
    """Kafka brokers, the first with their controller (KRaft), in a temporary directory. Raises Missing without the jars.

    `settings` are broker properties on top of the ones they need, `port` that of the first listener, if they name one;
    `features` are levels that differ from the release's own, as "share.version=1". The process id is the first broker's.
    Raises TimeoutError if one never answers.
    """
    path = classpath(version)
    levels = [word for feature in features for word in ("--feature", feature)]
    with tempfile.TemporaryDirectory(prefix="kafka-peer-") as home, ExitStack() as running:
        ports = [port or free_port(), *(free_port() for _ in range(brokers - 1))]
        controller_port = free_port()
        files = [Path(home) / f"server-{node}.properties" for node in range(brokers)]
        for node, file in enumerate(files):
            file.write_text(_properties(f"{home}/data-{node}", node, ports[node], controller_port, settings or {}))
        with Tools(version) as tools:
            for node, file in enumerate(files):
                first = () if node else ("--standalone", *levels)
                made = tools("kafka-storage", "format", "-t", "turnstilePeerKafka0000A", "-c", str(file), *first)
                if made.code != 0:
                    raise RuntimeError(f"Kafka's storage can't be formatted: {made.err or made.out}")
        processes = [running.enter_context(_running(path, heap, file)) for file in files]
        for of_node, process in zip(ports, processes, strict=True):
            wait_until_it_listens(of_node, process)
        yield Server(",".join(f"127.0.0.1:{of_node}" for of_node in ports), processes[0].pid)


@contextmanager
def _running(path: str, heap: str, properties: Path) -> Iterator[subprocess.Popen[bytes]]:
    with properties.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(
            ["java", f"-Xmx{heap}", *JVM_FLAGS[1:3], "-cp", path, "kafka.Kafka", str(properties)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "LOG_DIR": str(properties.parent)},
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _properties(data: str, node: int, port: int, controller_port: int, settings: Mapping[str, str]) -> str:
    controller = f",CONTROLLER://127.0.0.1:{controller_port}" if node == 0 else ""
    merged = {
        "process.roles": "broker" if node else "broker,controller",
        "node.id": str(node),
        "listeners": f"PLAINTEXT://127.0.0.1:{port}{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT",
        "log.dirs": data,
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        **settings,
    }
    return "".join(f"{name}={value}\n" for name, value in merged.items())


def wait_until_it_listens(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return once `port` answers. Raises ChildProcessError if the process ended, TimeoutError if it never answers."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ChildProcessError(f"it ended with code {process.returncode} instead of listening on {port}")
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listened on {port} within {START_TIMEOUT_S:.0f} s")
