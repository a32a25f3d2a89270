"""Clusters with names: two of them beside each other, each found by its own name, as long as it lives."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import harness
import pytest

from broker.process.cluster_names import find, running


class Machine:
    """A user's shell on a machine where nothing else runs, with a folder for the session."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
        monkeypatch.setenv("TMPDIR", str(folder))
        for name in ("TURNSTILE_ADMIN", "TURNSTILE_NAME"):
            monkeypatch.delenv(name, raising=False)

    def run(self, *arguments: str, expect: int = 0, **variables: str) -> str:
        done = subprocess.run(
            [harness.TURNSTILE, *arguments],
            env={**os.environ, **variables},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout + done.stderr

    def up(self, name: str, *options: str) -> None:
        self.run("up", "--name", name, "--detach", "--shards", "1", "--journal", "spool", *options)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    yield Machine(tmp_path, monkeypatch)
    for each in running():
        os.kill(each.pid, signal.SIGTERM)
    harness.until(lambda: not running(), within_s=20, what="no cluster is left")


def test_two_clusters_are_each_found_by_name(machine: Machine) -> None:
    machine.up("orders", "--topic", "orders:2")
    machine.up("payments", "--topic", "payments:3")
    assert [each.name for each in running()] == ["orders", "payments"]
    assert "payments" in machine.run("topic", "list", "--name", "payments")
    machine.run("config", "set", "--name", "orders", "kafka_connections_max_per_ip", "7")
    assert "7" in machine.run("config", "get", "--cluster", "orders", "kafka_connections_max_per_ip")
    assert "7" not in machine.run("config", "get", "kafka_connections_max_per_ip", TURNSTILE_NAME="payments")
    assert machine.run("health", "--name", "orders") == "healthy\n" == machine.run("health", TURNSTILE_NAME="orders")
    hints = [
        ("config", "set", "--observe", "kafka_connections_max", "9"),
        ("quota", "observed"),
        ("quota", "set", "--observe", "client-id=a", "request_percentage=5"),
    ]
    said = [
        line
        for words in hints
        for line in machine.run(*words, "--name", "orders").splitlines()
        if ": turnstile " in line
    ]
    assert len(said) == len(hints) and all(line.endswith(" --name orders") for line in said)
    fault = ("fault", "add", "delay", "--cluster", "orders", "--name", "slow", "--delay-ms", "1")
    machine.run(*fault)
    assert "slow" in machine.run("fault", "list", "--name", "orders")
    machine.run("down", "--name", "payments")
    assert [each.name for each in running()] == ["orders"]


def test_status_lists_other_named_clusters(machine: Machine) -> None:
    machine.up("orders")
    machine.up("payments")
    told = json.loads(machine.run("status", "--name", "orders", "--json"))
    assert [each["name"] for each in told["named"]] == ["payments"]
    shown = machine.run("status", "--name", "orders")
    assert "payments" in shown and "epoch" in shown


def test_a_name_of_no_cluster_is_said_with_those_that_run(machine: Machine) -> None:
    machine.up("orders")
    assert "running clusters: orders" in machine.run("status", "--name", "order", expect=1)
    assert "give --admin or --name" in machine.run("status", "--name", "orders", "--admin", "127.0.0.1:1", expect=2)
    assert "--name orders" in machine.run("status", "--admin", "127.0.0.1:1", expect=1)
    assert "is not a name" in machine.run("up", "--name", "../x", expect=2)


def test_a_name_is_one_clusters_and_free_when_that_has_died(machine: Machine) -> None:
    machine.up("orders")
    pid = running()[0].pid
    said = machine.run("up", "--name", "orders", expect=1)
    assert f"a cluster named orders is running (pid {pid})" in said and "--name orders" in said
    os.kill(pid, signal.SIGKILL)
    machine.up("orders")
    found = find("orders")
    assert found is not None and found.pid != pid


def test_hints_after_the_start_name_the_cluster(machine: Machine) -> None:
    shown = machine.run("up", "--name", "orders", "--detach", "--shards", "1", "--journal", "spool")
    assert "turnstile config set kafka_connections_max_per_ip 50 --name orders" in shown


def test_a_folder_that_others_can_write_to_is_not_trusted(machine: Machine) -> None:
    (machine.folder / "turnstile").mkdir(mode=0o777)
    (machine.folder / "turnstile").chmod(0o777)
    assert "other users can write to it" in machine.run("up", "--name", "orders", expect=1)
    assert running() == []
