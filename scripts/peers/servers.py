"""Other people's brokers, started on free loopback ports to compare with: a real Kafka 4.1, and kfake.

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
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from scripts.peers.jars import BUILD, HERE, JVM_FLAGS, VERSION, Missing, Tools, classpath

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
def kfake(brokers: int = 1, *, partitions: int = 10) -> Iterator[Server]:
    """franz-go's fake cluster, built on first use; a topic it makes by itself has so many partitions. Raises Missing without
    Go, or when it can't be built."""
    command = [_kfake_binary(), "-brokers", str(brokers), "-partitions", str(partitions)]
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


def _kfake_binary() -> str:
    go = find_go()
    if go is None:
        raise Missing("Go is not installed, so kfake can't be built")
    binary, source = BUILD / "kfake", HERE / "kfake"
    if not binary.exists() or any(f.stat().st_mtime > binary.stat().st_mtime for f in source.iterdir()):
        BUILD.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([go, "build", "-o", binary, "."], cwd=source, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise Missing(f"kfake can't be built: {done.stderr.strip().splitlines()[-1]}")
    return str(binary)


@contextmanager
def kafka(
    settings: Mapping[str, str] | None = None,
    *,
    port: int = 0,
    heap: str = "1g",
    features: Sequence[str] = (),
    version: str = VERSION,
) -> Iterator[Server]:
    """One Kafka broker, its own controller (KRaft), in a temporary directory. Raises Missing without the jars.

    `settings` are broker properties on top of the ones it needs, `port` that of the first listener, if they name one;
    `features` are levels that differ from 4.1's own, as "share.version=1".
    Raises TimeoutError if it never answers.
    """
    path = classpath(version)
    with tempfile.TemporaryDirectory(prefix="kafka-peer-") as home:
        port, properties = port or free_port(), Path(home) / "server.properties"
        properties.write_text(_properties(home, port, free_port(), settings or {}))
        with Tools(version) as tools:
            made = tools(
                "kafka-storage", "format", "-t", "turnstilePeerKafka0000A", "-c", str(properties), "--standalone",
                *(word for feature in features for word in ("--feature", feature)),
            )  # fmt: skip
        if made.code != 0:
            raise RuntimeError(f"Kafka's storage can't be formatted: {made.err or made.out}")
        with open(Path(home) / "out.log", "wb") as log:
            process = subprocess.Popen(
                ["java", f"-Xmx{heap}", *JVM_FLAGS[1:3], "-cp", path, "kafka.Kafka", str(properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "LOG_DIR": home},
            )
        try:
            wait_until_it_listens(port, process)
            yield Server(f"127.0.0.1:{port}", process.pid)
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _properties(home: str, port: int, controller_port: int, settings: Mapping[str, str]) -> str:
    merged = {
        "process.roles": "broker,controller",
        "node.id": "0",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT",
        "log.dirs": f"{home}/data",
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
