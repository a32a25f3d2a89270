"""A data directory that is used again: what an earlier run has stored and the command line asks for is said where it is typed."""

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import TURNSTILE, Cluster, until
from turnstile.admin_client import AdminError

CAP = "kafka_connections_max_per_ip"


def run(*words: str, expect: int = 0) -> str:
    done = subprocess.run([TURNSTILE, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout + done.stderr


def up(data: Path, *words: str) -> str:
    """Starts one in the background, and returns its words."""
    options = ["--data-dir", str(data), "--port", "0", "--admin-port", "0", "--shards", "1", "--journal", "spool"]
    return run("up", "--detach", *options, *words)


def admin_of(said: str) -> str:
    return next(line.split()[1] for line in said.splitlines() if line.split()[:1] == ["admin"])


def started(data: Path, *words: str) -> dict[str, Any]:
    """What it says as JSON; it has ended again."""
    found: dict[str, Any] = json.loads(up(data, "--json", *words))
    run("down", "--admin", found["admin"])
    return found


def _coordinator(cluster: Cluster) -> int | None:
    try:
        pid: int = cluster.get("/v1/cluster")["coordinator_pid"]
        return pid
    except AdminError:
        return None


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Of a run in which a live change set a cap of 20, and a topic has 4 partitions."""
    said = up(tmp_path / "data", "--topic", "orders:4")
    run("config", "set", CAP, "20", "--admin", admin_of(said))
    run("down", "--admin", admin_of(said))
    return tmp_path / "data"


def test_an_overruled_setting_is_said_with_its_time_and_the_command_that_undoes_it(data: Path) -> None:
    said = up(data, "--set", f"{CAP}=50")
    [line] = [line for line in said.splitlines() if "not in force" in line]
    assert f"{CAP}=50 was asked for, but 20 is in force: set on 20" in line and " by turnstile (" in line
    command = shlex.split(line.partition("or now: ")[2])
    run(*command[1:])
    assert run("config", "get", CAP, "--admin", admin_of(said)).strip() == "50"
    run("down", "--admin", admin_of(said))


def test_it_is_said_in_the_foreground_and_as_json_alike(data: Path) -> None:
    cluster = Cluster(data, "--set", f"{CAP}=50", shards=1)
    [told] = cluster.started["overruled"]
    cluster.stop()
    assert f"{CAP}=50 was asked for" in told
    assert cluster.errors.read_text() == ""


def test_the_command_line_can_be_told_to_win_and_later_changes_stay(data: Path) -> None:
    found = started(data, "--set", f"{CAP}=50", "--topic", "orders:6", "--override-stored")
    assert found["limits"][CAP] == "50" and found["overruled"] == []
    [note] = found["notes"]
    assert note.startswith(f"{CAP}=50 replaces 20, which was set on 20")
    again = started(data, "--set", f"{CAP}=50", "--topic", "orders:6")
    assert (again["limits"][CAP], again["overruled"], again["notes"]) == ("50", [], [])


def test_a_coordinator_that_is_started_again_overrules_no_change_of_its_run(data: Path) -> None:
    cluster = Cluster(data, "--set", f"{CAP}=50", "--override-stored", shards=1)
    cluster.set(CAP, 7)
    before = cluster.get("/v1/cluster")["coordinator_pid"]
    os.kill(before, signal.SIGKILL)
    until(lambda: _coordinator(cluster) not in (None, before), what="another coordinator")
    assert cluster.get(f"/v1/cluster_config?key={CAP}")[CAP] == 7
    cluster.stop()


@pytest.mark.parametrize(
    ("asked", "to_do"), [(6, "start with --override-stored"), (2, "Partitions are never taken away")]
)
def test_a_topic_with_other_partitions_is_said(data: Path, asked: int, to_do: str) -> None:
    [told] = started(data, "--topic", f"orders:{asked}")["overruled"]
    assert told.startswith(f"topic orders has 4 partitions since an earlier run, and {asked} were asked for.")
    assert to_do in told


def test_what_a_file_replaces_is_said(tmp_path: Path) -> None:
    file, data = tmp_path / "turnstile.toml", tmp_path / "data"
    file.write_text('[users]\nalice = "a"\n[[quota]]\nuser = "alice"\nproducer_byte_rate = 1048576\n')
    said = up(data, "--config", str(file), "--set", "quota.window.num=2")
    run("quota", "set", "user=alice", "producer_byte_rate=2097152", "--admin", admin_of(said))
    run("down", "--admin", admin_of(said))
    file.write_text(file.read_text().replace('"a"', '"b"'))
    quota, user, *_ = started(data, "--config", str(file), "--set", "quota.window.num=2")["notes"]
    assert quota.startswith("user=alice producer_byte_rate=1048576 replaces 2097152, which was set on ")
    assert "To go back: turnstile quota set user=alice producer_byte_rate=2097152 --admin http://" in quota
    assert user.startswith("the password of user alice replaces another one, which was set on ")
    again = started(data, "--config", str(file), "--set", "quota.window.num=2")["notes"]
    assert not [note for note in again if "replaces" in note]


def test_a_limit_that_lets_no_connection_in_and_a_burst_are_said(tmp_path: Path) -> None:
    notes = started(tmp_path / "data", "--set", f"{CAP}=0", "--set", "max.connection.creation.rate=2")["notes"]
    assert notes[0].startswith(
        f"{CAP}=0 refuses every connection; to let them in: turnstile config set {CAP} 100 --admin "
    )
    assert notes[1].startswith("after a pause 20 connections pass at once before max.connection.creation.rate=2")


def test_a_stored_setting_of_a_listener_that_is_gone_is_said(tmp_path: Path) -> None:
    data, name = tmp_path / "data", "listener.name.edge.max.connections"
    edge = Cluster(data, "--listener", "EDGE=127.0.0.1:0", shards=1)
    edge.set(name, 5)
    edge.stop()
    [note] = started(data)["notes"]
    assert note.startswith(
        f"{name}=5 is stored, and this cluster has no such listener. To forget it: turnstile config unset"
    )


def test_a_contradiction_with_what_is_stored_names_it(tmp_path: Path) -> None:
    data, name = tmp_path / "data", "max.connections.per.ip"
    first = Cluster(data, "--set", f"{name}.overrides=10.0.0.1:5", shards=1)
    first.set(name, 0)
    first.stop()
    said = run("up", "--data-dir", str(data), "--port", "0", "--admin-port", "0", expect=1)
    assert f"stored by an earlier run: {name} = 0. To replace that: --override-stored --set {name}=VALUE" in said
    assert started(data, "--override-stored", "--set", f"{name}=5")["limits"] == {name: "5"}
