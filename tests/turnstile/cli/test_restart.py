"""`turnstile restart` and `turnstile logs`, with clusters in the foreground and detached."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import harness
from harness import TURNSTILE, running

from broker.process.data_dir import holder
from turnstile.admin_client import AdminClient


def run(*arguments: str, expect: int = 0) -> str:
    done = subprocess.run([TURNSTILE, *arguments], capture_output=True, text=True, timeout=90)
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout + done.stderr


@contextmanager
def detached(data_dir: Path, *options: str) -> Iterator[AdminClient]:
    """A cluster that was started with --detach."""
    up = ("up", "--detach", "--json", "--port", "0", "--admin-port", "0", "--shards", "1", "--journal", "spool")
    told = json.loads(run(*up, "--data-dir", str(data_dir), *options))
    try:
        yield AdminClient(told["admin"])
    finally:
        if (pid := holder(data_dir)) is not None:
            os.kill(pid, signal.SIGTERM)
            harness.until(lambda: holder(data_dir) is None, within_s=20, what="the cluster has ended")


def test_a_cluster_in_the_foreground_keeps_pid_ports_and_data(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--topic", "orders:2", brokers=2) as cluster:
        before = cluster.get("/v1/cluster")
        cluster.set("kafka_connections_max_per_ip", 7)
        assert "Restarted" in cluster.turnstile("restart")
        after = cluster.get("/v1/cluster")
        assert after["coordinator_pid"] != before["coordinator_pid"]
        assert [after[name] for name in ("pid", "listeners", "topics", "cluster_id")] == [
            before[name] for name in ("pid", "listeners", "topics", "cluster_id")
        ]
        assert cluster.get("/v1/cluster_config")["kafka_connections_max_per_ip"] == 7
        with harness.connect(cluster.address) as client:
            assert harness.admitted(client)


def test_a_temporary_data_directory_goes_with_its_last_run(tmp_path: Path) -> None:
    command = (TURNSTILE, "up", "--json", "--port", "0", "--admin-port", "0", "--shards", "1", "--topic", "a:1")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as cluster:
        assert cluster.stdout is not None
        told = json.loads(cluster.stdout.readline())
        run("restart", "--admin", told["admin"])
        again = json.loads(cluster.stdout.readline())
        assert (again["data_dir"], again["pid"]) == (told["data_dir"], told["pid"])
        cluster.send_signal(signal.SIGINT)
        assert cluster.wait(20) == 0
    assert list(tmp_path.iterdir()) == []


def test_its_configuration_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "turnstile.toml"
    file.write_text('[limits]\n"queued.max.requests" = 100\n')
    with detached(tmp_path / "data", "--config", str(file)) as admin:
        file.write_text('[limits]\n"queued.max.requests" = 200\n')
        told = json.loads(run("restart", "--admin", admin.url, "--json"))
        assert told["pid"] == holder(tmp_path / "data") == admin.get("/v1/cluster")["pid"]
        assert admin.get("/v1/cluster_config")["queued.max.requests"] == 200


def test_a_cluster_that_does_not_come_back_is_said(tmp_path: Path) -> None:
    file = tmp_path / "turnstile.toml"
    file.write_text("")
    with detached(tmp_path / "data", "--config", str(file)) as admin:
        file.write_text("[limits\n")
        said = run("restart", "--admin", admin.url, expect=1)
        assert "did not start again" in said and "turnstile.toml" in said


def test_logs_show_what_a_detached_cluster_said(tmp_path: Path) -> None:
    with detached(tmp_path / "data") as admin:
        shard = admin.get("/v1/shards")["shards"][0]["pid"]
        follow = subprocess.Popen(
            [TURNSTILE, "logs", "--follow", "--admin", admin.url], stdout=subprocess.PIPE, text=True
        )
        os.kill(shard, signal.SIGKILL)
        assert follow.stdout is not None
        with follow.stdout:
            assert any("was killed by SIGKILL" in line for line in follow.stdout)
            assert "was killed by SIGKILL" in run("logs", "--admin", admin.url, "-n", "5")
            run("down", "--admin", admin.url)
            follow.stdout.read()
        assert follow.wait(20) == 0, "it ends with the cluster"
    assert "was killed by SIGKILL" in run("logs", "--data-dir", str(tmp_path / "data"))


def test_a_cluster_without_a_log_says_why(tmp_path: Path) -> None:
    with running(tmp_path / "data", shards=1) as cluster:
        assert "only a cluster that was started with --detach" in cluster.turnstile("logs", expect=1)


def test_a_process_is_signalled_only_where_it_holds_the_data_directory(tmp_path: Path) -> None:
    """A cluster elsewhere may say the pid of a stranger here."""
    with running(tmp_path / "data", shards=1) as cluster:
        (tmp_path / "data" / "lock").unlink()
        assert "restart it where it runs" in cluster.turnstile("restart", expect=1)
        assert cluster.get("/healthz") == {"status": "ok"}
